# SPDX-License-Identifier: Apache-2.0
"""Decides which published parameters are used, and lets them take over without a bump."""

import math
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.friction import FRICTION
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.exchange import ParameterSet
from sysid_core.inertia import smallest_eigenvalue
from sysid_core.priors import default_prior
from sysid_core.robot import Robot
from sysid_core.robot.loop_check import random_closed_configurations
from sysid_core.robot.loops import LoopClosure
from sysid_core.robot.strength import working_limits

__all__ = ["ParameterBlend", "ParameterSizes", "likely_parameters"]

_STATES = 24  # random configurations whose torques are looked at
_ACCELERATION = 10.0  # [rad/s²] of one joint at a time, at most its velocity limit in a second

# Shares of the torque limit. A motor that spends all of it on its own friction, rotor or load has
# none left to move: what asks for more is not this robot.
_GRAVITY = 1.0
_GRAVITY_OF_NOMINAL = 1.5  # of the nominal model's, where its own is beyond the limit already
_FRICTION = 1.0  # dry and viscous at the velocity limit
_ARMATURE = 1.0  # at the acceleration above
_OFFSET = 0.25  # zero errors of torque sensors are a few hundredths
_JUMP = 1.0  # change of the torque of one motion against that of the parameters in use
_DRY = tuple(t.name for t in FRICTION if t.resists and t.unit == "N·m")  # whatever the load
_SATURATED = 1e-2  # of the speed, where a term is what it is at most
_MASS = 2.0  # of the nominal mass of a floating robot, whose legs carry it


class ParameterSizes:
    """Torques at sampled states, linear in the parameters.

    The base of a floating robot is held upright: its legs are judged by their own weight, and
    what they carry by the robot's mass.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        layout, active = robot.layout, np.flatnonzero(robot.actuated)
        limits = working_limits(robot)
        self._limit, self._speed = limits.effort, limits.velocity
        self._names = robot.actuated_names
        self._acceleration = np.minimum(_ACCELERATION, self._speed)
        q, G = _states(robot)
        tree = OpenTree(robot)
        if robot.is_tree:
            tree.set_parameters(tree.parameters, _greatest(self._speed))
        at_rest = np.zeros((len(q), robot.model.nv))
        gravity = tree.regressor(q, at_rest, at_rest)
        gravity[:, :, layout.friction] = 0.0
        self._gravity = np.swapaxes(G, 1, 2) @ gravity
        # one joint after another is accelerated, at full speed as friction sees it
        moving = []
        for j in range(len(active)):
            a = G[:, :, j] * self._acceleration[j]
            both = tree.regressor(q, at_rest, a)
            v = G[:, :, j] * self._speed[j]
            both[:, :, layout.friction] = tree.regressor(q, v, a)[:, :, layout.friction]
            moving.append(np.swapaxes(G, 1, 2) @ both)
        self._moving = np.concatenate(moving)
        nominal = robot.consistent_nominal
        own = np.abs(self._gravity @ nominal).max(axis=0)
        self._most_gravity = np.maximum(_GRAVITY * self._limit, _GRAVITY_OF_NOMINAL * own)
        self._most_mass = _MASS * float(nominal[layout.masses].sum())

    def refusal(self, vector: FloatArray, current: FloatArray) -> str:
        """Say which joint consistent parameters (p,) ask too much of; empty if none."""
        layout, active = self._robot.layout, self._robot.actuated
        viscous, armature, offset, *dry = (
            vector[layout.term(term)][active] for term in ("viscous", "armature", "offset", *_DRY)
        )
        friction = sum(dry) + viscous * self._speed
        judged = (
            ("an offset", np.abs(offset), _OFFSET * self._limit),
            ("friction at full speed", friction, _FRICTION * self._limit),
            ("a rotor's torque", armature * self._acceleration, _ARMATURE * self._limit),
            ("gravity", np.abs(self._gravity @ vector).max(axis=0), self._most_gravity),
            ("a change of torque", self._change(vector, current), _JUMP * self._limit),
        )
        for what, torque, most in judged:
            if (torque > most).any():
                j = int(np.argmax(torque / most))
                return (
                    f"{what} of {torque[j]:.3g} N·m at joint '{self._names[j]}' is more than "
                    f"{most[j]:.3g} (its torque limit is {self._limit[j]:.4g})"
                )
        mass = float(vector[layout.masses].sum())
        if self._robot.floating and mass > self._most_mass:
            return f"a mass of {mass:.3g} kg is more than {self._most_mass:.3g}"
        return ""

    def jump(self, vector: FloatArray, current: FloatArray) -> float:
        """Return the largest change of a joint's torque between two vectors, in torque limits."""
        return float((self._change(vector, current) / self._limit).max())

    def _change(self, vector: FloatArray, current: FloatArray) -> FloatArray:
        return np.abs(self._moving @ (vector - current)).max(axis=0)


