# SPDX-License-Identifier: Apache-2.0
"""The replay node publishes what a recording holds, in order, with its clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.data import write_recording
from sysid_core.recording import BaseRecording, ContactRecording, ImuRecording, Recording

Make = Callable[..., Any]


@pytest.fixture
def bag(tmp_path: Path, motion: Any) -> Path:
    """Return the folder of a bag of 2 s with odometry, inertial readings and contacts."""
    time = 50.0 + np.arange(400) / 200.0
    slow = time[::4]
    base = BaseRecording(
        slow,
        np.tile([1.0, 2.0, 3.0], (100, 1)),
        np.tile([0.0, 0.0, 0.0, 1.0], (100, 1)),
        np.tile(np.arange(6.0), (100, 1)),
        "odom",
        "base",
    )
    contacts = ContactRecording(
        slow,
        ("left", "right"),
        np.tile([True, False], (100, 1)),
        np.tile(np.arange(12.0).reshape(2, 6), (100, 1, 1)),
    )
    imu = ImuRecording(
        slow, np.tile([1.0, 2.0, 3.0], (100, 1)), np.tile([4.0, 5.0, 6.0], (100, 1))
    )
    names = motion.robot.joint_names
    write_recording(
        Recording(
            time,
            names,
            motion.position[:400],
            motion.velocity[:400],
            motion.effort[:400],
            base=base,
            imu=imu,
            contacts=contacts,
        ),
        tmp_path / "bag",
    )
    return tmp_path / "bag"


def play(g: Any) -> dict[str, list[Any]]:
    from nav_msgs.msg import Odometry
    from rosgraph_msgs.msg import Clock
    from sensor_msgs.msg import Imu, JointState

    from sysid_msgs.msg import Contacts

    kinds = {"joint_states": JointState, "odom": Odometry, "contacts": Contacts, "clock": Clock}
    kinds["imu/data"] = Imu
    heard = {name: g.listen(name, kind, 2000) for name, kind in kinds.items()}
    node = g.start("replay")
    g.until(lambda: node.done)
    return heard


def test_every_message_comes_once_and_in_order(graph: Make, bag: Path, motion: Any) -> None:
    g = graph(data=bag, speed=4.0, start_delay=0.5)
    heard = play(g)
    g.until(lambda: len(heard["joint_states"]) == 400)
    stamps = np.array(
        [m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in heard["joint_states"]]
    )
    np.testing.assert_allclose(stamps, 50.0 + np.arange(400) / 200.0, atol=1e-8)
    seen = np.array([m.position for m in heard["joint_states"]])
    np.testing.assert_array_equal(seen, motion.position[:400])
    companions = ("odom", "contacts", "imu/data")
    g.until(lambda: all(len(heard[name]) == 100 for name in companions))
    imu = heard["imu/data"][0]
    assert (imu.angular_velocity.y, imu.linear_acceleration.z) == (2.0, 6.0)
    assert imu.orientation_covariance[0] == -1.0  # none was recorded
    twist = heard["odom"][0].twist.twist
    assert (twist.linear.x, twist.angular.z) == (0.0, 5.0)
    assert list(heard["contacts"][0].active) == [True, False]
    left, right = heard["contacts"][0].wrenches
    assert (left.force.z, left.torque.x, right.force.x, right.torque.z) == (2.0, 3.0, 6.0, 11.0)
    clock = [m.clock.sec + 1e-9 * m.clock.nanosec for m in heard["clock"]]
    assert clock == sorted(clock)


def test_a_loop_sets_the_clock_back(graph: Make, bag: Path) -> None:
    g = graph(data=bag, speed=10.0, loop=True, start_delay=0.5)
    from sensor_msgs.msg import JointState

    states = g.listen("joint_states", JointState, 2000)
    node = g.start("replay")
    g.until(lambda: len(states) > 700)
    stamps = np.array([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in states])
    assert (np.diff(stamps) < 0.0).sum() >= 1
    assert not node.done


def test_data_that_are_not_there_are_told_in_a_line(graph: Make, tmp_path: Path) -> None:
    from sysid_core.errors import DataError, SysidError

    g = graph()
    with pytest.raises(DataError, match="'data' is empty"):
        g.start("replay")
    g.close()
    g = graph(data=tmp_path / "nothing.csv")
    with pytest.raises(SysidError, match=r"nothing\.csv"):
        g.start("replay")
