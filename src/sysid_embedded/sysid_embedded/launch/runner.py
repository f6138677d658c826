# SPDX-License-Identifier: Apache-2.0
"""Runs the processes of a plan: their output, their ends, and stopping them all."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import FrameType
from typing import IO

from .plan import Message, Plan, Process

__all__ = ["BAD_INPUT", "run"]

BAD_INPUT = 2
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_POLL_S = 0.1
_PATIENCE_S = 5.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass
class _Child:
    """A process that runs, or that is to be started at a time."""

    process: Process
    prefix: str
    due: float
    popen: subprocess.Popen[bytes] | None = None
    buffer: bytes = b""


class _Runner:
    def __init__(self, plan: Plan, out: IO[str]) -> None:
        start = time.monotonic()
        self.out = out
        self.colour = out.isatty()
        self.selector = selectors.DefaultSelector()
        self.messages = [
            (start + step.delay, step.text) for step in plan.steps if isinstance(step, Message)
        ]
        processes = [step for step in plan.steps if isinstance(step, Process)]
        self.waiting = [
            _Child(process, self._prefix(process, i), start + process.delay)
            for i, process in enumerate(processes)
        ]
        self.running: list[_Child] = []
        self.status = 0
        self.stopping = -1
        self.patience = 0.0
        self.interrupts = 0

    def _prefix(self, process: Process, index: int) -> str:
        text = f"[{process.name}]"
        return f"\033[{_COLOURS[index % len(_COLOURS)]}m{text}\033[0m" if self.colour else text

    def say(self, prefix: str, text: str) -> None:
        self.out.write(f"{prefix} {text}\n")
        self.out.flush()

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Note that the user, or a parent, wants an end."""
        self.interrupts += 1

    def start(self, child: _Child) -> None:
        process = child.process
        try:
            child.popen = subprocess.Popen(
                process.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**process.environment, "PYTHONUNBUFFERED": "1"},
                cwd=process.cwd or None,
                # A terminal's Ctrl-C is passed on in order, not to all at once.
                start_new_session=True,
            )
        except OSError as error:
            self.say(child.prefix, f"can't be started: {error.strerror}: {process.command[0]}")
            self.status = max(self.status, 1)
            if process.shutdown_on_exit:
                self.interrupts += 1
            return
        self.running.append(child)
        if child.popen.stdout is not None:
            os.set_blocking(child.popen.stdout.fileno(), False)
            self.selector.register(child.popen.stdout, selectors.EVENT_READ, child)

    def drain(self, child: _Child) -> None:
        """Print what a process has written."""
        if child.popen is None or child.popen.stdout is None:
            return
        try:
            data = os.read(child.popen.stdout.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self.selector.unregister(child.popen.stdout)
            child.popen.stdout.close()
            child.popen.stdout = None
        *lines, child.buffer = (child.buffer + data).split(b"\n")
        if not data and child.buffer:
            lines, child.buffer = [*lines, child.buffer], b""
        for line in lines:
            self.say(child.prefix, line.decode("utf-8", "replace").rstrip("\r"))

    def reap(self) -> None:
        """Look for processes that have ended."""
        for child in list(self.running):
            if child.popen is None or child.popen.poll() is None:
                continue
            while child.popen.stdout is not None and self._has_more(child):
                self.drain(child)
            self.running.remove(child)
            self.ended(child, child.popen.returncode)

    def _has_more(self, child: _Child) -> bool:
        before = child.popen.stdout if child.popen is not None else None
        events = self.selector.select(0)
        return before is not None and any(key.data is child for key, _ in events)

    def ended(self, child: _Child, status: int) -> None:
        """Decide what follows from the end of a process."""
        if self.stopping >= 0:
            if status > 0:
                self.say(child.prefix, f"ended with status {status}")
            return
        how = f"signal {-status}" if status < 0 else f"status {status}"
        self.say(child.prefix, f"ended with {how}" if status else "ended")
        if child.process.respawn:
            child.popen = None
            child.due = time.monotonic() + child.process.respawn_delay
            self.waiting.append(child)
            return
        if status:
            self.status = max(self.status, BAD_INPUT if status == BAD_INPUT else 1)
        if child.process.shutdown_on_exit:
            self.interrupts += 1

    def stop(self) -> None:
        """Ask all processes to end, more firmly each time."""
        self.waiting.clear()
        self.messages.clear()
        self.stopping = min(self.stopping + 1, len(_STOP_SIGNALS) - 1)
        self.patience = time.monotonic() + _PATIENCE_S
        for child in self.running:
            if child.popen is not None and child.popen.poll() is None:
                os.killpg(child.popen.pid, _STOP_SIGNALS[self.stopping])

    def loop(self) -> None:
        seen = 0
        while self.running or self.waiting or self.messages:
            now = time.monotonic()
            if self.interrupts > seen or (self.stopping >= 0 and now > self.patience):
                seen = self.interrupts
                self.stop()
            for due, text in [message for message in self.messages if message[0] <= now]:
                self.messages.remove((due, text))
                self.say("[log]", text)
            for child in [child for child in self.waiting if child.due <= now]:
                self.waiting.remove(child)
                self.start(child)
            for key, _ in self.selector.select(self._pause(now)):
                self.drain(key.data)
            self.reap()

    def _pause(self, now: float) -> float:
        times = [child.due for child in self.waiting] + [due for due, _ in self.messages]
        return min(_POLL_S, max(0.0, min(times, default=now + _POLL_S) - now))


def run(plan: Plan, *, out: IO[str] | None = None) -> int:
    """Run all processes until they have ended or somebody asks for an end.

    Parameters
    ----------
    plan : Plan
    out : file, optional
        Where to write their output. Default: standard output.

    Returns
    -------
    int
        0; 1 if a process failed on its own account; 2 if one ended with that status, as nodes do
        whose parameters are wrong or whose packages are missing.
    """
    runner = _Runner(plan, out or sys.stdout)
    numbers: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, runner.interrupt) for number in numbers}
    try:
        runner.loop()
    finally:
        for child in runner.running:
            if child.popen is not None and child.popen.poll() is None:
                os.killpg(child.popen.pid, signal.SIGKILL)
        for number, handler in before.items():
            signal.signal(number, handler)
    return runner.status
