# SPDX-License-Identifier: Apache-2.0
"""A recorder and an identifier on a graph of their own, and a robot that plays to them."""

from __future__ import annotations

import contextlib
import importlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.robot import Robot, load_robot

try:
    importlib.import_module("rclpy")
except ImportError:
    with contextlib.suppress(ImportError):  # the tests that need ROS say so when they skip
        importlib.import_module("sysid_embedded").install()

os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"

LIMIT = 60.0
"""Time limit of every wait [s]; reached only where something is broken."""

RATE = 200.0
EPOCH = 1000.0
"""Stamp of the first message [s]."""

SPEED = 4.0
"""Speed of the stamps over the wall's clock."""


@dataclass(frozen=True)
class Motion:
    """What a robot that is not as its URDF says does for half a minute, without noise."""

    robot: Robot
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray

    def __len__(self) -> int:
        return len(self.position)


@pytest.fixture(scope="session")
def motion() -> Motion:
    """Return Valkyrie's arm on a sum of sines, heavier than its model and with friction."""
    robot = load_robot("valkyrie_arm")
    rng = np.random.default_rng(4)
    layout, truth = robot.layout, robot.consistent_nominal.copy()
    layout.inertias(truth)[:] *= 1.0 + rng.uniform(0.2, 0.4, (len(layout.bodies), 1))
    time_ = np.arange(round(30.0 * RATE)) / RATE
    w = 2.0 * np.pi * 0.1 * np.arange(1, 5)
    angle = w * time_[:, None, None] + rng.uniform(0.0, 6.0, (4, 4))
    size = 0.3 * rng.dirichlet(np.ones(4), 4)
    middle = 0.5 * (robot.limits.lower + robot.limits.upper)
    q = middle + (size * np.sin(angle)).sum(-1)
    v = (size * w * np.cos(angle)).sum(-1)
    a = -(size * w**2 * np.sin(angle)).sum(-1)
    model = robot.with_parameters(truth)
    data = model.createData()
    rigid = np.stack([pin.rnea(model, data, *row) for row in zip(q, v, a, strict=True)])
    return Motion(robot, q, v, rigid + 0.5 * v + 0.2 * np.sign(v))


def numbers(message: Any) -> Iterator[float]:
    """Yield all floating-point numbers of a message."""
    for name in message.get_fields_and_field_types():
        value = getattr(message, name)
        items = value if isinstance(value, (list, tuple)) else [value]
        for item in items:
            if hasattr(item, "get_fields_and_field_types"):
                yield from numbers(item)
            elif isinstance(item, (float, np.floating)):
                yield float(item)
        if hasattr(value, "typecode") or isinstance(value, np.ndarray):
            yield from (float(item) for item in value)


