# SPDX-License-Identifier: Apache-2.0
"""Arms with wrong nominal models whose torques are Pinocchio's, with friction that no model has.

Nothing here knows a regressor: the true bodies are altered in Pinocchio's own model, and friction
falls with speed and grows with load, which the identified friction law does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from bench.arms import chain_urdf, robot_of, wide_motion
from sysid_core.arrays import FloatArray
from sysid_core.excitation.fourier import FourierMotion, quintic_step
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.export import model_files, write_model

__all__ = ["ARMS", "RATE", "Load", "Motion", "Plant", "arm", "loaded"]

ARMS = ("panda", "ur10", "chain")

RATE = 200.0  # [Hz]
_LEARNED_ON, _LEARNED = 3, 20.0  # motion, and so many seconds of it, that `identified` learns from
_PERIOD, _SPEED = 10.0, 0.6  # [s, share of the limits]
_SPREAD = 0.2  # masses and inertias are off by up to this share
_LEVER = 0.01  # [m] deviation of centres of mass
_DRY, _VISCOUS = 0.02, 0.02  # of the effort limit; the latter at the velocity limit
_STRIBECK, _STRIBECK_SPEED = 0.2, 0.1  # of the dry friction; [rad/s]
_LOAD_FRICTION = 0.03  # of the rigid torque
_ROTOR = 1e-3  # [kg·m² per N·m of effort limit]
_POSITION_NOISE, _TORQUE_NOISE = 1e-5, 0.01  # [rad; of the root mean square torque]


class Load(NamedTuple):
    """A load at the tool frame: mass [kg], centre of mass (3,) [m], radius of gyration [m]."""

    mass: float
    com: tuple[float, float, float]
    radius: float = 0.04


def loaded(model: pin.Model, robot: Robot, load: Load) -> pin.Model:
    """Return a copy of a robot's model with a load."""
    model, frame = model.copy(), robot.frame(robot.tool_frame)
    ball = load.mass * load.radius**2 * np.eye(3)
    held = pin.Inertia(load.mass, np.array(load.com), ball)
    model.appendBodyToJoint(frame.parentJoint, held, frame.placement)
    return model


class Motion(NamedTuple):
    """Positions, velocities and accelerations (n, nj) at times (n,) [s]."""

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


@cache
def arm(name: str) -> Robot:
    """Return a robot by name; ``chain`` is an arm of six joints made here."""
    if name != "chain":
        return load_robot(name)
    return robot_of("chain", chain_urdf(6, 3))


