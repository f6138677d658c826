# SPDX-License-Identifier: Apache-2.0
"""The recorder node: joint states in, samples out, and a ring buffer that can be saved."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu, JointState

from sysid_core.data import write_recording
from sysid_core.errors import DataError, SysidError
from sysid_core.online.stream import SampleStream
from sysid_core.online.stream_config import StreamConfig, stream_cutoff
from sysid_core.recording import Samples
from sysid_msgs.msg import Contacts, JointSamples
from sysid_msgs.srv import SaveBuffer
from sysid_online.conversions import (
    contact_flags,
    imu_arrays,
    odometry_arrays,
    samples_message,
)
from sysid_online.recorder_settings import SETTINGS
from sysid_online.ring_buffer import JointBatch, RingBuffer
from sysid_ros.fields import diagnostic_status, seconds
from sysid_ros.node_main import run_node
from sysid_ros.parameters import chosen_robot, declare, watch

__all__ = ["RecorderNode", "main"]

_RATE_MESSAGES = 100
"""Messages from which the rate of the joint states is measured."""

_MOST_MESSAGES = 2000
"""Messages that are kept until then at most."""

_SIMULATION_START = 5.0
"""Time [s] after which no simulation is at its start any more."""

_INERTIAL_WAIT = 1.0
"""Time [s] of joint states in which a floating base's inertial sensor has to show itself."""


