# SPDX-License-Identifier: Apache-2.0
"""A body on a spring and damper in all six directions, simulated in its own coordinates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from sysid_core.arrays import FloatArray
from sysid_core.compliance.poses import Poses
from sysid_core.robot import Robot, load_robot, parse_description

MASS, LEVER = 3.0, np.array([0.02, -0.03, -0.2])
INERTIA = np.array([0.06, 0.05, 0.04])
GRAVITY = np.array([0.0, 0.0, -9.81])

URDF = f"""<robot name="body"><link name="base"/>
<link name="bob"><inertial><origin xyz="{LEVER[0]} {LEVER[1]} {LEVER[2]}"/><mass value="{MASS}"/>
<inertia ixx="{INERTIA[0]}" ixy="0" ixz="0" iyy="{INERTIA[1]}" iyz="0" izz="{INERTIA[2]}"/>
</inertial></link>
<joint name="hinge" type="continuous"><parent link="base"/><child link="bob"/>
<origin xyz="0.1 0.2 0.3" rpy="0 0 0"/><axis xyz="0 1 0"/></joint></robot>"""


def hanging(stiffness: FloatArray, damping: FloatArray, rest: FloatArray) -> Poses:
    """Return 6 s of poses at 120 Hz of the body let go from a bent place.

    Parameters
    ----------
    stiffness, damping : (6, 6)
    rest : (6,) [m, rad]
        Deflection at which the springs are slack.
    """
    seat = np.array([0.1, 0.2, 0.3])

    def derivative(_: float, state: FloatArray) -> FloatArray:
        x, q, v, w = state[:3], state[3:7], state[7:10], state[10:]
        R = Rotation.from_quat(q)
        arm = R.apply(LEVER)
        spin = R.apply(w)
        deflection = np.concatenate([x - arm - seat, R.as_rotvec()])
        rate = np.concatenate([v - np.cross(spin, arm), spin])
        wrench = -stiffness @ (deflection - rest) - damping @ rate
        torque = R.inv().apply(wrench[3:] - np.cross(arm, wrench[:3]))
        turn = Rotation.from_quat(q)
        qdot = 0.5 * np.concatenate(
            [turn.as_quat()[3] * w + np.cross(turn.as_quat()[:3], w), [-turn.as_quat()[:3] @ w]]
        )
        wdot = (torque - np.cross(w, INERTIA * w)) / INERTIA
        return np.concatenate([v, qdot, GRAVITY + wrench[:3] / MASS, wdot])

    start = Rotation.from_rotvec([0.1, 0.5, -0.2])
    centre = seat + [2e-3, -3e-3, 1e-3] + start.apply(LEVER)
    time = np.arange(721) / 120.0
    state = np.concatenate([centre, start.as_quat(), np.zeros(6)])
    run = solve_ivp(
        derivative, (0.0, 6.0), state, method="DOP853", t_eval=time, rtol=1e-10, atol=1e-12
    )
    q = run.y[3:7].T
    turn = Rotation.from_quat(q)
    position = run.y[:3].T - turn.apply(LEVER)
    q = q / np.linalg.norm(q, axis=1, keepdims=True)
    return Poses(time, ("bob",), position[:, None], q[:, None])


@pytest.fixture(scope="session")
def body(tmp_path_factory: pytest.TempPathFactory) -> Robot:
    """Return the robot that hangs."""
    path: Path = tmp_path_factory.mktemp("body") / "body.urdf"
    path.write_text(URDF, encoding="utf-8")
    return load_robot(parse_description({"name": "body", "urdf": str(path)}))


@pytest.fixture(scope="session")
def hang() -> Callable[[FloatArray, FloatArray, FloatArray], Poses]:
    """Return `hanging`: stiffness, damping, rest."""
    return hanging
