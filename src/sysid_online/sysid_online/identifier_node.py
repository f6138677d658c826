# SPDX-License-Identifier: Apache-2.0
"""The identifier node: samples in, trusted parameters out; solves on a thread of its own."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_srvs.srv import SetBool, Trigger

from sysid_core.errors import DataError, ParameterError, SysidError
from sysid_core.online.export import export_update
from sysid_core.online.gate import GateState
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.update import Update
from sysid_msgs.msg import (
    DynamicParameters,
    IdentificationStatus,
    JointSamples,
    Payload,
)
from sysid_msgs.srv import ExportModel
from sysid_online.conversions import (
    parameters_message,
    payload_message,
    samples_from_message,
    status_message,
)
from sysid_online.identifier_settings import SETTINGS, online_settings
from sysid_ros.fields import diagnostic_status
from sysid_ros.node_main import run_node
from sysid_ros.parameters import chosen_robot, declare, watch

__all__ = ["IdentifierNode", "main"]

_PATIENCE = 0.02
"""Longest time [s] that samples wait for a solve to end: side by side, both would take longer."""

_STEPS = 20
"""Batches whose smallest steps tell the samples' rate."""

_SHORTEST_STEP = 1e-4
"""Time [s] that samples are apart at least."""

_LEVELS = {GateState.FAULT: 2, GateState.REJECTED: 1}


