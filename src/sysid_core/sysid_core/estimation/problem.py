# SPDX-License-Identifier: Apache-2.0
"""An identification problem: data, prior and constraints, in the form every estimator takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.base_parameters import BaseParameters
from sysid_core.dynamics.rows import Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.inertia import Ellipsoid
from sysid_core.parameters import ParameterLayout

__all__ = ["Constraints", "Prior", "Problem"]


@dataclass(frozen=True)
class Prior:
    """What is known before the data."""

    mean: FloatArray
    """(p,) parameters thought most likely; physically consistent, friction terms that can be
    identified positive (a zero has no scale)."""
    body_std: FloatArray
    """(nb,) [-] relative standard deviation ρ of each body's inertia; the weight of the log-det
    divergence is 1/(4ρ²)."""
    scalar_std: FloatArray
    """(p,) for friction terms the relative standard deviation [-], for offsets the absolute one
    [N·m]; unused on inertial entries."""


@dataclass(frozen=True)
class Constraints:
    """What must hold whatever the data say."""

    fixed: BoolArray
    """(p,) parameters held at the prior's mean; a body is held whole or not at all."""
    ellipsoids: tuple[Ellipsoid | None, ...]
    """Bounding ellipsoid per body: the centre of mass lies inside (Khorshidi et al. eq. 9) and the
    density is realizable in it, tr(JQ) ≥ 0 (eq. 13)."""
    # lower, upper: (p,) bounds, ±inf where there is none.
    lower: FloatArray
    upper: FloatArray
    # linear_matrix, linear_bound: (k, p), (k,) further inequalities ``linear_matrix @ x ≥
    # linear_bound``.
    linear_matrix: FloatArray
    linear_bound: FloatArray
    total_mass: tuple[float, float] | None = None
    """Known total mass and its standard deviation [kg]; counts as a measurement."""
    known: tuple[FloatArray, FloatArray, FloatArray] | None = None
    """Tuple of (d, p), (d,), (d,) further measurements: rows over the parameters, values, standard
    deviations."""


@dataclass(frozen=True)
class Problem:
    """One identification problem."""

    # layout, base, groups: names and structure of the parameters and row groups.
    layout: ParameterLayout
    base: BaseParameters
    groups: tuple[str, ...]
    statistics: Statistics  # The data, compressed
    # prior, constraints: what else is known.
    prior: Prior
    constraints: Constraints
    noise_std: FloatArray | None = None
    """(G,) [N·m] standard deviation of the rows' noise per group; None: estimated from the
    residuals."""
    correlation: FloatArray | None = None
    """(G,) factor ≥ 1 by which coloured residuals shrink the number of independent rows; None:
    1."""
    rows: Rows | None = None
    """The data in full, for estimators that look at single residuals (Huber)."""
    anchor: Statistics | None = None
    """What is known before the data in the form of rows, each one independent; estimators with a
    prior let them count beside it, with the noise of their group."""

    def __post_init__(self) -> None:
        p, G, b = self.layout.size, len(self.groups), self.base.size
        if self.base.mapping.shape != (b, p) or self.prior.mean.shape != (p,):
            raise ParameterError("prior, base and layout of a problem disagree in size")
        if self.statistics.gram.shape != (G, b, b):
            raise ParameterError(
                f"statistics have shape {self.statistics.gram.shape}, expected {(G, b, b)}"
            )
        squares = np.einsum("gii->gi", self.statistics.gram)  # no product is larger
        if not (np.isfinite(squares).all() and np.isfinite(self.statistics.square).all()):
            raise ParameterError("the data hold NaN or inf; leave such samples out beforehand")
        for name, least in (("noise_std", 0.0), ("correlation", 1.0 - 1e-9)):
            values = getattr(self, name)
            if values is not None and not (
                values.shape == (G,) and np.isfinite(values).all() and (values > least).all()
            ):
                raise ParameterError(
                    f"{name} needs one positive finite number per group ({G} groups), "
                    "a correlation at least 1"
                )