class Graph:
    """Nodes of the package, and a probe that plays the robot and listens to everything."""

    def __init__(self, motion: Motion, nodes: Sequence[str], **parameters: object) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from sensor_msgs.msg import JointState

        from sysid_msgs.msg import (
            DynamicParameters,
            IdentificationStatus,
            JointSamples,
            Payload,
        )

        settings = [f"-p {name}:={value}" for name, value in parameters.items()]
        arguments = ["-p robot:=valkyrie_arm", f"-r __ns:=/t{uuid.uuid4().hex}", *settings]
        rclpy.init(args=["--ros-args", *" ".join(arguments).split()])
        self.motion = motion
        self.clients: dict[str, Any] = {}
        self.executor = SingleThreadedExecutor()
        self.probe = rclpy.create_node("probe")
        self.executor.add_node(self.probe)
        self.joint_states = self.probe.create_publisher(JointState, "joint_states", 1000)
        self.samples_in = self.probe.create_publisher(JointSamples, "samples", 100)
        self.heard: dict[str, list[Any]] = {}
        self.diagnostics: dict[str, list[Any]] = {"joint states": [], "identification": []}
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.listen("samples", JointSamples, 100)
        self.listen("parameters", DynamicParameters, latched)
        self.listen("status", IdentificationStatus, 100)
        self.listen("payload", Payload, 100)
        self.probe.create_subscription(DiagnosticArray, "diagnostics", self._on_diagnostics, 100)
        self.nodes: dict[str, Any] = {}
        for name in nodes:
            self.start(name)
        self.next = 0
        self.clock_offset = 0.0
        self._published = 0
        self._echoed = 0
        self.probe.create_subscription(JointState, "joint_states", self._on_echo, 2000)
        if "recorder" in self.nodes:
            self.until(lambda: self.joint_states.get_subscription_count() > 1)

    def listen(self, topic: str, kind: Any, qos: Any) -> list[Any]:
        """Subscribe to a topic; returns the list that its messages go to."""
        heard: list[Any] = []
        self.heard.setdefault(topic, heard)
        self.probe.create_subscription(kind, topic, heard.append, qos)
        return heard

    def start(self, name: str) -> Any:
        """Start a node."""
        module = importlib.import_module(f"sysid_online.{name}_node")
        node = getattr(module, f"{name.capitalize()}Node")()
        self.nodes[name] = node
        self.executor.add_node(node)
        return node

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            self.diagnostics[status.name.split(": ", 1)[1]].append(status)

    def _on_echo(self, _: Any) -> None:
        self._echoed += 1

    def newest(self, topic: str) -> Any:
        return self.heard[topic][-1]

    def until(self, condition: Callable[[], Any], limit: float = LIMIT) -> None:
        """Spin until a condition holds."""
        end = time.monotonic() + limit
        while not condition():
            assert time.monotonic() < end, "the condition did not come about in time"
            self.executor.spin_once(timeout_sec=0.001)

    def message(self, index: int) -> Any:
        """Return the joint state of a row of the motion."""
        from sensor_msgs.msg import JointState

        from sysid_ros.fields import stamp

        m = self.motion
        message = JointState(
            name=list(m.robot.joint_names),
            position=m.position[index].tolist(),
            velocity=m.velocity[index].tolist(),
            effort=m.effort[index].tolist(),
        )
        message.header.stamp = stamp(EPOCH + self.clock_offset + index / RATE)
        return message

    def play(
        self,
        seconds: float,
        change: Callable[[int, Any], Sequence[Any]] | None = None,
        until: Callable[[], Any] | None = None,
    ) -> None:
        """Publish the next seconds of the motion; `change` returns what goes out in its place."""
        last = self.next + round(seconds * RATE)
        due = time.monotonic()
        while self.next < last and not (until is not None and until()):
            message = self.message(self.next % len(self.motion))
            for out in [message] if change is None else change(self.next, message):
                self.joint_states.publish(out)
                self._published += 1
            self.next += 1
            due += 1.0 / (RATE * SPEED)
            # on a busy machine the robot waits for its listeners rather than flood them
            self._keep_pace(due)

    def _keep_pace(self, due: float) -> None:
        self.until(lambda: time.monotonic() >= due and self._echoed > self._published - 100)

    def play_until(self, condition: Callable[[], Any], limit: float = LIMIT) -> None:
        """Play on until a condition holds."""
        self.play(limit * SPEED, until=condition)
        assert condition(), "the condition did not come about in time"

    def identified(self) -> bool:
        """Whether identified parameters are in use."""
        return bool(self.heard["parameters"]) and bool(self.newest("parameters").identified)

    def call(self, kind: Any, name: str, request: Any) -> Any:
        """Call a service and return its answer.

        A server may not yet know a new client when it answers, so each service keeps its own.
        """
        client = self.clients.get(name) or self.probe.create_client(kind, name)
        self.clients[name] = client
        self.until(client.service_is_ready)
        future = client.call_async(request)
        self.until(future.done)
        return future.result()

    def diagnosed(self, name: str, text: str) -> bool:
        """Whether a diagnostic status has said a text since they were last cleared."""
        return any(text in status.message for status in self.diagnostics[name])

    def all_finite(self) -> bool:
        """Whether every number that was heard is finite."""
        heard = [message for messages in self.heard.values() for message in messages]
        assert heard
        return all(np.isfinite(value) for message in heard for value in numbers(message))

    def close(self) -> None:
        """Stop everything."""
        import rclpy

        self.executor.shutdown()
        for node in (*self.nodes.values(), self.probe):
            node.destroy_node()
        rclpy.try_shutdown()


@pytest.fixture
def graph(motion: Motion) -> Iterator[Callable[..., Graph]]:
    """Return a maker of graphs: names of nodes to start, and ROS parameters for them."""
    pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")
    made: list[Graph] = []

    def make(*nodes: str, **parameters: object) -> Graph:
        made.append(Graph(motion, nodes, **parameters))
        return made[-1]

    yield make
    for one in made:
        one.close()
