# SPDX-License-Identifier: Apache-2.0
"""What the identifier publishes: parameters to messages and back, its status, payloads."""

from collections.abc import Sequence

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.friction import FRICTION
from sysid_core.errors import DataError, ParameterError
from sysid_core.exchange import ParameterSet
from sysid_core.online.payload_estimate import PayloadEstimate
from sysid_core.online.update import Update
from sysid_core.parameters import COUPLING_TERMS, FRICTION_TERMS, INERTIAL_TERMS
from sysid_core.robot.model import Robot
from sysid_msgs.msg import DynamicParameters, IdentificationStatus, Payload
from sysid_ros.fields import doubles, known_doubles, nanoseconds, rows, stamp, vector

__all__ = ["parameters_from_message", "parameters_message", "payload_message", "status_message"]


_CHOSEN = {term.name + of for term in FRICTION if term.chosen for of in ("", "_scale")}
"""Arrays that are empty where no joint has the term."""


def _known(value: float) -> float:
    """Return a number for a message: 0 where it is unknown."""
    return value if np.isfinite(value) else 0.0


def parameters_message(update: Update) -> DynamicParameters:
    """Return the parameters in use as a message."""
    robot, layout = update.robot, update.robot.layout
    message = DynamicParameters()
    message.header.stamp = stamp(update.time)
    message.robot = robot.name
    message.model_hash = robot.model_hash
    message.revision = update.revision
    message.identified = update.identified
    message.r2 = _known(update.scores.r2)
    message.bodies = list(layout.bodies)
    message.inertial = doubles(update.parameters[layout.inertial])
    message.inertial_std = known_doubles(update.std[layout.inertial])
    message.consistency = doubles(update.consistency_bodies)
    message.joints = list(layout.joints)
    message.couplings = list(layout.couplings)
    for term in FRICTION_TERMS:
        setattr(message, term, doubles(update.parameters[layout.term(term)]))
        setattr(message, f"{term}_std", known_doubles(update.std[layout.term(term)]))
    for friction, scales in zip(FRICTION, robot.friction_scales, strict=True):
        if friction.chosen:
            setattr(message, f"{friction.name}_scale", doubles(scales))
    for term in COUPLING_TERMS:
        values = update.parameters[layout.coupling_term(term)]
        setattr(message, f"coupling_{term}", doubles(values))
    return message


def parameters_from_message(message: DynamicParameters, robot: Robot) -> ParameterSet:
    """Return published parameters in the order of a robot's layout.

    Those of another robot or model come without their numbers: they are to be refused as such.

    Raises
    ------
    ParameterError
        If bodies or joints are missing or unknown, or numbers are missing or not finite.
    """
    time = 1e-9 * nanoseconds(message.header.stamp)
    identity = (message.robot, message.model_hash, int(message.revision), time)
    foreign = message.robot != robot.name or message.model_hash != robot.model_hash
    if foreign or not message.identified:
        return ParameterSet(*identity, bool(message.identified), np.zeros(0))
    try:
        width = len(INERTIAL_TERMS)
        inertial = rows(message.inertial, len(message.bodies), width, "inertial")
        friction = _terms(message, message.joints, FRICTION_TERMS)
        coupling = _terms(message, message.couplings, COUPLING_TERMS, "coupling_")
        bodies = dict(zip(message.bodies, inertial, strict=True))
        vector = robot.layout.assemble(bodies, friction, coupling)
        return ParameterSet(*identity, True, vector, _scales(message, robot))
    except DataError as error:
        raise ParameterError(str(error)) from error


def _numbers(message: DynamicParameters, name: str, count: int) -> FloatArray:
    """Return a term's numbers (count,): of a chosen one zeros, where nothing was chosen."""
    values = getattr(message, name)
    if name in _CHOSEN and not len(values):
        return np.zeros(count)
    return rows(values, count, 1, name)[:, 0]


def _scales(message: DynamicParameters, robot: Robot) -> FloatArray:
    """Return the friction's scales in the shape of `Robot.friction_scales`."""
    order = [message.joints.index(name) for name in robot.joint_names]
    scales = robot.friction_scales.copy()
    for own, term in zip(scales, FRICTION, strict=True):
        if not term.chosen:
            continue
        name = f"{term.name}_scale"
        given = _numbers(message, name, len(message.joints))[order]
        possible = given >= 0.0 if term.scale_unit != "-" else (given == 0.0) | (given == 1.0)
        if not (possible & np.isfinite(given)).all():
            raise ParameterError(f"{name} is {given.tolist()}, which no friction has")
        if given.any() and not robot.is_tree:
            raise ParameterError(f"{name} is given, but '{robot.name}' cannot have such friction")
        own[:] = given
    return scales


def _terms(
    message: DynamicParameters, names: Sequence[str], terms: Sequence[str], prefix: str = ""
) -> dict[str, dict[str, float]]:
    """Return the terms of each name from the arrays that a message has by term."""
    values = {term: _numbers(message, prefix + term, len(names)).tolist() for term in terms}
    return {name: {term: values[term][i] for term in terms} for i, name in enumerate(names)}


def status_message(
    robot: Robot,
    groups: Sequence[str],
    update: Update,
    *,
    frozen: bool,
    lost: int,
    solve_time: float,
) -> IdentificationStatus:
    """Return what the identifier knows as a message; unknown numbers are 0."""
    message = IdentificationStatus()
    message.header.stamp = stamp(update.time)
    message.robot = robot.name
    message.state = int(update.state)
    message.reasons = list(update.reasons)
    message.warnings = list(update.warnings)
    message.revision = update.revision
    message.frozen = frozen
    scores = update.scores
    message.r2 = _known(scores.r2)
    message.joints = list(groups)
    message.r2_joints = doubles(scores.candidate.r2)
    message.rmse_joints = doubles(scores.candidate.rmse)
    message.rmse_nominal_joints = doubles(scores.nominal.rmse)
    message.samples = update.samples
    message.window_samples = update.window_samples
    message.window_duration = update.window_duration
    message.window_fill = update.fill
    message.condition = _known(update.condition)
    message.determined = update.determined
    message.consistency = _known(update.consistency)
    if update.estimate is not None:
        message.optimality = float(update.estimate.optimality)
        message.iterations = update.estimate.iterations
    message.solve_time = solve_time
    message.rejected_samples = update.rejected
    message.lost_samples = lost
    return message


def payload_message(
    robot: Robot, frame: str, estimate: PayloadEstimate, update: Update
) -> Payload:
    """Return a payload estimate as a message."""
    message = Payload()
    message.header.stamp = stamp(update.time)
    message.header.frame_id = frame
    message.robot = robot.name
    message.attached = update.payload_attached
    message.detected_after = update.detected_after
    message.mass = estimate.mass
    message.mass_std = estimate.mass_std
    message.com = vector(estimate.com)
    message.com_std = vector(estimate.com_std)
    message.inertia = estimate.inertia
    message.inertia_std = estimate.inertia_std
    message.parameters = estimate.parameters
    return message