class IdentifierNode(Node):
    """Identifies one robot from samples; callbacks only ingest, a worker thread solves."""

    def __init__(self) -> None:
        super().__init__("identifier")
        self._values = declare(self, SETTINGS)
        self.robot = chosen_robot(self._values)
        self._sample_rate = 100.0
        self._steps: deque[float] = deque(maxlen=_STEPS)
        self._identifier = OnlineIdentifier(
            self.robot, online_settings(self._values, self._sample_rate)
        )
        watch(self, SETTINGS, self._values, self._configure)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._stop = False
        self._frozen = False
        self._expected: int | None = None
        self._lost = 0
        self._refused = ""
        self._arrived = False
        self._told = False
        self._heard = time.monotonic()
        self._solve_time = 0.0
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._model = self.create_publisher(DynamicParameters, "parameters", latched)
        self._status = self.create_publisher(IdentificationStatus, "status", 10)
        self._payload = self.create_publisher(Payload, "payload", 10)
        self._diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", 10)
        self._update = self._identifier.apply(None)
        self._model.publish(parameters_message(self.robot, self._update))
        self.create_subscription(JointSamples, "samples", self._on_samples, 100)
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(SetBool, "~/freeze", self._on_freeze)
        self.create_service(ExportModel, "~/export", self._on_export)
        self._timer = self.create_timer(1.0 / self._values["solve_rate"], self._wake.set)
        self.create_timer(1.0, self._report)
        self._worker = threading.Thread(target=self._work, name="solver", daemon=True)
        self._worker.start()
        self.get_logger().info(f"identifying robot '{self.robot.name}'")

    def destroy_node(self) -> None:
        """Stop the worker, then the node."""
        self._stop = True
        self._wake.set()
        self._worker.join(timeout=5.0)
        super().destroy_node()

    # -- parameters -------------------------------------------------------------------------

    def _configure(self, values: Mapping[str, Any]) -> None:
        settings = online_settings(values, self._sample_rate)
        if values["solve_rate"] <= 0.0:
            raise ParameterError(f"solve_rate must be above zero, got {values['solve_rate']}")
        with self._lock:
            self._identifier.configure(settings)
        self._timer.timer_period_ns = round(1e9 / values["solve_rate"])

    # -- in ---------------------------------------------------------------------------------

    def _on_samples(self, message: JointSamples) -> None:
        try:
            samples = samples_from_message(self.robot, message)
        except DataError as error:
            self._refused = str(error)
            return
        self._arrived = True
        self._heard = time.monotonic()
        if self._expected is not None and message.sequence > self._expected:
            self._lost += message.sequence - self._expected
        self._expected = message.sequence + len(samples)
        self._idle.wait(_PATIENCE)
        with self._lock:
            self._adopt_rate(samples.time)
            try:
                self._identifier.ingest(samples)
            except SysidError as error:
                self._refused = str(error)

    def _adopt_rate(self, stamps: np.ndarray) -> None:
        """Take the samples' own rate, so that durations mean what they say.

        A walking robot's samples have gaps, so a batch's smallest step counts, and the smallest
        of some batches.
        """
        steps = np.diff(stamps)
        steps = steps[steps > _SHORTEST_STEP]
        if len(steps) < 2:
            return
        self._steps.append(float(steps.min()))
        rate = 1.0 / min(self._steps)
        if abs(rate - self._sample_rate) > 0.05 * self._sample_rate:
            self._sample_rate = rate
            self._identifier.configure(online_settings(self._values, rate))

    # -- solving ----------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stop:
                return
            if not self._frozen:
                self._solve()

    def _solve(self) -> None:
        with self._lock:
            request = self._identifier.snapshot()
        begin = time.perf_counter()
        self._idle.clear()
        try:
            solution = None if request is None else self._identifier.solve(request)
        finally:
            self._idle.set()
        elapsed = time.perf_counter() - begin
        with self._lock:
            if self._frozen:
                return
            if request is not None:
                self._solve_time = elapsed
            update = self._update = self._identifier.apply(
                solution, silence=time.monotonic() - self._heard
            )
            # still under the lock, so that nothing older than a reset is published after it
            self._publish(update, update.changed)

    def _publish(self, update: Update, changed: bool) -> None:
        if not self.context.ok():
            return
        if changed:
            self._model.publish(parameters_message(self.robot, update))
        self._status.publish(self._status_of(update))
        if update.identified != self._told:
            self._told = update.identified
            used = "identified" if update.identified else "nominal"
            self.get_logger().info(f"{used} parameters are in use: {'; '.join(update.reasons)}")
        if update.payload is not None:
            frame = self._identifier.payload_frame
            self._payload.publish(payload_message(self.robot, frame, update.payload, update))

    def _status_of(self, update: Update) -> IdentificationStatus:
        return status_message(
            self.robot,
            self._identifier.groups,
            update,
            frozen=self._frozen,
            lost=self._lost,
            solve_time=self._solve_time,
        )

    # -- services ---------------------------------------------------------------------------

    def _on_reset(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        with self._lock:
            self._identifier.reset()
            self._update = self._identifier.apply(None)
            self._publish(self._update, True)
        response.success, response.message = True, "back to the nominal parameters, window empty"
        return response

    def _on_freeze(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        self._frozen = bool(request.data)
        with self._lock:
            update = self._update
        self._status.publish(self._status_of(update))
        response.success = True
        held = f"revision {update.revision} is held"
        response.message = held if self._frozen else "parameters follow the data again"
        return response

    def _on_export(
        self, request: ExportModel.Request, response: ExportModel.Response
    ) -> ExportModel.Response:
        with self._lock:
            update = self._update
        try:
            urdf = export_update(
                self.robot, update, self._identifier, Path(request.directory).expanduser()
            )
        except SysidError as error:
            response.success, response.message = False, str(error)
            return response
        response.success, response.urdf = True, str(urdf)
        response.message = f"wrote estimate.json and {urdf.name} to {urdf.parent}"
        return response

    # -- diagnostics ------------------------------------------------------------------------

    def _report(self) -> None:
        with self._lock:
            update = self._update
        level = _LEVELS.get(update.state, 0)
        message = f"{update.state.name}: {'; '.join(update.reasons)}"
        if self._refused:
            level, message = max(level, 1), self._refused
        elif not self._arrived:
            level, message = max(level, 1), "no samples arrive: is the recorder running?"
        values: dict[str, object] = {
            "samples": update.samples,
            "rejected samples": update.rejected,
            "lost samples": self._lost,
            "R²": round(update.scores.r2, 4),
            "revision": update.revision,
            "solve time [ms]": round(1e3 * self._solve_time, 3),
            "sample rate [Hz]": round(self._sample_rate, 2),
            "frozen": self._frozen,
        }
        values.update({f"warning {i + 1}": text for i, text in enumerate(update.warnings)})
        array = DiagnosticArray()
        array.header.stamp = self.get_clock().now().to_msg()
        name = f"{self.get_fully_qualified_name()}: identification"
        array.status = [diagnostic_status(name, self.robot.name, level, message, values)]
        self._diagnostics.publish(array)
        self._arrived, self._refused = False, ""


def _make() -> IdentifierNode:
    node = IdentifierNode()
    gc.collect()
    gc.freeze()  # what stays for good need not be searched for garbage in the middle of a solve
    return node


def main(args: Sequence[str] | None = None) -> int:
    """Run the identifier node."""
    return run_node("identifier", _make, args)


if __name__ == "__main__":
    sys.exit(main())
