# SPDX-License-Identifier: Apache-2.0
"""The errors that the simulation adds to the core's."""

from __future__ import annotations

from sysid_core.errors import SysidError

__all__ = ["ScenarioError", "SimulationError"]


class SimulationError(SysidError):
    """A robot, a payload or a setting cannot be simulated."""


class ScenarioError(SysidError):
    """No scenario of that name exists.

    Attributes
    ----------
    name : str
        The name that was asked for.
    known : tuple[str, ...]
        The names that exist.
    """

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(f"unknown scenario '{name}'; known scenarios: {', '.join(known)}")
        self.name = name
        self.known = known
