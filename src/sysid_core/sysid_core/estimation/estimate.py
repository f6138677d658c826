# SPDX-License-Identifier: Apache-2.0
"""The result of every estimator, with the figures that say how far it can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic

__all__ = ["Estimate"]


@dataclass(frozen=True)
class Estimate:
    """Estimated parameters that certify themselves."""

    method: str  # Name of the estimator
    parameters: FloatArray
    """(p,) full parameter vector. Estimators in base parameters spread the base solution by the
    smallest change from the prior."""
    base_parameters: FloatArray  # (b,)
    covariance: FloatArray
    """(p, p) posterior covariance of `parameters` (Laplace approximation at the optimum); only its
    diagonal, or NaN, where the options ask for no more. Inequalities that `qp` and `sdp` enforce
    are left aside in theirs."""
    base_covariance: FloatArray
    """(b, b) posterior covariance of `base_parameters`; NaN where the options ask for none."""
    std: FloatArray  # (p,) standard deviations
    determined: FloatArray
    """(b,) [-] per base parameter, the share of its posterior information that the data brought, 0
    to 1."""
    noise_std: FloatArray
    """(G,) [N·m] standard deviation of the rows' noise that the weights rest on; 1 where there are
    none."""
    consistency: FloatArray  # (nb,) smallest pseudo-inertia eigenvalue of each body
    optimality: float
    """Residual of the optimality conditions, recomputed from the result, in posterior standard
    deviations: how far the result is from the optimum compared with how far it is known."""
    iterations: int
    converged: bool
    condition: float
    """Condition number (1-norm) of the information that the data bring on the free base
    parameters, scaled to a unit diagonal; inf where some are left open."""
    diagnostics: tuple[Diagnostic, ...] = ()  # What its user should know

    @property
    def warnings(self) -> tuple[str, ...]:
        """The diagnostics as text."""
        return tuple(map(str, self.diagnostics))
