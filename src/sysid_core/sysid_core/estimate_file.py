# SPDX-License-Identifier: Apache-2.0
"""The file ``estimate.json`` read back: an identified model with its standing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.friction import FRICTION
from sysid_core.errors import ModelError, ParameterError, UnreadableError
from sysid_core.parameters import COUPLING_TERMS, INERTIAL_TERMS, ParameterLayout
from sysid_core.robot.model import Robot
from sysid_core.untrusted import existing, read_json
from sysid_core.values import (
    Reader,
    choice,
    items_of,
    mapping,
    mapping_of,
    number,
    numbers,
    positive,
    text,
    vector,
)
from sysid_core.wording import one_line

if TYPE_CHECKING:  # the nodes write such files too, and do without all that identifies offline
    from sysid_core.loads import Bare

__all__ = [
    "EstimateFile",
    "friction_scales",
    "read_estimate",
]


_CHOSEN_TERMS = tuple(term.name for term in FRICTION if term.chosen)
_LEAST_TERMS = tuple(term.name for term in FRICTION if not term.chosen)


@dataclass(frozen=True)
class EstimateFile:
    """What an ``estimate.json`` says."""

    robot: str  # Name of the robot
    description: str | None  # Path of the robot description that was used
    model_hash: str  # Of the model that the parameters belong to
    method: str
    path: Path
    _data: Mapping[str, Any]

    @property
    def cutoff(self) -> float | None:
        """Cut-off [Hz] of the low-pass that the parameters were learned at; None if unknown."""
        value = self._data.get("cutoff_hz")
        if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0.0:
            return None
        return float(value)

    @property
    def lag(self) -> float:
        """Lag [s] of the efforts that the parameters were learned from."""
        value = self._data.get("effort_lag_s")
        if not isinstance(value, int | float) or not math.isfinite(value):
            return 0.0
        return float(value)

    @property
    def friction(self) -> dict[str, dict[str, float]] | None:
        """Chosen friction terms, joint → term → scale; None in files of older versions."""
        found: dict[str, dict[str, float]] | None = self._data.get("friction")
        return found

    def as_identified(self, robot: Robot) -> Robot:
        """Return the robot with what its recording told: friction terms, gravity's direction.

        Raises
        ------
        RobotError
            If the file names joints that the robot lacks.
        """
        if (gravity := self._data.get("gravity")) is not None:
            robot = robot.in_gravity(gravity)
        friction = self.friction
        if friction is None or friction == robot.description.friction_chosen:
            return robot
        return robot.with_friction(friction)

    def check_model(self, robot: Robot) -> None:
        """Check that a robot is the one that was identified.

        Raises
        ------
        ModelError
            If its kinematics, gravity or layout differ.
        """
        if robot.model_hash != self.model_hash:
            raise ModelError(
                f"{self.path}: was identified on another model of robot '{self.robot}' (hash "
                f"{self.model_hash}, '{robot.name}' has {robot.model_hash}); give the robot "
                "description that it was identified with, or identify again"
            )

    def parameters(self, robot: Robot) -> FloatArray:
        """Return the identified parameter vector (p,).

        Raises
        ------
        ModelError, ParameterError
            If it does not belong to the robot.
        """
        self.check_model(robot)
        return _assembled(robot.layout, self._data, str(self.path))

    def nominal(self, robot: Robot) -> FloatArray:
        """Return the parameters (p,) that the identified ones were compared with."""
        self.check_model(robot)
        given = self._data.get("nominal")
        if given is None:
            return np.array(robot.nominal)
        return _assembled(robot.layout, given, str(self.path))

    def bare(self, robot: Robot) -> Bare:
        """Return what was identified as the robot without a load that is then looked for."""
        from sysid_core.loads import Bare

        rows, error = self._data.get("base_covariance"), self._data.get("discrepancy")
        if rows is None or error is None:
            return Bare(self.parameters(robot))
        covariance = np.zeros((len(rows), len(rows)))
        covariance[np.tril_indices(len(rows))] = [value for row in rows for value in row]
        covariance += np.tril(covariance, -1).T
        return Bare(self.parameters(robot), covariance, np.array(error, dtype=float))

    def quantities(self) -> dict[tuple[str, str], tuple[float, float]]:
        """Return (kind, name) → value and standard deviation of all that was identified.

        The kinds are ``bodies``, ``friction`` and ``base``; base parameters of files that lack
        their standard deviations are left out.
        """
        found: dict[tuple[str, str], tuple[float, float]] = {}
        std = self._data["std"]
        for body, values in self._data["bodies"].items():
            for term, value, deviation in zip(
                INERTIAL_TERMS, values, std["bodies"][body], strict=True
            ):
                found["bodies", f"{body}.{term}"] = (value, deviation)
        for section in ("joints", "couplings"):
            for name, terms in self._data.get(section, {}).items():
                # terms of different laws do not mean the same
                law = "+".join(sorted((self.friction or {}).get(name, {})))
                for term, value in terms.items():
                    label = f"{name}.{term}" + (f" (with {law})" if law else "")
                    found["friction", label] = (value, std[section][name][term])
        for entry in self._data.get("base_parameters", ()):
            if None not in (pair := (entry.get("value"), entry.get("std"))):
                found["base", entry["expression"]] = pair
        return found


def _assembled(layout: ParameterLayout, data: Mapping[str, Any], source: str) -> FloatArray:
    try:
        return layout.assemble(
            {name: np.array(values, dtype=float) for name, values in data["bodies"].items()},
            data["joints"],
            data.get("couplings"),
        )
    except ParameterError as error:
        raise ParameterError(f"{source}: {error}") from error


def read_estimate(path: str | Path) -> EstimateFile:
    """Read and check an ``estimate.json``, or the one in a folder.

    Raises
    ------
    ModelError
        If it cannot be read or does not have the form of an estimate.
    """
    try:
        target = existing(path)
        if target.is_dir():
            target = target / "estimate.json"
        data = read_json(target)
        _check(data)
    except UnreadableError as error:
        raise ModelError(
            f"{one_line(path)}: {error}; give the estimate.json that 'sysid identify' wrote"
        ) from error
    return EstimateFile(
        data["robot"], data.get("description"), data["model_hash"], data["method"], target, data
    )


def _terms(*needed: str) -> Reader:
    """Return the reader of a joint's friction, whose least terms are needed."""

    def read(value: Any, where: str) -> dict[str, float]:
        found: dict[str, float] = mapping_of(number)(value, where)
        if not found.keys() >= set(needed):
            raise UnreadableError(f"'{where}' needs the numbers {', '.join(needed)}")
        return found

    return read


