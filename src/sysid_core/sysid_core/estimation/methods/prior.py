# SPDX-License-Identifier: Apache-2.0
"""``prior``: least squares regularised towards the nominal parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.estimation.certificate import Optimum, certified
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.estimator import Estimator
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.regularised import Regularised

__all__ = ["ESTIMATOR", "TowardsPrior"]


@dataclass(frozen=True, kw_only=True)
class TowardsPrior(Estimator):
    """Minimise Σ‖A_g β − y_g‖²/(σ_g² η_g) + (x − x₀)ᵀ Λ (x − x₀), Λ diagonal.

    Regularised least squares towards the nominal parameters with a diagonal weighting, as in
    Kolathaya et al. (33)–(35).
    """

    name = "prior"

    def solve(self, problem: Problem, start: FloatArray | None = None) -> Estimate:
        """Return the estimate; the start plays no part."""
        setting = Regularised(problem, self)
        quadratic, x, noise = setting.settled(lambda quadratic: quadratic.centre)
        optimum = Optimum(
            method=self.name,
            free=x,
            certainty=setting.certainty(quadratic),
            information=quadratic.data.information,
            noise_std=noise,
            optimality=float(np.linalg.norm(quadratic.white_gradient(x))),
            iterations=1,
            converged=True,
        )
        return certified(problem, setting.coordinates, optimum)


ESTIMATOR = TowardsPrior