def _greatest(speed: FloatArray) -> FloatArray:
    """Return scales of friction (terms, nj) at which each term counts most at full speed."""
    bends = {"sigmoid": _SATURATED * speed, "stribeck": speed / _SATURATED}
    return np.array([bends.get(term.name, np.ones_like(speed)) for term in FRICTION])


def _states(robot: Robot) -> tuple[FloatArray, FloatArray]:
    """Return configurations (n, nq), and their motion per actuated joint (n, nv, na)."""
    nv, active = robot.model.nv, np.flatnonzero(robot.actuated)
    if robot.linked:
        closure = LoopClosure(robot)
        q = np.vstack([closure.home, random_closed_configurations(closure, _STATES)])
        return q, np.array([closure.map(configuration)[0] for configuration in q])
    joints = np.random.default_rng(0).uniform(
        *robot.sampling_range, (_STATES, len(robot.joint_names))
    )
    base = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (_STATES, 1))
    q = np.hstack([base, joints]) if robot.floating else joints
    G = np.zeros((nv, len(active)))
    G[nv - len(robot.joint_names) + active, np.arange(len(active))] = 1.0
    return q, np.broadcast_to(G, (_STATES, *G.shape))


_LAGS = 6.638  # after so many lags 1 − (1 + t)·exp(−t) is 0.99
_SEQUENCE = 3  # messages in a row; the network lets one or two overtake each other
_ARRIVED = 1.0 - 1e-4
_JUMP_PER_SECOND = 1.0  # torque limits per second by which a blend changes a motion's torque


def likely_parameters(robot: Robot) -> FloatArray:
    """Return the nominal parameters (p,) with a likely armature where the robot's is not known.

    Gains act through the model's inertia: without the rotors', a wrist would hardly be held.
    Friction that is not known stays zero, since what compensates too much of it oscillates.
    """
    likely, layout = robot.consistent_nominal.copy(), robot.layout
    known = default_prior(robot).mean
    for rotors in (layout.term("armature"), layout.coupling_term("armature")):
        likely[rotors] = known[rotors]
    likely.setflags(write=False)
    return likely


