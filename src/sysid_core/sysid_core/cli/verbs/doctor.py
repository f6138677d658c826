# SPDX-License-Identifier: Apache-2.0
"""``sysid doctor``: what is installed, what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from sysid_core.cli.arguments import add_json
from sysid_core.cli.console import print_json, stdout
from sysid_core.cli.verb import find_verbs
from sysid_core.errors import SysidError
from sysid_core.robot import known_robots, load_robot

__all__ = ["Check", "verb"]

_NEEDED = {
    "clarabel": "clarabel", "cvxpy": "cvxpy", "matplotlib": "matplotlib", "mcap": "mcap",
    "numpy": "numpy", "osqp": "osqp", "pin": "pinocchio", "plotly": "plotly", "PyYAML": "yaml",
    "rich": "rich", "rosbags": "rosbags", "scipy": "scipy",
}  # fmt: skip
"""Distribution → module."""
_OPTIONAL = {
    "mujoco": ("mujoco", "simulation: pip install mujoco"),
    "cyclonedds": ("cyclonedds", "running the nodes without ROS 2: pip install cyclonedds"),
    "mosek": ("mosek", "another solver for --method sdp: pip install mosek, and a licence"),
    "figaroh": ("figaroh", "benchmarks only: pip install figaroh"),
    "torch": ("torch", "benchmarks only: pip install torch"),
}


class Check(NamedTuple):
    """One thing that was looked at.

    Attributes
    ----------
    what, found : str
    state : str
        ``ok``, ``missing`` or ``optional``.
    advice : str
        What to do if it is missing.
    """

    what: str
    found: str
    state: str
    advice: str = ""


def _python() -> Check:
    good = sys.version_info >= (3, 10)
    return Check(
        "Python", platform.python_version(), "ok" if good else "missing",
        "" if good else "use Python 3.10 or newer",
    )  # fmt: skip


def _installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown version"


def _packages() -> list[Check]:
    checks = []
    for distribution, module in _NEEDED.items():
        try:
            importlib.import_module(module)
        except ImportError as error:
            advice = f"pip install {distribution}"
            checks.append(Check(distribution, f"cannot be imported ({error})", "missing", advice))
        else:
            checks.append(Check(distribution, _installed(distribution), "ok"))
    for distribution, (module, advice) in _OPTIONAL.items():
        if importlib.util.find_spec(module) is None:
            checks.append(Check(distribution, "not installed", "optional", advice))
        else:
            checks.append(Check(distribution, _installed(distribution), "ok"))
    return checks


def _ros() -> Check:
    distribution = os.environ.get("ROS_DISTRO")
    if importlib.util.find_spec("rclpy") is not None:
        return Check("ROS 2", distribution or "rclpy found, ROS_DISTRO not set", "ok")
    if importlib.util.find_spec("sysid_embedded") is not None:
        return Check("ROS 2", "not found; the embedded runtime stands in", "ok")
    return Check(
        "ROS 2", "not found", "optional",
        "only for live robots: source /opt/ros/<distribution>/setup.bash, or pip install "
        "sysid_embedded",
    )  # fmt: skip


def _robots() -> list[Check]:
    known = known_robots()
    if not known:
        advice = "source the workspace's setup file, or set SYSID_ROBOTS to a folder of YAMLs"
        return [Check("robots", "none found", "optional", advice)]
    checks, good = [], []
    for name, path in sorted(known.items()):
        try:
            load_robot(path)
        except SysidError as error:
            checks.append(Check(f"robot {name}", str(error), "missing", "mend the description"))
        else:
            good.append(name)
    return [Check("robots", ", ".join(good), "ok"), *checks]


def _verbs() -> list[Check]:
    verbs, troubles = find_verbs()
    checks = [Check("verbs", ", ".join(verbs), "ok")]
    return checks + [
        Check("verb", text, "missing", "install that package again") for text in troubles
    ]


class _Doctor:
    name = "doctor"
    help = "show what is installed, what is missing, and what to do"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        add_json(parser, "the findings")

    def run(self, args: argparse.Namespace) -> int:
        checks = [_python(), *_packages(), _ros(), *_robots(), *_verbs()]
        missing = [check for check in checks if check.state == "missing"]
        if args.json:
            print_json({"ok": not missing, "checks": [check._asdict() for check in checks]})
        else:
            _show(checks, missing)
        return 1 if missing else 0


def _show(checks: list[Check], missing: list[Check]) -> None:
    console = stdout()
    colours = {"ok": "green", "missing": "red", "optional": "yellow"}
    table = Table(show_edge=False, box=None, pad_edge=False)
    for heading in ("", "what", "found", "what to do"):
        table.add_column(heading, overflow="fold")
    for check in checks:
        mark = {"ok": "✓", "missing": "✗", "optional": "–"}[check.state]
        table.add_row(
            f"[{colours[check.state]}]{mark}[/]",
            check.what,
            escape(check.found),
            escape(check.advice),
        )
    console.print(table)
    console.print(
        "All that is needed is there."
        if not missing
        else f"{len(missing)} things are missing: see the marked lines."
    )


verb = _Doctor()
