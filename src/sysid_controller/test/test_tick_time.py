# SPDX-License-Identifier: Apache-2.0
"""A tick is fast enough for 500 Hz and more."""

from __future__ import annotations

import time

import numpy as np

from sysid_controller.controller import Controller
from sysid_controller.settings import ControllerConfig
from sysid_core.exchange import TrajectoryPoints
from sysid_core.robot import Robot

LIMIT = 0.2e-3


def test_torques_of_seven_joints_take_less_than_a_fifth_of_a_millisecond(panda: Robot) -> None:
    controller = Controller(panda, ControllerConfig())
    position = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4, 0.6])
    velocity = np.zeros(7)
    knots = np.linspace(0.0, 60.0, 601)[:, None]
    path = TrajectoryPoints(
        panda.joint_names, None, knots[:, 0], position + 0.2 * np.sin(knots * np.ones(7))
    )
    times = []
    for k in range(3000):
        t = 0.002 * k
        controller.take_joint_states(panda.joint_names, position, velocity, t, t)
        if k == 1:
            assert controller.take_reference(path, t) is None
        begin = time.perf_counter()
        controller.tick(t, t)
        times.append(time.perf_counter() - begin)
    # the median: other work on the machine is not what is measured
    assert np.median(times) < LIMIT
