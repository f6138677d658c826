# SPDX-License-Identifier: Apache-2.0
"""The embedded runtime stands in only where no real rclpy can be imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


def _python(
    code: str, path: Path | None = None, *arguments: str
) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    if path is not None:
        environment["PYTHONPATH"] = os.pathsep.join([str(path), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *arguments] if arguments else [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_rclpy_it_stands_in_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    without = [path for path in paths if not Path(path, "rclpy").exists()]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(without))
    code = """
import sysid_embedded
assert not sysid_embedded.is_installed()
assert sysid_embedded.install() and sysid_embedded.install()
import rclpy, rclpy.node, std_msgs.msg
assert "sysid_embedded" in rclpy.__file__
rclpy.init(args=[])
"""
    done = _python(code)
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert "rclpy is not installed: the embedded runtime stands in" in line


def test_a_real_rclpy_wins(tmp_path: Path) -> None:
    (tmp_path / "rclpy").mkdir()
    (tmp_path / "rclpy" / "__init__.py").write_text("real = True\n")
    done = _python(
        "import sysid_embedded; assert not sysid_embedded.install(); import rclpy; "
        "assert rclpy.real; assert not sysid_embedded.is_installed()",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_an_rclpy_that_can_t_be_imported_doesn_t(tmp_path: Path) -> None:
    for package in ("rclpy", "std_msgs"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("import _no_such_extension\n")
    done = _python(
        "import sysid_embedded; assert sysid_embedded.install(); import rclpy; "
        "from std_msgs.msg import Int32; rclpy.init(args=[])",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "cannot be imported here (No module named '_no_such_extension')" in done.stderr


def test_a_node_s_main_runs_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "some_node.py").write_text(
        "import sys\nimport rclpy\n\n"
        "def main():\n"
        "    rclpy.init()\n"
        "    print(rclpy.create_node('n').get_fully_qualified_name(), sys.argv[1:])\n"
        "    return 3\n"
    )
    arguments = ["-m", "sysid_embedded.run", "some_node", "x", "--ros-args", "-r", "__ns:=/y"]
    done = _python("", tmp_path, *arguments)
    assert done.stdout == "/y/n ['x', '--ros-args', '-r', '__ns:=/y']\n"
    assert done.returncode == 3


def test_running_nothing_explains_itself() -> None:
    done = _python("", None, "-m", "sysid_embedded.run")
    assert done.returncode == 2
    assert done.stderr.startswith("usage:")


def test_unknown_interfaces_are_import_errors() -> None:
    done = _python(
        "import sysid_embedded; sysid_embedded.install()\n"
        "try:\n    import no_such_msgs.msg\n"
        "except ModuleNotFoundError:\n    pass\n"
        "else:\n    raise SystemExit(1)\n"
        "try:\n    import std_srvs.msg\n"
        "except ModuleNotFoundError:\n    pass\n"
        "else:\n    raise SystemExit(1)\n"
    )
    assert done.returncode == 0, done.stderr
