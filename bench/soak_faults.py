# SPDX-License-Identifier: Apache-2.0
"""Hostile messages, requests and settings for live nodes, and a node that sends them."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bench.live import Peer
from sysid_core.online.update import Update
from sysid_core.robot import Robot, load_robot

__all__ = ["FAULTS", "ROBOT", "Probe"]

ROBOT = "panda"
SETTLED = 0.1  # Largest tracking error [rad] of a robot that follows its reference
_USUAL: dict[tuple[str, str], Any] = {
    ("controller", "bandwidth"): 20.0,
    ("controller", "kp"): [0.0],
    ("identifier", "solve_rate"): 20.0,
}
"""Settings by default that a request may change: the fault ends when they are set back."""
_DISABLED, _TRACKING, _STOPPED = 0, 3, 5  # States of ``sysid_msgs/TrackingStatus``


class Probe(Peer):
    """A node that listens to the others and does them harm."""

    def __init__(self, seed: int) -> None:
        super().__init__("probe")
        from rosgraph_msgs.msg import Clock
        from sensor_msgs.msg import JointState
        from trajectory_msgs.msg import JointTrajectory

        from sysid_msgs.msg import DynamicParameters, JointSamples, TrackingStatus
        from sysid_ros.qos import latched

        self.rng = np.random.default_rng(seed)
        self.robot: Robot = load_robot(ROBOT)
        make = self.node.create_publisher
        self.topics: dict[str, Any] = {
            "joint_states": make(JointState, "joint_states", 100),
            "samples": make(JointSamples, "samples", 100),
            "parameters": make(DynamicParameters, "parameters", latched()),
            "reference": make(JointTrajectory, "reference", 10),
            "clock": make(Clock, "clock", 10),
        }
        self.tracking: Any = None
        self.node.create_subscription(TrackingStatus, "tracking", self._on_tracking, 10)
        self.clients: dict[str, Any] = {}

    def _on_tracking(self, message: Any) -> None:
        self.tracking = message

    def now(self) -> float:
        """Return the robot's time [s]."""
        stamp = self.tracking.header.stamp
        return float(stamp.sec + 1e-9 * stamp.nanosec)

    def follows(self) -> bool:
        """Whether the robot follows its reference."""
        found = self.tracking
        error = max(map(abs, found.position_error), default=math.inf)
        return bool(found.state == _TRACKING and error < SETTLED)

    def halted(self) -> bool:
        """Whether the robot does not move until somebody enables it, or it has rested."""
        return self.tracking.state in (_DISABLED, _STOPPED)

    def call(self, kind: Any, name: str, **fields: Any) -> None:
        """Call a service and wait for no answer."""
        if name not in self.clients:
            self.clients[name] = self.node.create_client(kind, name)
        client = self.clients[name]
        if client.service_is_ready():
            client.call_async(kind.Request(**fields))

    def number(self) -> float:
        """Return a number that nobody should send, or one of any size."""
        size = 10.0 ** self.rng.uniform(-3.0, 12.0)
        return float(self.rng.choice([math.nan, math.inf, -1e300, size, -size, 0.0]))


def _joint_states(probe: Probe) -> None:
    from sensor_msgs.msg import JointState

    names = list(probe.robot.joint_names)
    for _ in range(int(probe.rng.choice([1, 5, 50]))):
        message = JointState(name=names[: int(probe.rng.integers(0, 8))])
        if probe.rng.random() < 0.3:
            message.name = [f"j{probe.rng.integers(1_000_000)}" for _ in names]
        count = len(message.name) + int(probe.rng.choice([0, 0, 0, 1]))
        for field in ("position", "velocity", "effort"):
            setattr(message, field, [probe.number() for _ in range(count)])
        message.header.stamp.sec = int(probe.rng.choice([0, 2**31 - 1, -(2**31), 5]))
        probe.topics["joint_states"].publish(message)


def _samples(probe: Probe) -> None:
    from sysid_msgs.msg import JointSamples

    rows, joints = int(probe.rng.integers(0, 5)), len(probe.robot.joint_names)
    message = JointSamples(robot=str(probe.rng.choice([ROBOT, "ur10", "\udcff", "x" * 10_000])))
    message.sequence = int(probe.rng.choice([0, 2**63, 17]))
    message.joint_names = list(probe.robot.joint_names)
    for field in ("position", "velocity", "acceleration", "effort"):
        setattr(message, field, [probe.number() for _ in range(rows * joints)])
    message.time = [probe.number() for _ in range(rows)]
    with contextlib.suppress(UnicodeEncodeError):  # only the embedded rclpy sends such a name
        probe.topics["samples"].publish(message)