def friction_scales(value: Any, where: str) -> dict[str, dict[str, float]]:
    """Return what a file says of chosen friction terms: joint → term → scale; see `Reader`."""
    found: dict[str, dict[str, float]] = mapping_of(mapping_of(positive))(value, where)
    for joint, terms in found.items():
        for term in terms:
            choice(*_CHOSEN_TERMS)(term, f"{where}.{joint}")
    return found


def _triangle(value: Any, where: str) -> None:
    for k, row in enumerate(items_of(lambda row, _: row)(value, where), 1):
        numbers(k)(row, f"{where}[{k - 1}]")


def _combination(value: Any, where: str) -> None:
    given = mapping(value, where)
    text(given.get("expression"), f"{where}.expression")
    for key in ("value", "std"):
        if given.get(key) is not None:
            number(given[key], f"{where}.{key}")


_MODEL: Mapping[str, Reader] = {
    "bodies": mapping_of(numbers(len(INERTIAL_TERMS))),
    "joints": mapping_of(_terms(*_LEAST_TERMS)),
    "couplings": mapping_of(_terms(*COUPLING_TERMS)),
}
"""What parameters consist of; robots without coupled motors need not tell of couplings."""
_DETAILS: Mapping[str, Reader] = {
    "base_covariance": _triangle,
    "discrepancy": items_of(number),
    "base_parameters": items_of(_combination),
    "gravity": vector,
    "friction": friction_scales,
}
"""What files of older versions lack."""


def _check(data: Any) -> None:
    """Check that parsed JSON has the form of an estimate."""
    if not isinstance(data, dict):
        raise UnreadableError("holds no estimate")
    for key in ("robot", "model_hash", "method"):
        text(data.get(key), key)
    for where, part in (("", data), ("std", data.get("std")), ("nominal", data.get("nominal"))):
        if where == "nominal" and part is None:
            continue
        for key, read in _MODEL.items():
            place = f"{where}.{key}" if where else key
            if not isinstance(part, dict) or (key not in part and key != "couplings"):
                raise UnreadableError(f"'{place if isinstance(part, dict) else where}' is missing")
            read(part.get(key), place)
    for kind in _MODEL:
        names, std = data.get(kind, {}), data["std"].get(kind, {})
        if names.keys() != std.keys() or any(
            names[name].keys() - std[name].keys() for name in names if kind != "bodies"
        ):
            raise UnreadableError(f"'std.{kind}' must name what '{kind}' names")
    for key, read in _DETAILS.items():
        if key in data:
            read(data[key], key)
