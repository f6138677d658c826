# SPDX-License-Identifier: Apache-2.0
"""``entropic``: maximum a posteriori with the log-det divergence, by damped Newton."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation.certificate import Optimum, certified
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.estimator import SHARE, Estimator, Solver
from sysid_core.estimation.inequalities import Inequalities
from sysid_core.estimation.interior import interior_point, is_inside, repaired
from sysid_core.estimation.newton import Minimum, minimise
from sysid_core.estimation.noise import (
    residual_std,
    settled_noise,
)
from sysid_core.estimation.objective import Data, Objective
from sysid_core.estimation.posterior import (
    Certainty,
    Posterior,
)
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.setting import Setting
from sysid_core.settings import parameter
from sysid_core.threads import one_thread

__all__ = ["ESTIMATOR", "Entropic", "EntropicSolver"]

_HOLDS = 0.25
"""Share of what is known of a combination above which an inequality holds it back [-]."""


@dataclass(frozen=True, kw_only=True)
class Entropic(Estimator):
    """Maximum a posteriori with the log-det divergence (Lee, Wensing & Park 2020)."""

    name = "entropic"
    barrier_weight: float = parameter(
        0.01,
        "An inequality with slack s costs −w·log(s); one observation costs ½ in expectation, so "
        "the default is a fiftieth of an observation [-]",
        range=SHARE,
    )

    def solve(self, problem: Problem, start: FloatArray | None = None) -> Estimate:
        """Solve one problem from scratch."""
        return self.prepare(problem)(problem, start)

    def prepare(self, problem: Problem) -> Solver:
        """Return a solver that keeps what the data do not change."""
        solver = EntropicSolver(problem, self)

        def solve(given: Problem, start: FloatArray | None = None, /) -> Estimate:
            return solver.solve(
                given.statistics,
                noise_std=given.noise_std,
                correlation=given.correlation,
                start=start,
                anchor=given.anchor,
            )

        return solve


class EntropicSolver(Setting):
    """Everything about a problem that does not change with its data, ready for many solves.

    Not to be shared between threads: the work arrays are reused.
    """

    def __init__(self, problem: Problem, config: Entropic | None = None) -> None:
        self.config = config or Entropic()
        super().__init__(problem, self.config.noise_floor)
        self.inequalities = Inequalities.of(problem, self.coordinates, self.divergence)
        self.objective = Objective(
            self.coordinates,
            self.divergence,
            self.inequalities,
            self.config.barrier_weight,
            self.measured,
        )
        self.inside = interior_point(self.divergence, self.inequalities)
        self._last: tuple[Minimum, FloatArray] | None = None

    @one_thread()
    def solve(
        self,
        statistics: Statistics,
        *,
        noise_std: FloatArray | None = None,
        correlation: FloatArray | None = None,
        start: FloatArray | None = None,
        anchor: Statistics | None = None,
    ) -> Estimate:
        """Return the estimate from statistics.

        Noise (G,) [N·m] of the rows; None: estimated from the residuals. Correlation (G,): factor
        ≥ 1 by which coloured residuals shrink the number of independent rows. The start (p,) is
        repaired if it is not feasible.

        Raises
        ------
        EstimationError
            If rounding defeats the factorisation.
        """
        x, iterations = self.begin(start), 0
        floor = np.zeros(len(self.problem.groups))
        if noise_std is None:
            floor = self.floor(statistics, correlation)

        def solution(noise: FloatArray) -> tuple[Data, Minimum]:
            nonlocal x, iterations
            data = self.data(statistics, noise, correlation, anchor)
            minimum = self.minimise(data, x)
            x, iterations = minimum.point.x, iterations + minimum.iterations
            return data, minimum

        def updated(noise: FloatArray, solved: tuple[Data, Minimum]) -> FloatArray:
            covariance = Posterior.of(self.coordinates, solved[1].factor).base
            return self.residual_noise(statistics, x, noise, covariance, floor)

        first, rounds = noise_std, 0
        if first is None:
            # from above, so that the data's pull never outgrows what the constraints allow
            rounds = self.config.noise_updates
            beta = self.coordinates.mapping @ x
            first = residual_std(statistics, self.coordinates.base_vector(beta), floor)
        (data, minimum), noise = settled_noise(first, rounds, solution, updated)
        return self._estimate(data, noise, minimum, iterations)

    def begin(self, start: FloatArray | None) -> FloatArray:
        """Return the strictly feasible free parameters (n,) to start from."""
        if start is None:
            return self.inside
        if start.shape != (self.problem.layout.size,) or not np.isfinite(start).all():
            raise ParameterError(f"a start needs {self.problem.layout.size} finite parameters")
        x = start[self.coordinates.free]
        if self._is_last(x) or is_inside(self.divergence, self.inequalities, x):
            return x
        return repaired(self.divergence, self.inequalities, x, self.inside)

    def minimise(self, data: Data, x: FloatArray) -> Minimum:
        """Return the minimum from a strictly feasible start (n,).

        From the last minimum its Hessian serves on, as far as the data are still the same.
        """
        tolerance, most = self.config.tolerance, self.config.max_iterations
        own, known = np.diagonal(data.information), None
        if self._last is not None and self._is_last(x):
            last, before = self._last
            point = last.point
            with np.errstate(over="ignore"):  # from nothing to something is without bound
                change = np.abs(own - before) / np.maximum(before, np.finfo(float).tiny)
            known = last.factor, last.error + float(change.max(initial=0.0))
        else:
            point = self.objective.at(x)
        found = minimise(self.objective, data, point, tolerance, most, known)
        self._last = (found, own.copy()) if found.converged else None
        return found

    def _is_last(self, x: FloatArray) -> bool:
        return self._last is not None and np.array_equal(x, self._last[0].point.x)

    def _estimate(
        self, data: Data, noise: FloatArray, minimum: Minimum, iterations: int
    ) -> Estimate:
        c, wanted = self.coordinates, self.config.covariance
        certainty: Certainty | None = None
        active: tuple[str, ...] = ()
        if wanted != "none":
            posterior = Posterior.of(c, minimum.factor)
            certainty = posterior.certainty(data.learned, wanted)
            active = self._active(minimum, posterior)
        optimum = Optimum(
            method=self.config.name,
            free=minimum.point.x,
            certainty=certainty,
            information=data.information,
            noise_std=noise,
            optimality=minimum.optimality,
            iterations=iterations,
            converged=minimum.converged,
            active=active,
        )
        return certified(self.problem, c, optimum)

    def _active(self, minimum: Minimum, posterior: Posterior) -> tuple[str, ...]:
        """Name the inequalities whose barrier gives more than a quarter of what is known."""
        weight = self.config.barrier_weight / minimum.point.slack**2
        near = np.flatnonzero(weight > _HOLDS)  # by their prior all have a variance of one
        if not len(near):
            return ()
        share = weight[near] * posterior.variance_of(self.inequalities.matrix[near])
        return tuple(self.inequalities.labels[i] for i in near[share > _HOLDS])


ESTIMATOR = Entropic
