# SPDX-License-Identifier: Apache-2.0
"""Runs all nodes around a simulated arm and injects a fault every second: nothing may die.

The robot waits for its commands, so that a busy computer slows all down instead of its control:
times of recovery are the robot's. ``--seconds 3600`` is the long run.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bench.live import EMBEDDED, Usage, install_embedded, node_process
from bench.runner import Result, run_benchmark, say, show_table
from sysid_core.online.update import Update
from sysid_core.robot import Robot, load_robot

__all__ = ["run"]

ROBOT = "panda"
NODES = {
    "simulator": "sysid_sim.simulator_node",
    "recorder": "sysid_online.recorder_node",
    "identifier": "sysid_online.identifier_node",
    "controller": "sysid_controller.controller_node",
    "reference": "sysid_sim.reference_node",
}
LONGEST_FAULT = 0.5
"""Seconds that a fault lasts at most."""
SETTLED = 0.1
"""Largest tracking error [rad] of a robot that follows its reference."""
PATIENCE = 120.0
"""Seconds until the robot should follow its reference at first."""
WARM = 60.0
"""Seconds after which memory should be flat: the recorder's buffer is full."""
TRACKING, STOPPED, DISABLED = 3, 5, 0


class Probe:
    """A node that listens to the others and does them harm."""

    def __init__(self, seed: int) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rosgraph_msgs.msg import Clock
        from sensor_msgs.msg import JointState
        from trajectory_msgs.msg import JointTrajectory

        from sysid_msgs.msg import DynamicParameters, JointSamples, TrackingStatus
        from sysid_ros.qos import latched

        rclpy.init(args=[])
        self._rclpy = rclpy
        self.node = rclpy.create_node("probe")
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
        self.heard: dict[str, float] = {}
        self.node.create_subscription(TrackingStatus, "tracking", self._on_tracking, 10)
        self.node.create_subscription(DiagnosticArray, "diagnostics", self._on_diagnostics, 100)
        self.clients: dict[str, Any] = {}

    def _on_tracking(self, message: Any) -> None:
        self.tracking = message

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            self.heard[status.name.split(":")[0]] = time.monotonic()

    def spin(self, seconds: float) -> None:
        """Listen for a while of real time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._rclpy.spin_once(self.node, timeout_sec=min(left, 0.05))

    def now(self) -> float:
        """Return the robot's time [s]."""
        stamp = self.tracking.header.stamp
        return float(stamp.sec + 1e-9 * stamp.nanosec)

    def follows(self) -> bool:
        """Whether the robot follows its reference."""
        found = self.tracking
        error = max(map(abs, found.position_error), default=math.inf)
        return bool(found.state == TRACKING and error < SETTLED)

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

    def close(self) -> None:
        """Leave the graph."""
        self.node.destroy_node()
        self._rclpy.try_shutdown()


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
    message = parameters_message(robot, update)
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


FAULTS: dict[str, Callable[[Probe], None]] = {
    "joint states": _joint_states,
    "samples": _samples,
    "parameters": _parameters,
    "reference": _reference,
    "clock": _clock,
    "services": _services,
    "settings": _settings,
}


def _pause(probe: Probe, process: Any) -> None:
    """Stop a node's process for a while, as a machine that is too busy does."""
    process.send_signal(signal.SIGSTOP)
    probe.spin(float(probe.rng.uniform(0.1, LONGEST_FAULT)))
    process.send_signal(signal.SIGCONT)


def _recovery(probe: Probe, due: float, limit: float) -> float:
    """Return the robot's time [s] from which on it follows its reference until `due`."""
    from std_srvs.srv import SetBool

    begin = last = probe.now()
    end = time.monotonic() + limit
    while time.monotonic() < due or (not probe.follows() and time.monotonic() < end):
        if not probe.follows():
            last = probe.now()
            if probe.tracking.state in (STOPPED, DISABLED) and last - begin > 1.0:
                probe.call(SetBool, "controller/enable", data=True)  # as a user would
        probe.spin(0.05)
    return last - begin if probe.follows() else math.inf


