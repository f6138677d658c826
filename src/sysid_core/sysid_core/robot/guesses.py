# SPDX-License-Identifier: Apache-2.0
"""What a URDF and a recording suggest about a robot: feet, a free base, tool, joints to lock."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import RobotError
from sysid_core.recording import Recording
from sysid_core.robot.description import Mimic
from sysid_core.robot.model import Robot
from sysid_core.robot.strength import working_limits
from sysid_core.robot.urdf import Urdf

__all__ = [
    "Fitted",
    "Foot",
    "about_followers",
    "about_limits",
    "feet_of",
    "fit_to",
    "floats",
    "frictionless",
    "tool_of",
]

_TOOL = re.compile(r"tool|flange|tcp|(^|_)ee($|_)|end_?effector|hand|gripper", re.IGNORECASE)
_FOOT = re.compile(r"foot|feet|toe|sole|ankle|contact", re.IGNORECASE)
_SENSOR = re.compile(r"imu|sensor|camera", re.IGNORECASE)
_ROOTED = re.compile(r"world|map|odom|footprint|palm|hand|gripper|table", re.IGNORECASE)
_LIMBS = 3  # A root that carries as many limbs is taken for a trunk that walks or flies
_FEET = 2  # Legs with feet that make a robot stand on them
_LEG = 2  # Joints of a leg at least
_ANKLED = 5  # Joints of a leg whose foot is flat: three place it, the others turn it on the ground
_STILL = 1e-2  # A joint without effort that moves less [rad] can be locked without error


class Foot(NamedTuple):
    """A link that may touch the ground, and the ball at its end, if it has one [m]."""

    link: str
    type: str
    xyz: FloatArray
    radius: float


@dataclass(frozen=True)
class Fitted:
    """What a recording says of a robot."""

    locked: Mapping[str, float]  # [rad]
    names: Mapping[str, str]  # Recorded name of a joint → the URDF's
    position: Mapping[str, float]  # [rad] median of every recorded joint
    moving: frozenset[str]  # Joints that move and have efforts
    notes: tuple[str, ...]


def _ends(robot: Robot) -> list[tuple[int, list[str]]]:
    """Return the joints at the ends of all limbs, each with the links that hang on it."""
    model = robot.model
    return [
        (i, [f.name for f in model.frames if f.parentJoint == i and f.name in robot.urdf.links])
        for i in range(1, model.njoints)
        if len(model.subtrees[i]) == 1
    ]


def _length(robot: Robot, joint: int) -> int:
    """Return how many joints lead from the root to a joint, itself included; no free base."""
    count = 0
    while joint > int(robot.floating):
        joint, count = robot.model.parents[joint], count + 1
    return count


def feet_of(robot: Robot) -> list[Foot]:
    """Return the feet at the ends of the legs, by their names."""
    feet = []
    for end, links in _ends(robot):
        named = [n for n in links if _FOOT.search(n) and not _SENSOR.search(n)]
        length = _length(robot, end)
        if not named or length < _LEG:
            continue
        link, flat = named[-1], length >= _ANKLED
        xyz, radius = (np.zeros(3), 0.0) if flat else _ball(robot.urdf, link)
        feet.append(Foot(link, "flat" if flat else "point", xyz, radius))
    return feet


def _ball(urdf: Urdf, link: str) -> tuple[FloatArray, float]:
    """Return the centre and radius [m] of the ball that a foot's collision shape is, if any."""
    for shape in urdf.links[link].collisions:
        half = shape.half_extents
        if np.ptp(half) <= 1e-9:
            return np.array(shape.pose.translation), float(half[0])
    return np.zeros(3), 0.0


def _limbs(robot: Robot) -> int:
    """Return how many chains of two joints or more, wheels left out, hang on the root."""
    model, joints = robot.model, robot.urdf.joints
    starts = [i for i in range(1, model.njoints) if model.parents[i] == 0]
    return sum(
        joints[model.names[i]].type != "continuous" and len(model.subtrees[i]) > 1 for i in starts
    )


def floats(robot: Robot, notes: list[str]) -> bool:
    """Guess whether the base is free, from what hangs on the root."""
    root = robot.urdf.root
    if _ROOTED.search(root):
        return False
    limbs, feet = _limbs(robot), len(feet_of(robot))
    if limbs < _LIMBS and feet < _FEET:
        return False
    what = f"{limbs} limbs hang" if limbs >= _LIMBS else f"{feet} legs with feet hang"
    notes.append(
        f"{what} on '{root}': the base is taken as floating; use --fixed if it is bolted down"
    )
    return True


def tool_of(robot: Robot) -> str:
    """Return the frame for payloads: the most outward one named so, else the trunk's or last."""
    if robot.floating:
        named = [n for _, links in _ends(robot) for n in links if _TOOL.search(n)]
        return named[0] if named else robot.urdf.root
    model = robot.model
    last = model.frames[model.getFrameId(robot.tool_frame)].parentJoint
    names = [f.name for f in model.frames if f.parentJoint == last and f.name in robot.urdf.links]
    named = [n for n in names if _TOOL.search(n)]
    return named[-1] if named else robot.tool_frame


