# SPDX-License-Identifier: Apache-2.0
"""The identifier node: samples in, trusted parameters out; solves on a thread of its own."""

import gc
import threading
import time
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.errors import DataError, SysidError
from sysid_core.files import output_folder
from sysid_core.online.export import export_update
from sysid_core.online.gate import GateState
from sysid_core.online.law import Question
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.update import Request, Update
from sysid_core.robot import Robot
from sysid_core.settings import group, parameter
from sysid_msgs.msg import DynamicParameters, IdentificationStatus, JointSamples, Payload
from sysid_msgs.srv import ExportModel
from sysid_online.sample_filter import SampleFilter
from sysid_ros.diagnostics import clock_fault, diagnostics_message
from sysid_ros.identification import parameters_message, payload_message, status_message
from sysid_ros.node_main import run_node, trim_memory
from sysid_ros.parameters import NodeParameters
from sysid_ros.qos import latched
from sysid_ros.robot_config import RobotConfig
from sysid_ros.samples import samples_from_message

__all__ = ["IdentifierConfig", "IdentifierNode", "main"]

_PATIENCE = 0.02
"""Longest time [s] that samples wait for an update: side by side, both would take longer."""

_ANOTHER_RECORDER = 10**9
"""Samples: a sequence that leaps farther is another recorder's, and tells of no loss."""

_RESTART = 1.0  # Silence [s] after which a sequence may start anew: its recorder was started again

_SEVERITIES = {GateState.FAULT: Severity.ERROR, GateState.REJECTED: Severity.WARNING}


@dataclass(frozen=True)
class IdentifierConfig(RobotConfig):
    """Parameters of the identifier."""

    solve_rate: float = parameter(
        20.0,
        "Most solves per second [Hz], each begun as samples come. Less on a small computer",
        range=(0.1, 500.0),
    )
    online: OnlineConfig = group(OnlineConfig, "")


