# SPDX-License-Identifier: Apache-2.0
"""A three-link pendulum whose joints are springs and dampers in all six directions.

It is simulated here with all its 36 coefficients known, and its poses are recorded at 120 Hz, as
in Dai's work on ATRIAS.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from bench.arms import robot_of
from bench.runner import Given, Result, run_benchmark, show_rows, show_table
from sysid_core.arrays import FloatArray
from sysid_core.compliance.estimate import AXES, identify_compliance
from sysid_core.compliance.poses import Poses
from sysid_core.robot import Robot

__all__ = ["run"]

RATE, SECONDS = 120.0, 12.0  # [Hz, s]
LINKS, LENGTH = 3, 0.5  # [-, m]
GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True)
class Pendulum:
    """Links that hang below each other along −z and hinge about y."""

    mass: FloatArray  # (3,) [kg]
    inertia: FloatArray  # (3, 3) [kg·m²] principal, about each centre, along the link's axes
    stiffness: FloatArray  # (3, 6) [N/m, N·m/rad; N·s/m, N·m·s/rad]
    damping: FloatArray  # (3, 6) [N/m, N·m/rad; N·s/m, N·m·s/rad]


def random_pendulum(rng: np.random.Generator) -> Pendulum:
    """Return a random pendulum: soft hinges, everything else stiff, all of it damped."""
    mass = rng.uniform(2.0, 5.0, LINKS)
    inertia = mass[:, None] * rng.uniform([0.02, 0.02, 0.01], [0.03, 0.03, 0.015], (LINKS, 3))
    linear = rng.uniform(1.5e3, 4e3, (LINKS, 3))
    angular = rng.uniform([100.0, 2.0, 40.0], [250.0, 8.0, 100.0], (LINKS, 3))
    stiffness = np.hstack([linear, angular])
    reduced = np.hstack([np.tile(mass[:, None], 3), inertia])
    ratio = rng.uniform(0.02, 0.06, (LINKS, 6))
    return Pendulum(mass, inertia, stiffness, 2.0 * ratio * np.sqrt(stiffness * reduced))


def urdf(pendulum: Pendulum) -> str:
    """Return the pendulum as a URDF with exact inertias."""
    parts = ['<robot name="pendulum"><link name="base"/>']
    for i in range(LINKS):
        Ixx, Iyy, Izz = (repr(float(v)) for v in pendulum.inertia[i])
        parent, drop = ("base", 0.0) if i == 0 else (f"link{i}", -LENGTH)
        parts.append(
            f'<link name="link{i + 1}"><inertial><origin xyz="0 0 {-0.5 * LENGTH}"/>'
            f'<mass value="{float(pendulum.mass[i])!r}"/><inertia ixx="{Ixx}" ixy="0" ixz="0" '
            f'iyy="{Iyy}" iyz="0" izz="{Izz}"/></inertial></link>'
            f'<joint name="joint{i + 1}" type="continuous"><parent link="{parent}"/>'
            f'<child link="link{i + 1}"/><origin xyz="0 0 {drop}"/><axis xyz="0 1 0"/></joint>'
        )
    return "".join(parts) + "</robot>"


def _motion_of_state(pendulum: Pendulum, state: FloatArray) -> FloatArray:
    """Return the time derivative of positions, quaternions, velocities and body rates."""
    x, q, v, w = np.split(state, [3 * LINKS, 7 * LINKS, 10 * LINKS])
    x, q, v, w = x.reshape(-1, 3), q.reshape(-1, 4), v.reshape(-1, 3), w.reshape(-1, 3)
    R = Rotation.from_quat(q).as_matrix()
    half = 0.5 * LENGTH
    lever = -half * R[:, :, 2]  # from the joint's origin to the centre
    spin = np.einsum("nij,nj->ni", R, w)
    force = pendulum.mass[:, None] * GRAVITY
    torque = np.zeros((LINKS, 3))
    for i in range(LINKS):
        top, top_v = x[i] - lever[i], v[i] - np.cross(spin[i], lever[i])
        if i == 0:
            seat, seat_v, seat_R, seat_w = np.zeros(3), np.zeros(3), np.eye(3), np.zeros(3)
        else:
            seat, seat_R, seat_w = x[i - 1] + lever[i - 1], R[i - 1], spin[i - 1]
            seat_v = v[i - 1] + np.cross(seat_w, lever[i - 1])
        gap = top - seat
        drift = top_v - seat_v - np.cross(seat_w, gap)
        turn = Rotation.from_matrix(seat_R.T @ R[i]).as_rotvec()
        deflection = np.concatenate([seat_R.T @ gap, turn])
        rate = np.concatenate([seat_R.T @ drift, seat_R.T @ (spin[i] - seat_w)])
        wrench = -pendulum.stiffness[i] * deflection - pendulum.damping[i] * rate
        f, t = seat_R @ wrench[:3], seat_R @ wrench[3:]
        force[i] += f
        torque[i] += t - np.cross(lever[i], f)
        if i:
            force[i - 1] -= f
            torque[i - 1] -= t + np.cross(top - x[i - 1], f)
    body = np.einsum("nji,nj->ni", R, torque)
    wdot = (body - np.cross(w, pendulum.inertia * w)) / pendulum.inertia
    vector, scalar = q[:, :3], q[:, 3:]
    qdot = 0.5 * np.hstack(
        [scalar * w + np.cross(vector, w), -np.sum(vector * w, axis=1, keepdims=True)]
    )
    vdot = force / pendulum.mass[:, None]
    return np.concatenate([v.ravel(), qdot.ravel(), vdot.ravel(), wdot.ravel()])


def highest_mode(pendulum: Pendulum) -> float:
    """Return the highest frequency [Hz] of vibrations around hanging straight down."""
    places = [[0.0, 0.0, -(i + 0.5) * LENGTH] for i in range(LINKS)]
    upright = [[0.0, 0.0, 0.0, 1.0]] * LINKS
    state = np.concatenate([np.ravel(places), np.ravel(upright), np.zeros(6 * LINKS)])
    step = 1e-6 * np.eye(len(state))
    jacobian = [
        _motion_of_state(pendulum, state + d) - _motion_of_state(pendulum, state - d) for d in step
    ]
    roots = np.linalg.eigvals(np.transpose(jacobian) / 2e-6)
    return float(np.abs(roots.imag).max() / (2.0 * np.pi))


def simulate(pendulum: Pendulum, rng: np.random.Generator) -> Poses:
    """Let it go from a bent posture and record the poses of its link frames."""
    bend = Rotation.identity()
    top, places, turns = np.zeros(3), [], []
    for _ in range(LINKS):
        bend = bend * Rotation.from_rotvec(rng.uniform(-1.0, 1.0, 3) * [0.15, 0.8, 0.3])
        top = top + bend.apply(rng.uniform(-2e-3, 2e-3, 3))
        places.append(top + bend.apply([0.0, 0.0, -0.5 * LENGTH]))
        turns.append(bend.as_quat())
        top = top + bend.apply([0.0, 0.0, -LENGTH])
    still = np.zeros(6 * LINKS)
    start = np.concatenate([np.ravel(places), np.ravel(turns), still])
    time = np.arange(int(SECONDS * RATE) + 1) / RATE
    run = solve_ivp(
        lambda _, s: _motion_of_state(pendulum, s),
        (0.0, time[-1]),
        start,
        method="DOP853",
        t_eval=time,
        rtol=1e-10,
        atol=1e-12,
    )
    if not run.success:
        raise RuntimeError(run.message)
    centres = run.y[: 3 * LINKS].T.reshape(-1, LINKS, 3)
    q = run.y[3 * LINKS : 7 * LINKS].T.reshape(-1, LINKS, 4)
    q = q / np.linalg.norm(q, axis=2, keepdims=True)
    up = Rotation.from_quat(q.reshape(-1, 4)).apply([0.0, 0.0, 0.5 * LENGTH])
    links = tuple(f"link{i + 1}" for i in range(LINKS))
    return Poses(time, links, centres + up.reshape(centres.shape), q, "simulated")


def noisy(poses: Poses, rng: np.random.Generator, metres: float, radians: float) -> Poses:
    """Return the poses with white noise on positions and orientations."""
    shape = poses.position.shape
    turn = Rotation.from_rotvec(radians * rng.normal(size=(shape[0] * shape[1], 3)))
    q = (turn * Rotation.from_quat(poses.orientation.reshape(-1, 4))).as_quat()
    q = q.reshape(poses.orientation.shape)
    q *= np.where(np.sum(q * poses.orientation, axis=2, keepdims=True) < 0.0, -1.0, 1.0)
    position = poses.position + metres * rng.normal(size=shape)
    return Poses(poses.time, poses.links, position, q, "simulated, with noise")


def errors(robot: Robot, pendulum: Pendulum, poses: Poses, coupled: bool) -> dict[str, Any]:
    """Identify and compare with the truth."""
    begin = time.perf_counter()
    found = identify_compliance(robot, poses, coupled=coupled)
    seconds = time.perf_counter() - begin
    stiffness = np.array([np.diag(joint.stiffness) for joint in found.joints])
    damping = np.array([np.diag(joint.damping) for joint in found.joints])
    return {
        "stiffness": (stiffness / pendulum.stiffness - 1.0).tolist(),
        "damping": (damping / pendulum.damping - 1.0).tolist(),
        "negative": int((stiffness < 0.0).sum() + (damping < 0.0).sum()),
        "smoothing": found.smoothing,
        "seconds": seconds,
    }


def run(given: Given) -> Result:
    """Identify a random pendulum from exact and from noisy poses."""
    rng = np.random.default_rng(given.seed)
    pendulum = random_pendulum(rng)
    robot = robot_of("pendulum", urdf(pendulum))
    poses = simulate(pendulum, rng)
    rough, rougher = (noisy(poses, rng, size, 2.0 * size) for size in (1e-5, 1e-4))
    results = {
        "exact poses": errors(robot, pendulum, poses, coupled=False),
        "coupled matrices": errors(robot, pendulum, poses, coupled=True),
        "noise 10 µm, 20 µrad": errors(robot, pendulum, rough, coupled=False),
        "noise 0.1 mm, 0.2 mrad": errors(robot, pendulum, rougher, coupled=False),
    }
    exact = results["exact poses"]
    show_table(
        f"three-link pendulum, vibrations up to {highest_mode(pendulum):.1f} Hz, "
        f"{SECONDS:g} s of poses at {RATE:g} Hz: relative errors [%]",
        ("joint", "", *AXES),
        (
            (f"joint{i + 1}", what, *(100.0 * value for value in row))
            for what in ("stiffness", "damping")
            for i, row in enumerate(exact[what])
        ),
        ".4f",
    )
    rows = [
        {
            "poses": name,
            "stiffness [%]": 100.0 * np.abs(result["stiffness"]).max(),
            "damping [%]": 100.0 * np.abs(result["damping"]).max(),
            "negative": result["negative"],
            "seconds": result["seconds"],
        }
        for name, result in results.items()
    ]
    table = show_rows("largest errors [%]", rows, ".2g")
    print("\nDai gives 3.6 % for such a pendulum: the error of a trajectory, not of coefficients")
    figures = {
        "largest error from exact poses": max(
            float(np.abs(exact[what]).max()) for what in ("stiffness", "damping")
        ),
        "negative coefficients": exact["negative"],
    }
    return Result(figures, {"results": results}, {"compliance": table})


if __name__ == "__main__":
    run_benchmark(run)
