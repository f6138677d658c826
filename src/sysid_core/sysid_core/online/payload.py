# SPDX-License-Identifier: Apache-2.0
"""Notices that a load was picked up or put down, and estimates its ten inertial parameters."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.base_parameters import BaseParameters, find_base_parameters
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import EstimationError
from sysid_core.estimation import Constraints, EntropicSolver, Prior, Problem
from sysid_core.inertia import (
    from_mass_com_inertia,
    transform_matrix,
)
from sysid_core.parameters import ParameterLayout
from sysid_core.robot.model import Robot
from sysid_core.settings import check_config, parameter

__all__ = ["PayloadConfig", "PayloadEstimate", "PayloadEstimator"]

_PRIOR_MASS = 1.0
"""Typical mass, the scale of the prior [kg]."""

_PRIOR_RADIUS = 0.1
"""Typical size, the scale of the prior on inertia [m]."""

_PRIOR_STD = 5.0
"""Relative standard deviation of the prior: a load of ten times the mass is ordinary [-]."""

_SMALLEST_SHARE = 0.01
"""Payloads below this share of the robot's mass are not worth reporting [-]."""


@dataclass(frozen=True)
class PayloadConfig:
    """Which payloads are looked for."""

    enabled: bool = parameter(
        True, "Whether to look for payloads at the tool frame. Off for robots that carry none"
    )
    min_mass: float = parameter(
        0.0,
        "Smallest payload worth reporting [kg]; 0: a hundredth of the robot's mass",
        range=(0.0, 1000.0),
    )

    def __post_init__(self) -> None:
        check_config(self)


@dataclass(frozen=True)
class PayloadEstimate:
    """A load at the tool frame, with standard deviations.

    Attributes
    ----------
    parameters : (10,)
        m, m·c, I about the tool frame's origin [kg, kg·m, kg·m²].
    covariance : (10, 10)
        Of `parameters`.
    mass, mass_std : float [kg]
    com, com_std : (3,) [m]
        In the tool frame.
    inertia, inertia_std : (6,) [kg·m²]
        Ixx Ixy Iyy Ixz Iyz Izz about the centre of mass.
    explained : float [-]
        Share of the innovations' power that the payload explains.
    """

    parameters: FloatArray
    covariance: FloatArray
    mass: float
    mass_std: float
    com: FloatArray
    com_std: FloatArray
    inertia: FloatArray
    inertia_std: FloatArray
    explained: float


def _central(parameters: FloatArray) -> FloatArray:
    """Return mass, centre of mass and central inertia (10,) of inertial parameters (10,)."""
    mass, first = parameters[0], parameters[1:4]
    com = first / mass
    shift = from_mass_com_inertia(mass, com, np.zeros((3, 3)))
    return np.concatenate([[mass], com, parameters[4:] - shift[4:]])


