# SPDX-License-Identifier: Apache-2.0
"""What is assumed of a robot before its data speak: default priors and constraints."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.friction import FRICTION, JointScale
from sysid_core.dynamics.open_tree import random_states
from sysid_core.errors import ParameterError
from sysid_core.estimation.problem import Constraints, Prior
from sysid_core.inertia import inertia_fault
from sysid_core.parameters import COUPLING_TERMS
from sysid_core.robot.known import KnownParameters
from sysid_core.robot.limits import PLACEHOLDER_SPEED
from sysid_core.robot.model import Robot

__all__ = ["default_constraints", "default_prior", "free_parameters", "torque_scale"]

_STATES = 64
_USUAL_SPEED = 1.0
"""Speed at which viscous friction is thought to equal Coulomb friction, if no limit is known."""
_LEAST = 0.1
"""Share of a usual friction that the prior's mean has at least: URDFs hold placeholders, whose
relative standard deviation would make a usual friction impossible [-]."""
_WEAKEST = 0.15
"""Share of the strongest joint's torque that one without an effort limit has at least, as wrists
do: too much friction is unlearned sooner than too little [-]."""
_STRONGEST = 10.0
"""Factor of what a joint needs from which its effort limit is a placeholder [-]."""
_UNKNOWN_BODY_STD = 2.0
"""Relative standard deviation of a body whose URDF inertia is missing or cannot be true [-]."""


def _random_configurations(robot: Robot) -> FloatArray:
    q = random_states(robot, _STATES)[0]
    if robot.floating:
        q[:, :7] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    return q


@lru_cache(maxsize=4)  # a recording's stretches and cut-offs all ask of the same robot
def _gravity_and_inertia(robot: Robot) -> tuple[FloatArray, FloatArray]:
    """Return RMS gravity torque [N·m] and mean inertia [kg·m²] of every joint (nj,)."""
    model = robot.with_parameters(robot.consistent_nominal)
    data = model.createData()
    first = model.nv - len(robot.joint_names)
    square, inertia = np.zeros(model.nv), np.zeros(model.nv)
    for q in _random_configurations(robot):
        square += pin.computeGeneralizedGravity(model, data, q) ** 2
        inertia += np.diag(pin.crba(model, data, q))
    return np.sqrt(square / _STATES)[first:], inertia[first:] / _STATES


def torque_scale(robot: Robot) -> FloatArray:
    """Return a usual torque (nj,) [N·m] per joint: its effort limit, else what its load needs.

    A motor is as strong as those that it carries, and no weaker for a load that nothing weighs.
    """
    gravity, inertia = _gravity_and_inertia(robot)
    own = 2.0 * gravity + 10.0 * inertia  # 10 rad/s² is a lively motion
    first = robot.model.njoints - len(own)
    carried = [[j - first for j in subtree] for subtree in robot.model.subtrees[first:]]
    load = np.array([own[joints].max() for joints in carried])
    load = np.maximum(load, _WEAKEST * load.max())
    limit, most = robot.limits.effort, _STRONGEST * load
    if robot.floating:  # what legs carry is the trunk, of which their load in the air says nothing
        return np.minimum(limit, most.max())
    if (limit < gravity).any():  # a robot that cannot hold itself: its limits are placeholders
        return load
    # URDFs that mean "no limit" often say 1000 or more
    return np.where(limit <= most, limit, load)


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
    A smaller nominal value than a tenth of that is raised to it. What is held keeps the nominal
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
    torque, (_, inertia) = torque_scale(robot), _gravity_and_inertia(robot)
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
        likely = np.where(mean[joints] > 0.0, np.maximum(mean[joints], _LEAST * guess), guess)
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
