# SPDX-License-Identifier: Apache-2.0
"""The recorder node: joint states in, samples out, and a ring buffer that can be saved."""

import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.task import Future
from sensor_msgs.msg import JointState

from sysid_core.data import write_recording
from sysid_core.data.message_types import message_types
from sysid_core.data.ring_buffer import RingBuffer
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.errors import SysidError
from sysid_core.files import output_folder
from sysid_core.online.stream import SampleStream
from sysid_core.online.stream_config import StreamConfig
from sysid_core.recording import Samples
from sysid_core.settings import group, parameter
from sysid_core.signals.senders import Senders
from sysid_msgs.msg import JointSamples
from sysid_msgs.srv import SaveBuffer
from sysid_online.opening import OpeningStream
from sysid_ros.diagnostics import clock_fault, diagnostics_message, risen
from sysid_ros.node_main import return_freed_memory, run_node, trim_memory
from sysid_ros.parameters import NodeParameters
from sysid_ros.qos import readings
from sysid_ros.robot_config import RobotConfig
from sysid_ros.samples import samples_message
from sysid_ros.sensors import SENSOR_TOPICS, joint_batches

__all__ = ["RecorderConfig", "RecorderNode", "main"]

_PERIOD = 0.05  # [s] between batches of samples: a message each 20th of a second costs little

_MOST_PENDING = 200
"""Joint states that wait at most: their objects take ten times the room of their numbers."""

_STALE = 0.5  # [s] without joint states from which on the diagnostics report an error
_SIMULATION_START = 5.0  # [s] after which no simulation is at its start any more
_TIDY = 60  # Reports after which what batches left between others in memory is given back
_HARMLESS = {"received", "accepted", "repeated", "outliers"}
"""Counts that rise without a fault, too."""


@dataclass(frozen=True)
class RecorderConfig(RobotConfig):
    """Parameters of the recorder."""

    rate: float = parameter(
        0.0,
        "Rate of the joint states [Hz]; 0: measured from the first messages. For drivers whose "
        "stamps jitter too much to tell",
        range=(0.0, 10000.0),
        read_only=True,
    )
    cutoff: float = parameter(
        0.0,
        "Cut-off of the low-pass that all signals share [Hz]; 0: the robot description's, else "
        "40 on legs and 10 otherwise (half of it for a floating base without inertial sensor)",
        range=(0.0, 1000.0),
        read_only=True,
    )
    buffer_duration: float = parameter(
        60.0,
        "Time span of the ring buffer that ~/save writes [s]",
        range=(1.0, 3600.0),
        read_only=True,
    )
    stream: StreamConfig = group(StreamConfig, "")


