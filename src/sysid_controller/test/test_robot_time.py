# SPDX-License-Identifier: Apache-2.0
"""Timeouts go at the pace of the robot, and by the wall's clock where its time has ended."""

from __future__ import annotations

import pytest

from sysid_controller.robot_time import RobotTime


def test_a_real_robots_time_is_the_walls_whatever_its_clock_says() -> None:
    time = RobotTime()
    time(100.0, 5.0, simulated=False)
    assert time(101.0, 900.0, simulated=False) == pytest.approx(1.0)
    assert time(102.0, 0.0, simulated=False) == pytest.approx(2.0)


def test_a_slow_simulation_makes_timeouts_slow() -> None:
    time = RobotTime()
    reached = [time(0.1 * k, 0.0015 * k, simulated=True) for k in range(101)][-1]
    assert reached == pytest.approx(0.15)


def test_a_clock_that_stands_still_for_long_is_passed_over() -> None:
    time = RobotTime()
    time(0.0, 7.0, simulated=True)
    start = time(0.1, 7.1, simulated=True)
    assert time(0.6, 7.1, simulated=True) == start
    assert max(time(0.6 + 0.1 * k, 7.1, simulated=True) for k in range(30)) > start + 1.0


def test_a_node_that_is_late_itself_takes_no_clock_for_gone() -> None:
    """On a busy computer a simulation that waits for the node's command waits long."""
    time = RobotTime()
    time(0.0, 7.0, simulated=True)
    start = time(0.1, 7.1, simulated=True)
    assert time(6.0, 7.1, simulated=True) == start
    assert time(6.1, 7.102, simulated=True) == pytest.approx(start + 0.002)


def test_it_never_goes_back() -> None:
    time = RobotTime()
    time(0.0, 50.0, simulated=True)
    before = time(0.1, 50.1, simulated=True)
    assert time(0.2, 1.0, simulated=True) >= before
    assert time(0.3, 1.1, simulated=True) == pytest.approx(before + 0.1)
