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
from sysid_core.wording import one_line

if TYPE_CHECKING:  # the nodes write such files too, and do without all that identifies offline
    from sysid_core.loads import Bare

__all__ = [
    "EstimateFile",
    "checked_friction",
    "read_estimate",
]


_CHOSEN_TERMS = {term.name for term in FRICTION if term.chosen}
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
            if _is_numbers([entry.get("value"), entry.get("std")], 2):
                found["base", entry["expression"]] = (entry["value"], entry["std"])
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
    except UnreadableError as error:
        raise ModelError(
            f"{one_line(path)}: {error}; give the estimate.json that 'sysid identify' wrote"
        ) from error
    _check(data, str(target))
    return EstimateFile(
        data["robot"], data.get("description"), data["model_hash"], data["method"], target, data
    )


def _check(data: Any, source: str) -> None:
    """Check that parsed JSON has the form of an estimate."""

    def fail(where: str, what: str) -> ModelError:
        return ModelError(f"{source}: '{where}' {what}; is this an estimate.json of 'sysid'?")

    if not isinstance(data, dict):
        raise ModelError(f"{source}: holds no estimate; give a file that 'sysid identify' wrote")
    for key in ("robot", "model_hash", "method"):
        if not isinstance(data.get(key), str):
            raise fail(key, "is missing or no text")
    for prefix in ("", "std.", "nominal."):
        section = data if not prefix else data.get(prefix[:-1])
        if prefix == "nominal." and section is None:
            continue
        if not isinstance(section, dict):
            raise fail(prefix[:-1], "is missing")
        bodies = section.get("bodies")
        if not isinstance(bodies, dict):
            raise fail(f"{prefix}bodies", "is missing")
        for name, values in bodies.items():
            if not _is_numbers(values, len(INERTIAL_TERMS)):
                raise fail(f"{prefix}bodies.{name}", "must be 10 finite numbers")
        for kind, terms in (("joints", _LEAST_TERMS), ("couplings", COUPLING_TERMS)):
            group = section.get(kind, {} if kind == "couplings" else None)
            if not isinstance(group, dict):
                raise fail(f"{prefix}{kind}", "is missing")
            for name, entry in group.items():
                if not isinstance(entry, dict) or not _is_numbers(
                    [entry.get(term) for term in {*terms, *entry}], len({*terms, *entry})
                ):
                    raise fail(f"{prefix}{kind}.{name}", f"needs the numbers {', '.join(terms)}")

    for kind in ("bodies", "joints", "couplings"):
        names, std = data.get(kind, {}), data["std"].get(kind, {})
        if names.keys() != std.keys() or any(
            names[name].keys() - std[name].keys() for name in names if kind != "bodies"
        ):
            raise fail(f"std.{kind}", f"must name what '{kind}' names")
    covariance, error = data.get("base_covariance", []), data.get("discrepancy", [])
    if not isinstance(covariance, list) or not all(
        _is_numbers(row, k) for k, row in enumerate(covariance, 1)
    ):
        raise fail("base_covariance", "must be a triangle of numbers")
    if not isinstance(error, list) or not _is_numbers(error, len(error)):
        raise fail("discrepancy", "must be a list of numbers")
    combinations = data.get("base_parameters", [])
    if not isinstance(combinations, list) or not all(
        isinstance(each, dict) and isinstance(each.get("expression"), str) for each in combinations
    ):
        raise fail("base_parameters", "must be a list of expressions with values")
    if "gravity" in data and not _is_numbers(data["gravity"], 3):
        raise fail("gravity", "must be 3 finite numbers")
    try:
        checked_friction(data.get("friction", {}))
    except ModelError as wrong:
        raise ModelError(f"{source}: {wrong}") from wrong


def checked_friction(friction: Any) -> dict[str, dict[str, float]]:
    """Return what a file says of chosen friction terms.

    Raises
    ------
    ModelError
        If it does not map joints to terms to scales above zero.
    """
    if not isinstance(friction, dict):
        raise ModelError("'friction' must map joints to terms")
    for joint, terms in friction.items():
        known = isinstance(terms, dict) and terms.keys() <= _CHOSEN_TERMS
        if not known or not _is_numbers(list(terms.values()), len(terms)):
            raise ModelError(f"'friction.{joint}' may have numbers for {sorted(_CHOSEN_TERMS)}")
        if any(scale <= 0.0 for scale in terms.values()):
            raise ModelError(f"'friction.{joint}' needs scales above zero")
    return friction


def _is_numbers(values: Any, count: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) == count
        and all(
            isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)
            for v in values
        )
    )
