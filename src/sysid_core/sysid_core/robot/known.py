# SPDX-License-Identifier: Apache-2.0
"""What a user knows of parameters together: equal and mirrored bodies, linear constraints."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.parameters import INERTIAL_TERMS, ParameterLayout

__all__ = ["AXES", "KnownParameters", "LinearRelation", "Relations", "SameBodies"]

_EXACT = 1e-3
"""Relative standard deviation of what is known exactly: within it, data may still speak [-]."""
AXES = ("x", "y", "z")


class SameBodies(NamedTuple):
    """Two bodies with the same inertia; `across`: mirrored along this axis of both frames."""

    first: str
    second: str
    across: str | None = None


class LinearRelation(NamedTuple):
    """Parameter label → factor; their sum has a `value` with `std`, or lies between bounds."""

    terms: Mapping[str, float]
    value: float | None = None
    std: float | None = None
    least: float = -math.inf
    most: float = math.inf


@dataclass(frozen=True)
class Relations:
    """What a robot description says of parameters together."""

    same: tuple[SameBodies, ...] = ()
    linear: tuple[LinearRelation, ...] = ()


@dataclass(frozen=True)
class KnownParameters:
    """Relations over a parameter vector."""

    # matrix, value, std: (d, p), (d,), (d,): ``matrix @ x`` was measured as `value` with this
    # standard deviation.
    matrix: FloatArray
    value: FloatArray
    std: FloatArray
    # bounded, bound: (k, p), (k,): ``bounded @ x ≥ bound``.
    bounded: FloatArray
    bound: FloatArray

    @staticmethod
    def of(relations: Relations, layout: ParameterLayout, nominal: FloatArray) -> KnownParameters:
        """Write relations as rows over the parameters of a layout.

        Raises
        ------
        ParameterError
            If a body or parameter is unknown.
        """
        known = [row for same in relations.same for row in _same_rows(same, layout, nominal)]
        bounds: list[tuple[FloatArray, float]] = []
        for relation in relations.linear:
            row = np.zeros(layout.size)
            for label, factor in relation.terms.items():
                if label not in layout.labels:
                    raise ParameterError(
                        f"constraints.linear names '{label}'; parameters are named like "
                        f"'{layout.labels[0]}' or '{layout.labels[-1]}'"
                    )
                row[layout.labels.index(label)] = factor
            if relation.value is not None and relation.std is not None:
                known.append((row, relation.value, relation.std))
            bounds += [(row, relation.least)] if math.isfinite(relation.least) else []
            bounds += [(-row, -relation.most)] if math.isfinite(relation.most) else []
        return KnownParameters(
            np.array([row for row, _, _ in known]).reshape(-1, layout.size),
            np.array([value for _, value, _ in known]),
            np.array([std for _, _, std in known]),
            np.array([row for row, _ in bounds]).reshape(-1, layout.size),
            np.array([bound for _, bound in bounds]),
        )


def _same_rows(
    same: SameBodies, layout: ParameterLayout, nominal: FloatArray
) -> Iterator[tuple[FloatArray, float, float]]:
    for body in (same.first, same.second):
        if body not in layout.bodies:
            raise ParameterError(
                f"constraints names '{body}'; the bodies are {', '.join(layout.bodies)}"
            )
    first, second = layout.body(same.first), layout.body(same.second)
    phi = nominal[first]
    mass = max(float(phi[0]), 1e-3)
    size = math.sqrt(max(float(phi[[4, 6, 9]].sum()) / (2.0 * mass), 1e-4))
    signs = np.ones(len(INERTIAL_TERMS))
    if same.across is not None:
        axis = AXES.index(same.across)
        signs[1 + axis] = -1.0
        for term, pair in (("Ixy", (0, 1)), ("Ixz", (0, 2)), ("Iyz", (1, 2))):
            if axis in pair:
                signs[INERTIAL_TERMS.index(term)] = -1.0
    for k, sign in enumerate(signs):
        row = np.zeros(layout.size)
        row[first.start + k], row[second.start + k] = sign, -1.0
        yield row, 0.0, _EXACT * mass * size ** (0 if k == 0 else 1 if k < 4 else 2)
