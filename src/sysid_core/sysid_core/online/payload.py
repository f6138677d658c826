# SPDX-License-Identifier: Apache-2.0
"""Notices that a load was picked up or put down, and estimates its ten inertial parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.base_parameters import find_base_parameters
from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation import (
    Constraints,
    Entropic,
    EntropicSolver,
    Estimate,
    Prior,
    Problem,
)
from sysid_core.gain_error import GainPrior
from sysid_core.inertia import from_mass_com_inertia, transform_matrix
from sysid_core.online.changes import CERTAIN, SCALES, ChangeTest, log_odds
from sysid_core.online.innovations import Evidence, Innovations, Noise, Own, solvable
from sysid_core.online.payload_estimate import PayloadEstimate
from sysid_core.parameters import ParameterLayout
from sysid_core.priors import default_constraints, default_prior
from sysid_core.robot.strength import borne_mass
from sysid_core.settings import check_config, parameter

__all__ = ["PayloadConfig", "PayloadEstimator"]

_PRIOR_MASS = 1.0
"""Typical mass, the scale of the prior [kg]."""

_PRIOR_RADIUS = 0.1
"""Typical size, the scale of the prior on inertia [m]."""

_PRIOR_STD = 5.0
"""Relative standard deviation of the prior: a load of ten times the mass is ordinary [-]."""

_SMALLEST_SHARE = 0.005
"""Payloads below this share of the mass that a robot's joints bear are not worth reporting [-]."""

_LIKELY_SHARE = 0.05
"""Mass of a load thought likely, as a share of the same mass [-]."""

_LIKELY_LEVER = 0.15
"""Distance of its centre of mass from the tool frame thought likely [m]."""

_ROUGH = 0.03
"""Standard deviations to which a load is found whose evidence alone is asked for: that is as
flat there as the square of this [-]."""

_USUAL = 5.0
"""Independent rows that the variance without a load is as good as, beside a load's own errors."""

_EFFICIENCY = 0.05
"""Share of a joint's load that may turn up as friction which the model lacks: gears are 90 to 99 %
efficient [-]."""


@dataclass(frozen=True)
class PayloadConfig:
    """Which payloads are looked for."""

    enabled: bool = parameter(
        True, "Whether to look for payloads at the tool frame. Off for robots that carry none"
    )
    min_mass: float = parameter(
        0.0,
        "Smallest payload worth reporting [kg]; 0: 0.5 % of the mass that its joints bear",
        range=(0.0, 1000.0),
    )

    def __post_init__(self) -> None:
        check_config(self)


def _unexplained(
    statistics: Statistics, base_vector: FloatArray, shift: FloatArray, usual: Noise
) -> float:
    """Return the share of the square of unusual errors that a shift (b,) leaves."""

    def unusual(vector: FloatArray) -> float:
        square, rows = usual.independent(statistics.residual_square(vector), statistics.count)
        return max(0.0, square - rows)

    whole = unusual(base_vector)
    return unusual(base_vector + shift) / whole if whole > 0.0 else 0.0


def _kept(innovations: Innovations, evidence: Evidence, load: PayloadEstimate) -> float:
    """Return the log Bayes factor of a load, as far as it is known, against none."""
    information, moment = evidence
    phi, covariance = load.parameters, load.covariance
    left = moment - information @ phi
    spread = np.eye(len(phi)) + covariance @ information
    explained = float((left + moment) @ phi + left @ np.linalg.solve(spread, covariance @ left))
    cost = 0.5 * float(np.linalg.slogdet(spread)[1])
    return log_odds(explained, cost, innovations.square, innovations.count)


