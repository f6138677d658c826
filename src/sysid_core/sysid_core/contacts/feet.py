# SPDX-License-Identifier: Apache-2.0
"""Motion and load of feet, also from joint torques alone, and checks of contact flags by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.noticed import Noticed, noticed
from sysid_core.dynamics.contact_kinematics import BASE, ContactKinematics, configuration
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.errors import ParameterError
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.rotation import normalised, rotate_into_body
from sysid_core.signals.switching import switching

__all__ = [
    "LOAD_OFF",
    "SLIP_SPEED",
    "ContactConfig",
    "FootMotion",
    "check_feet",
    "check_wrenches",
    "contact_loads",
    "foot_motion",
    "hysteresis",
    "loaded_contacts",
]


@dataclass(frozen=True)
class ContactConfig:
    """Times around contacts and their changes."""

    contact_margin: float = 0.02
    """[s]: a foot counts as in contact this long before and after its contact, too. Flags lag,
    filters smear impacts, and projecting out a force that is none only costs rows."""
    switch_margin: float = 0.005
    """[s] samples closer than this to a change of loaded contacts are left out: an impact is no
    smooth motion."""

    def __post_init__(self) -> None:
        for name in ("contact_margin", "switch_margin"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ParameterError(f"{name} must be finite and not negative, got {value}")


_DAMPING = 1e-4
"""Of the force estimate, relative to a leg's mean squared Jacobian: bounds stretched legs."""
_LOAD_ON, LOAD_OFF = 0.3, 0.15
"""Shares of the mean load at rest (weight over number of contacts) from which a contact counts as
loaded, and until below which it does. Between the two a foot that swung may stand lightly.

Between swing legs, whose estimated load is an error of the leg's model, and stance lies a wide
gap: 0.04 to 0.4 on a trotting Solo12 whose prior is 30 % off.
"""
_CHUNK = 512
SLIP_SPEED = 0.4  # A loaded contact that moves faster slips [m/s]
_SHORTEST = 10  # Forces that must be at hand before their convention is judged
_CLEARLY = 0.5
"""Another convention is meant if its error is smaller by this factor: the nominal masses that
forces from torques rest on are off by less [-]."""
_FREE_FALL = 0.5  # A base that feels more of gravity than this share is not falling [-]


class FootMotion(NamedTuple):
    """Motion and load of the contact frames over samples; NaN where a sample is not finite."""

    position: FloatArray  # (n, nc, 3) [m] of the frames' origins, in the world
    velocity: FloatArray  # (n, nc, 3) [m/s] where they touch the ground, in the world
    force: FloatArray  # (n, nc, 3) [N] on the robot, estimated from torques, in world axes
    loaded: BoolArray  # (n, nc) whether the force is a contact's
    rotation: FloatArray  # (n, nc, 3, 3) from the contact frames to the world

    @property
    def speed(self) -> FloatArray:
        """Speed (n, nc) [m/s]."""
        return np.asarray(np.linalg.norm(self.velocity, axis=2))

    def select(self, chosen: BoolArray) -> FootMotion:
        """Return the motion over the samples that a mask (n,) picks."""
        parts: tuple[Any, ...] = self
        return FootMotion(*(part[chosen] for part in parts))

    @staticmethod
    def concatenate(parts: Sequence[FootMotion]) -> FootMotion:
        """Return the motions of several parts as one."""
        columns: Any = zip(*parts, strict=True)
        return FootMotion(*map(np.concatenate, columns))


def foot_motion(
    robot: Robot, samples: Samples, parameters: FloatArray | None = None
) -> FootMotion:
    """Return how the contact frames move, and what they carry by parameters (p,) or the nominal.

    Raises
    ------
    DataError
        If odometry is missing.
    """
    kinematics = ContactKinematics(robot)
    state = configuration(robot, samples)
    torque = np.where(robot.actuated, samples.effort, 0.0)
    missing = OpenTree(robot, parameters=parameters).torques(*state)[:, BASE:] - torque
    shape = (len(samples), len(kinematics.names), 3)
    position, velocity, force = np.full((3, *shape), np.nan)
    rotation = np.full((*shape, 3), np.nan)
    finite = np.flatnonzero(np.isfinite(state.q).all(axis=1))
    for start in range(0, len(finite), _CHUNK):
        chosen = finite[start : start + _CHUNK]
        geometry = kinematics.evaluate(state.q[chosen])
        position[chosen], rotation[chosen] = geometry.position, geometry.rotation
        linear = kinematics.at_ground(geometry.jacobian)[:, :, :3]
        velocity[chosen] = np.einsum("ncij,nj->nci", linear, state.v[chosen])
        force[chosen] = _contact_forces(kinematics, geometry.jacobian, missing[chosen])
    return FootMotion(position, velocity, force, loaded_contacts(robot, force), rotation)


