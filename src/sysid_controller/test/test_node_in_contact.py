# SPDX-License-Identifier: Apache-2.0
"""The node of a robot on its feet: its topics, what is said when one is silent, and a fall."""

# ruff: noqa: E402 - these imports need the ROS that is looked for first
from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Quaternion
from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

from sysid_controller.controller_node import ControllerNode
from sysid_core.robot import load_robot
from sysid_msgs.msg import Contacts, TrackingStatus

STANDING = np.array([0.0, 0.7, -1.4] * 2 + [0.0, -0.7, 1.4] * 2)
LIMIT = 60.0
"""Time limit of every wait [s]; reached only where something is broken."""


class Legged:
    """A controller node of Solo12, and a probe that plays the robot."""

    def __init__(self) -> None:
        self.robot = load_robot("solo12")
        namespace = f"__ns:=/t{uuid.uuid4().hex}"
        rclpy.init(args=["--ros-args", "-p", "robot:=solo12", "-r", namespace])
        self.probe = rclpy.create_node("probe")
        self.node = ControllerNode()
        self.executor = SingleThreadedExecutor()
        for node in (self.probe, self.node):
            self.executor.add_node(node)
        make, listen = self.probe.create_publisher, self.probe.create_subscription
        self.states = make(JointState, "joint_states", 10)
        self.odometry = make(Odometry, "odom", 10)
        self.contacts = make(Contacts, "contacts", 10)
        self.plan = make(Contacts, "contact_reference", 10)
        self.commands: list[Any] = []
        self.tracking: list[Any] = []
        self.diagnostics: dict[str, Any] = {}
        listen(Float64MultiArray, "effort_controller/commands", self.commands.append, 10)
        listen(TrackingStatus, "tracking", self.tracking.append, 10)
        listen(DiagnosticArray, "diagnostics", self._on_diagnostics, 10)
        self.feet = Contacts(names=["FL", "FR", "HL", "HR"], active=[True] * 4)
        self.silent: set[str] = set()
        self.base = Odometry()
        self.tilt(0.0)

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            self.diagnostics[status.name.split(": ", 1)[1]] = status

    def tilt(self, roll: float) -> None:
        x, y, z, w = pin.Quaternion(pin.rpy.rpyToMatrix(roll, 0.0, 0.0)).coeffs().tolist()
        self.base.pose.pose.orientation = Quaternion(x=x, y=y, z=z, w=w)
        self.base.pose.pose.position.z = 0.24

    def publish(self) -> None:
        stamp = self.probe.get_clock().now().to_msg()
        joints = JointState(
            name=list(self.robot.joint_names),
            position=STANDING.tolist(),
            velocity=[0.0] * 12,
        )
        for topic, publisher, message in (
            ("odom", self.odometry, self.base),
            ("contacts", self.contacts, self.feet),
            ("joint_states", self.states, joints),
        ):
            if topic not in self.silent:
                message.header.stamp = stamp
                publisher.publish(message)

    def until(self, condition: Callable[[], Any]) -> None:
        """Play the robot until a condition holds."""
        end, next_state = time.monotonic() + LIMIT, 0.0
        while not condition():
            now = time.monotonic()
            assert now < end, "the condition did not come about in time"
            if now >= next_state:
                next_state = now + 0.004
                self.publish()
            self.executor.spin_once(timeout_sec=0.001)

    def state(self, state: int) -> Callable[[], bool]:
        """Return the condition that the newest status, from now on, has a state."""
        self.tracking.clear()
        return lambda: bool(self.tracking) and self.tracking[-1].state == state

    def warned(self, text: str) -> Callable[[], bool]:
        """Return the condition that a status, from now on, warns of something."""
        self.tracking.clear()
        return lambda: any(text in w for status in self.tracking for w in status.warnings)

    def tilted(self, roll: float) -> bool:
        base = self.node.controller.base
        return base is not None and abs(base.tilt - roll) < 1e-6

    def diagnosed(self, name: str, text: str) -> Callable[[], bool]:
        return lambda: name in self.diagnostics and text in self.diagnostics[name].message

    def close(self) -> None:
        self.executor.shutdown()
        self.node.destroy_node()
        self.probe.destroy_node()
        rclpy.try_shutdown()