class IdentifierNode(Node):
    """Identifies one robot from samples; callbacks only ingest, a worker thread solves."""

    def __init__(self) -> None:
        super().__init__("identifier")
        self.node_parameters = NodeParameters(self, IdentifierConfig())
        config = self.node_parameters.config
        self.robot = config.load_robot(self)
        self._filter = SampleFilter(config.online)
        self._identifier = OnlineIdentifier(self.robot, config.online)
        self.node_parameters.on_change(self._configure)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._idle = threading.Event()
        self._idle.set()
        self._stop = False
        self._frozen = False
        self._expected: int | None = None
        self._lost = 0
        self._refused = ""
        self._failure = ""
        self._arrived = self._told = False
        self._due = False  # Whether the next samples are to be solved for
        self._heard = self._now()
        self._solve_time = 0.0
        self._model = self.create_publisher(DynamicParameters, "parameters", latched())
        self._status = self.create_publisher(IdentificationStatus, "status", 10)
        self._payload = self.create_publisher(Payload, "payload", 10)
        self._diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", 10)
        self._update = self._identifier.apply(None)
        self._model.publish(parameters_message(self._update))
        self.create_subscription(JointSamples, "samples", self._on_samples, 100)
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(SetBool, "~/freeze", self._on_freeze)
        self.create_service(ExportModel, "~/export", self._on_export)
        self._timer = self.create_timer(1.0 / config.solve_rate, self._on_tick)
        # by the wall's clock: who waits for a /clock that never comes is told so
        self.create_timer(1.0, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))
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

    def _configure(self, config: IdentifierConfig) -> None:
        with self._lock:
            self._identifier.configure(self._filter.applied(config.online))
        self._timer.timer_period_ns = round(1e9 / config.solve_rate)

    # -- in ---------------------------------------------------------------------------------

    def _on_samples(self, message: JointSamples) -> None:
        try:
            samples = samples_from_message(self.robot, message)
        except DataError as error:
            self._refused = str(error)
            return
        self._arrived = True
        missing = 0 if self._expected is None else message.sequence - self._expected
        lately = abs(self._now() - self._heard) < _RESTART
        if lately and not 0 <= missing < _ANOTHER_RECORDER:
            self._refused = (
                f"samples of another recorder are left out (number {message.sequence} where "
                f"{self._expected} follows): stop one recorder"
            )
            return
        self._heard = self._now()
        if 0 < missing < _ANOTHER_RECORDER:
            self._lost += missing
        self._expected = message.sequence + len(samples)
        self._idle.wait(_PATIENCE)
        with self._lock:
            try:
                self._identifier.ingest(samples)
                if self._filter.changes(samples.time, message.cutoff):
                    online = self.node_parameters.config.online
                    self._identifier.configure(self._filter.applied(online))
            except (SysidError, ArithmeticError, ValueError) as error:
                self._refused = str(error)
        if self._due:
            self._due = False
            self._wake.set()

    def _on_tick(self) -> None:
        """Let an update begin with the next samples; at once where none came since the last."""
        if self._due:
            self._wake.set()
        self._due = True

    def _now(self) -> float:
        """Return the time [s] by which silence counts: the robot's own in a simulation."""
        if self.get_parameter("use_sim_time").value:
            return 1e-9 * self.get_clock().now().nanoseconds
        return time.monotonic()

    # -- solving ----------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            if self._stop:
                return
            if not self._frozen:
                self._supervised_solve()

    def _supervised_solve(self) -> None:
        """Solve and publish; what goes wrong is a fault with its cause, never a dead thread."""
        try:
            self._solve()
            self._failure = ""
        except Exception as error:  # the thread's last line: nobody else would tell
            failure = f"{type(error).__name__}: {error}"
            if failure != self._failure:
                self.get_logger().error(f"the identifier failed and goes on: {failure}")
            self._failure = failure

    def _solve(self) -> None:
        begin = time.perf_counter()
        self._idle.clear()  # else what came meanwhile would be learned before publishing
        try:
            request = self._update_once(begin)
        finally:
            self._idle.set()
        verdicts = self._identifier.judge(request)
        with self._lock:
            if self._frozen:
                return
            self._identifier.look(request, verdicts)
            question = self._identifier.question()
        if question is not None:
            self._choose(question)

    def _choose(self, question: Question) -> None:
        answer = question.answer()
        with self._lock:
            taken = not self._frozen and self._identifier.adopt(answer)
        if taken and answer.learner is not None:
            terms = _chosen_terms(answer.robot) or "none"
            self.get_logger().info(f"friction terms that predict torque better: {terms}")
            second = answer.second.diagnostics if answer.second else ()
            for note in (*answer.gravity.told, *second):
                self.get_logger().info(str(note))
        trim_memory()  # samples were there more than once

    def _update_once(self, begin: float) -> Request | None:
        """Solve what the data ask for and publish what comes of it; returns the request."""
        with self._lock:
            request = self._identifier.snapshot()
            silence = max(0.0, self._now() - self._heard)  # that a solve takes long is none
        solution = None if request is None else self._identifier.solve(request)
        with self._lock:
            if self._frozen:
                return None
            update = self._update = self._identifier.apply(solution, silence=silence)
            if request is not None:
                self._solve_time = time.perf_counter() - begin
            # still under the lock, so that nothing older than a reset is published after it
            self._publish(update, update.changed)
        return request

    def _publish(self, update: Update, changed: bool) -> None:
        if not self.context.ok():
            return
        if changed:
            self._model.publish(parameters_message(update))
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
        trim_memory()  # the learner was made anew
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
            folder = output_folder(request.directory)
            urdf = export_update(update, self._identifier, folder)
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
        if self._frozen:
            self._status.publish(self._status_of(update))
        clock = clock_fault(self)
        severity = _SEVERITIES.get(update.state, Severity.OK)
        message = f"{update.state.name}: {'; '.join(update.reasons)}"
        if self._failure:
            severity, message = Severity.ERROR, f"FAULT: the identifier failed, {self._failure}"
        elif self._refused:
            severity, message = max(severity, Severity.WARNING), self._refused
        elif clock:
            severity, message = max(severity, Severity.WARNING), f"{clock}: nothing is solved"
        elif not self._arrived:
            severity = max(severity, Severity.WARNING)
            message = "no samples arrive: is the recorder running?"
        values: dict[str, object] = {
            "samples": update.samples,
            "rejected samples": update.rejected,
            "lost samples": self._lost,
            "R²": round(update.scores.r2, 4),
            "revision": update.revision,
            "solve time [ms]": round(1e3 * self._solve_time, 3),
            "sample rate [Hz]": round(self._filter.rate, 2),
            "frozen": self._frozen,
            "chosen friction terms": _chosen_terms(update.robot) or "none",
        }
        values.update({f"warning {i + 1}": text for i, text in enumerate(update.warnings)})
        told = {key: str(value) for key, value in values.items()}
        diagnostic = Diagnostic("identification", message, severity, values=told)
        self._diagnostics.publish(diagnostics_message(self, self.robot.name, [diagnostic]))
        self._arrived, self._refused = False, ""


def _chosen_terms(robot: Robot) -> str:
    chosen = robot.description.friction_chosen
    return "; ".join(f"{joint}: {', '.join(terms)}" for joint, terms in chosen.items())


def _make() -> IdentifierNode:
    node = IdentifierNode()
    gc.collect()
    gc.freeze()  # what stays for good need not be searched for garbage in the middle of a solve
    return node


def main() -> int:
    """Run the identifier node."""
    return run_node("identifier", _make)
