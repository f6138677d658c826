# SPDX-License-Identifier: Apache-2.0
"""What a subcommand of ``sysid`` is, and where subcommands are found."""

import argparse
import importlib
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from typing import NamedTuple

__all__ = ["LateChoices", "Subcommand", "find_subcommands", "first_line"]

_DECLARATIONS = "sysid_core.cli.declarations"  # Has the core's subcommands; imports this module
_GROUP = "sysid.subcommands"
"""Entry points by which the packages above the core add subcommands of their own."""


class Subcommand(NamedTuple):
    """A subcommand's declaration, which imports nothing of what running it needs."""

    help: str
    add_arguments: Callable[[argparse.ArgumentParser], None]  # Declares the arguments to a parser
    module: str  # Whose ``run(args) -> int``, or ``module:function``, does the work
    epilog: Callable[[], str] | None = None
    """Returns the text below the help; called when the help is shown."""

    def run(self, args: argparse.Namespace) -> int:
        """Import the module, do the work and return the exit status."""
        module, _, function = self.module.partition(":")
        return int(getattr(importlib.import_module(module), function or "run")(args))


class LateChoices:
    """Choices of an argument in a module, imported when one is given or the help shows them."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def __iter__(self) -> Iterator[str]:
        return iter(getattr(importlib.import_module(self._module), self._name))

    def __contains__(self, value: object) -> bool:
        return value in tuple(self)


def find_subcommands(wanted: str | None = None) -> tuple[dict[str, Subcommand], tuple[str, ...]]:
    """Return the subcommands by name, and in words which could not be loaded and why."""
    found: dict[str, Subcommand] = dict(importlib.import_module(_DECLARATIONS).SUBCOMMANDS)
    if wanted in found:  # to search the installed packages takes time
        return {wanted: found[wanted]}, ()
    points = sorted(entry_points(group=_GROUP), key=lambda point: point.name)
    if any(point.name == wanted for point in points):
        points, found = [point for point in points if point.name == wanted], {}
    failed: dict[str, list[str]] = {}
    for point in points:
        try:
            found.setdefault(point.name, point.load())
        except (ImportError, OSError) as error:  # OSError: a library that a package opens itself
            failed.setdefault(first_line(error), []).append(point.name)
    return found, tuple(
        f"cannot load {', '.join(map(repr, names))}: {why}" for why, names in failed.items()
    )


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, or its kind where it says nothing."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__
