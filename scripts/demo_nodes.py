# SPDX-License-Identifier: Apache-2.0
"""The nodes of the demo as one process group, and what they wrote when one of them ended."""

from __future__ import annotations

import re
import subprocess
from collections import deque
from collections.abc import Sequence
from pathlib import Path

from sysid_controller.calibrate import end_process

__all__ = ["Nodes"]

_LINES = 8
_LINE = re.compile(r"\[(?P<node>\w[\w-]*-\d+)\] (?P<text>.*)")
_ENDED = re.compile(r"ended\b|can't be started")


class Nodes:
    """Runs ``sysid up``, which starts the nodes, and watches its log."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self.log = log
        self._out = log.open("w", encoding="utf-8")
        self._read = log.open(encoding="utf-8", errors="replace")
        self._part = ""
        self._last: dict[str, deque[str]] = {}
        self._process = subprocess.Popen(
            command, stdout=self._out, stderr=subprocess.STDOUT, start_new_session=True
        )

    def __enter__(self) -> Nodes:
        return self

    def __exit__(self, *_: object) -> None:
        end_process(self._process)
        self._out.close()
        self._read.close()

    def check(self) -> None:
        """Look at what they wrote since the last time.

        Raises
        ------
        SystemExit
            If a node, or all of them, ended; the message has its last lines.
        """
        running = self._process.poll() is None  # before reading: so that its last words are read
        *lines, self._part = (self._part + self._read.read()).split("\n")
        for line in lines:
            match = _LINE.match(line)
            node, text = (match["node"], match["text"]) if match else ("", line)
            last = self._last.setdefault(node, deque(maxlen=_LINES))
            last.append(text)
            if node and _ENDED.match(text):
                raise self._ended(f"the node {node}", last)
        if not running:
            raise self._ended("'sysid up'", self._last.get("", ()))

    def _ended(self, who: str, last: Sequence[str]) -> SystemExit:
        lines = "".join(f"\n    {line}" for line in last)
        return SystemExit(
            f"demo: stopped, because {who} ended; its last lines:{lines}\n"
            f"the whole log: {self.log}; '.venv/bin/sysid doctor' checks what is installed"
        )
