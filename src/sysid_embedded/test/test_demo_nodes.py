# SPDX-License-Identifier: Apache-2.0
"""The demo notices at once when its nodes end, and tells their last words."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
LIMIT_S = 20.0

if not (SCRIPTS / "demo_nodes.py").is_file():
    pytest.skip(f"{SCRIPTS}/demo_nodes.py is missing", allow_module_level=True)
sys.path.insert(0, str(SCRIPTS))

from demo_nodes import Nodes  # noqa: E402


def _last_words(code: str, folder: Path) -> str:
    with Nodes((sys.executable, "-u", "-c", code), folder / "log.txt") as nodes:
        limit = time.monotonic() + LIMIT_S
        while time.monotonic() < limit:
            try:
                nodes.check()
            except SystemExit as end:
                return str(end)
    pytest.fail(f"nothing noticed within {LIMIT_S} s")


@pytest.mark.parametrize("end", ["ended with status 2", "ended with signal 9", "ended"])
def test_a_node_that_ends_is_named_with_its_own_last_lines(end: str, tmp_path: Path) -> None:
    lines = ["[a-1] hello", "[b-2] no such file", "[a-1] busy", f"[b-2] {end}"]
    code = f"import time; print({chr(10).join(lines)!r}); time.sleep({10 * LIMIT_S})"
    told = _last_words(code, tmp_path)
    assert "the node b-2 ended" in told
    assert f"\n    no such file\n    {end}\n" in told
    assert "busy" not in told
    assert str(tmp_path / "log.txt") in told


def test_the_demo_deletes_nothing_but_a_demos_results(tmp_path: Path) -> None:
    for name in ("log.txt", "mine.txt"):
        (tmp_path / name).write_text("mine")
    command = [sys.executable, str(SCRIPTS / "demo.py"), "--out", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "give an empty folder" in ended.stderr
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["mine", "mine"]


def test_the_end_of_them_all_is_told_with_what_was_said(tmp_path: Path) -> None:
    told = _last_words("raise SystemExit('sysid up: no such file')", tmp_path)
    assert "'sysid up' ended" in told
    assert "\n    sysid up: no such file\n" in told
