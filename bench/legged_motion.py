# SPDX-License-Identifier: Apache-2.0
"""Trots and jumps of a simulated quadruped under whole-body control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from sysid_controller.contact_law import (
    ContactLaw,
    ContactLawSettings,
    ContactReference,
    ContactState,
)
from sysid_core.recording import BaseRecording, BoolArray, ContactRecording, FloatArray, Recording
from sysid_core.regression.contact_kinematics import ContactKinematics
from sysid_core.robot import Robot
from sysid_sim.mjcf import PhysicsSettings
from sysid_sim.plant import Plant

__all__ = [
    "Jump",
    "Log",
    "Motion",
    "Noise",
    "Stance",
    "Trot",
    "record",
    "simulate",
    "stance_of",
]

_TICK = 0.002  # [s] of the controller
_KNEES = np.array([0.0, 0.75, -1.5] * 2 + [0.0, -0.75, 1.5] * 2)  # an X stance
_LEGS = ((0, 3), (1, 2))  # diagonal pairs, FL FR HL HR


class Stance(NamedTuple):
    """The robot at rest, which motions start from.

    Attributes
    ----------
    pose : (7,)
        Base position [m], quaternion x, y, z, w.
    joints : (nj,) [rad]
    feet : (nc, 3) [m]
        Frames of the feet, in the world.
    """

    pose: FloatArray
    joints: FloatArray
    feet: FloatArray


class Motion(Protocol):
    """Desired motion over time, which may react to the measured state."""

    def __call__(
        self, time: float, state: ContactState, feet: FloatArray, touching: BoolArray
    ) -> tuple[ContactReference, BoolArray]:
        """Return the reference and the feet that are to carry load."""


@dataclass(frozen=True)
class Log:
    """What happened, at every tick; all exact.

    Attributes
    ----------
    time : (n,) [s]
    q, v, a : (n, nq), (n, nv), (n, nv)
    effort : (n, nj) [N·m]
    contacts : (n, nc) bool
    """

    time: FloatArray
    q: FloatArray
    v: FloatArray
    a: FloatArray
    effort: FloatArray
    contacts: BoolArray


@dataclass(frozen=True)
class Noise:
    """Standard deviations of white sensor noise at the controller's rate.

    Typical of the sensors that such robots carry: motor encoders behind a reduction, currents
    known to a hundredth of the torque limit, a fused base state.
    """

    position: float = 1e-4  # [rad]
    velocity: float = 0.02  # [rad/s]
    effort: float = 0.03  # [N·m]
    base_position: float = 1e-3  # [m]
    base_orientation: float = 1e-3  # [rad]
    base_velocity: float = 0.02  # [m/s]
    gyroscope: float = 0.01  # [rad/s]

    def scaled(self, factor: float) -> Noise:
        """Return all levels times a factor."""
        return Noise(**{name: factor * value for name, value in vars(self).items()})


def _still(stance: Stance) -> ContactReference:
    zero = np.zeros_like(stance.feet)
    return ContactReference(stance.pose, np.zeros(6), np.zeros(6), stance.feet, zero, zero)


def _oriented(yaw: float) -> FloatArray:
    return np.array(pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.0, yaw)).coeffs())


class Trot:
    """Diagonal pairs step in turn; footholds follow Raibert's rule.

    Parameters
    ----------
    stance : Stance
    velocity : (3,)
        Forward, sideways [m/s] and turning [rad/s], in the base's heading; changes its sign
        every few seconds, so that the robot stays about where it is.
    period : float [s]
        Of one step of a pair.
    bob : float [m]
        Height by which the base rises and falls.
    """

    clearance = 0.05

    def __init__(
        self, stance: Stance, velocity: FloatArray, period: float = 0.22, bob: float = 0.0
    ) -> None:
        self._stance, self._velocity, self._period = stance, velocity, period
        self._bob = bob
        self._hips = stance.feet - stance.pose[:3]
        self._lift = stance.feet.copy()
        self._step = -1
        self._origin = stance.pose[:3].copy()
        self._yaw = 0.0

    def __call__(
        self, time: float, state: ContactState, feet: FloatArray, touching: BoolArray
    ) -> tuple[ContactReference, BoolArray]:
        """Return the reference and the pair that stands."""
        start = 0.5  # stand first
        if time < start:
            return _still(self._stance), np.ones(len(feet), dtype=bool)
        phase = (time - start) / self._period
        step, share = int(phase), phase % 1.0
        if step != self._step:
            self._step, self._lift = step, feet.copy()
        wanted = self._velocity * (1.0 if int(time / 3.0) % 2 == 0 else -1.0)
        self._yaw += wanted[2] * _TICK
        c, s = np.cos(self._yaw), np.sin(self._yaw)
        heading = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        velocity = heading @ np.array([wanted[0], wanted[1], 0.0])
        self._origin += velocity * _TICK
        # stay near the measured base: a robot that lags must not be pulled over
        lag = self._origin[:2] - state.pose[:2]
        self._origin[:2] = state.pose[:2] + np.clip(lag, -0.03, 0.03)
        w = 2.0 * np.pi / (2.0 * self._period)
        pose = np.concatenate([self._origin, _oriented(self._yaw)])
        pose[2] += self._bob * np.sin(w * time)
        rate = np.concatenate([velocity, [0.0, 0.0, wanted[2]]])
        rate[2] = self._bob * w * np.cos(w * time)
        bend = np.zeros(6)
        bend[2] = -self._bob * w**2 * np.sin(w * time)
        swing = np.zeros(len(feet), dtype=bool)
        swing[list(_LEGS[step % 2])] = True
        reference = self._swing(state, feet, swing, share, velocity, heading)
        return reference._replace(pose=pose, velocity=rate, acceleration=bend), ~swing

    def _swing(
        self,
        state: ContactState,
        feet: FloatArray,
        swing: BoolArray,
        share: float,
        velocity: FloatArray,
        heading: FloatArray,
    ) -> ContactReference:
        R = pin.Quaternion(state.pose[3:]).toRotationMatrix()
        moving = R @ state.twist[:3]
        place = state.pose[:3] + (heading @ self._hips.T).T
        place += 0.5 * self._period * moving + 0.12 * (moving - velocity)
        place += (1.0 - share) * self._period * moving
        place[:, 2] = self._stance.feet[:, 2]
        # a cubic over ground, a sine squared above it; slightly into the ground at the end
        blend = 3.0 * share**2 - 2.0 * share**3
        slope = 6.0 * share * (1.0 - share) / self._period
        path = place - self._lift
        position = self._lift + blend * path
        position[:, 2] += self.clearance * np.sin(np.pi * share) ** 2 - 0.004 * share
        speed = slope * path
        speed[:, 2] += self.clearance * np.pi * np.sin(2.0 * np.pi * share) / self._period
        zero = np.zeros_like(feet)
        reference = _still(self._stance)
        return reference._replace(
            foot_position=np.where(swing[:, None], position, feet),
            foot_velocity=np.where(swing[:, None], speed, zero),
            foot_acceleration=zero,
        )


class Jump:
    """Crouches, leaps, lands on its feet, and does so again.

    Parameters
    ----------
    stance : Stance
    speed : float [m/s]
        At which the base leaves the ground.
    period : float [s]
        Between two leaps.
    """

    crouch, push = 0.05, 0.07  # [m] below the stance, from there up

    def __init__(self, stance: Stance, speed: float, period: float = 1.0) -> None:
        self._stance, self._speed, self._period = stance, speed, period
        self._hips = stance.feet - stance.pose[:3]
        self._airborne = False
        self._since = 0.0

    def __call__(
        self, time: float, state: ContactState, feet: FloatArray, touching: BoolArray
    ) -> tuple[ContactReference, BoolArray]:
        """Return the reference; feet carry load outside the flight."""
        t = time % self._period
        down, thrust = 0.5, 2.0 * self.push / self._speed
        reference = _still(self._stance)
        pose, velocity, acceleration = reference.pose.copy(), np.zeros(6), np.zeros(6)
        pose[:2] = feet[:, :2].mean(axis=0) if touching.all() else state.pose[:2]
        leap = down <= t < down + thrust
        if t < down:
            pose[2] -= self.crouch * 0.5 * (1.0 - np.cos(np.pi * min(t / (0.8 * down), 1.0)))
            self._airborne = False
        elif leap:
            rate = self._speed / thrust
            s = t - down
            pose[2] += -self.crouch + 0.5 * rate * s**2
            velocity[2], acceleration[2] = rate * s, rate
            self._since = time
        elif not self._airborne and time - self._since < 0.03:
            self._airborne = True
        if self._airborne and touching.any() and time - self._since > 0.06:
            self._airborne = False
        loaded = np.full(len(feet), not self._airborne)
        if self._airborne:
            R = pin.Quaternion(state.pose[3:]).toRotationMatrix()
            target = state.pose[:3] + self._hips
            target[:, 2] = state.pose[2] + self._hips[:, 2]
            moving = np.tile(R @ state.twist[:3], (len(feet), 1))
            reference = reference._replace(foot_position=target, foot_velocity=moving)
        return (
            reference._replace(pose=pose, velocity=velocity, acceleration=acceleration),
            loaded,
        )


def stance_of(robot: Robot, radius: float) -> Stance:
    """Return a stance on level ground, feet of some radius [m] touching."""
    joints = _KNEES
    q = np.concatenate([np.zeros(3), [0.0, 0.0, 0.0, 1.0], joints])
    feet = ContactKinematics(robot).evaluate(q[None]).position[0]
    height = radius - float(feet[:, 2].mean())
    feet = feet + np.array([0.0, 0.0, height])
    return Stance(np.concatenate([[0.0, 0.0, height], q[3:7]]), joints, feet)


def simulate(
    robot: Robot,
    truth: FloatArray,
    motion: Motion,
    stance: Stance,
    seconds: float,
    settings: ContactLawSettings | None = None,
) -> Log:
    """Let a robot with true parameters follow a motion, controlled with these parameters."""
    radius = max(contact.radius for contact in robot.description.contacts)
    physics = PhysicsSettings(time_step=0.0005, foot_radius=radius)
    plant = Plant(robot, truth, physics)
    plant.reset(np.concatenate([stance.pose, stance.joints]))
    law = ContactLaw(robot, settings)
    law.set_parameters(truth)
    steps, count = round(_TICK / physics.time_step), round(seconds / _TICK)
    rows = []
    touching = np.ones(len(stance.feet), dtype=bool)
    for tick in range(count):
        time = tick * _TICK
        q, v = plant.configuration(), plant.velocity()
        state = ContactState(q[:7], v[:6], q[7:], v[6:], touching)
        feet = law.dynamics.kinematics.evaluate(q[None]).position[0]
        reference, loaded = motion(time, state, feet, touching)
        effort = law(reference, state._replace(contacts=loaded)).effort
        moved = plant.advance(effort)
        touching = plant.contacts(wrenches=False).active
        rows.append((time, moved.q, moved.v, moved.a, effort, touching.copy()))
        plant.advance(effort, steps - 1)
    time_, q_, v_, a_, effort_, contacts_ = (np.array(part) for part in zip(*rows, strict=True))
    return Log(time_, q_, v_, a_, effort_, contacts_)


def record(robot: Robot, log: Log, noise: Noise, seed: int) -> Recording:
    """Return what noisy sensors make of a log."""
    rng = np.random.default_rng(seed)

    def noisy(values: FloatArray, std: float) -> FloatArray:
        return np.asarray(values + std * rng.normal(size=values.shape), dtype=np.float64)

    turned = [
        pin.Quaternion(q) * pin.Quaternion(pin.exp3(noise.base_orientation * rng.normal(size=3)))
        for q in log.q[:, 3:7]
    ]
    twist = np.hstack(
        [noisy(log.v[:, :3], noise.base_velocity), noisy(log.v[:, 3:6], noise.gyroscope)]
    )
    base = BaseRecording(
        time=log.time,
        position=noisy(log.q[:, :3], noise.base_position),
        orientation=np.array([np.asarray(turn.coeffs()) for turn in turned]),
        twist=twist,
    )
    names = tuple(contact.name for contact in robot.description.contacts)
    return Recording(
        time=log.time,
        joint_names=robot.joint_names,
        position=noisy(log.q[:, 7:], noise.position),
        velocity=noisy(log.v[:, 6:], noise.velocity),
        effort=noisy(log.effort, noise.effort),
        base=base,
        contacts=ContactRecording(log.time, names, log.contacts),
        source="simulation",
    )
