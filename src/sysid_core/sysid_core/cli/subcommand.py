# SPDX-License-Identifier: Apache-2.0
"""What a verb of the ``sysid`` command is, and where verbs are found."""

from __future__ import annotations

import argparse
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol

__all__ = ["Verb", "find_subcommands", "first_line"]

_BUILT_IN = {
    "init": "sysid_core.cli.subcommands.init",
    "info": "sysid_core.cli.subcommands.info",
    "identify": "sysid_core.cli.subcommands.identify",
    "validate": "sysid_core.cli.subcommands.validate",
    "replay": "sysid_core.cli.subcommands.replay",
    "excite": "sysid_core.cli.subcommands.excite",
    "compliance": "sysid_core.cli.subcommands.compliance",
    "doctor": "sysid_core.cli.subcommands.doctor",
}
"""Verb → module of the core that has it as `verb`."""

_GROUP = "sysid.verbs"
"""Entry points by which the packages above the core add verbs of their own."""


class Verb(Protocol):
    """One verb of the command.

    Attributes
    ----------
    name, help : str
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def help(self) -> str: ...  # noqa: D102

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's arguments."""
        ...

    def run(self, args: argparse.Namespace) -> int:
        """Do it and return the exit status."""
        ...


def find_subcommands(wanted: str | None = None) -> tuple[dict[str, Verb], tuple[str, ...]]:
    """Return the verbs by name, and in words which could not be loaded and why.

    Parameters
    ----------
    wanted : str, optional
        Load this verb only, if there is one of that name: the others cost time to import.
    """
    points = [EntryPoint(name, f"{path}:verb", _GROUP) for name, path in _BUILT_IN.items()]
    if wanted not in _BUILT_IN:
        points += sorted(entry_points(group=_GROUP), key=lambda point: point.name)
    if any(point.name == wanted for point in points):
        points = [point for point in points if point.name == wanted]
    verbs: dict[str, Verb] = {}
    failed: dict[str, list[str]] = {}
    for point in points:
        try:
            verbs.setdefault(point.name, point.load())
        except (ImportError, OSError) as error:  # OSError: a library that a package opens itself
            failed.setdefault(first_line(error), []).append(point.name)
    return verbs, tuple(
        f"cannot load {', '.join(map(repr, names))}: {why}" for why, names in failed.items()
    )


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, or its kind where it says nothing."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