class PayloadEstimator:
    """Fits a physically consistent load to what the model in use leaves unexplained.

    The load adds ``T φ`` to the tool's body, so rows shift by ``a B_body T φ``: ten unknowns, fed
    by the window's own statistics. The estimate is the entropic maximum a posteriori (Lee,
    Wensing & Park 2020), so that it is a possible body from the first sample on.
    """

    def __init__(self, regression: Regression, config: PayloadConfig) -> None:
        robot, base = regression.robot, regression.base
        self._robot = robot
        self.config = config
        self.frame = robot.tool_frame
        frame = robot.frame(self.frame)
        index = robot.body_joint_ids.index(frame.parentJoint)
        self.body = robot.layout.bodies[index]
        self._body_index = index
        self._borne_mass = borne_mass(robot)
        placement: pin.SE3 = frame.placement
        self._to_body = transform_matrix(placement.rotation, placement.translation)
        self._columns = robot.layout.body(index)
        self._map = base.mapping[:, self._columns] @ self._to_body
        size = _LIKELY_LEVER ** np.array([0, *[1] * 3, *[2] * 6])
        self._likely = _LIKELY_SHARE * self._borne_mass * size
        self.regression, self._size = regression, base.size
        friction = np.zeros(base.size + 1)
        friction[-1] = 1.0
        unknown = np.full(len(regression.groups), _EFFICIENCY**2)
        self._friction = Own(friction, np.zeros(len(unknown)), unknown)
        self._gains = GainPrior(regression, entered=True)
        self.test = ChangeTest(regression, self._map, self._likely)
        self._layout = ParameterLayout((self.frame,), ())
        rows = np.vstack([self._map, np.zeros((10, 10))])
        self._structure = find_base_parameters(rows, self._layout.labels)
        ball = 0.4 * _PRIOR_MASS * _PRIOR_RADIUS**2 * np.eye(3)
        mean = from_mass_com_inertia(_PRIOR_MASS, np.zeros(3), ball)
        far = np.full(10, np.inf)
        problem = Problem(
            self._layout,
            self._structure,
            ("load",),
            Statistics.zero(1, self._structure.size),
            Prior(mean, np.array([_PRIOR_STD]), np.ones(10)),
            Constraints(np.zeros(10, dtype=bool), (None,), -far, far, np.zeros((0, 10)), far[:0]),
        )
        self._solver = EntropicSolver(problem)
        self._rough_solver = EntropicSolver(problem, Entropic(tolerance=_ROUGH))

    @property
    def min_mass(self) -> float:
        """Smallest payload worth reporting [kg]."""
        return self.config.min_mass or _SMALLEST_SHARE * self._borne_mass

    @property
    def likely_tool(self) -> FloatArray:
        """Covariance (b, b) of the base parameters of a tool: half of a likely load."""
        spread = 0.5 * self._map * self._likely
        return np.asarray(spread @ spread.T)

    @solvable("the likeness to a payload")
    def likeness(self, innovations: Innovations) -> tuple[float, float]:
        """Return how much of innovations looks like a load, and how much would by chance."""
        return innovations.evidence(self._map).likeness(self._likely)

    def problem(self, load: PayloadEstimate | None) -> tuple[Prior, Constraints]:
        """Return prior and constraints of the robot, with the load that it carries.

        The load sits outside the shape of the tool's body, so that body's bounds do not hold.
        """
        prior, constraints = default_prior(self._robot), default_constraints(self._robot)
        if load is None:
            return prior, constraints
        body = self._body_index
        ellipsoids = tuple(
            None if i == body else ellipsoid for i, ellipsoid in enumerate(constraints.ellipsoids)
        )
        lower, upper = constraints.lower.copy(), constraints.upper.copy()
        lower[self._columns], upper[self._columns] = -np.inf, np.inf
        total = constraints.total_mass
        if total is not None:
            total = (total[0] + load.mass, float(np.hypot(total[1], load.mass_std)))
        return (
            replace(prior, mean=self.add_to(prior.mean, load.parameters)),
            replace(
                constraints, ellipsoids=ellipsoids, lower=lower, upper=upper, total_mass=total
            ),
        )

    def statistics(self, rows: Rows, parameters: FloatArray) -> Statistics:
        """Return the statistics of rows (b + 1 columns) that `estimate` takes.

        The last column is the friction per load of each joint, for the robot's parameters (p,)
        with its load: few models have it, and it would be taken for a part of the load.
        """
        friction = self.regression.load_friction(rows, parameters)
        blocks = tuple(
            block._replace(matrix=np.column_stack([block.matrix, column]))
            for block, column in zip(rows.blocks, friction, strict=True)
        )
        return Statistics.of(Rows(blocks))

    def base_shift(self, parameters: FloatArray) -> FloatArray:
        """Return what a load (10,) adds to the base parameters (b,)."""
        return self._map @ parameters

    def base_doubt(self, load: PayloadEstimate) -> FloatArray:
        """Return what the covariance of a load adds to that of the base parameters (b, b)."""
        return np.asarray(self._map @ load.covariance @ self._map.T)

    def add_to(self, vector: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return a full parameter vector (p,) with the load (10,) added to the tool's body."""
        loaded = vector.copy()
        loaded[self._columns] += self._to_body @ parameters
        return loaded

    @solvable("the payload's estimate")
    def estimate(
        self,
        statistics: Statistics,
        base_vector: FloatArray,
        covariance: FloatArray,
        noise: Noise,
        before: PayloadEstimate | None = None,
    ) -> PayloadEstimate:
        """Estimate the load that a model without it leaves over.

        What is not known of the robot is not known of its load either. A load brings errors of
        its own as well: rows whose residuals are larger than usual count less, and a share of what
        a joint carries may turn up as friction.

        Parameters
        ----------
        statistics : Statistics
            Of samples taken with the load, on b or b + 1 columns; see `statistics`.
        base_vector, covariance : (b,), (b, b)
            Base parameters of the robot without the load, and how far they are known.
        noise : Noise
            Of the innovations without the load.
        before : PayloadEstimate, optional
            The load until now, which the iteration starts from.

        Raises
        ------
        EstimationError
            If rounding defeats the solver.
        """
        statistics, bare = statistics.leading(self._size + 1), statistics.leading(self._size)
        own, usual = [self._friction], noise
        innovations = Innovations(statistics, base_vector, covariance, noise, own)
        evidence = innovations.evidence(self._map)
        start = None if before is None else before.parameters
        found = self._solve(self._solver, innovations, evidence, start)
        shift = self._map @ found.parameters
        left = bare.residual_square(base_vector + shift)
        noise = noise.with_residuals(left, bare.count, _USUAL)
        if self._gains.uncertain:
            model = base_vector, covariance, np.sqrt(noise.variance)
            errors = self._gains.posterior(bare, *model)
            along = np.append(shift, 0.0)
            own.append(Own(along, errors.mean, np.diagonal(errors.covariance)))
        innovations = Innovations(statistics, base_vector, covariance, noise, own)
        evidence = innovations.evidence(self._map)
        found = self._solve(self._solver, innovations, evidence, found.parameters)
        phi = found.parameters
        odds = self._odds(innovations, evidence, phi)
        change_odds = np.inf
        if before is not None:
            change_odds = max(odds, 0.0) - _kept(innovations, evidence, before)
        share = _unexplained(bare, base_vector, self._map @ phi, usual)
        return PayloadEstimate.of(phi, found.covariance, odds, change_odds, share)

    def is_gone(
        self,
        statistics: Statistics,
        base_vector: FloatArray,
        covariance: FloatArray,
        noise: Noise,
        load: PayloadEstimate,
    ) -> bool:
        """Return whether samples are certainly of the robot without a load that it carried.

        Both models are known, so that a load is missed sooner than it is noticed. What neither
        explains is noise. See `estimate` for the parameters.
        """
        bare = statistics.leading(self._size)
        loaded = bare.residual_square(base_vector + self._map @ load.parameters)
        left = np.minimum(bare.residual_square(base_vector), loaded)
        noise = noise.with_residuals(left, bare.count, _USUAL)
        try:
            innovations = Innovations(bare, base_vector, covariance, noise)
            return _kept(innovations, innovations.evidence(self._map), load) <= -CERTAIN
        except np.linalg.LinAlgError:  # rounding leaves nothing to tell by
            return False

    def _solve(
        self,
        solver: EntropicSolver,
        innovations: Innovations,
        evidence: Evidence,
        start: FloatArray | None,
    ) -> Estimate:
        """Return the most likely possible body, and its covariance."""
        evidence = evidence.select(self._structure.columns)
        load = Statistics(
            evidence.information[None],
            evidence.moment[None],
            np.array([innovations.square]),
            np.array([innovations.count]),
        )
        return solver.solve(load, noise_std=np.ones(1), start=start)

    def _odds(self, innovations: Innovations, evidence: Evidence, estimate: FloatArray) -> float:
        """Return the log Bayes factor of a load against none.

        It is that of loads thought likely, of which the likeliest possible body explains most.
        Where the estimate, whose prior is wide, explains too little, that body is looked for: a
        moment's data may leave the estimate's centre of mass far away.
        """
        information, moment = evidence
        std = np.outer(SCALES, self._likely)
        whole = np.tile(np.arange(len(estimate)), (len(std), 1))
        size = innovations.square, innovations.count
        explained, costs = evidence.explained_each(whole, std)

        def odds(load: FloatArray, scale: int) -> float:
            own = float((2.0 * moment - information @ load - load / std[scale] ** 2) @ load)
            return log_odds(own, costs[scale], *size)

        found = max(odds(estimate, scale) for scale in range(len(std)))
        if found >= CERTAIN:
            return found
        each = zip(explained, costs, strict=True)
        best = int(np.argmax([log_odds(*one, *size) for one in each]))
        likely = Evidence(information + np.diag(1.0 / std[best] ** 2), moment)
        nearer = self._solve(self._rough_solver, innovations, likely, estimate)
        return max(found, odds(nearer.parameters, best))