def _parameters(probe: Probe) -> None:
    from sysid_ros.identification import parameters_message

    robot, rng = probe.robot, probe.rng
    vector = robot.consistent_nominal.copy()
    spread = rng.uniform(0.0, 2.0)
    robot.layout.inertias(vector)[:] *= 10.0 ** rng.uniform(-spread, spread, (7, 1))
    for term in ("viscous", "coulomb", "offset"):
        vector[robot.layout.term(term)] += rng.choice([0.0, 1.0, 100.0]) * rng.random(7)
    if rng.random() < 0.2:
        vector[int(rng.integers(len(vector)))] = probe.number()
    update = _update(robot, vector)
    message = parameters_message(update)
    message.revision = (0, 5, 2**63, 2**64 - 1)[int(rng.integers(4))]
    message.header.stamp.sec = int(rng.choice([0, 2**31 - 1]))
    probe.topics["parameters"].publish(message)


def _update(robot: Robot, vector: Any) -> Update:
    """Return what a forger says that an identifier found."""
    from sysid_core.online.pipeline import OnlineIdentifier
    from sysid_core.online.settings import OnlineConfig

    empty = OnlineIdentifier(robot, OnlineConfig()).apply(None)
    return replace(empty, parameters=vector, identified=True)


def _reference(probe: Probe) -> None:
    from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

    rng, robot = probe.rng, probe.robot
    message = JointTrajectory(joint_names=list(robot.joint_names))
    for k in range(int(rng.choice([0, 1, 3, 3000]))):
        target = rng.uniform(robot.limits.lower, robot.limits.upper)
        point = JointTrajectoryPoint(positions=(target * rng.choice([0.5, 1.5])).tolist())
        if rng.random() < 0.2:
            point.positions = [probe.number() for _ in target]
        point.time_from_start.sec = k + int(rng.choice([0, 1]))
        message.points.append(point)
    probe.topics["reference"].publish(message)


def _clock(probe: Probe) -> None:
    from rosgraph_msgs.msg import Clock

    message = Clock()
    message.clock.sec = int(probe.rng.choice([-1, 0, -(2**31)]))
    probe.topics["clock"].publish(message)


def _services(probe: Probe) -> None:
    from std_srvs.srv import SetBool, Trigger

    from sysid_msgs.srv import AttachPayload, ExportModel, SaveBuffer

    rng = probe.rng
    folder = str(rng.choice(["", "~nosuchuser/x", "a\0b", "x" * 5000, "/proc/x"]))
    kind = int(rng.integers(5))
    if kind == 0:
        probe.call(SaveBuffer, "recorder/save", directory=folder)
    elif kind == 1:
        probe.call(ExportModel, "identifier/export", directory=folder)
    elif kind == 2:
        probe.call(Trigger, "identifier/reset")
    elif kind == 3:
        probe.call(SetBool, "identifier/freeze", data=bool(rng.integers(2)))
        probe.spin(0.3)
        probe.call(SetBool, "identifier/freeze", data=False)  # as long as the fault lasts
    else:
        probe.call(AttachPayload, "simulator/attach_payload", mass=float(rng.choice([0.0, 5e3])))


def _settings(probe: Probe) -> None:
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter

    rng = probe.rng
    names = ("bandwidth", "mode", "kp", "use_sim_time", "rate", "solve_rate", "speed", "nothing")
    values = (probe.number(), "", "x" * 10_000, [probe.number()], True, False, -1, 2**62)
    value: Any = values[int(rng.integers(len(values)))]
    parameter = Parameter(str(rng.choice(names)), value=value)
    node = str(rng.choice(["controller", "recorder", "identifier"]))
    if (parameter.name, node, value) == ("use_sim_time", node, False) and node != "controller":
        return  # allowed there, and no fault
    probe.call(SetParameters, f"{node}/set_parameters", parameters=[parameter.to_parameter_msg()])
    if (node, parameter.name) in _USUAL:  # weak gains are what was asked for
        probe.spin(0.1)
        value = _USUAL[node, parameter.name]
        usual = Parameter(parameter.name, value=value).to_parameter_msg()
        probe.call(SetParameters, f"{node}/set_parameters", parameters=[usual])


FAULTS: dict[str, Callable[[Probe], None]] = {
    "joint states": _joint_states,
    "samples": _samples,
    "parameters": _parameters,
    "reference": _reference,
    "clock": _clock,
    "services": _services,
    "settings": _settings,
}
