# SPDX-License-Identifier: Apache-2.0
"""``sysid watch``: a live view of identifier and controller, as a screen with keys or lines."""

import argparse
import contextlib
import select
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from sysid_core.errors import SysidError
from sysid_ros.terminal.session import Session, open_session

__all__ = ["WatchView", "run"]


_TRACE = 40  # Torques that a trace shows

_BARS = "▁▂▃▄▅▆▇█"
_TWO_SIDED = 1.96  # Standard deviations to either side of a normal distribution's 95 % interval

_KEYS = "e enable/disable · f freeze/follow · x export · r reset · q quit"


class WatchView:
    """The newest messages of identifier and controller."""

    def __init__(self, gates: Sequence[str], states: Sequence[str]) -> None:
        self._gates, self._states = gates, states
        self.status: Any = None  # the newest messages of these topics
        self.payload: Any = None
        self.tracking: Any = None
        self.told = ""
        self._torques: deque[Sequence[float]] = deque(maxlen=_TRACE)

    @property
    def enabled(self) -> bool:
        """Whether the controller drives."""
        return self.tracking is not None and self.tracking.state != 0

    @property
    def frozen(self) -> bool:
        """Whether the identifier holds its parameters."""
        return self.status is not None and bool(self.status.frozen)

    def line(self) -> str:
        """Return the state of things in one line."""
        return " | ".join((self._gate(), self._control(), self._load()))

    def screen(self) -> RenderableType:
        """Return the state of things as a screen, whose traces grow by a torque per call."""
        if self.tracking is not None:
            self._torques.append(self.tracking.effort)
        table = Table(box=None, pad_edge=False)
        headings = ("joint", "R²", "skill", "error [mrad]", "torque [N·m]", "")
        for i, heading in enumerate(headings):
            table.add_column(escape(heading), justify="left" if i in (0, 5) else "right")
        scores = self._scores()
        torques = self._traces()
        for joint in dict.fromkeys((*torques, *scores)):
            table.add_row(
                escape(joint), *scores.get(joint, ("–", "–")), *torques.get(joint, ("–", "–", ""))
            )
        above = [self._gate(), *self._reasons(), self._control(), self._load(), ""]
        return Group(*map(escape, above), table, *map(escape, ("", self.told, _KEYS)))

    def _gate(self) -> str:
        status = self.status
        if status is None:
            return "identifier: silent"
        return (
            f"gate {self._gates[status.state]}{' (frozen)' if status.frozen else ''}"
            f", revision {status.revision}, R² {status.r2:.4f}"
            f", excited {status.determined:.0%}, window {status.window_fill:.0%}"
        )

    def _reasons(self) -> list[str]:
        if self.status is None:
            return []
        return [f"  {text}" for text in (*self.status.reasons, *self.status.warnings)]

    def _control(self) -> str:
        tracking = self.tracking
        if tracking is None:
            return "controller: silent"
        worst = max((abs(error) for error in tracking.position_error), default=0.0)
        model = "identified" if tracking.identified else "nominal"
        warning = f", {tracking.warnings[0]}" if tracking.warnings else ""
        return (
            f"controller {self._states[tracking.state]}, {model} model, error "
            f"{1e3 * worst:.1f} mrad{warning}"
        )

    def _load(self) -> str:
        payload = self.payload
        if payload is None or not payload.attached:
            return "no payload"
        half = _TWO_SIDED * payload.mass_std
        low, high = max(payload.mass - half, 0.0), payload.mass + half
        return f"payload {payload.mass:.3f} kg (95 %: {low:.3f} to {high:.3f})"

    def _scores(self) -> dict[str, tuple[str, str]]:
        """Return R², and the share of the nominal model's error that is gone, by joint."""
        status = self.status
        if status is None:
            return {}
        rows = zip(
            status.joints,
            status.r2_joints,
            status.rmse_joints,
            status.rmse_nominal_joints,
            strict=False,
        )
        return {
            joint: (f"{r2:.3f}", f"{1.0 - rmse / nominal:.0%}" if nominal > 0.0 else "–")
            for joint, r2, rmse, nominal in rows
        }

    def _traces(self) -> dict[str, tuple[str, str, str]]:
        tracking = self.tracking
        if tracking is None:
            return {}
        found = {}
        for j, joint in enumerate(tracking.joint_names):
            trace = [torques[j] for torques in self._torques if len(torques) > j]
            found[joint] = (
                f"{1e3 * tracking.position_error[j]:.1f}",
                f"{trace[-1]:.1f}" if trace else "–",
                _spark(trace),
            )
        return found


