# SPDX-License-Identifier: Apache-2.0
"""Runs the processes of a launch file: ``sysid up LAUNCH [name:=value ...]``."""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import IO, NamedTuple

from sysid_core.errors import SysidError

from ..errors import LaunchError
from . import packages
from .reader import Argument, Plan, Process, read

__all__ = ["BAD_INPUT", "find_launch_file", "run", "run_plan"]

BAD_INPUT = 2
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
_POLL_S = 0.1
_LAST_WORDS_S = 1.0
"""For so long the output of a process that ended is waited for: others may hold it open."""
_PATIENCE_S = 5.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class _Child(NamedTuple):
    """A process that runs, and the thread that prints what it writes."""

    prefix: str
    popen: subprocess.Popen[str]
    printer: threading.Thread


class _Runner:
    def __init__(self, plan: Plan, out: IO[str]) -> None:
        self.out = out
        self.running: list[_Child] = []
        self.status = 0
        self.stopping = -1
        self.patience = 0.0
        self.interrupts = 0
        self.processes = plan.processes
        self.lock = threading.Lock()

    def _prefix(self, process: Process, index: int) -> str:
        text = f"[{process.name}]"
        colour = _COLOURS[index % len(_COLOURS)]
        return f"\033[{colour}m{text}\033[0m" if self.out.isatty() else text

    def say(self, prefix: str, text: str) -> None:
        with self.lock:
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
                encoding="utf-8",
                errors="replace",
                env={**process.environment, "PYTHONUNBUFFERED": "1"},
                # A terminal's Ctrl-C is passed on in order, not to all at once.
                start_new_session=True,
            )
        except OSError as error:
            self.say(prefix, f"can't be started: {error.strerror}: {process.command[0]}")
            self.status = max(self.status, 1)
            return
        printer = threading.Thread(target=self.print, args=(prefix, popen), daemon=True)
        printer.start()
        self.running.append(_Child(prefix, popen, printer))

    def print(self, prefix: str, popen: subprocess.Popen[str]) -> None:
        """Print what a process writes, to its end."""
        for line in popen.stdout or ():
            self.say(prefix, line.rstrip("\r\n"))

    def reap(self) -> None:
        """Look for processes that have ended."""
        for child in list(self.running):
            if child.popen.poll() is not None:
                child.printer.join(_LAST_WORDS_S)
                self.running.remove(child)
                self.ended(child, child.popen.returncode)

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
            impatient = self.stopping >= 0 and time.monotonic() > self.patience
            if self.interrupts > seen or impatient:
                seen = self.interrupts
                self.stop()
            time.sleep(_POLL_S)
            self.reap()


def run_plan(plan: Plan, *, out: IO[str] | None = None) -> int:
    """Run all processes until they have ended or somebody asks for an end.

    Returns 0; 1 if a process failed on its own account; 2 if one ended with that status, as nodes
    do whose parameters are wrong or whose packages are missing.
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


_SUFFIXES = ("", ".launch.yaml", ".yaml", ".launch.yml", ".yml")


def find_launch_file(name: str) -> Path:
    """Return the launch file of a path or of a name in the project's launch folder.

    Raises
    ------
    LaunchError
        If there is none.
    """
    top = packages.root()
    folders = [Path()] if top is None else [Path(), top, top / "launch"]
    for folder in folders:
        for suffix in _SUFFIXES:
            path = folder / f"{name}{suffix}"
            if path.is_file():
                return path
    known = [] if top is None else sorted(path.name for path in top.glob("launch/*.y*ml"))
    choice = f"; there are: {', '.join(known)}" if known else ""
    raise LaunchError(f"launch file '{name}' isn't there{choice}.")


def _given(items: list[str]) -> dict[str, str]:
    given = {}
    for item in items:
        name, separator, value = item.partition(":=")
        if not separator or not name:
            raise LaunchError(f"argument {item!r} is not of the form name:=value.")
        given[name] = value
    return given


def _show(arguments: list[Argument]) -> None:
    if not arguments:
        print("no arguments")
    for argument in arguments:
        default = "required" if argument.default is None else f"default: '{argument.default}'"
        print(f"'{argument.name}': {argument.description or '(no description)'} ({default})")


def run(args: argparse.Namespace) -> int:
    """Run until all nodes have ended or Ctrl-C; return as `run_plan`, 2 for bad input."""
    with TemporaryDirectory(prefix="sysid_up_") as folder:
        try:
            path = find_launch_file(args.launch)
            given = _given(args.arguments)
            plan = read(path, given, Path(folder), only_arguments=args.show_args)
        except SysidError as error:
            print(f"sysid up: {error}", file=sys.stderr)
            return BAD_INPUT
        if args.show_args:
            _show(plan.arguments)
            return 0
        status = run_plan(plan)
    if status == BAD_INPUT:
        print(
            "sysid up: nodes ended for the reasons they give above; mend those and start "
            "again ('sysid doctor' says which packages are missing)",
            file=sys.stderr,
        )
    return status
