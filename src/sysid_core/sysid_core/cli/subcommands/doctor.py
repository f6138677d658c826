# SPDX-License-Identifier: Apache-2.0
"""``sysid doctor``: what is installed, what is missing, and what to do about it."""

import argparse
import importlib
import importlib.util
import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from rich.markup import escape
from rich.table import Table

from sysid_core.cli.console import print_json, stdout
from sysid_core.cli.subcommand import find_subcommands, first_line
from sysid_core.errors import SysidError

__all__ = ["Check", "run"]

_NEEDED = {
    "clarabel": "clarabel",
    "cvxpy": "cvxpy",
    "matplotlib": "matplotlib",
    "numpy": "numpy",
    "osqp": "osqp",
    "pin": "pinocchio",
    "plotly": "plotly",
    "PyYAML": "yaml",
    "rich": "rich",
    "rosbags": "rosbags",
    "scipy": "scipy",
}
"""Distribution → module."""
_OPTIONAL = {
    "mujoco": ("mujoco", "simulation: pip install mujoco"),
    "cyclonedds": ("cyclonedds.domain", "running the nodes without ROS 2: pip install cyclonedds"),
    "figaroh": ("figaroh", "benchmarks only: pip install figaroh"),
    "torch": ("torch", "benchmarks only: pip install torch"),
}
_LOOKED_FOR = {"figaroh", "torch"}
"""Not imported, which would take seconds and say nothing about what sysid needs."""
_LIBRARY = re.compile(r"(lib[\w+-]+)\.so\.(\d+): cannot open shared object file")


class Check(NamedTuple):
    """One thing that was looked at."""

    what: str
    found: str
    state: str  # ``ok``, ``missing`` or ``optional``
    advice: str = ""  # What to do if it is missing


def _python() -> Check:
    good = sys.version_info >= (3, 10)
    return Check(
        "Python",
        platform.python_version(),
        "ok" if good else "missing",
        "" if good else "use Python 3.10 or newer",
    )


def _installed(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "unknown version"


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _remedy(distribution: str, trouble: str) -> str:
    """Return what to do about a distribution that cannot be imported."""
    library = _LIBRARY.search(trouble)
    if library:
        name = library[1].lower()
        package = f"{name}-{library[2]}" if name[-1].isdigit() else f"{name}{library[2]}"
        return f"install that library of the system (Debian, Ubuntu: apt install {package})"
    return f"pip install {distribution}"


def _package(distribution: str, module: str, optional: str = "") -> Check:
    if optional and not _is_there(module):
        return Check(distribution, "not installed", "optional", optional)
    try:
        if distribution not in _LOOKED_FOR:
            importlib.import_module(module)
    except Exception as error:  # whatever a package throws while it is imported
        trouble = first_line(error)
        found = f"cannot be imported ({trouble})"
        return Check(distribution, found, "missing", _remedy(distribution, trouble))
    return Check(distribution, _installed(distribution), "ok")


def _packages() -> list[Check]:
    needed = [_package(distribution, module) for distribution, module in _NEEDED.items()]
    return needed + [_package(name, *rest) for name, rest in _OPTIONAL.items()]


def _ros() -> Check:
    distribution = os.environ.get("ROS_DISTRO")
    if _is_there("rclpy"):
        return Check("ROS 2", distribution or "rclpy found, ROS_DISTRO not set", "ok")
    if _is_there("sysid_embedded"):
        return Check("ROS 2", "not found; the embedded runtime stands in", "ok")
    return Check(
        "ROS 2",
        "not found",
        "optional",
        "only for live robots: source /opt/ros/<distribution>/setup.bash, or pip install "
        "sysid_embedded",
    )


def _robots() -> list[Check]:
    try:
        from sysid_core.robot import known_robots, load_robot
    except (ImportError, OSError) as error:
        found = f"cannot be looked at ({first_line(error)})"
        return [Check("robots", found, "missing", "mend the packages above")]
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


def _subcommands() -> list[Check]:
    subcommands, troubles = find_subcommands()
    good = []
    for name, subcommand in subcommands.items():
        try:
            importlib.import_module(subcommand.module.partition(":")[0])
        except (ImportError, OSError) as error:
            troubles += (f"cannot load '{name}': {first_line(error)}",)
        else:
            good.append(name)
    advice = "mend the packages above; if all are well, install that subcommand's package again"
    return [
        Check("subcommands", ", ".join(good), "ok"),
        *(Check("subcommands", text, "missing", advice) for text in troubles),
    ]


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    checks = [_python(), *_packages(), _ros(), *_robots(), *_subcommands()]
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
        else f"{len(missing)} missing: see the lines marked ✗."
    )
