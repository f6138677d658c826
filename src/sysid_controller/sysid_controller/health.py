# SPDX-License-Identifier: Apache-2.0
"""Remembers refusals, limits and timing, and says in words how the controller is doing."""

import re
from collections import Counter, deque
from dataclasses import replace

import numpy as np

from sysid_controller.arrivals import Arrivals
from sysid_controller.command import Command, ControlState
from sysid_controller.controller import LARGEST_ERROR, Controller
from sysid_core.diagnostics import Diagnostic, Severity

__all__ = ["Health"]

_RECENT = 5.0  # [s] that a refusal counts as news
_MOST_TEXTS = 5
_TICKS = 2000
_FIGURES = re.compile(r"-?\d[\d.e+-]*")


def _held(failure: Diagnostic) -> str:
    return f"holds where the model last gave torque: {failure}"


def _stopped(reason: str) -> str:
    return f"stopped driving: {reason}"


class Health:
    """Book of what happened to a controller; times are steady ones [s]."""

    def __init__(self) -> None:
        self._accepted: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._texts: deque[tuple[float, str, str]] = deque(maxlen=_MOST_TEXTS)
        self._tick_times: deque[float] = deque(maxlen=_TICKS)
        self._period: float | None = None
        self._last_tick: float | None = None
        self._since_report: Counter[str] = Counter()
        self._limited: dict[str, Counter[int]] = {}
        self._command: Command | None = None
        self._fallback: Diagnostic | None = None
        self._arrivals = Arrivals()
        # What is wrong between the joint states' clock and the controller's; empty if nothing is
        self.clock_fault = ""

    @property
    def rate(self) -> float:
        """Measured rate of the ticks [Hz]; 0 before the second."""
        return 0.0 if not self._period else 1.0 / self._period

    def accept(self, kind: str) -> None:
        """Note that something of a kind was taken."""
        self._accepted[kind] += 1

    def measured(self, stamp: float, steady: float) -> None:
        """Note joint states with a time stamp [s] that arrived at a steady time [s]."""
        self._arrivals.note(stamp, steady)

    def refuse(self, kind: str, reason: str, steady: float) -> bool:
        """Note a refusal; return whether it is news: another reason, whatever its figures.

        Where reasons never repeat, as with made-up names, only the first few are.
        """
        self._refused[kind] += 1
        self._forget(steady)
        for text in self._texts:
            if text[1] == kind and _FIGURES.sub("", text[2]) == _FIGURES.sub("", reason):
                self._texts.remove(text)
                self._texts.append((steady, kind, reason))
                return False
        full = len(self._texts) == _MOST_TEXTS
        if not full:
            self._texts.append((steady, kind, reason))
        return not full

    def warnings(self, steady: float) -> list[str]:
        """Return the refusals of the last seconds in words, and why the model gives no torque."""
        self._forget(steady)
        texts = [f"{kind} refused: {reason}" for _, kind, reason in self._texts]
        if self.clock_fault:
            texts.append(f"joint states: {self.clock_fault}")
        command = self._command
        if command is not None and command.stopped:
            return [_stopped(command.stopped), *texts]
        failure = None if command is None else command.failure
        return texts if failure is None else [_held(failure), *texts]

    def ticked(self, command: Command, tick_time: float, steady: float) -> None:
        """Note a tick and the time [s] that it took to compute."""
        self._command = command
        self._tick_times.append(tick_time)
        if self._last_tick is not None:
            period = max(steady - self._last_tick, 1e-9)
            gain = min(1.0, period / 0.5)  # mean of about the last half second
            self._period = (
                period if self._period is None else self._period + gain * (period - self._period)
            )
        self._last_tick = steady
        self._since_report["ticks"] += 1
        if command.clock_jumped:
            self._since_report["clock jumps"] += 1
        if command.rejoined:
            self._since_report["rejoined"] += 1
        if command.fallback is not None:
            self._since_report["fallback"] += 1
            self._fallback = command.fallback
        limits = command.limits
        for cause, flags in (
            ("position range", limits.by_range),
            ("torque", limits.by_effort),
            ("torque rate", limits.by_rate),
            ("not finite", limits.not_finite),
        ):
            if flags.any():
                self._limited.setdefault(cause, Counter()).update(np.flatnonzero(flags).tolist())

    def report(self, controller: Controller, steady: float) -> list[Diagnostic]:
        """Return one diagnostic per subject, its kind, on the time since the last report."""
        self._forget(steady)
        diagnostics = [
            self._on_state(controller, steady),
            self._on_input("joint states", controller, steady),
            self._on_input("reference", controller, steady),
            *self._on_base(controller, steady),
            self._on_parameters(controller, steady),
            self._on_limits(controller),
            self._on_owners(controller),
            self._on_timing(controller),
        ]
        self._since_report.clear()
        self._limited.clear()
        return diagnostics

    def _forget(self, steady: float) -> None:
        while self._texts and steady - self._texts[0][0] > _RECENT:
            self._texts.popleft()

    def _refusals(self, kind: str) -> str:
        return "; ".join(text for _, known, text in self._texts if known == kind)

    def _on_state(self, controller: Controller, steady: float) -> Diagnostic:
        state = controller.watchdog.state
        age = controller.watchdog.age(steady)
        texts = {
            ControlState.DISABLED: (Severity.OK, "disabled; call ~/enable to drive"),
            ControlState.WAITING: (
                Severity.WARNING,
                f"waits: {controller.publishers.rival}; stop it"
                if controller.publishers.rival
                else f"waiting for {controller.missing or 'joint states'}: is the driver running?",
            ),
            ControlState.HOLDING: (Severity.OK, "holds its position"),
            ControlState.TRACKING: (Severity.OK, "follows the reference"),
            ControlState.STALE: (
                Severity.ERROR,
                f"no valid joint states for {age:.2f} s: "
                + (
                    "holds with gravity compensation"
                    if controller.config.stale_action == "gravity"
                    else "sends zero torque"
                ),
            ),
            ControlState.STOPPED: (Severity.ERROR, _stopped(controller.stopped)),
        }
        level, message = texts[state]
        if self._last_tick is None and state is ControlState.WAITING and not controller.missing:
            message = "waiting for simulated time to begin: is /clock published?"
        if self._since_report["clock jumps"]:
            level = max(level, Severity.WARNING)
            message += "; the clock was set back and references were dropped"
        if self._since_report["rejoined"]:
            level = max(level, Severity.WARNING)
            message += (
                f"; an error grew beyond {LARGEST_ERROR:g} rad and the "
                "reference started anew from the robot: is it blocked or the model far off?"
            )
        if state is ControlState.DISABLED and controller.stopped:
            level, message = Severity.ERROR, _stopped(controller.stopped)
        if controller.failure is not None:
            level = max(level, Severity.WARNING)
            message = _held(controller.failure)
        values = {"state": state.name, "mode": controller.config.mode}
        return Diagnostic("state", message, level, values=values)

    def _on_input(self, kind: str, controller: Controller, steady: float) -> Diagnostic:
        values = {"accepted": str(self._accepted[kind]), "refused": str(self._refused[kind])}
        if kind == "joint states":
            values["age [s]"] = f"{controller.watchdog.age(steady):.4f}"
            measured = controller.joint_states.velocity_measured
            values["velocity"] = "measured" if measured else "differentiated"
            values["lost"] = f"{self._arrivals.lost:.1%}"
            values["jitter [s]"] = f"{self._arrivals.jitter:.4f}"
        refusals = self._refusals(kind)
        if refusals:
            return Diagnostic(kind, f"refused: {refusals}", values=values)
        fault = self.clock_fault or self._arrivals.fault
        if kind == "joint states" and fault:
            return Diagnostic(kind, fault, values=values)
        return Diagnostic(kind, "in order", Severity.OK, values=values)

    def _on_base(self, controller: Controller, steady: float) -> list[Diagnostic]:
        """Return what there is to say of a floating base's inputs; nothing of a fixed one."""
        base = controller.base
        if base is None:
            return []
        diagnostics = []
        for kind in ("odometry", "contacts"):
            found = self._on_input(kind, controller, steady)
            age = base.age(kind, steady)
            values = {**found.values, "age [s]": f"{age:.4f}"}
            level, message = found.severity, found.message
            if age > controller.config.stale_timeout:
                level = Severity.ERROR
                silent = "none yet" if age == np.inf else f"none that is valid for {age:.2f} s"
                message = silent if found.severity is Severity.OK else f"{silent}; {message}"
            diagnostics.append(replace(found, message=message, severity=level, values=values))
        diagnostics.append(self._on_input("contact reference", controller, steady))
        odometry, contacts, plan = diagnostics
        values = {**odometry.values, "tilt [rad]": f"{base.tilt:.3f}"}
        odometry = replace(odometry, values=values)
        fallbacks = self._since_report["fallback"]
        if fallbacks and contacts.severity is Severity.OK:
            share = fallbacks / max(self._since_report["ticks"], 1)
            message = f"projected inverse dynamics in {share:.0%} of the ticks: {self._fallback}"
            contacts = replace(contacts, message=message, severity=Severity.WARNING)
        return [odometry, contacts, plan]

    def _on_parameters(self, controller: Controller, steady: float) -> Diagnostic:
        blend = controller.blend
        diagnostic = self._on_input("parameters", controller, steady)
        values = {
            **diagnostic.values,
            "identified": str(blend.identified),
            "revision": str(blend.revision),
            "blend": f"{blend.share:.3f}",
        }
        message = diagnostic.message
        if diagnostic.severity is Severity.OK:
            message = "identified ones in use" if blend.identified else "nominal ones in use"
        severity, barred = diagnostic.severity, blend.barred(steady)
        if barred:
            severity, message = Severity.WARNING, barred
        return replace(diagnostic, message=message, severity=severity, values=values)

    def _on_limits(self, controller: Controller) -> Diagnostic:
        ticks = max(self._since_report["ticks"], 1)
        names = controller.joint_names
        texts = [
            f"{cause} limited: "
            + ", ".join(f"{names[j]} {count / ticks:.0%}" for j, count in by.items())
            for cause, by in self._limited.items()
        ]
        robot = controller.robot
        described = robot.limits.of_joints(robot.actuated)
        for kind in ("effort", "velocity"):
            assumed = getattr(controller.limits, kind)
            unknown = np.flatnonzero(assumed != getattr(described, kind))
            taken = ", ".join(f"{names[j]} ({assumed[j]:.3g})" for j in unknown)
            if taken:
                texts.append(
                    f"no {kind} limit known, but assumed, for {taken}; add limits.{kind} to the "
                    "robot description"
                )
        if texts:
            return Diagnostic("limits", "; ".join(texts))
        return Diagnostic("limits", "none reached", Severity.OK)

    def _on_owners(self, controller: Controller) -> Diagnostic:
        """Say who else drives the robot or sends it references."""
        rival, references = controller.publishers.rival, controller.publishers.references
        if rival:
            drives = controller.watchdog.driving
            found = "drives on, but so may they" if drives else "does not drive"
            return Diagnostic("owners", f"{rival}: {found}; stop them", Severity.ERROR)
        if references > 1:
            text = f"{references} publishers of references: the newest trajectory is followed"
            return Diagnostic("owners", text, hint="let one of them publish")
        return Diagnostic("owners", "commands and references have one publisher", Severity.OK)

    def _on_timing(self, controller: Controller) -> Diagnostic:
        values = {"rate [Hz]": f"{self.rate:.1f}"}
        if self._tick_times:
            p50, p99, largest = 1e6 * np.percentile(list(self._tick_times), (50, 99, 100))
            values["tick p50 [µs]"] = f"{p50:.0f}"
            values["tick p99 [µs]"] = f"{p99:.0f}"
            values["tick max [µs]"] = f"{largest:.0f}"
        wanted = controller.config.rate
        driving = controller.watchdog.state in (ControlState.HOLDING, ControlState.TRACKING)
        if controller.config.trigger == "timer" and driving and self.rate < 0.9 * wanted:
            return Diagnostic(
                "timing",
                f"runs at {self.rate:.0f} Hz instead of {wanted:.0f}: the machine is too busy "
                "or simulated time runs at another speed",
                values=values,
            )
        return Diagnostic("timing", f"runs at {self.rate:.0f} Hz", Severity.OK, values=values)