def _contact_forces(
    kinematics: ContactKinematics, jacobian: FloatArray, missing: FloatArray
) -> FloatArray:
    """Estimate the force (n, nc, 3) [N] on the robot at every contact, in world axes.

    Damped least squares of ``J_jᵀ f = (Y x)_j − τ``, the torques (n, nj) [N·m] that are `missing`
    for the motion, with the contacts' Jacobians (n, nc, 6, nv). A leg's own joints see its foot's
    force and the leg's inertia, but not the trunk's: the estimate hardly depends on how well the
    heavy trunk is known.
    """
    active = np.ones(len(kinematics.names), dtype=bool)
    first = np.cumsum([0, *np.where(kinematics.flat, 6, 3)[:-1]])
    J = kinematics.constraint_rows(jacobian, active)[:, :, BASE:]
    gram = J @ np.swapaxes(J, 1, 2)
    diagonal = np.arange(gram.shape[1])
    mean = np.trace(gram, axis1=1, axis2=2) / len(diagonal)
    gram[:, diagonal, diagonal] += _DAMPING * mean[:, None]
    solved = np.linalg.solve(gram, J @ missing[:, :, None])[:, :, 0]
    return np.asarray(solved[:, first[:, None] + np.arange(3)])


def hysteresis(values: FloatArray, on: float, off: float) -> BoolArray:
    """Switch on (n, nc) where values (n, nc) reach `on`, off where they fall below `off`.

    Between the thresholds, and where a value is NaN, the last state holds; at the start the
    state is on above the middle of the thresholds.
    """
    decided = np.where(values >= on, 1, np.where(values < off, 0, -1))
    if len(values):
        first = values[0] >= 0.5 * (on + off)
        decided[0] = np.where(decided[0] < 0, first, decided[0])
    last = np.where(decided >= 0, np.arange(len(values))[:, None], 0)
    last = np.maximum.accumulate(last, axis=0)
    return np.take_along_axis(decided, last, axis=0).astype(bool)


def contact_loads(robot: Robot, forces: FloatArray) -> FloatArray:
    """Return what contacts carry by their forces, (n, nc) [-] of their mean load at rest.

    Raises
    ------
    ParameterError
        If the robot has no weight: there is no scale to compare forces with.
    """
    gravity = np.array(robot.description.gravity)
    size = float(np.linalg.norm(gravity))
    weight = size * float(robot.consistent_nominal[robot.layout.masses].sum())
    if weight <= 0.0:
        raise ParameterError(
            "contacts cannot be estimated from torque without gravity; give flags"
        )
    return np.asarray(forces @ (-gravity / size) * (forces.shape[1] / weight))


def loaded_contacts(robot: Robot, forces: FloatArray) -> BoolArray:
    """Return which contacts (n, nc) carry load; see `contact_loads`."""
    return hysteresis(contact_loads(robot, forces), _LOAD_ON, LOAD_OFF)


