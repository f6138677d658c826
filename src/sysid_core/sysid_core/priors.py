# SPDX-License-Identifier: Apache-2.0
"""What is assumed of a robot before its data speak: default priors and constraints."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.friction import FRICTION, JointScale
from sysid_core.errors import ParameterError
from sysid_core.estimation.problem import Constraints, Prior
from sysid_core.inertia import inertia_fault
from sysid_core.parameters import COUPLING_TERMS
from sysid_core.robot.known import KnownParameters
from sysid_core.robot.limits import PLACEHOLDER_SPEED
from sysid_core.robot.model import Robot
from sysid_core.robot.strength import moved_inertia, torque_scale

__all__ = ["default_constraints", "default_prior", "free_parameters"]

_USUAL_SPEED = 1.0
"""Speed at which viscous friction is thought to equal Coulomb friction, if no limit is known."""
_LEAST = 0.1
"""Share of a usual friction below which a nominal one is a placeholder, whose relative standard
deviation would make a usual friction impossible [-]."""
_UNKNOWN_BODY_STD = 2.0
"""Relative standard deviation of a body whose URDF inertia is missing or cannot be true [-]."""


def free_parameters(robot: Robot, only: Iterable[str] | None = None) -> BoolArray:
    """Return which parameters (p,) are identified; `only` the inertias of some bodies, if given.

    The description says which bodies and friction terms; motors that are missing at passive joints
    have none.

    Raises
    ------
    ParameterError
        If a body is unknown.
    """
    layout, description = robot.layout, robot.description
    free = np.zeros(layout.size, dtype=bool)
    inertias = description.inertias
    if only is not None:
        bodies = tuple(only)
    elif isinstance(inertias, str):
        bodies = layout.bodies if inertias == "all" else ()
    else:
        bodies = inertias
    unknown = sorted(set(bodies) - set(layout.bodies))
    if unknown:
        raise ParameterError(f"no body {unknown}; the bodies are {', '.join(layout.bodies)}")
    for body in bodies:
        free[layout.body(body)] = True
    if only is None:
        for term, scale in zip(FRICTION, robot.friction_scales, strict=True):
            if term.chosen or term.name in description.friction_terms:
                free[layout.term(term.name)] = robot.actuated & (scale > 0.0)
        for name in set(description.friction_terms) & set(COUPLING_TERMS):
            free[layout.coupling_term(name)] = True
    return free


def _body_std(robot: Robot) -> FloatArray:
    settings, layout = robot.description.prior, robot.layout
    std = np.full(len(layout.bodies), settings.relative_std)
    for b, (body, phi) in enumerate(layout.bodies_of(robot.nominal).items()):
        if body in settings.confidence:
            std[b] = settings.confidence[body]
        elif inertia_fault(phi) is not None:
            std[b] = max(_UNKNOWN_BODY_STD, settings.relative_std)
    return std


def default_prior(robot: Robot) -> Prior:
    """Return what a robot's description and URDF say, with the confidence that they deserve.

    Friction that is to be identified and has no nominal value starts from a share of the joint's
    torque scale, armature from a share of the inertia that the joint moves; with the relative
    standard deviation of friction (2 by default) that is no more than an order of magnitude.
    A smaller nominal value than a tenth of that counts as none. What is held keeps the nominal
    value.

    Raises
    ------
    ParameterError
        If the description's `prior.confidence` or `identify.inertias` name an unknown body.
    """
    layout, settings = robot.layout, robot.description.prior
    unknown = sorted(set(settings.confidence) - set(layout.bodies))
    if unknown:
        raise ParameterError(
            f"prior.confidence names {unknown}; the bodies are {', '.join(layout.bodies)}"
        )
    free = free_parameters(robot)
    mean = robot.consistent_nominal.copy()
    torque, inertia = torque_scale(robot), moved_inertia(robot)
    limit = robot.limits.velocity
    speed = np.where(limit < PLACEHOLDER_SPEED, limit, _USUAL_SPEED)
    scale = JointScale(torque, np.maximum(speed, 1e-3), inertia)
    std = np.full(layout.size, settings.friction_relative_std)
    for term in FRICTION:
        joints = layout.term(term.name)
        if term.guess is None:
            std[joints] = settings.offset_std * torque
            continue
        guess = term.guess(scale)
        meant = (mean[joints] > 0.0) & (mean[joints] >= _LEAST * guess)
        likely = np.where(meant, mean[joints], guess)
        mean[joints] = np.where(free[joints], likely, mean[joints])
        if term.coupling == "none":
            continue
        for index, coupling in enumerate(robot.couplings, layout.coupling_term(term.name).start):
            if free[index] and mean[index] <= 0.0:
                mean[index] = 0.5 * float(guess[coupling.direction != 0.0].min())
    return Prior(mean, _body_std(robot), std)


def default_constraints(robot: Robot, *, only: Iterable[str] | None = None) -> Constraints:
    """Return what must hold of a robot's parameters whatever the data say.

    `only` frees the inertias of some bodies and holds everything else.

    Raises
    ------
    ParameterError
        If a body or a parameter is unknown.
    """
    layout, description = robot.layout, robot.description
    unknown = sorted(set(description.mass_bounds) - set(layout.bodies))
    if unknown:
        raise ParameterError(
            f"bounds.mass names {unknown}; the bodies are {', '.join(layout.bodies)}"
        )
    lower, upper = np.full(layout.size, -np.inf), layout.upper.copy()
    lower[layout.masses] = 0.0
    lower[layout.nonnegative] = 0.0
    for body, bounds in description.mass_bounds.items():
        index = layout.body(body).start
        if isinstance(bounds, float):
            mass = float(robot.consistent_nominal[index])
            bounds = (max(1.0 - bounds, 0.0) * mass, (1.0 + bounds) * mass)
        lower[index], upper[index] = bounds
    known = KnownParameters.of(description.relations, layout, robot.consistent_nominal)
    return Constraints(
        fixed=~free_parameters(robot, only),
        ellipsoids=robot.ellipsoids,
        lower=lower,
        upper=upper,
        linear_matrix=known.bounded,
        linear_bound=known.bound,
        total_mass=description.total_mass,
        known=(known.matrix, known.value, known.std),
    )
