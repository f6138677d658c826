# SPDX-License-Identifier: Apache-2.0
"""In simulation, a wrong model tracks badly, the right one well, and the change is smooth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from sysid_controller.controller import FRICTION_WIDTH, Controller
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.exchange import ParameterSet, TrajectoryPoints
from sysid_core.robot import Robot, load_robot

PERIOD = 0.002
SUBSTEPS = 4
SWITCH, END = 4.0, 10.0


@dataclass
class Run:
    """Tracking errors, torques, whether they were limited, and desired velocities per tick."""

    time: FloatArray
    error: FloatArray
    effort: FloatArray
    limited: FloatArray
    asked: FloatArray

    def rms(self, begin: float, end: float) -> FloatArray:
        chosen = (self.time >= begin) & (self.time < end)
        return np.sqrt(np.mean(self.error[chosen] ** 2, axis=0))


def simulate(robot: Robot, truth: FloatArray, config: ControllerConfig) -> Run:
    """Track sines; the true parameters are offered at `SWITCH`."""
    plant = TreeDynamics(robot, 0.03)
    plant.set_parameters(truth)
    controller = Controller(robot, config)
    n = len(robot.joint_names)
    lower, upper = np.clip(robot.limits.lower, -3, 3), np.clip(robot.limits.upper, -3, 3)
    middle, amplitude = 0.5 * (lower + upper), np.minimum(0.4, 0.15 * (upper - lower))
    frequency = 1.5 + 0.2 * np.arange(n)
    knots = np.arange(0.0, END + 0.05, 0.05)[:, None]
    path = TrajectoryPoints(
        robot.joint_names,
        None,
        knots[:, 0],
        middle + amplitude * np.sin(frequency * knots),
        amplitude * frequency * np.cos(frequency * knots),
        -amplitude * frequency**2 * np.sin(frequency * knots),
    )
    q, v, step = middle.copy(), amplitude * frequency, PERIOD / SUBSTEPS
    ticks = round(END / PERIOD)
    run = Run(*(np.zeros(shape) for shape in ((ticks,), *[(ticks, n)] * 4)))
    for k in range(ticks):
        t = k * PERIOD
        controller.take_joint_states(robot.joint_names, q, v, t, t)
        if k == 1:
            assert controller.take_reference(path, 0.0) is None
        if k == round(SWITCH / PERIOD):
            offered = ParameterSet(robot.name, robot.model_hash, 1, t, True, truth)
            assert controller.take_parameters(offered) is None
        command = controller.tick(t, t)
        run.asked[k] = v + command.velocity_error
        for _ in range(SUBSTEPS):
            bias = plant.torque(q, v, np.zeros(n), v)
            v = v + step * np.linalg.solve(plant.inertia(q), command.effort - bias)
            q = q + step * v
        run.time[k], run.error[k] = t, command.position_error
        run.effort[k], run.limited[k] = command.effort, command.limited
    return run


@pytest.mark.parametrize(
    ("name", "mode"), [("panda", "computed_torque"), ("valkyrie_arm", "feed_forward")]
)
def test_tracking_error_at_least_halves_without_a_jump(
    name: str, mode: str, perturbed: Callable[[Robot, int], FloatArray]
) -> None:
    robot = load_robot(name)
    config = ControllerConfig(mode=mode)
    run = simulate(robot, perturbed(robot, 9), config)
    before, after = run.rms(2.0, SWITCH), run.rms(SWITCH + 3.0, END)
    assert (after <= 0.5 * before).all()
    assert np.linalg.norm(after) < 0.2 * np.linalg.norm(before)
    # from the first second on nothing is limited, the change of parameters included
    assert not run.limited[run.time > 1.0].any()
    allowed = config.effort_rate * robot.limits.effort * PERIOD
    assert (np.abs(np.diff(run.effort, axis=0)) <= allowed * 1.001).all()
    at = (run.time > SWITCH - 0.1) & (run.time < SWITCH + 1.5)
    turns = np.abs(run.asked[at][1:]) < 5.0 * FRICTION_WIDTH  # where dry friction turns, too
    steps = np.abs(np.diff(run.effort[at], axis=0))
    assert (np.where(turns, 0.0, steps) < 0.5 * allowed).all()


def test_the_blend_adds_no_torque_step_of_its_own(
    perturbed: Callable[[Robot, int], FloatArray],
) -> None:
    """Steps in torque around the change are no larger than the motion's own elsewhere."""
    robot = load_robot("panda")
    run = simulate(robot, perturbed(robot, 10), replace(ControllerConfig(), blend_time=1.0))
    steps = np.abs(np.diff(run.effort, axis=0))
    usual = steps[(run.time[1:] > 1.0) & (run.time[1:] < SWITCH - 0.1)].max(axis=0)
    change = steps[(run.time[1:] >= SWITCH - 0.1) & (run.time[1:] < SWITCH + 0.3)].max(axis=0)
    assert (change < 2.0 * usual).all()
