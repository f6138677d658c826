# SPDX-License-Identifier: Apache-2.0
"""A program ends cleanly while its libraries still load, and says which one is missing."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

LIMIT = 60.0
"""Time limit [s] of a program's end; reached only where something is broken."""

Program = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return a starter of a program whose node's module holds the given code."""

    def start(code: str) -> subprocess.Popen[str]:
        (tmp_path / "slow_node.py").write_text(code)
        command = "import sys; from sysid_ros.program import run_program; "
        return subprocess.Popen(
            [sys.executable, "-c", command + "sys.exit(run_program('slow_node'))"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_program_that_still_loads(
    number: signal.Signals, program: Program
) -> None:
    with program("import time\nprint('loads', flush=True)\ntime.sleep(60.0)\n") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "loads\n"
        child.send_signal(number)
        _, errors = child.communicate(timeout=LIMIT)
    assert (child.returncode, errors) == (0, "")


def test_a_missing_library_is_named_in_a_line(program: Program) -> None:
    with program("import no_such_library\n") as child:
        _, errors = child.communicate(timeout=LIMIT)
    assert child.returncode == 2
    assert errors.startswith("slow_node cannot be loaded: No module named 'no_such_library'")
    assert errors.count("\n") == 1


def test_a_program_ends_with_the_status_of_its_main(program: Program) -> None:
    with program("def main() -> int:\n    return 3\n") as child:
        child.communicate(timeout=LIMIT)
    assert child.returncode == 3


@pytest.mark.parametrize("wanted", [None, "3"])
def test_libraries_take_one_thread_unless_told_otherwise(
    wanted: str | None, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With twelve joints, a second thread makes the identifier's updates six times longer."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if wanted is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", wanted)
    code = "import os\ndef main() -> int:\n    return int(os.environ['OMP_NUM_THREADS'])\n"
    with program(code) as child:
        child.communicate(timeout=LIMIT)
    assert child.returncode == int(wanted or 1)
