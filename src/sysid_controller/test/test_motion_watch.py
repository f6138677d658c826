# SPDX-License-Identifier: Apache-2.0
"""What the watch for contacts compares holds for a time, however many of its states came."""

from typing import NamedTuple

import numpy as np
import pytest

from sysid_controller.motion_watch import ContactWatch
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.excitation.fourier import random_motion
from sysid_core.excitation.limits import fit_into, motion_limits
from sysid_core.robot import Robot, load_robot

PERIOD, LENGTH = 0.002, 10.0  # [s]


class Played(NamedTuple):
    """A fast motion: times, states, and the torques that acted until then."""

    time: FloatArray
    q: FloatArray
    v: FloatArray
    torque: FloatArray


def played(robot: Robot, truth: FloatArray) -> Played:
    count, rng = len(robot.joint_names), np.random.default_rng(0)
    limits = motion_limits(robot, share=0.8, speed=0.8)
    motion = fit_into(random_motion(count, LENGTH, 10, rng), limits, fill=True)
    time, plant = np.arange(0.0, LENGTH, PERIOD), TreeDynamics(robot, 0.01)
    plant.set_parameters(truth)
    q, v, _ = motion.states(time)
    held = zip(*motion.states(time - 0.5 * PERIOD), strict=True)
    return Played(time, q, v, np.array([plant.torque(*state, state[1]) for state in held]))


def unexplained(robot: Robot, truth: FloatArray, motion: Played, came: BoolArray) -> float:
    """Return the torque (RMS) [share of the limits] that the true model does not explain."""
    plant, errors = TreeDynamics(robot, 0.01), list[FloatArray]()
    plant.set_parameters(truth)

    class Watch(ContactWatch):
        """Keeps what it compares."""

        def _judge(self, time: float, *of: FloatArray) -> str:
            q, v, a, torque = of
            errors.append((torque - plant.torque(q, v, a, v)) / robot.limits.effort)
            return ""

    watch = Watch(robot)
    for k in np.flatnonzero(came):
        watch.push(float(motion.time[k]), motion.q[k], motion.v[k], motion.torque[k])
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("name", ["panda", "ur10e"])
def test_where_states_are_lost_the_model_explains_the_others_as_well(name: str) -> None:
    robot = load_robot(name)
    truth = robot.consistent_nominal.copy()
    truth[robot.layout.term("coulomb")] = 0.0  # which has no mean where a joint turns
    motion, k = played(robot, truth), np.arange(round(LENGTH / PERIOD))
    lost = (k % 50 < 20) & (k % 7 > 0)  # as on a busy computer: some come 14 ms apart
    assert unexplained(robot, truth, motion, k >= 0) < 1e-4
    assert unexplained(robot, truth, motion, ~lost) < 2e-4
