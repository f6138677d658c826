# SPDX-License-Identifier: Apache-2.0
"""What the recorder makes of a standing quadruped's odometry, inertial sensor and contacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.data import read_recording
from sysid_core.robot import load_robot

EPOCH, RATE = 1000.0, 200.0
FEET = ("FL", "FR", "HL", "HR")

Make = Callable[..., Any]


class Dog:
    """Solo12 on its four feet, rocking a little, as its drivers publish it."""

    def __init__(self, g: Any) -> None:
        from nav_msgs.msg import Odometry
        from sensor_msgs.msg import Imu, JointState

        from sysid_msgs.msg import Contacts

        self.g = g
        self.robot = load_robot("solo12")
        kinds = {
            "joint_states": JointState,
            "odom": Odometry,
            "imu/data": Imu,
            "contacts": Contacts,
        }
        self._out = {
            name: g.probe.create_publisher(kind, name, 1000) for name, kind in kinds.items()
        }
        self._kinds = kinds
        self.legs = np.tile([0.0, 0.7, -1.4], 4) * np.repeat([1.0, 1.0, -1.0, -1.0], 3)
        self.torque = self._holding_torque()
        self.sent = 0
        self._echoed = 0
        g.probe.create_subscription(JointState, "joint_states", self._on_echo, 2000)
        g.until(lambda: self._out["joint_states"].get_subscription_count() > 1)
        g.until(lambda: self._out["odom"].get_subscription_count() > 0)

    def _on_echo(self, _: Any) -> None:
        self._echoed += 1

    def _holding_torque(self) -> np.ndarray:
        """Return the torques of the stance, the feet's forces nearest to an even share."""
        model = self.robot.model
        data = model.createData()
        q = np.concatenate([[0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0], self.legs])
        weight = pin.rnea(model, data, q, np.zeros(model.nv), np.zeros(model.nv))
        frames = [model.getFrameId(c.frame.link) for c in self.robot.description.contacts]
        J = np.vstack(
            [
                pin.computeFrameJacobian(model, data, q, frame, pin.LOCAL_WORLD_ALIGNED)[:3]
                for frame in frames
            ]
        )
        even = np.tile([0.0, 0.0, weight[2] / 4.0], 4)
        force = even + np.linalg.lstsq(J[:, :6].T, weight[:6] - J[:, :6].T @ even, rcond=None)[0]
        return np.asarray((weight - J.T @ force)[6:])

    def play(
        self,
        seconds: float,
        *,
        without: Sequence[str] = (),
        force: Sequence[float] = (0.0, 0.0, 9.81),
    ) -> None:
        """Publish the next seconds, as fast as the listeners follow."""
        for _ in range(round(seconds * RATE)):
            for name in self._out:
                if name not in without:
                    self._out[name].publish(self._message(name, force))
            self.sent += 1
            if self.sent % 20 == 0:
                self.g.until(lambda: self._echoed > self.sent - 60)

    def _message(self, name: str, force: Sequence[float]) -> Any:
        from geometry_msgs.msg import Vector3, Wrench

        from sysid_ros.fields import stamp

        message = self._kinds[name]()
        message.header.stamp = stamp(EPOCH + self.sent / RATE)
        if name == "joint_states":
            message.name = list(self.robot.joint_names)
            rocking = 0.001 * np.sin(2.0 * np.pi * self.sent / RATE)
            message.position = (self.legs + rocking).tolist()
            message.effort = self.torque.tolist()
        elif name == "odom":
            message.pose.pose.position.z = 0.25
            message.pose.pose.orientation.w = 1.0
        elif name == "imu/data":
            f = message.linear_acceleration
            f.x, f.y, f.z = map(float, force)
        else:
            message.names = list(FEET)
            message.active = [True] * 4
            message.wrenches = [Wrench(force=Vector3(z=6.0)) for _ in FEET]
        return message

    def value(self, key: str) -> str:
        """Return a value of the newest diagnostics; empty before there are any."""
        statuses = self.g.diagnostics["joint states"]
        values = {kv.key: kv.value for kv in statuses[-1].values} if statuses else {}
        return str(values.get(key, ""))


@pytest.fixture
def dog(graph: Make) -> Dog:
    return Dog(graph("recorder", robot="solo12"))


def test_without_contacts_they_come_from_the_torques_until_the_topic_does(dog: Dog) -> None:
    dog.play(3.0, without=["contacts"])
    dog.g.until(lambda: dog.value("contacts from") == "torques")
    dog.g.until(lambda: dog.g.heard["samples"])
    for message in dog.g.heard["samples"]:
        assert list(message.contact_names) == list(FEET)
        assert all(message.contacts)
    dog.play(1.0)
    dog.g.until(lambda: dog.value("contacts from") == "topic")
    assert dog.g.all_finite()


def test_inertial_sensor_and_contacts_are_used_and_saved(dog: Dog, tmp_path: Path) -> None:
    from sysid_msgs.srv import SaveBuffer

    dog.play(4.0)
    dog.g.until(lambda: int(dog.value("samples by imu") or 0) > 100)
    folder = tmp_path / "bag"
    request = SaveBuffer.Request(directory=str(folder))
    assert dog.g.call(SaveBuffer, "recorder/save", request).success
    recording = read_recording(folder)
    assert recording.imu is not None
    np.testing.assert_allclose(recording.imu.linear_acceleration[:, 2], 9.81)
    assert recording.contacts is not None
    assert recording.contacts.wrenches is not None
    np.testing.assert_array_equal(recording.contacts.wrenches[:, :, 2], 6.0)


def test_an_inertial_sensor_that_shows_g_is_told_and_not_used(dog: Dog) -> None:
    dog.play(4.0, force=(0.0, 0.0, 1.0))
    dog.g.until(lambda: dog.g.diagnosed("joint states", "publish m/s² with gravity in them"))
    assert dog.value("samples by imu") == "0"
    acceleration = np.concatenate(
        [np.asarray(message.base_acceleration) for message in dog.g.heard["samples"]]
    )
    assert np.abs(acceleration).max() < 1e-6  # the odometry's, which stands still


def test_an_inertial_sensor_that_falls_silent_costs_nothing(dog: Dog) -> None:
    dog.play(3.0)
    dog.play(2.0, without=["imu/data"])
    dog.g.until(lambda: dog.g.diagnosed("joint states", "samples without imu"))
    dog.g.until(lambda: dog.g.newest("samples").header.stamp.sec >= EPOCH + 4)
    sequence = 0
    for message in dog.g.heard["samples"]:
        assert message.sequence == sequence
        sequence += len(message.time)


def test_without_an_inertial_sensor_the_cutoff_is_half_the_descriptions(dog: Dog) -> None:
    described = dog.robot.description.signals.cutoff
    assert described is not None
    dog.play(2.0, without=["imu/data"])
    dog.g.until(lambda: dog.value("cut-off [Hz]"))
    assert float(dog.value("cut-off [Hz]")) == pytest.approx(min(0.5 * described, 0.2 * RATE))
    dog.g.until(lambda: dog.g.heard["samples"])
    first = dog.g.heard["samples"][0]
    begin = first.header.stamp.sec + 1e-9 * first.header.stamp.nanosec + first.time[0]
    assert begin < EPOCH + 0.3  # nothing of the wait is lost but the filter's first half


def test_missing_odometry_is_told_with_what_to_publish(dog: Dog) -> None:
    dog.play(3.0, without=["odom"])
    dog.g.until(lambda: dog.g.diagnosed("joint states", "publish 'odom' (nav_msgs/Odometry)"))
    assert not dog.g.heard["samples"]
