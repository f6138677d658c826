# SPDX-License-Identifier: Apache-2.0
"""Poses the problem of rows: what is known before them, and what is asked of them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation import Prior, Problem
from sysid_core.inertia import nearest_consistent
from sysid_core.loads import Bare, expecting_loads
from sysid_core.priors import default_constraints, default_prior
from sysid_core.robot.model import Robot

__all__ = ["Posing"]


class Posing(NamedTuple):
    """What is asked of a robot's rows."""

    start: Bare | None
    """An earlier identification, whose parameters take the place of the nominal ones."""
    only: tuple[str, ...] | None  # Bodies whose inertias are free, and nothing else

    def prior(self, robot: Robot) -> Prior:
        """Return what is known of a robot before its data."""
        prior = default_prior(robot)
        if self.start is not None:
            robot.check_parameters(self.start.parameters)
            mean, layout = self.start.parameters.copy(), robot.layout
            phi = layout.inertias(mean)
            phi[:] = np.where(phi[:, :1] > 0.0, phi, layout.inertias(prior.mean))
            phi[:] = nearest_consistent(phi)
            if self.only is None:
                where = layout.nonnegative
                mean[where] = np.where(mean[where] > 0.0, mean[where], prior.mean[where])
            prior = replace(prior, mean=mean)
        if self.only is None:
            return prior
        return expecting_loads(robot, prior, np.isin(robot.layout.bodies, self.only))

    def problem(self, regression: Regression, data: Rows | Statistics) -> Problem:
        """Return the problem of rows or their statistics."""
        robot = regression.robot
        constraints = default_constraints(robot, only=self.only)
        # a load may reach beyond the body that carries it
        ellipsoids = tuple(
            None if body in (self.only or ()) else ellipsoid
            for body, ellipsoid in zip(robot.layout.bodies, constraints.ellipsoids, strict=True)
        )
        return Problem(
            robot.layout,
            regression.base,
            regression.groups,
            data if isinstance(data, Statistics) else Statistics.of(data),
            self.prior(robot),
            replace(constraints, ellipsoids=ellipsoids),
        )
