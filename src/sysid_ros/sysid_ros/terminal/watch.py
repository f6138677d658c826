# SPDX-License-Identifier: Apache-2.0
"""``sysid watch``: a live view of identifier and controller, with keys."""

import argparse
import contextlib
import select
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live

from sysid_core.errors import SysidError
from sysid_ros.terminal.session import Session, open_session
from sysid_ros.terminal.watch_view import WatchView

__all__ = ["run"]

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