class RecorderNode(Node):
    """Synchronises, filters and differentiates joint states; publishes them as samples."""

    def __init__(self) -> None:
        super().__init__("recorder")
        config = NodeParameters(self, RecorderConfig()).config
        self.robot = config.load_robot(self)
        self._pending: list[JointState] = []
        self._senders = Senders(self.robot.actuated_names, self.robot.description.names)
        self._arrived: dict[str, list[Any]] = {}
        self._buffer = RingBuffer(config.buffer_duration)
        self._writer = ThreadPoolExecutor(1)  # a bag takes seconds, and samples must not wait
        self._writer.submit(message_types)  # else a first save would add megabytes
        self._source = OpeningStream(
            self.robot, config.stream, rate=config.rate, cutoff=config.cutoff
        )
        self._announced = False
        self._sequence = 0
        self._last_arrival = time.monotonic()
        self._efforts = True
        self._contact_source = ""
        self._faults: Counter[str] = Counter()
        self._reported: Mapping[str, int] = {}
        self._reports = 0
        self._samples = self.create_publisher(JointSamples, "samples", 100)
        self._diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", 10)
        self.create_subscription(JointState, "joint_states", self._on_joint_state, readings())
        if self.robot.floating:
            for topic in SENSOR_TOPICS:
                arrived = self._arrived[topic.name] = []
                self.create_subscription(topic.message, topic.name, arrived.append, readings())
        self.create_service(
            SaveBuffer, "~/save", self._on_save, callback_group=MutuallyExclusiveCallbackGroup()
        )
        self.create_timer(_PERIOD, self._process)
        # by the wall's clock: who waits for a /clock that never comes is told so
        self.create_timer(1.0, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.get_logger().info(f"recording robot '{self.robot.name}'")

    def destroy_node(self) -> None:
        """Finish the bag that is being written, then stop."""
        self._writer.shutdown()
        super().destroy_node()

    def _now(self) -> float:
        return 1e-9 * float(self.get_clock().now().nanoseconds)

    # -- in ---------------------------------------------------------------------------------

    def _on_joint_state(self, message: JointState) -> None:
        stamp = message.header.stamp
        # a simulation starts at zero, where a stamp of zero is one like others
        if not (stamp.sec or stamp.nanosec) and self._now() > _SIMULATION_START:
            self._faults["joint states without a time stamp"] += 1
            message.header.stamp = self.get_clock().now().to_msg()
        self._pending.append(message)
        if len(self._pending) >= _MOST_PENDING:  # after a hold-up
            self._process()

    # -- out --------------------------------------------------------------------------------

    def _process(self) -> None:
        self._process_sensors()
        messages, self._pending = self._pending, []
        if not messages:
            return
        self._last_arrival = time.monotonic()
        batches, faults = joint_batches(messages, self._senders)
        self._faults.update(faults)
        self._efforts |= any(np.any(batch.effort) for batch in batches)
        for batch in batches:
            self._buffer.add(batch)
            for samples in self._source.push_joint_states(batch):
                self._publish(samples)
        if self._source.stream is not None and not self._announced:
            self._announce(self._source.stream)

    def _process_sensors(self) -> None:
        for topic in SENSOR_TOPICS:
            arrived = self._arrived.get(topic.name)
            if not arrived:
                continue
            recordings, malformed = topic.recordings(arrived)
            arrived.clear()
            if malformed:
                self._faults[f"malformed {topic.name}"] += malformed
            for recording in recordings:
                self._buffer.add(recording)
                self._source.push(recording)

    def _announce(self, stream: SampleStream) -> None:
        self._announced = True
        config = stream.config
        self.get_logger().info(
            f"joint states at {config.rate:.1f} Hz, cut-off {config.cutoff:.1f} Hz, samples "
            f"at {config.output_rate:.1f} Hz, {1e3 * stream.delay:.0f} ms late"
        )

    def _publish(self, samples: Samples) -> None:
        stream = self._source.stream
        cutoff = 0.0 if stream is None else stream.cutoff
        breaks = np.flatnonzero(np.diff(samples.time) < 0.0) + 1
        for index in np.split(np.arange(len(samples)), breaks):
            part = samples.select(index)
            self._samples.publish(samples_message(self.robot, part, self._sequence, cutoff))
            self._sequence += len(part)

    # -- service and diagnostics ------------------------------------------------------------

    async def _on_save(
        self, request: SaveBuffer.Request, response: SaveBuffer.Response
    ) -> SaveBuffer.Response:
        saved = Future()
        writing = self._writer.submit(self._save, request, response)
        writing.add_done_callback(lambda written: saved.set_result(written.result()))
        return await saved

    def _save(
        self, request: SaveBuffer.Request, response: SaveBuffer.Response
    ) -> SaveBuffer.Response:
        try:
            folder = output_folder(request.directory)
            recording = self._buffer.snapshot()
            write_recording(recording, folder)
        except SysidError as error:
            response.success, response.message = False, str(error)
            return response
        finally:
            trim_memory()  # what was to be written was there twice
        response.success = True
        response.messages = len(recording)
        response.duration = float(recording.time[-1] - recording.time[0])
        response.message = f"wrote {len(recording)} joint states to {request.directory}"
        return response

    def _report(self) -> None:
        self._process()  # also where simulated time stands still
        self._reports += 1
        if self._reports % _TIDY == 0:
            trim_memory()
        stream = self._source.stream
        faults = self._faults + self._source.counts
        values: dict[str, object] = {"rate [Hz]": round(self._source.rate, 2)}
        troubles: list[str] = []
        if stream is not None:
            faults.update(asdict(stream.joint_counts))
            faults.update(stream.counts)
            values["cut-off [Hz]"] = round(stream.cutoff, 2)
            values.update(stream.tally)
            if self.robot.floating:
                values["contacts from"] = stream.contact_source or "nowhere yet"
            self._say_contact_source(stream.contact_source)
            troubles += map(str, (*(self._source.locked or ()), *stream.take_diagnostics()))
        harmful = {fault: count for fault, count in faults.items() if fault not in _HARMLESS}
        troubles = risen(harmful, self._reported) + troubles
        self._reported = harmful
        troubles += filter(None, [clock_fault(self)])
        if stream is not None and not self._efforts:
            troubles.append("all efforts are zero: does the driver measure them?")
        self._efforts = False
        idle = time.monotonic() - self._last_arrival
        severity = Severity.WARNING if troubles else Severity.OK
        if idle > _STALE:
            severity = Severity.ERROR
            troubles.insert(0, f"no joint states for {idle:.1f} s: is the driver running?")
        values = {**values, **faults, "samples published": self._sequence}
        diagnostic = Diagnostic(
            "joint states",
            "; ".join(troubles) or "recording",
            severity,
            values={key: str(value) for key, value in values.items()},
        )
        self._diagnostics.publish(diagnostics_message(self, self.robot.name, [diagnostic]))

    def _say_contact_source(self, source: str) -> None:
        """Log where contacts come from, once a change."""
        if source and source != self._contact_source:
            if source == "torques":
                self.get_logger().warning(
                    "no 'contacts' arrive: stance is estimated from torque until they do"
                )
            elif self._contact_source:
                self.get_logger().info("'contacts' arrive again and are used")
            self._contact_source = source


def main() -> int:
    """Run the recorder node."""
    return_freed_memory()
    return run_node("recorder", RecorderNode)