def check_feet(
    robot: Robot, samples: Samples, motion: FootMotion, config: ContactConfig | None = None
) -> tuple[Noticed, ...]:
    """Check contact flags against motion and load.

    Finds contacts that carry load without a flag, flags of feet that swing, slipping feet,
    samples in flight, and flight that the base's acceleration contradicts.
    """
    if samples.contacts is None:
        return ()
    config = config or ContactConfig()
    flags = samples.contacts
    names = [contact.name for contact in robot.description.contacts]
    fast = motion.speed > SLIP_SPEED
    near = switching(samples.time, motion.loaded, config.switch_margin)[:, None]
    found = []
    for kind, wrong, message, hint in (
        (
            "contact_missed",
            ~flags & motion.loaded & ~near,
            "carries load without a contact flag in {share} of the samples",
            "it is treated as in contact there",
        ),
        (
            "contact_false",
            flags & ~motion.loaded & fast & ~near,
            "is flagged as in contact while it swings in {share} of the samples",
            "this costs rows: mend its flags, or leave all of them out",
        ),
        (
            "slip",
            flags & motion.loaded & fast & ~near,
            f"slips (faster than {SLIP_SPEED:g} m/s under load) in {{share}} of the samples",
            "odometry that rests on fixed feet is wrong there",
        ),
    ):
        for c in np.flatnonzero(wrong.any(axis=0)):
            subject = f"contact {names[c]}"
            found.append(noticed(kind, message, wrong[:, c], hint=hint, subject=subject))
    return tuple(found + _check_flight(robot, samples, flags | motion.loaded))


def check_wrenches(samples: Samples, motion: FootMotion) -> tuple[Noticed, ...]:
    """Compare measured forces with those that torques tell, in other conventions as well."""
    if samples.wrenches is None:
        return ()
    force = samples.wrenches[:, :, :3]
    measured: BoolArray = np.asarray(np.isfinite(samples.wrenches).all(axis=2))
    compared = motion.loaded & measured
    if compared.sum() < _SHORTEST:
        return ()
    turned = np.einsum("ncij,ncj->nci", motion.rotation, force)
    told, world, seen = turned[compared], force[compared], motion.force[compared]
    own = float(np.linalg.norm(told - seen))
    others = {
        "in the world's axes": world,
        "on the ground instead of on the robot": -told,
        "on the ground, in the world's axes": -world,
    }
    errors = {name: float(np.linalg.norm(other - seen)) for name, other in others.items()}
    likeliest = min(errors, key=lambda name: errors[name])
    if not errors[likeliest] < _CLEARLY * own:
        return ()
    share = own / max(float(np.linalg.norm(seen)), 1e-300)
    best = errors[likeliest] / max(float(np.linalg.norm(seen)), 1e-300)
    message = (
        f"the contacts' wrenches look as if they were {likeliest}: they differ from what torques "
        f"tell by {100.0 * share:.0f} % as they come, by {100.0 * best:.0f} % that way; they are "
        "not used"
    )
    hint = "publish what acts on the robot, in the axes of each contact's frame"
    concerned = np.asarray(measured.any(axis=1))
    return (noticed("wrench_convention", message, concerned, hint=hint),)


def _check_flight(robot: Robot, samples: Samples, contacts: BoolArray) -> list[Noticed]:
    flight = ~contacts.any(axis=1)
    if not flight.any() or samples.base_pose is None:
        return []
    felt = _specific_force(robot, samples) > _FREE_FALL * np.linalg.norm(robot.description.gravity)
    doubtful = flight & felt
    found = []
    if (flight & ~doubtful).any():
        found.append(
            noticed(
                "flight",
                "no foot touches the ground in {share} of the samples; all equations of motion "
                "are used there",
                flight & ~doubtful,
            )
        )
    if doubtful.any():
        found.append(
            noticed(
                "flight_doubtful",
                "neither flags nor torques show a contact in {share} of the samples, but the base "
                "does not fall; these samples are left out",
                doubtful,
                hint="check contacts and torques",
            )
        )
    return found


def _specific_force(robot: Robot, samples: Samples) -> FloatArray:
    """Return what an accelerometer on the base would feel (n,) [m/s²]."""
    twist, rate = np.asarray(samples.base_twist), np.asarray(samples.base_acceleration)
    quaternion = np.asarray(samples.base_pose)[:, 3:]
    known = np.isfinite(quaternion).all(axis=1)
    felt = np.zeros(len(samples))
    gravity = np.tile(robot.description.gravity, (int(known.sum()), 1))
    proper = rate[known, :3] + np.cross(twist[known, 3:], twist[known, :3])
    proper -= rotate_into_body(normalised(quaternion[known]), gravity)
    felt[known] = np.linalg.norm(proper, axis=1)
    return felt