def _start(stack: contextlib.ExitStack, rate: float) -> dict[str, Any]:
    own = {
        "simulator": ["publish_clock:=true", "lockstep:=0.01", f"rate:={rate}"],
        "reference": ["amplitude:=0.3", "speed:=0.2"],
    }
    processes = {}
    for name, module in NODES.items():
        runner = ("-m", "sysid_embedded.run", module) if EMBEDDED else ("-m", module)
        settings = [f"robot:={ROBOT}", "use_sim_time:=" + str(name != "simulator").lower()]
        words = [w for item in (*settings, *own.get(name, [])) for w in ("-p", item)]
        processes[name] = stack.enter_context(node_process(*runner, "--ros-args", *words))
    return processes


def run(given: argparse.Namespace) -> Result:
    """Inject a fault every second and watch what comes of it."""
    os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    if EMBEDDED:
        install_embedded()
    counts: Counter[str] = Counter()
    slow: list[tuple[str, float]] = []
    with contextlib.ExitStack() as stack:
        probe = Probe(given.seed)
        stack.callback(probe.close)
        processes = _start(stack, given.rate)
        usage = {name: Usage(process.pid) for name, process in processes.items()}
        begin = time.monotonic()
        while probe.tracking is None or not probe.follows():
            probe.spin(0.2)
            ended = [name for name, process in processes.items() if process.poll() is not None]
            if ended or time.monotonic() - begin > PATIENCE:
                why = f"{', '.join(ended)} ended" if ended else "it does not follow its reference"
                raise SystemExit(f"bench.soak: the robot cannot be soaked: {why}")
        begin = time.monotonic()
        while time.monotonic() - begin < given.seconds:
            kind = str(probe.rng.choice([*FAULTS, "pause"]))
            due = time.monotonic() + 1.0
            if kind == "pause":
                _pause(probe, processes[str(probe.rng.choice([*NODES]))])
            else:
                FAULTS[kind](probe)
                probe.spin(0.1)
            counts[kind] += 1
            slow.append((kind, _recovery(probe, due, 30.0)))
            for name, process in processes.items():
                if process.poll() is None:
                    usage[name].sample()
            if sum(counts.values()) % 30 == 0:
                say(f"{time.monotonic() - begin:.0f} s, {sum(counts.values())} faults")
        dead = [
            f"{name}, status {process.returncode}"
            for name, process in processes.items()
            if process.poll() is not None
        ]
    return _result(counts, slow, usage, dead, given.seconds)


def _growth(usage: Usage, seconds: float) -> float:
    """Return how much memory [MB] was added since the first minute, or half of a short run."""
    wall, memory = np.array(usage.wall) - usage.wall[0], np.array(usage.memory)
    later = wall > min(WARM, 0.5 * seconds)
    return float(np.median(memory[-5:]) - np.median(memory[later][:5]))


def _result(
    counts: Counter[str],
    slow: list[tuple[str, float]],
    usage: dict[str, Usage],
    dead: list[str],
    seconds: float,
) -> Result:
    worst = {kind: max(t for k, t in slow if k == kind) for kind in counts}
    growth = {name: _growth(one, seconds) for name, one in usage.items()}
    faults = show_table(
        "soak",
        ("fault", "cases", "longest recovery [s]"),
        ((kind, count, worst[kind]) for kind, count in counts.items()),
        ".3g",
    )
    nodes = show_table("", ("node", "growth [MB]"), growth.items(), ".2f")
    figures: dict[str, float] = {
        "live attacks": sum(counts.values()),
        "nodes that died": len(dead),
        "memory growth [MB]": max(growth.values()),
        "longest recovery [s]": max(worst.values()),
    }
    return Result(figures, {"dead": dead}, {"faults": faults, "nodes": nodes})


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=600.0, help="[%(default)s]")
    parser.add_argument("--rate", type=float, default=1000.0, help="of the robot [Hz]")


if __name__ == "__main__":
    sys.exit(run_benchmark("soak", run, _arguments, __doc__))
