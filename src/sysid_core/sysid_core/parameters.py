# SPDX-License-Identifier: Apache-2.0
"""The layout of the parameter vector: the only place that knows where a parameter lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.friction import FRICTION
from sysid_core.errors import ParameterError

__all__ = [
    "COUPLING_TERMS",
    "FRICTION_TERMS",
    "INERTIAL_TERMS",
    "ParameterLayout",
]

INERTIAL_TERMS = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Per body, about its joint frame's origin [kg, kg·m, kg·m²]; Pinocchio's order."""

FRICTION_TERMS = tuple(term.name for term in FRICTION)
"""Per joint, as `dynamics.friction` describes them."""

COUPLING_TERMS = tuple(term.name for term in FRICTION if term.coupling != "none")
"""Per motor that drives more than one joint, referred to its own joint [same units]."""


@dataclass(frozen=True)
class ParameterLayout:
    """Names and places of the parameters of one robot.

    The vector holds 10 inertial parameters per body, then the friction terms grouped by term
    in the order of `dynamics.friction.FRICTION`, then those of the couplings likewise.
    """

    # bodies, joints, couplings: names in order.
    bodies: tuple[str, ...]
    joints: tuple[str, ...]
    couplings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in ("bodies", "joints", "couplings"):
            names = getattr(self, kind)
            if len(set(names)) != len(names):
                raise ParameterError(f"{kind} of a parameter layout must have distinct names")

    @cached_property
    def size(self) -> int:
        """Length p of the parameter vector."""
        return (
            len(INERTIAL_TERMS) * len(self.bodies)
            + len(FRICTION_TERMS) * len(self.joints)
            + len(COUPLING_TERMS) * len(self.couplings)
        )

    @cached_property
    def inertial(self) -> slice:
        """Where all inertial parameters lie."""
        return slice(0, len(INERTIAL_TERMS) * len(self.bodies))

    @cached_property
    def friction(self) -> slice:
        """Where all friction and coupling parameters lie."""
        return slice(self.inertial.stop, self.size)

    def body(self, body: str | int) -> slice:
        """Return where the 10 parameters of a body lie."""
        index = self.bodies.index(body) if isinstance(body, str) else body
        width = len(INERTIAL_TERMS)
        return slice(width * index, width * (index + 1))

    def term(self, term: str) -> slice:
        """Return where one friction term of all joints lies, e.g. ``"viscous"``."""
        width = len(self.joints)
        start = self.inertial.stop + width * FRICTION_TERMS.index(term)
        return slice(start, start + width)

    def coupling_term(self, term: str) -> slice:
        """Return where one friction term of all couplings lies."""
        width = len(self.couplings)
        friction_stop = self.inertial.stop + len(FRICTION_TERMS) * len(self.joints)
        start = friction_stop + width * COUPLING_TERMS.index(term)
        return slice(start, start + width)

    @cached_property
    def masses(self) -> IndexArray:
        """Indices of the masses, one per body."""
        return np.arange(len(self.bodies)) * len(INERTIAL_TERMS)

    @cached_property
    def upper(self) -> FloatArray:
        """Upper bounds (p,) of the parameters, inf where there is none."""
        bound = np.full(self.size, np.inf)
        for term in FRICTION:
            bound[self.term(term.name)] = term.upper
        return bound

    @cached_property
    def nonnegative(self) -> IndexArray:
        """Indices of the friction parameters that cannot be negative."""
        keep = np.zeros(self.size, dtype=bool)
        for term in FRICTION:
            for where in self.places(term.name):
                keep[where] = term.lower == 0.0
        return np.flatnonzero(keep)

    @cached_property
    def dry(self) -> IndexArray:
        """Indices (k, 2) of dry friction, and of what it follows: joints, then couplings."""
        rows = [
            (index, source)
            for term in FRICTION
            if term.dry
            for first, where in zip((0, len(self.joints)), self.places(term.name), strict=False)
            for source, index in enumerate(range(where.start, where.stop), first)
        ]
        return np.array(rows, dtype=np.intp).reshape(-1, 2)

    def places(self, term: str) -> tuple[slice, ...]:
        """Return where a friction term lies: of all joints, and of all couplings if they have."""
        joints = self.term(term)
        return (joints, self.coupling_term(term)) if term in COUPLING_TERMS else (joints,)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Readable name of every parameter, e.g. ``"forearm_link.mcx"``."""
        names = [f"{body}.{term}" for body in self.bodies for term in INERTIAL_TERMS]
        names += [f"{joint}.{term}" for term in FRICTION_TERMS for joint in self.joints]
        names += [f"{name}.{term}" for term in COUPLING_TERMS for name in self.couplings]
        return tuple(names)

    def inertias(self, vector: FloatArray) -> FloatArray:
        """Return the inertial parameters of a vector as an array (nb, 10) (a view)."""
        return vector[self.inertial].reshape(len(self.bodies), len(INERTIAL_TERMS))

    def bodies_of(self, vector: FloatArray) -> dict[str, FloatArray]:
        """Split a parameter vector into body name → 10 inertial parameters."""
        return dict(zip(self.bodies, self.inertias(vector), strict=True))

    def joints_of(self, vector: FloatArray) -> dict[str, dict[str, float]]:
        """Split a parameter vector into joint name → friction term → value."""
        return {
            joint: {term: float(vector[self.term(term)][j]) for term in FRICTION_TERMS}
            for j, joint in enumerate(self.joints)
        }

    def couplings_of(self, vector: FloatArray) -> dict[str, dict[str, float]]:
        """Split a parameter vector into coupling name → friction term → value."""
        return {
            name: {term: float(vector[self.coupling_term(term)][c]) for term in COUPLING_TERMS}
            for c, name in enumerate(self.couplings)
        }

    def assemble(
        self,
        bodies: Mapping[str, FloatArray],
        joints: Mapping[str, Mapping[str, float]],
        couplings: Mapping[str, Mapping[str, float]] | None = None,
    ) -> FloatArray:
        """Build a parameter vector from named parts; the inverse of the ``*_of`` methods.

        Raises
        ------
        ParameterError
            If a body or joint of the layout is missing or unknown, or a value is not finite.
        """
        couplings = couplings or {}
        for kind, expected, given in (
            ("bodies", self.bodies, bodies),
            ("joints", self.joints, joints),
            ("couplings", self.couplings, couplings),
        ):
            if set(expected) != set(given):
                raise ParameterError(
                    f"{kind} do not match the model: expected {sorted(expected)}, "
                    f"got {sorted(given)}; use parameters that were identified on this robot"
                )
        vector = np.zeros(self.size)
        for body in self.bodies:
            values = np.asarray(bodies[body], dtype=float)
            if values.shape != (len(INERTIAL_TERMS),):
                raise ParameterError(f"body {body} needs 10 numbers, got shape {values.shape}")
            vector[self.body(body)] = values
        for term in FRICTION_TERMS:
            vector[self.term(term)] = [joints[j].get(term, 0.0) for j in self.joints]
        for term in COUPLING_TERMS:
            vector[self.coupling_term(term)] = [
                couplings[c].get(term, 0.0) for c in self.couplings
            ]
        if not np.all(np.isfinite(vector)):
            bad = self.labels[int(np.flatnonzero(~np.isfinite(vector))[0])]
            raise ParameterError(f"parameter {bad} is not finite")
        return vector