class RecorderNode(Node):
    """Synchronises, filters and differentiates joint states; publishes them as samples."""

    def __init__(self) -> None:
        super().__init__("recorder")
        self._values = declare(self, SETTINGS)
        watch(self, SETTINGS, self._values)
        self.robot = chosen_robot(self._values)
        self._counts: Counter[str] = Counter()
        self._pending: list[JointState] = []
        self._buffer = RingBuffer(self._values["buffer_duration"])
        self._stream: SampleStream | None = None
        self._first: list[JointBatch] = []
        self._early: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque(
            maxlen=3 * _MOST_MESSAGES
        )
        self._sequence = 0
        self._rate = float(self._values["rate"])
        self._last_arrival = self._now()
        self._contact_source = ""
        self._inertial = False
        # takes what any driver offers; deep enough for seconds on a machine that is held up
        sensor = QoSProfile(depth=5000, reliability=ReliabilityPolicy.BEST_EFFORT)
        self._samples = self.create_publisher(JointSamples, "samples", 100)
        self._diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", 10)
        self.create_subscription(JointState, "joint_states", self._on_joint_state, sensor)
        if self.robot.floating:
            self.create_subscription(Odometry, "odom", self._on_odometry, sensor)
            self.create_subscription(Imu, "imu/data", self._on_imu, sensor)
            self.create_subscription(Contacts, "contacts", self._on_contacts, sensor)
        self.create_service(
            SaveBuffer, "~/save", self._on_save, callback_group=MutuallyExclusiveCallbackGroup()
        )
        self.create_timer(self._values["publish_period"], self._process)
        self.create_timer(1.0, self._report)
        if self._rate > 0.0 and not self.robot.floating:
            self._open_stream(self._rate)
        self.get_logger().info(f"recording robot '{self.robot.name}'")

    def _now(self) -> float:
        return 1e-9 * float(self.get_clock().now().nanoseconds)

    # -- in ---------------------------------------------------------------------------------

    def _on_joint_state(self, message: JointState) -> None:
        stamp = message.header.stamp
        # a simulation starts at zero, where a stamp of zero is one like others
        if not (stamp.sec or stamp.nanosec) and self._now() > _SIMULATION_START:
            self._counts["joint states without a time stamp"] += 1
            message.header.stamp = self.get_clock().now().to_msg()
        self._pending.append(message)

    def _on_odometry(self, message: Odometry) -> None:
        time = seconds(message.header.stamp)
        position, orientation, twist = odometry_arrays(message)
        self._buffer.add_base(time, np.concatenate([position, orientation, twist]))
        self._feed(SampleStream.push_odometry, time, position, orientation, twist)

    def _on_imu(self, message: Imu) -> None:
        time = seconds(message.header.stamp)
        angular_velocity, specific_force = imu_arrays(message)
        self._inertial = True
        self._buffer.add_imu(time, np.concatenate([angular_velocity, specific_force]))
        self._feed(SampleStream.push_imu, time, angular_velocity, specific_force)

    def _on_contacts(self, message: Contacts) -> None:
        time = seconds(message.header.stamp)
        try:
            flags, wrenches = contact_flags(message)
        except DataError:
            self._counts["malformed contacts"] += 1
            return
        self._buffer.add_contacts(time, flags)
        self._feed(SampleStream.push_contacts, time, flags, wrenches)

    def _feed(self, push: Callable[..., None], *values: Any) -> None:
        """Hand a companion of the joint states to the stream; keep it until there is one."""
        if self._stream is None:
            self._early.append((push, values))
        else:
            push(self._stream, *values)

    # -- out --------------------------------------------------------------------------------

    def _process(self) -> None:
        messages, self._pending = self._pending, []
        if not messages:
            return
        self._last_arrival = self._now()
        for batch in self._batches(messages):
            self._buffer.add_joints(batch)
            if self._stream is None:
                self._measure_rate(batch)
            else:
                self._push(batch)

    def _batches(self, messages: list[JointState]) -> list[JointBatch]:
        """Group well-formed messages with the same joints into arrays."""
        groups: list[tuple[tuple[str, ...], list[JointState]]] = []
        for message in messages:
            names, n = tuple(message.name), len(message.name)
            if len(message.position) != n or len(message.effort) != n:
                self._counts["joint states without position or effort"] += 1
            elif len(message.velocity) not in (0, n):
                self._counts["joint states with arrays of odd length"] += 1
            elif groups and groups[-1][0] == names:
                groups[-1][1].append(message)
            else:
                groups.append((names, [message]))
        return [self._batch(names, group) for names, group in groups]

    def _batch(self, names: tuple[str, ...], messages: list[JointState]) -> JointBatch:
        time = np.array([seconds(message.header.stamp) for message in messages])
        unknown = np.full(len(names), np.nan)
        return JointBatch(
            names,
            time,
            np.array([message.position for message in messages]),
            np.array([m.velocity if len(m.velocity) else unknown for m in messages]),
            np.array([message.effort for message in messages]),
        )

    def _measure_rate(self, batch: JointBatch) -> None:
        self._first.append(batch)
        time = np.concatenate([b.time for b in self._first])
        if len(time) < _RATE_MESSAGES or self._awaits_inertial(len(time), float(np.ptp(time))):
            return
        steps = np.diff(time)
        steps = steps[steps > 1e-6]
        if not len(steps):
            self._first.clear()
            self._counts["joint states whose clock stands still"] += len(time)
            return
        # jitter moves single steps both ways; the mean of the unbroken ones is the period
        period = float(np.mean(steps[steps < 3.0 * np.median(steps)]))
        self._open_stream(self._rate or 1.0 / period)
        for push, values in self._early:
            self._feed(push, *values)
        self._early.clear()
        first, self._first = self._first, []
        for held in first:
            self._push(held)

    def _awaits_inertial(self, count: int, span: float) -> bool:
        """Whether an inertial sensor, which allows a higher cut-off, may still show itself."""
        missing = self.robot.floating and not self._inertial
        return missing and span < _INERTIAL_WAIT and count < _MOST_MESSAGES

    def _open_stream(self, rate: float) -> None:
        cutoff = stream_cutoff(
            self.robot, rate, wanted=self._values["cutoff"], inertial=self._inertial
        )
        settings = StreamConfig(
            rate=rate,
            cutoff=cutoff,
            sample_rate=self._values["sample_rate"],
            gap=self._values["gap"],
            contact_margin=self._values["contact_margin"],
        )
        self._stream = SampleStream(self.robot, settings)
        self._rate = rate
        self.get_logger().info(
            f"joint states at {rate:.1f} Hz, cut-off {cutoff:.1f} Hz, samples at "
            f"{settings.output_rate:.1f} Hz, {1e3 * self._stream.delay:.0f} ms late"
        )

    def _push(self, batch: JointBatch) -> None:
        if self._stream is None:
            return
        samples = self._stream.push_joint_states(
            batch.time, batch.names, batch.position, batch.effort
        )
        if len(samples):
            self._publish(samples)

    def _publish(self, samples: Samples) -> None:
        breaks = np.flatnonzero(np.diff(samples.time) < 0.0) + 1
        for index in np.split(np.arange(len(samples)), breaks):
            part = samples.select(index)
            self._samples.publish(samples_message(self.robot, part, self._sequence))
            self._sequence += len(part)

    # -- service and diagnostics ------------------------------------------------------------

    def _on_save(
        self, request: SaveBuffer.Request, response: SaveBuffer.Response
    ) -> SaveBuffer.Response:
        try:
            recording = self._buffer.snapshot()
            write_recording(recording, Path(request.directory).expanduser())
        except SysidError as error:
            response.success, response.message = False, str(error)
            return response
        response.success = True
        response.messages = len(recording)
        response.duration = float(recording.time[-1] - recording.time[0])
        response.message = f"wrote {len(recording)} joint states to {request.directory}"
        return response

    def _report(self) -> None:
        idle = self._now() - self._last_arrival
        level, message = 0, "recording"
        values: dict[str, object] = {"rate [Hz]": round(self._rate, 2), **self._counts}
        if self._stream is not None:
            values["cut-off [Hz]"] = round(self._stream.config.cutoff, 2)
            counts = self._stream.joint_counts
            values.update({name: getattr(counts, name) for name in counts.__dataclass_fields__})
            values.update(self._stream.counts)
        values["samples published"] = self._sequence
        troubles = self._troubles(values)
        if self._stream is not None:
            values.update(self._stream.tally)
            if self.robot.floating:
                values["contacts from"] = self._stream.contact_source or "nowhere yet"
            troubles += map(str, self._stream.take_diagnostics())
            self._say_contact_source(self._stream.contact_source)
        if troubles:
            level = 1
        if idle > self._values["stale_after"]:
            level = 2
            troubles.insert(0, f"no joint states for {idle:.1f} s: is the driver running?")
        if troubles:
            message = "; ".join(troubles)
        array = DiagnosticArray()
        array.header.stamp = self.get_clock().now().to_msg()
        name = f"{self.get_fully_qualified_name()}: joint states"
        array.status = [diagnostic_status(name, self.robot.name, level, message, values)]
        self._diagnostics.publish(array)
        self._seen = {key: value for key, value in values.items() if isinstance(value, int)}

    def _say_contact_source(self, source: str) -> None:
        """Log where contacts come from, once a change."""
        if source and source != self._contact_source:
            if source == "torques":
                self.get_logger().warning(
                    "no 'contacts' come; contacts are told from the torques until they do"
                )
            elif self._contact_source:
                self.get_logger().info("'contacts' came back and are used")
            self._contact_source = source

    _seen: dict[str, int] = {}  # noqa: RUF012 - replaced, never changed

    def _troubles(self, values: dict[str, object]) -> list[str]:
        """Say which counts of bad messages rose since the last report."""
        harmless = {"received", "accepted", "samples published"}
        return [
            f"{value - self._seen.get(key, 0)} {key.replace('_', ' ')}"
            for key, value in values.items()
            if isinstance(value, int) and key not in harmless and value > self._seen.get(key, 0)
        ]


def main(args: Sequence[str] | None = None) -> int:
    """Run the recorder node."""
    return run_node("recorder", RecorderNode, args, threads=2)


if __name__ == "__main__":
    sys.exit(main())