def _spark(values: Sequence[float]) -> str:
    """Return values as a row of bars between their least and their greatest."""
    if not values:
        return ""
    low, span = min(values), max(values) - min(values)
    top = len(_BARS) - 1
    return "".join(_BARS[round(top * (v - low) / span) if span > 0.0 else 0] for v in values)


_FRAME = 0.2  # [s] between screens
_LINE = 1.0  # [s] between lines
_ANSWER = 2.0  # [s] that a service is given to answer a key
_EXPORT = "sysid_export"  # Folder that the key for export writes to, with the time behind it


_GATES = ("FILLING", "NOMINAL", "IDENTIFIED", "HOLDING", "REJECTED", "FAULT")
_STATES = ("DISABLED", "WAITING", "HOLDING", "TRACKING", "STALE", "STOPPED")
"""Constants of the messages."""


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    namespace = f"/{args.namespace.strip('/')}".rstrip("/")
    with open_session("sysid_watch") as session:
        view = _subscribed(session, namespace)
        end = time.monotonic() + args.duration
        if sys.stdout.isatty() and sys.stdin.isatty():
            _show(session, view, namespace, end)
            return 0
        while time.monotonic() < end and session.context.ok():
            session.until(lambda: False, min(_LINE, end - time.monotonic()))
            print(view.line(), flush=True)
    return 0


def _subscribed(session: Session, namespace: str) -> WatchView:
    from sysid_msgs.msg import IdentificationStatus, Payload, TrackingStatus

    view = WatchView(_names(IdentificationStatus, _GATES), _names(TrackingStatus, _STATES))
    kinds = {"status": IdentificationStatus, "payload": Payload, "tracking": TrackingStatus}
    for topic, kind in kinds.items():
        take = partial(setattr, view, topic)
        session.node.create_subscription(kind, f"{namespace}/{topic}", take, 10)
    return view


def _names(kind: Any, names: Sequence[str]) -> list[str]:
    """Return a message's constants in the order of their values."""
    return sorted(names, key=lambda name: getattr(kind, name))


def _show(session: Session, view: WatchView, namespace: str, end: float) -> None:
    with (
        _single_keys(),
        Live(console=Console(highlight=False), auto_refresh=False, screen=True) as live,
    ):
        while time.monotonic() < end and session.context.ok():
            session.until(lambda: False, _FRAME)
            live.update(view.screen(), refresh=True)
            key = sys.stdin.read(1) if select.select([sys.stdin], [], [], 0.0)[0] else ""
            if key == "q":
                return
            if key:
                view.told = _press(session, view, namespace, key)


@contextlib.contextmanager
def _single_keys() -> Iterator[None]:
    """Let keys arrive without a return behind them."""
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def _press(session: Session, view: WatchView, namespace: str, key: str) -> str:
    """Do what a key stands for and say what came of it."""
    from std_srvs.srv import SetBool, Trigger

    from sysid_msgs.srv import ExportModel

    calls: dict[str, tuple[Any, str, dict[str, Any]]] = {
        "e": (SetBool, "controller/enable", {"data": not view.enabled}),
        "f": (SetBool, "identifier/freeze", {"data": not view.frozen}),
        "r": (Trigger, "identifier/reset", {}),
        "x": (
            ExportModel,
            "identifier/export",
            {"directory": str(Path.cwd() / f"{_EXPORT}_{time.strftime('%Y%m%d_%H%M%S')}")},
        ),
    }
    if key not in calls:
        return ""
    kind, service, values = calls[key]
    try:
        request = kind.Request(**values)
        answer = session.ask(kind, f"{namespace}/{service}", request, _ANSWER)
    except SysidError as error:
        return str(error)
    return f"{service}: {answer.message}"
