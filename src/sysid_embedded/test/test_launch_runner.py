# SPDX-License-Identifier: Apache-2.0
"""Running a plan: output, ends, respawning and stopping."""

from __future__ import annotations

import argparse
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sysid_embedded.launch.command import up as subcommand
from sysid_embedded.launch.reader import Plan, Process
from sysid_embedded.launch.up import run_plan

LIMIT_S = 20.0


def _process(name: str, code: str) -> Process:
    return Process(name, (sys.executable, "-c", code), dict(os.environ))


def _run(*processes: Process) -> tuple[int, list[str]]:
    out = io.StringIO()
    status = run_plan(Plan(processes=list(processes)), out=out)
    return status, out.getvalue().splitlines()


def test_output_is_marked_with_the_process() -> None:
    status, lines = _run(
        _process(
            "a-1", "import sys; print('one'); print('two', file=sys.stderr); print(3, end='')"
        ),
        _process("b-2", "print('four')"),
    )
    assert status == 0
    assert {"[a-1] one", "[a-1] two", "[a-1] 3", "[b-2] four"} <= set(lines)
    assert {"[a-1] ended", "[b-2] ended"} <= set(lines)


def test_a_process_that_fails_makes_the_whole_fail() -> None:
    status, lines = _run(_process("a-1", "raise SystemExit(3)"), _process("b-2", "pass"))
    assert status == 1
    assert "[a-1] ended with status 3" in lines
    assert "[b-2] ended" in lines


def test_a_node_that_cannot_be_loaded_ends_in_one_line_and_status_2(tmp_path: Path) -> None:
    (tmp_path / "lonely_node.py").write_text("import no_such_package\n")
    paths = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths}
    environment.pop("SYSID_DEBUG", None)
    command = (sys.executable, "-m", "sysid_embedded.run", "lonely_node:main")
    status, lines = _run(Process("a-1", command, environment), _process("b-2", "exit(1)"))
    assert status == 2
    told = (
        "[a-1] lonely_node cannot be loaded: No module named 'no_such_package'; "
        "'sysid doctor' says what to install"
    )
    assert {line for line in lines if line.startswith("[a-1]")} == {
        told,
        "[a-1] ended with status 2",
    }


def test_a_process_that_can_t_be_started_is_told_of() -> None:
    status, lines = _run(Process("a-1", ("/no/such/program",), {}))
    assert status == 1
    assert lines == ["[a-1] can't be started: No such file or directory: /no/such/program"]


POLITE = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); {POLITE}"
UP = """
import os, sys
from sysid_embedded.launch.reader import Plan, Process
from sysid_embedded.launch.up import run_plan

commands = [(sys.executable, "-c", program) for program in sys.argv[1:]]
sys.exit(run_plan(Plan(processes=[Process("python", c, dict(os.environ)) for c in commands])))
"""


@pytest.fixture
def up() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that runs Python programs as a plan and waits for them."""
    started: list[subprocess.Popen[str]] = []

    def start(*programs: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", UP, *programs],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(child)
        assert child.stdout is not None
        for _ in programs:
            assert child.stdout.readline().endswith("] up\n")
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def test_ctrl_c_stops_everything(up: Callable[..., subprocess.Popen[str]]) -> None:
    child = up(POLITE, POLITE)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=LIMIT_S)
    assert child.returncode == 0


def test_a_second_ctrl_c_is_firmer(up: Callable[..., subprocess.Popen[str]]) -> None:
    child = up(STUBBORN, POLITE)
    assert child.stdout is not None
    child.send_signal(signal.SIGINT)
    # The polite one's traceback tells that the first signal has been heeded.
    while "KeyboardInterrupt" not in (line := child.stdout.readline()):
        assert line
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=4.0)
    assert child.returncode == 0


def _up(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    subcommand.add_arguments(parser)
    return subcommand.run(parser.parse_args(arguments))


def test_no_folder_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    file = tmp_path / "x.launch.yaml"
    node = "node: {pkg: pytest, exec: pytest, param: [{name: a, value: 1}]}"
    for text in (f"launch:\n- {node}\n", f"launch:\n- {node}\n- wrong: {{}}\n"):
        file.write_text(text)
        _up(str(file))
    assert list((tmp_path / "scratch").iterdir()) == []


def test_wrong_input_ends_with_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.launch.yaml"
    file.write_text("launch:\n- wrong: {a: b}\n")
    for arguments in (["absent"], [str(file)], [str(file), "no_assignment"]):
        assert _up(*arguments) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_arguments_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.launch.yaml"
    file.write_text(
        "launch:\n- arg: {name: a, default: b, description: what}\n- arg: {name: c}\n"
        "- node: {pkg: not_installed, exec: x}\n"
    )
    assert _up(str(file), "--show-args") == 0
    assert capsys.readouterr().out == (
        "'a': what (default: 'b')\n'c': (no description) (required)\n"
    )
