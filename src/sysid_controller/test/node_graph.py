# SPDX-License-Identifier: Apache-2.0
"""A controller node and a probe that plays its robot, for tests of the node on a graph."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from builtin_interfaces.msg import Duration
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from sysid_controller.controller_node import ControllerNode
from sysid_core.robot import Robot
from sysid_msgs.msg import DynamicParameters, TrackingStatus

__all__ = ["HOME", "LIMIT", "Graph"]

HOME = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4, 0.6])
LIMIT = 60.0
"""Time limit of every wait [s]; reached only where something is broken."""


class Graph:
    """A controller node and a probe that plays the robot, in a namespace of their own."""

    def __init__(self, robot: Robot, **parameters: str) -> None:
        config = [f"-p {name}:={value}" for name, value in parameters.items()]
        arguments = " ".join(["-p robot:=panda", f"-r __ns:=/t{uuid.uuid4().hex}", *config])
        rclpy.init(args=["--ros-args", *arguments.split()])
        self.robot = robot
        self.probe = rclpy.create_node("probe")
        self.node: Any = None
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.probe)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        make = self.probe.create_publisher
        self.states = make(JointState, "joint_states", 10)
        self.reference = make(JointTrajectory, "reference", 10)
        self.parameters = make(DynamicParameters, "parameters", latched)
        self.commands: list[Float64MultiArray] = []
        self.tracking: list[TrackingStatus] = []
        self.diagnostics: dict[str, Any] = {}
        listen = self.probe.create_subscription
        listen(Float64MultiArray, "effort_controller/commands", self.commands.append, 10)
        listen(TrackingStatus, "tracking", self.tracking.append, 10)
        listen(DiagnosticArray, "diagnostics", self._on_diagnostics, 10)
        self.message: JointState | None = self.joint_state()
        self.before_state: Callable[[], None] = lambda: None

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.diagnostics[status.name.split(": ", 1)[1]] = status

    def start(self) -> None:
        self.node = ControllerNode()
        self.executor.add_node(self.node)

    def joint_state(self, **changes: Any) -> JointState:
        fields = {
            "name": list(self.robot.joint_names),
            "position": HOME.tolist(),
            "velocity": [0.0] * 7,
        }
        return JointState(**{**fields, **changes})

    def until(self, condition: Callable[[], Any], limit: float = LIMIT) -> None:
        """Publish joint states and spin until a condition holds."""
        end = time.monotonic() + limit
        next_state = 0.0
        while not condition():
            now = time.monotonic()
            assert now < end, "the condition did not come about in time"
            if self.message is not None and now >= next_state:
                next_state = now + 0.002
                self.before_state()
                self.message.header.stamp = self.probe.get_clock().now().to_msg()
                self.states.publish(self.message)
            self.executor.spin_once(timeout_sec=0.001)

    def state(self, *states: int) -> Callable[[], bool]:
        """Return the condition that the newest status, from now on, has a state."""
        self.tracking.clear()
        return lambda: bool(self.tracking) and self.tracking[-1].state in states

    def diagnosed(self, name: str, text: str) -> Callable[[], bool]:
        return lambda: name in self.diagnostics and text in self.diagnostics[name].message

    def goal(self, offset: float, seconds: int, **changes: Any) -> JointTrajectory:
        point = JointTrajectoryPoint(positions=(HOME + offset).tolist())
        point.time_from_start = Duration(sec=seconds)
        fields = {"joint_names": list(self.robot.joint_names), "points": [point]}
        return JointTrajectory(**{**fields, **changes})

    def refer(self, message: JointTrajectory) -> None:
        """Publish a reference once the publisher knows of the node: nothing is kept for it."""
        self.until(self.reference.get_subscription_count)
        self.reference.publish(message)

    def close(self) -> None:
        self.executor.shutdown()
        for node in (self.node, self.probe):
            if node is not None:
                node.destroy_node()
        rclpy.try_shutdown()
