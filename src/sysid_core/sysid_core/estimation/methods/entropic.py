# SPDX-License-Identifier: Apache-2.0
"""``entropic``: maximum a posteriori with the log-det divergence, by damped Newton."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.estimation.certificate import Certainty, Optimum, certified
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.divergence import Divergence
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.estimator import Estimator, Solver
from sysid_core.estimation.gaussian import (
    Gaussian,
    believable_floor,
    prior_covariance,
)
from sysid_core.estimation.inequalities import Inequalities
from sysid_core.estimation.interior import interior_point, is_inside, repaired
from sysid_core.estimation.measured import Measured
from sysid_core.estimation.newton import Minimum, minimise, refreshed
from sysid_core.estimation.noise import (
    fitted_degrees,
    residual_std,
    row_weights,
    settled_noise,
    weighted_sums,
)
from sysid_core.estimation.objective import Data, Objective
from sysid_core.estimation.posterior import (
    Posterior,
    determined_share,
    prior_base_variance,
)
from sysid_core.estimation.problem import Problem

__all__ = ["ESTIMATOR", "Entropic", "EntropicSolver"]

_FRESH = 0.05  # relative change that moves standard deviations by no more than this share


@dataclass(frozen=True, kw_only=True)
class Entropic(Estimator):
    """Maximum a posteriori with the log-det divergence (Lee, Wensing & Park 2020).

    Attributes
    ----------
    barrier_weight : float [-]
        An inequality with slack s costs −w·log(s). One observation costs ½ in expectation, so
        the default is a fiftieth of an observation.
    """

    name = "entropic"
    barrier_weight: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_shares("barrier_weight")

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
            )

        return solve


class EntropicSolver:
    """Everything about a problem that does not change with its data, ready for many solves.

    Not to be shared between threads: the work arrays are reused.

    Parameters
    ----------
    problem : Problem
        Supplies layout, base, groups, prior and constraints; its data are not used.
    config : Entropic
    """

    def __init__(self, problem: Problem, config: Entropic | None = None) -> None:
        self.problem = problem
        self.config = config or Entropic()
        constraints = problem.constraints
        self.coordinates = Coordinates.of(problem.base, constraints.fixed, problem.prior.mean)
        self.divergence = Divergence.of(problem, self.coordinates)
        self.inequalities = Inequalities.of(problem, self.coordinates, self.divergence)
        self.objective = Objective(
            self.coordinates,
            self.divergence,
            self.inequalities,
            self.config.barrier_weight,
            Measured.total_mass(problem, self.coordinates),
        )
        self.inside = interior_point(self.divergence, self.inequalities)
        self._gaussian: Gaussian | None = None

    @property
    def gaussian(self) -> Gaussian:
        """Gaussian approximation of the prior in the free parameters."""
        if self._gaussian is None:
            self._gaussian = Gaussian(self.divergence.mean, prior_covariance(self.divergence))
        return self._gaussian

    def solve(
        self,
        statistics: Statistics,
        *,
        noise_std: FloatArray | None = None,
        correlation: FloatArray | None = None,
        start: FloatArray | None = None,
    ) -> Estimate:
        """Return the estimate from statistics.

        Parameters
        ----------
        statistics : Statistics
        noise_std : (G,) [N·m] or None
            Noise of the rows; None: estimated from the residuals.
        correlation : (G,) or None
            Factor ≥ 1 by which coloured residuals shrink the number of independent rows.
        start : (p,) or None
            Parameters to start from; repaired if they are not feasible.

        Raises
        ------
        EstimationError
            If rounding defeats the factorisation.
        """
        x, iterations = self.begin(start), 0
        floor = np.zeros(len(self.problem.groups))
        if noise_std is None:
            floor = believable_floor(
                statistics,
                correlation,
                self.coordinates,
                self.gaussian,
                self.config.noise_floor,
            )

        def solution(noise: FloatArray) -> tuple[Data, Minimum]:
            nonlocal x, iterations
            data = self.data(statistics, noise, correlation)
            minimum = self.minimise(data, x)
            x, iterations = minimum.point.x, iterations + minimum.iterations
            return data, minimum

        def updated(noise: FloatArray, solved: tuple[Data, Minimum]) -> FloatArray:
            return self._residual_noise(statistics, noise, solved[1], floor)

        first, rounds = noise_std, 0
        if first is None:
            # from above, so that the data's pull never outgrows what the constraints allow
            rounds = self.config.noise_updates
            beta = self.coordinates.mapping @ x
            first = residual_std(statistics, self.coordinates.base_vector(beta), floor)
        (data, minimum), noise = settled_noise(first, rounds, solution, updated)
        return self._estimate(statistics, data, noise, minimum, iterations)

    def begin(self, start: FloatArray | None) -> FloatArray:
        """Return the strictly feasible free parameters (n,) to start from."""
        if start is None:
            return self.inside
        if start.shape != (self.problem.layout.size,) or not np.isfinite(start).all():
            raise ParameterError(f"a start needs {self.problem.layout.size} finite parameters")
        x = start[self.coordinates.free]
        if is_inside(self.divergence, self.inequalities, x):
            return x
        return repaired(self.divergence, self.inequalities, x, self.inside)

    def data(
        self, statistics: Statistics, noise: FloatArray, correlation: FloatArray | None
    ) -> Data:
        """Return the weighted data on the free base parameters."""
        sums = weighted_sums(statistics, row_weights(noise, correlation))
        return Data(*self.coordinates.reduce(*sums))

    def minimise(self, data: Data, x: FloatArray) -> Minimum:
        """Return the minimum from a strictly feasible start (n,)."""
        config = self.config
        return minimise(self.objective, data, x, config.tolerance, config.max_iterations)

    def _residual_noise(
        self, statistics: Statistics, noise: FloatArray, minimum: Minimum, floor: FloatArray
    ) -> FloatArray:
        posterior = Posterior.of(self.coordinates, minimum.factor)
        degrees = fitted_degrees(statistics, noise, posterior.base)
        beta = self.coordinates.mapping @ minimum.point.x
        return residual_std(statistics, self.coordinates.base_vector(beta), floor, degrees)

    def _estimate(
        self,
        statistics: Statistics,
        data: Data,
        noise: FloatArray,
        minimum: Minimum,
        iterations: int,
    ) -> Estimate:
        c, wanted = self.coordinates, self.config.covariance
        certainty: Certainty | None = None
        active: tuple[str, ...] = ()
        if wanted != "none":
            if minimum.moved > _FRESH:
                minimum = refreshed(self.objective, data, minimum)
            posterior = Posterior.of(c, minimum.factor)
            curvature = minimum.curvature
            prior_variance = prior_base_variance(c, curvature.blocks, curvature.diagonal)
            base = posterior.base
            certainty = Certainty(
                posterior.variance(),
                posterior.covariance() if wanted == "full" else None,
                base,
                determined_share(np.diagonal(base), prior_variance),
            )
            active = self._active(minimum, posterior)
        finding = Optimum(
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
        return certified(self.problem, c, statistics, finding)

    def _active(self, minimum: Minimum, posterior: Posterior) -> tuple[str, ...]:
        """Name the inequalities whose barrier gives more than a quarter of what is known."""
        if not self.inequalities.size:
            return ()
        variance = posterior.variance_of(self.inequalities.matrix)
        share = self.config.barrier_weight * variance / minimum.point.slack**2
        return tuple(self.inequalities.labels[i] for i in np.flatnonzero(share > 0.25))


ESTIMATOR = Entropic
