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

from .plan import Plan, Process

__all__ = ["BAD_INPUT", "run"]

BAD_INPUT = 2
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_POLL_S = 0.1
_PATIENCE_S = 5.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


@dataclass
class _Child:
    """A process that runs."""

    prefix: str
    popen: subprocess.Popen[bytes]
    buffer: bytes = b""


class _Runner:
    def __init__(self, plan: Plan, out: IO[str]) -> None:
        self.out = out
        self.colour = out.isatty()
        self.selector = selectors.DefaultSelector()
        self.running: list[_Child] = []
        self.status = 0
        self.stopping = -1
        self.patience = 0.0
        self.interrupts = 0
        self.processes = plan.processes

    def _prefix(self, process: Process, index: int) -> str:
        text = f"[{process.name}]"
        return f"\033[{_COLOURS[index % len(_COLOURS)]}m{text}\033[0m" if self.colour else text

    def say(self, prefix: str, text: str) -> None:
        self.out.write(f"{prefix} {text}\n")
        self.out.flush()

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Note that the user, or a parent, wants an end."""
        self.interrupts += 1

    def start(self, process: Process, prefix: str) -> None:
        try:
            popen = subprocess.Popen(
                process.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env={**process.environment, "PYTHONUNBUFFERED": "1"},
                # A terminal's Ctrl-C is passed on in order, not to all at once.
                start_new_session=True,
            )
        except OSError as error:
            self.say(prefix, f"can't be started: {error.strerror}: {process.command[0]}")
            self.status = max(self.status, 1)
            return
        child = _Child(prefix, popen)
        self.running.append(child)
        if popen.stdout is not None:
            os.set_blocking(popen.stdout.fileno(), False)
            self.selector.register(popen.stdout, selectors.EVENT_READ, child)

    def drain(self, child: _Child) -> None:
        """Print what a process has written."""
        if child.popen.stdout is None:
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
            if child.popen.poll() is None:
                continue
            while child.popen.stdout is not None and self._has_more(child):
                self.drain(child)
            self.running.remove(child)
            self.ended(child, child.popen.returncode)

    def _has_more(self, child: _Child) -> bool:
        before = child.popen.stdout
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
        if status:
            self.status = max(self.status, BAD_INPUT if status == BAD_INPUT else 1)

    def stop(self) -> None:
        """Ask all processes to end, more firmly each time."""
        self.stopping = min(self.stopping + 1, len(_STOP_SIGNALS) - 1)
        self.patience = time.monotonic() + _PATIENCE_S
        for child in self.running:
            if child.popen.poll() is None:
                os.killpg(child.popen.pid, _STOP_SIGNALS[self.stopping])

    def loop(self) -> None:
        for index, process in enumerate(self.processes):
            self.start(process, self._prefix(process, index))
        seen = 0
        while self.running:
            now = time.monotonic()
            if self.interrupts > seen or (self.stopping >= 0 and now > self.patience):
                seen = self.interrupts
                self.stop()
            for key, _ in self.selector.select(_POLL_S):
                self.drain(key.data)
            self.reap()


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
            if child.popen.poll() is None:
                os.killpg(child.popen.pid, signal.SIGKILL)
        for number, handler in before.items():
            signal.signal(number, handler)
    return runner.status
