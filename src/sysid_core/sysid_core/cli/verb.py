# SPDX-License-Identifier: Apache-2.0
"""What a verb of the ``sysid`` command is, and where verbs are found."""

from __future__ import annotations

import argparse
import importlib
from importlib.metadata import entry_points
from typing import Protocol

__all__ = ["Verb", "find_verbs"]

_BUILT_IN = {
    "init": "sysid_core.cli.verbs.init",
    "info": "sysid_core.cli.verbs.info",
    "identify": "sysid_core.cli.verbs.identify",
    "validate": "sysid_core.cli.verbs.validate",
    "replay": "sysid_core.cli.verbs.replay",
    "excite": "sysid_core.cli.verbs.excite",
    "compliance": "sysid_core.cli.verbs.compliance",
    "doctor": "sysid_core.cli.verbs.doctor",
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


def find_verbs(wanted: str | None = None) -> tuple[dict[str, Verb], tuple[str, ...]]:
    """Return the verbs by name, and in words which could not be loaded.

    Parameters
    ----------
    wanted : str, optional
        Load this verb only, if there is one of that name: the others cost time to import.
    """
    verbs: dict[str, Verb] = {}
    troubles: list[str] = []
    if wanted in _BUILT_IN:
        return {wanted: importlib.import_module(_BUILT_IN[wanted]).verb}, ()
    extensions = {point.name: point for point in entry_points(group=_GROUP)}
    if wanted in extensions:
        extensions = {wanted: extensions[wanted]}
    else:
        verbs = {name: importlib.import_module(path).verb for name, path in _BUILT_IN.items()}
    for name, point in sorted(extensions.items()):
        try:
            verbs.setdefault(name, point.load())
        except ImportError as error:
            troubles.append(f"verb '{name}' of {point.value} cannot be loaded ({error})")
    return verbs, tuple(troubles)