def about_limits(robot: Robot) -> list[str]:
    """Say whose limits of velocity and effort cannot be meant."""
    limits, working = robot.limits.of_joints(robot.actuated), working_limits(robot)
    notes = []
    for kind in ("velocity", "effort"):
        most, assumed = getattr(limits, kind), getattr(working, kind)
        beyond = np.isfinite(most) & (most != assumed)
        if beyond.any():
            names = ", ".join(np.array(robot.actuated_names)[beyond])
            notes.append(
                f"the {kind} limits of {names} are taken for placeholders; they are driven with "
                f"{assumed[beyond].min():.3g} to {assumed[beyond].max():.3g}, if at all: give "
                f"theirs under limits.{kind}"
            )
    return notes


def frictionless(robot: Robot, notes: list[str]) -> dict[str, dict[str, float]]:
    """Return the friction terms by joint that no motor could overcome, each as zero.

    Simulators' URDFs have such placeholders. Viscous friction counts at the joint's top speed.
    """
    working, layout = working_limits(robot), robot.layout
    found: dict[str, dict[str, float]] = {}
    for term, speed in (
        ("coulomb", np.ones_like(working.velocity)),
        ("viscous", working.velocity),
    ):
        torque = robot.nominal[layout.term(term)][robot.actuated] * speed
        for j in np.flatnonzero(torque > working.effort):
            found.setdefault(robot.actuated_names[j], {})[term] = 0.0
    if found:
        notes.append(
            f"the URDF's friction of {', '.join(found)} is more than their motors can overcome: "
            "it is taken for a placeholder, and as unknown; give theirs under friction.nominal"
        )
    return found


def about_followers(
    mimics: Mapping[str, Mimic], locked: Mapping[str, float], moving: Mapping[str, Mimic]
) -> list[str]:
    """Say which joints that mimic others are locked, and which follow their leaders."""
    notes = []
    held = [f"{joint} at {locked[joint]:.4g}" for joint in mimics if joint not in moving]
    if held:
        where = ", ".join(held)
        notes.append(f"joints that mimic others are locked where their leaders put them: {where}")
    if moving:
        notes.append(
            f"{', '.join(moving)} follow their leaders; lock both where they matter little: "
            "friction terms are chosen for robots without followers only"
        )
    return notes


def fit_to(recording: Recording, robot: Robot) -> Fitted:
    """Say which joints of a robot a recording lacks, and which of its names mean which joint.

    Raises
    ------
    RobotError
        If no name of the recording can be a joint of the robot.
    """
    names = _matched(recording.joint_names, robot.joint_names)
    column = {names.get(given, given): i for i, given in enumerate(recording.joint_names)}
    if not set(column) & set(robot.joint_names):
        raise RobotError(
            f"none of its joints ({', '.join(robot.joint_names[:6])}, …) is in the recording, "
            f"which has {', '.join(recording.joint_names[:6])}, …; give the robot's own URDF",
            source=str(robot.urdf.path),
        )
    notes: list[str] = []
    locked: dict[str, float] = {}
    position: dict[str, float] = {}
    moves: list[str] = []
    moving: set[str] = set()
    for j, joint in enumerate(robot.joint_names):
        neutral = float(np.clip(0.0, robot.limits.lower[j], robot.limits.upper[j]))
        values = recording.position[:, column[joint]] if joint in column else np.zeros(0)
        values = values[np.isfinite(values)]
        where = float(np.median(values)) if len(values) else neutral
        position[joint] = where
        effort = recording.effort
        if joint in column and effort is not None and np.isfinite(effort[:, column[joint]]).any():
            moving |= {joint} if np.ptp(values) > _STILL else set()
            continue
        locked[joint] = where
        if len(values) and np.ptp(values) > _STILL:
            moves.append(joint)
    if locked and len(locked) < len(robot.joint_names):
        notes.append(f"locked, since the recording lacks their effort: {', '.join(locked)}")
    elif locked:
        notes.append("the recording has no efforts, so nothing can be identified from it")
        locked, moves = {}, []
    if moves:
        notes.append(
            f"{', '.join(moves)} move without a recorded effort, for which locking does not "
            "allow: let the driver publish it"
        )
    if names:
        pairs = ", ".join(f"{given} as {joint}" for given, joint in names.items())
        notes.append(f"recorded joints are taken by the ends of their names: {pairs}")
    return Fitted(locked, names, position, frozenset(moving), tuple(notes))


def _matched(given: Sequence[str], joints: Sequence[str]) -> dict[str, str]:
    """Return the joint that each unknown name means: the only one that it ends in, or begins."""
    unknown = [name for name in given if name not in joints]
    left = [joint for joint in joints if joint not in given]
    found: dict[str, str] = {}
    for name in unknown:
        fits = [j for j in left if name.endswith((f"_{j}", f"/{j}")) or j.endswith(f"_{name}")]
        if len(fits) == 1 and fits[0] not in found.values():
            found[name] = fits[0]
    return found
