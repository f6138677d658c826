# SPDX-License-Identifier: Apache-2.0
"""``sysid up LAUNCH [name:=value ...]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from sysid_core.errors import SysidError

from ..errors import LaunchError
from . import packages
from .plan import Argument
from .reader import read
from .runner import BAD_INPUT
from .runner import run as run_plan

__all__ = ["find_launch_file", "run"]

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
    """Run until all nodes have ended or Ctrl-C.

    Returns
    -------
    int
        0; 1 if a node failed; 2 if the launch file, its arguments or a node's parameters are
        wrong, or a node's packages are missing.
    """
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