@pytest.fixture
def legged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Legged]:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    made = Legged()
    yield made
    made.close()


def finite(legged: Legged) -> bool:
    return all(
        np.isfinite(c.data).all() and (np.abs(c.data) <= legged.robot.limits.effort).all()
        for c in legged.commands
    )


def test_says_what_it_waits_for_and_then_carries_the_weight(legged: Legged) -> None:
    legged.silent = {"odom"}
    legged.until(legged.diagnosed("state", "waiting for odometry: is the driver running?"))
    legged.until(legged.diagnosed("odometry", "none yet"))
    assert not legged.commands
    legged.silent = set()
    legged.until(legged.state(TrackingStatus.HOLDING))
    expected = legged.node.controller.dynamics.gravity(STANDING)
    # what OSQP leaves open of the forces between the feet
    legged.until(
        lambda: legged.commands and np.allclose(legged.commands[-1].data, expected, atol=0.05)
    )
    legged.until(legged.diagnosed("contacts", "in order"))


def test_silent_odometry_is_named_and_the_joints_are_held(legged: Legged) -> None:
    legged.until(legged.state(TrackingStatus.HOLDING))
    for silent, text in (("odom", "no valid odometry for"), ("contacts", "no valid contacts for")):
        legged.silent = {silent}
        legged.until(legged.warned(text))
        legged.until(legged.diagnosed("state", text))
        legged.silent = set()
        legged.until(legged.diagnosed("state", "holds its position"))
    assert finite(legged)


def test_broken_messages_are_refused_by_name(legged: Legged) -> None:
    legged.until(legged.state(TrackingStatus.HOLDING))
    legged.base.twist.twist.linear.x = float("nan")
    legged.until(legged.diagnosed("odometry", "not finite"))
    legged.base.twist.twist.linear.x = 0.0
    legged.feet = Contacts(names=["FL", "FR"], active=[True, True])
    legged.until(legged.diagnosed("contacts", "without the feet HL, HR"))
    legged.feet = Contacts(names=["FL", "FR", "HL", "HR"], active=[True] * 4)
    legged.plan.publish(Contacts(names=["FL"], active=[False]))
    legged.until(legged.diagnosed("contact reference", "without the feet FR, HL, HR"))
    legged.until(legged.state(TrackingStatus.HOLDING))
    assert finite(legged)


def test_a_planned_foot_is_unloaded(legged: Legged) -> None:
    legged.until(legged.state(TrackingStatus.HOLDING))
    legged.until(lambda: legged.commands and abs(legged.commands[-1].data[2]) > 0.2)
    lifted = Contacts(names=["FL", "FR", "HL", "HR"], active=[False, True, True, True])
    legged.plan.publish(lifted)
    # the leg alone weighs a tenth of what it carried
    legged.until(lambda: abs(legged.commands[-1].data[2]) < 0.1)
    assert finite(legged)


def test_a_fall_stops_it_until_it_is_enabled(legged: Legged) -> None:
    legged.until(legged.state(TrackingStatus.HOLDING))
    legged.tilt(1.2)
    legged.until(legged.state(TrackingStatus.DISABLED))
    legged.until(legged.diagnosed("state", "tilted by 1.20 rad"))
    legged.until(lambda: not any(legged.commands[-1].data))
    client = legged.probe.create_client(SetBool, "controller/enable")
    legged.until(client.service_is_ready)
    for roll, success in ((1.2, False), (0.0, True)):
        legged.tilt(roll)
        legged.until(partial(legged.tilted, roll))
        answer = client.call_async(SetBool.Request(data=True))
        legged.until(answer.done)
        assert answer.result().success == success
    legged.until(legged.state(TrackingStatus.HOLDING))
    assert finite(legged)