class PayloadEstimator:
    """Fits a physically consistent load to what the model in use leaves unexplained.

    The load adds ``T φ`` to the tool's body, so rows shift by ``a B_body T φ``: ten unknowns, fed
    by the window's own statistics. The estimate is the entropic maximum a posteriori (Lee,
    Wensing & Park 2020), so that it is a possible body from the first sample on.

    Parameters
    ----------
    robot : Robot
    base : BaseParameters
    groups : int
        Number of row groups.
    config : PayloadConfig
    """

    def __init__(
        self, robot: Robot, base: BaseParameters, groups: int, config: PayloadConfig
    ) -> None:
        self.config = config
        self.frame = robot.tool_frame
        frame = robot.frame(self.frame)
        index = robot.body_joint_ids.index(frame.parentJoint)
        self.body = robot.layout.bodies[index]
        self._body_index = index
        self._robot_mass = float(robot.nominal[robot.layout.masses].sum())
        placement: pin.SE3 = frame.placement
        self._to_body = transform_matrix(placement.rotation, placement.translation)
        self._columns = robot.layout.body(index)
        self._map = base.mapping[:, self._columns] @ self._to_body
        self._layout = ParameterLayout((self.frame,), ())
        rows = np.vstack([self._map, np.zeros((10, 10))])
        self._structure = find_base_parameters(rows, self._layout.labels)
        ball = 0.4 * _PRIOR_MASS * _PRIOR_RADIUS**2 * np.eye(3)
        mean = from_mass_com_inertia(_PRIOR_MASS, np.zeros(3), ball)
        unbounded = np.full(10, np.inf)
        problem = Problem(
            self._layout,
            self._structure,
            tuple(str(g) for g in range(groups)),
            Statistics.zero(groups, self._structure.size),
            Prior(mean, np.array([_PRIOR_STD]), np.ones(10)),
            Constraints(
                np.zeros(10, dtype=bool),
                (None,),
                -unbounded,
                unbounded,
                np.zeros((0, 10)),
                np.zeros(0),
            ),
        )
        self._solver = EntropicSolver(problem)

    @property
    def min_mass(self) -> float:
        """Smallest payload worth reporting [kg]."""
        return self.config.min_mass or _SMALLEST_SHARE * self._robot_mass

    def loaded_problem(
        self, prior: Prior, constraints: Constraints, load: PayloadEstimate
    ) -> tuple[Prior, Constraints]:
        """Return prior and constraints of the robot that carries a load.

        The load sits outside the shape of the tool's body, so that body's bounds do not hold.
        """
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

    def base_shift(self, parameters: FloatArray) -> FloatArray:
        """Return what a load (10,) adds to the base parameters (b,)."""
        return self._map @ parameters

    def add_to(self, vector: FloatArray, parameters: FloatArray) -> FloatArray:
        """Return a full parameter vector (p,) with the load (10,) added to the tool's body."""
        loaded = vector.copy()
        loaded[self._columns] += self._to_body @ parameters
        return loaded

    def estimate(
        self,
        statistics: Statistics,
        base_vector: FloatArray,
        noise_std: FloatArray,
        base_covariance: FloatArray | None = None,
        start: FloatArray | None = None,
    ) -> PayloadEstimate:
        """Estimate the load that a model without it leaves over.

        Parameters
        ----------
        statistics : Statistics
            Of samples taken with the load.
        base_vector : (b,)
            Base parameters of the robot without the load.
        noise_std : (G,) [N·m]
            Standard deviation of the innovations per group, coloured noise accounted for.
        base_covariance : (b, b), optional
            Of `base_vector`: what is not known of the robot is not known of its load either.
        start : (10,), optional
            A load to start the iteration from.

        Raises
        ------
        EstimationError
            If rounding defeats the solver.
        """
        residual = statistics.shifted(-base_vector)
        columns = self._map[:, self._structure.columns]
        load = Statistics(
            columns.T @ residual.gram @ columns,
            residual.moment @ columns,
            residual.square,
            residual.count,
        )
        try:
            found = self._solver.solve(load, noise_std=noise_std, start=start)
        except np.linalg.LinAlgError as error:
            raise EstimationError(f"the payload's estimate failed ({error})") from error
        phi, covariance = found.parameters, found.covariance
        weight = 1.0 / noise_std**2
        if base_covariance is not None:
            gram = np.einsum("g,gij->ij", weight, statistics.gram)
            gain = covariance @ self._map.T @ gram
            covariance = covariance + gain @ base_covariance @ gain.T
        before = float(weight @ load.square)
        after = float(weight @ load.residual_square(found.base_parameters))
        central = _central(phi)
        step = 1e-6 * np.maximum(np.abs(phi), 1e-6)
        jacobian = np.stack(
            [
                (_central(phi + d) - _central(phi - d)) / (2.0 * s)
                for s, d in zip(step, np.diag(step), strict=True)
            ],
            axis=1,
        )
        std = np.sqrt(np.diag(jacobian @ covariance @ jacobian.T).clip(0.0))
        return PayloadEstimate(
            parameters=phi,
            covariance=covariance,
            mass=float(central[0]),
            mass_std=float(std[0]),
            com=central[1:4],
            com_std=std[1:4],
            inertia=central[4:],
            inertia_std=std[4:],
            explained=1.0 - after / before if before > 0.0 else 0.0,
        )