class Plant:
    """One arm as it really is."""

    def __init__(self, robot: Robot, seed: int) -> None:
        self.robot, self._seed = robot, seed
        rng = np.random.default_rng(seed)
        self._nominal: pin.Model = robot.with_parameters(robot.nominal)
        self._true = self._nominal.copy()
        for body in self._true.inertias:
            body.mass *= rng.uniform(1.0 - _SPREAD, 1.0 + _SPREAD)
            body.inertia = body.inertia * rng.uniform(1.0 - _SPREAD, 1.0 + _SPREAD)
            body.lever = body.lever + rng.normal(0.0, _LEVER, 3)
        limit, speed = robot.limits.effort, robot.limits.velocity
        count = len(limit)
        self._dry = _DRY * limit * rng.uniform(0.5, 1.5, count)
        self._viscous = _VISCOUS * limit / speed * rng.uniform(0.5, 1.5, count)
        has_rotors = "armature" in robot.description.friction_terms
        self._rotors = _ROTOR * limit * rng.uniform(0.5, 1.5, count) * has_rotors

    def motion(self, number: int) -> FourierMotion:
        """Return one of this plant's wide motions."""
        rng = np.random.default_rng([self._seed, number])
        return wide_motion(self.robot, rng, _PERIOD, speed=_SPEED)

    def states(
        self, number: int, start: float, stop: float, size: FloatArray | float = 1.0
    ) -> Motion:
        """Return a wide motion, its amplitudes scaled by `size` about where it begins."""
        motion = self.motion(number)
        time = np.arange(round(start * RATE), round(stop * RATE)) / RATE
        q, v, a = motion.states(time)
        first = motion.states(np.zeros(1)).position
        return Motion(time, first + size * (q - first), size * v, size * a)

    def changing(self, when: float, stop: float) -> Motion:
        """Return a wide motion that turns into another one within the second about a time [s]."""
        one, other = (self.states(number, 0.0, stop) for number in (0, 2))
        share, rate, bend = (x[:, None] for x in quintic_step(one.time - when + 0.5))
        q, v, a = (then - now for now, then in zip(one[1:], other[1:], strict=True))
        return Motion(
            one.time,
            one.position + share * q,
            one.velocity + share * v + rate * q,
            one.acceleration + share * a + 2.0 * rate * v + bend * q,
        )

    def torque(self, motion: Motion, load: Load | None = None) -> FloatArray:
        """Return the true torques (n, nj) [N·m]."""
        model = self._true
        if load is not None:
            model = loaded(model, self.robot, load)
        v, a = motion.velocity, motion.acceleration
        rigid = _rnea(model, motion)
        stribeck = 1.0 + _STRIBECK * np.exp(-((v / _STRIBECK_SPEED) ** 2))
        dry = self._dry * stribeck + _LOAD_FRICTION * np.abs(rigid)
        found: FloatArray = rigid + dry * np.sign(v) + self._viscous * v + self._rotors * a
        return found

    def recording(
        self, motion: Motion, torque: FloatArray, changed: Mapping[int, FloatArray] | None = None
    ) -> Recording:
        """Return what the driver would publish; `changed` replaces the torques of some joints."""
        rng = np.random.default_rng([self._seed, 99])
        size = np.sqrt(np.mean(torque**2, axis=0))
        effort = torque + _TORQUE_NOISE * size * rng.normal(size=torque.shape)
        for joint, values in (changed or {}).items():
            effort[:, joint] = values
        position = motion.position + _POSITION_NOISE * rng.normal(size=torque.shape)
        return Recording(
            motion.time, self.robot.joint_names, position, None, effort, source=self.robot.name
        )

    def identified(self) -> Robot:
        """Return the robot as `sysid identify` describes it from another motion."""
        motion = self.states(_LEARNED_ON, 0.0, _LEARNED)
        recording = self.recording(motion, self.torque(motion))
        found = identify(self.robot, recording, IdentifyConfig(train=1.0))
        with TemporaryDirectory() as folder:
            parameters, cutoff = found.estimate.parameters, found.signals.cutoff
            write_model(found.robot, parameters, Path(folder), cutoff)
            return load_robot(Path(folder) / model_files(self.robot)[1])

    def wide_error(self, parameters: FloatArray, friction: _Terms | None = None) -> float:
        """Return a model's error on another wide motion, relative to the nominal model's.

        `friction` are terms of the model beside the least: joint → term → scale.
        """
        motion = Motion(*(values[::10] for values in self.states(1, 0.0, _PERIOD)))
        true = self.torque(motion)
        nominal = np.linalg.norm(self._predicted(self.robot.nominal, motion, {}) - true)
        model = self._predicted(parameters, motion, friction or {})
        return float(np.linalg.norm(model - true) / nominal)

    def _predicted(self, parameters: FloatArray, motion: Motion, friction: _Terms) -> FloatArray:
        """Return a model's torques (n, nj): rigid bodies, the least friction law and more."""
        layout = self.robot.layout
        term = {name: parameters[layout.term(name)] for name in _TERMS}
        v, a = motion.velocity, motion.acceleration
        rigid = _rnea(self.robot.with_parameters(parameters), motion)
        found: FloatArray = rigid + term["coulomb"] * np.sign(v) + term["viscous"] * v
        found += term["armature"] * a + term["offset"]
        for joint, scales in friction.items():
            j = self.robot.joint_names.index(joint)
            for name, scale in scales.items():
                column = _chosen(name, scale, rigid[:, j], motion.position[:, j], v[:, j])
                found[:, j] += parameters[layout.term(name)][j] * column
        return found


def _chosen(
    name: str, scale: float, rigid: FloatArray, q: FloatArray, v: FloatArray
) -> FloatArray:
    """Return what a term that was chosen adds (n,) per parameter."""
    if name == "load":
        return np.asarray(np.abs(rigid) * np.sign(v))
    if name == "sigmoid":
        return np.asarray(np.tanh(v / scale))
    if name == "stribeck":
        return np.asarray(np.exp(-((v / scale) ** 2)) * np.sign(v))
    if name == "spring":
        return q
    if name == "presliding":  # Dahl 1968, from sliding on
        z = [float(np.sign(v[0]))]
        for step in np.diff(q) / scale:
            z.append(np.sign(step) - (np.sign(step) - z[-1]) * np.exp(-abs(step)))
        return np.array(z)
    raise KeyError(name)


_TERMS = ("viscous", "coulomb", "armature", "offset")
_Terms = Mapping[str, Mapping[str, float]]


def _rnea(model: pin.Model, motion: Motion) -> FloatArray:
    data = model.createData()
    rows = zip(motion.position, motion.velocity, motion.acceleration, strict=True)
    return np.stack([pin.rnea(model, data, *row).copy() for row in rows])