class ParameterBlend:
    """The parameters in use.

    Torque is linear in the parameters, so that blending them is blending torques; and a convex
    combination of physically consistent parameters is consistent. Two lags in a row blend: they
    start level, and a target that moves on before they have arrived does not hold them up. New
    ones take over within a duration [s], up to a hundredth; longer where torques change much.

    Scales of friction move along. A term that a joint gets has its scale from the start and one
    that it loses to the end, as either grows from nothing or fades.
    """

    def __init__(self, robot: Robot, duration: float) -> None:
        self._robot = robot
        self.duration = duration
        self._nominal = likely_parameters(robot)
        self._target = self._between = self._current = self._nominal
        self._bends = (robot.friction_scales,) * 3  # As the three vectors
        self._latest: ParameterSet | None = None
        self._overtaken: list[ParameterSet] = []
        self._sizes = ParameterSizes(robot)
        self._shortest = 0.0
        self._dropped: tuple[str, float, float] | None = None
        self._share_between = 1.0
        self.share = 1.0

    @property
    def identified(self) -> bool:
        """Whether identified parameters are in use or taking over."""
        return self._latest is not None and self._latest.identified

    @property
    def revision(self) -> int:
        """Revision of the parameters in use or taking over; 0 before the first."""
        return 0 if self._latest is None else self._latest.revision

    @property
    def parameters(self) -> FloatArray:
        """Parameters (p,) in use now."""
        return self._current

    @property
    def scales(self) -> FloatArray:
        """Scales of friction that go with the parameters, as `Robot.friction_scales`."""
        return self._bends[2]

    def offer(self, offered: ParameterSet) -> Diagnostic | None:
        """Use offered parameters from now on, or say why not.

        A revision below the current one is out of date, unless it rests on newer samples or on
        none at all: then the identifier was restarted. So it was, or the current one is forged,
        where three such follow each other.
        """
        reason = self._foreign(offered) or self._outdated(offered)
        if reason and self._follows(offered):
            reason = ""
        if not reason and offered.identified:
            reason = self._unusable(offered.vector)
        if reason:
            return Diagnostic("refused", reason)
        if self._is_repeated(offered):
            return None
        self._overtaken.clear()
        target = offered.vector if offered.identified else self._nominal
        self._latest = offered
        scales = self._scales_of(offered)
        if not (np.array_equal(target, self._target) and np.array_equal(scales, self._bends[0])):
            self._move_scales(scales)
            self._shortest = self._sizes.jump(target, self._current) / _JUMP_PER_SECOND
            self._target = target.copy()
            self._share_between = self.share = 0.0
        return None

    def _scales_of(self, offered: ParameterSet) -> FloatArray:
        return self._robot.friction_scales if offered.scales is None else offered.scales

    def _move_scales(self, scales: FloatArray) -> None:
        _, between, current = self._bends
        target = np.where(scales > 0.0, scales, current)
        self._bends = (
            target,
            np.where(between > 0.0, between, target),
            np.where(current > 0.0, current, target),
        )

    def barred(self, steady: float) -> str:
        """Say why identified parameters are not taken at a steady time [s]; empty if they are."""
        if self._dropped is None or steady - self._dropped[1] > self._dropped[2]:
            return ""
        reason, since, pause = self._dropped
        return (
            f"identified ones were dropped {steady - since:.1f} s ago, since {reason}; "
            f"the nominal ones are in use for {pause:g} s"
        )

    def drop(self, reason: str, steady: float, pause: float) -> None:
        """Return to the nominal parameters at once: those in use are suspect for a reason."""
        self._dropped = reason, steady, pause
        self._target = self._between = self._current = self._nominal
        self._bends = (self._robot.friction_scales,) * 3
        self._share_between = self.share = 1.0
        self._latest = None

    def forget_history(self) -> None:
        """Take any revision as new from now on: the clock was set back."""
        if self._latest is not None:
            self._latest = replace(self._latest, revision=0, stamp=0.0)

    def advance(self, elapsed: float) -> bool:
        """Move the blend on by `elapsed` seconds; return whether the parameters changed."""
        if self.share >= 1.0:
            return False
        lag = max(self.duration, self._shortest) / _LAGS
        gain = 1.0 - math.exp(-max(elapsed, 0.0) / lag) if lag > 0.0 else 1.0
        self._between = self._between + gain * (self._target - self._between)
        self._current = self._current + gain * (self._between - self._current)
        target, between, current = self._bends
        between = between + gain * (target - between)
        self._bends = target, between, current + gain * (between - current)
        self._share_between += gain * (1.0 - self._share_between)
        self.share += gain * (self._share_between - self.share)
        if self.share > _ARRIVED:
            self._between = self._current = self._target
            self._bends = (target,) * 3
            self.share = 1.0
        return True

    def _is_repeated(self, offered: ParameterSet) -> bool:
        latest = self._latest
        return (
            latest is not None
            and offered.revision == latest.revision
            and offered.stamp == latest.stamp
            and offered.identified == latest.identified
            and np.array_equal(offered.vector, latest.vector)
            and np.array_equal(self._scales_of(offered), self._scales_of(latest))
        )

    def _foreign(self, offered: ParameterSet) -> str:
        robot = self._robot
        if offered.robot != robot.name:
            return f"parameters of robot '{offered.robot}', but this one is '{robot.name}'"
        if offered.model_hash != robot.model_hash:
            return (
                f"parameters of model {offered.model_hash or 'without hash'}, but this one is "
                f"{robot.model_hash}: start both nodes with the same robot description"
            )
        return ""

    def _outdated(self, offered: ParameterSet) -> str:
        latest = self._latest
        if latest is None or offered.revision >= latest.revision:
            return ""
        if offered.stamp > latest.stamp or offered.stamp == 0.0:
            return ""
        return f"revision {offered.revision} is older than {latest.revision}, which is in use"

    def _follows(self, offered: ParameterSet) -> bool:
        """Whether refused parameters are the newest of a sequence that somebody goes on with."""
        if self._foreign(offered):
            return False
        before = self._overtaken
        if before and (offered.revision, offered.stamp) <= (before[-1].revision, before[-1].stamp):
            before.clear()
        before.append(offered)
        del before[:-_SEQUENCE]
        return len(before) >= _SEQUENCE

    def _unusable(self, vector: FloatArray) -> str:
        layout = self._robot.layout
        if vector.shape != (layout.size,):
            return f"{vector.size} parameters, but this robot has {layout.size}"
        finite = np.isfinite(vector)
        if not finite.all():
            return f"parameter {layout.labels[int(np.argmin(finite))]} is not finite"
        eigenvalues = smallest_eigenvalue(layout.inertias(vector))
        if eigenvalues.min() <= 0.0:
            body = layout.bodies[int(np.argmin(eigenvalues))]
            return (
                f"no body can have the inertia of '{body}' "
                f"(smallest pseudo-inertia eigenvalue {eigenvalues.min():.3g})"
            )
        friction = vector[layout.nonnegative]
        if friction.min(initial=0.0) < 0.0:
            label = layout.labels[int(layout.nonnegative[int(np.argmin(friction))])]
            return f"parameter {label} is negative ({friction.min():.3g})"
        return self._sizes.refusal(vector, self._current)
