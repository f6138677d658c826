# SPDX-License-Identifier: Apache-2.0
"""Judges parameters by the torques they ask for, against the joints' torque limits."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.robot import Robot
from sysid_core.robot.loop_check import random_closed_configurations
from sysid_core.robot.loops import LoopClosure

__all__ = ["ParameterSizes"]

_STATES = 24  # random configurations whose torques are looked at
_ACCELERATION = 10.0  # [rad/s²] of one joint at a time, at most its velocity limit in a second
_USUAL_VELOCITY = 1.0  # [rad/s] where no limit is known

# Shares of the torque limit. A motor that spends all of it on its own friction, rotor or load has
# none left to move: what asks for more is not this robot.
_GRAVITY = 1.0
_GRAVITY_OF_NOMINAL = 1.5  # of the nominal model's, where its own is beyond the limit already
_FRICTION = 1.0  # dry and viscous at the velocity limit
_ARMATURE = 1.0  # at the acceleration above
_OFFSET = 0.25  # zero errors of torque sensors are a few hundredths
_JUMP = 1.0  # change of the torque of one motion against that of the parameters in use
_MASS = 2.0  # of the nominal mass of a floating robot, whose legs carry it


class ParameterSizes:
    """Torques at sampled states, linear in the parameters.

    The base of a floating robot is held upright: its legs are judged by their own weight, and
    what they carry by the robot's mass.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        layout, active = robot.layout, np.flatnonzero(robot.actuated)
        limit = robot.limits.effort[active]
        self._limit = np.where(limit > 0.0, limit, np.inf)
        self._names = robot.actuated_names
        speed = robot.limits.velocity[active]
        self._speed = np.where(np.isfinite(speed), speed, _USUAL_VELOCITY)
        self._acceleration = np.minimum(_ACCELERATION, self._speed)
        q, G = _states(robot)
        tree = OpenTree(robot)
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
        """Say which joint parameters (p,) ask too much of; empty if none.

        Parameters
        ----------
        vector : (p,)
            Physically consistent.
        current : (p,)
            Parameters in use.
        """
        layout, active = self._robot.layout, self._robot.actuated
        viscous, coulomb, sigmoid, stribeck, armature, offset = (
            vector[layout.term(term)][active]
            for term in ("viscous", "coulomb", "sigmoid", "stribeck", "armature", "offset")
        )
        friction = coulomb + sigmoid + stribeck + viscous * self._speed
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


def _states(robot: Robot) -> tuple[FloatArray, FloatArray]:
    """Return configurations (n, nq), and their motion per actuated joint (n, nv, na)."""
    nv, active = robot.model.nv, np.flatnonzero(robot.actuated)
    if robot.description.loops:
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
