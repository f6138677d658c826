# SPDX-License-Identifier: Apache-2.0
"""What the simulated robot's sensors make of its true state."""

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.robot import Robot
from sysid_sim.cli import read_scenarios
from sysid_sim.errors import SimulationError
from sysid_sim.plant import FootContacts, PlantState, cross, rotation_of

__all__ = ["SENSORS", "BaseReading", "BaseState", "Reading", "SensorConfig", "Sensors"]


@dataclass(frozen=True)
class SensorConfig:
    """Noise of the sensors; all noise is white, normal and independent."""

    position_resolution: float = 0.0  # [rad] step of the encoders; 0: none
    position_noise: float = 0.0  # [rad] standard deviation, before the encoder's rounding
    velocity_noise: float = 0.0  # [rad/s]
    effort_noise: float = 0.0
    """[-] standard deviation as a share of the joint's torque limit (of 1 N·m where it has
    none)."""
    base_position_noise: float = 0.0  # [m]
    base_orientation_noise: float = 0.0  # [rad]
    base_velocity_noise: float = 0.0  # [m/s]
    gyroscope_noise: float = 0.0  # [rad/s] of inertial unit and odometry
    accelerometer_noise: float = 0.0  # [m/s²]
    wrenches: bool = False  # (nc, 6) [N, N·m] of the ground on the robot, in contact frames

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (np.isfinite(value) and value >= 0.0):
                raise SimulationError(f"{field.name} must be at least zero, got {value!r}")


SENSORS = {name: SensorConfig(**noise) for name, noise in read_scenarios()["sensors"].items()}
"""Sensors by name."""


class BaseState(NamedTuple):
    """Odometry and feet of a floating base."""

    pose: FloatArray  # (7,) [m, -] position in the world, quaternion x, y, z, w
    twist: FloatArray  # (6,) [m/s, rad/s] linear and angular velocity in the base frame
    contacts: BoolArray  # (nc,)


@dataclass(frozen=True)
class BaseReading:
    """What is measured of a floating base."""

    pose: FloatArray  # (7,) [m, -] position in the world, quaternion x, y, z, w
    twist: FloatArray  # (6,) [m/s, rad/s] linear and angular velocity in the base frame
    angular_velocity: FloatArray
    """(3,) [rad/s] of the inertial unit, which sits at the base frame's origin."""
    specific_force: FloatArray  # (3,) [m/s²] acceleration less gravity, in the base frame
    contacts: BoolArray  # (nc,)
    wrenches: FloatArray | None  # (nc, 6) [N, N·m] of the ground on the robot, in contact frames


@dataclass(frozen=True)
class Reading:
    """What all sensors show at one instant."""

    time: float  # [s]
    position: FloatArray  # (nj,) [rad]
    velocity: FloatArray  # (nj,) [rad/s]
    effort: FloatArray  # (nj,) [N·m] zero at passive joints
    base: BaseReading | None = None


class Sensors:
    """Adds noise to the true state, from its own seeded source."""

    def __init__(self, robot: Robot, config: SensorConfig, seed: int) -> None:
        self.robot = robot
        self.config = config
        self._rng = np.random.default_rng(seed)
        limits = robot.limits.effort
        scale = np.where(np.isfinite(limits), limits, 1.0)
        self._effort_noise = np.where(robot.actuated, config.effort_noise * scale, 0.0)

    def _noisy(self, values: FloatArray, std: float) -> FloatArray:
        return values + std * self._rng.normal(size=values.shape) if std > 0.0 else values

    def positions(self, values: FloatArray) -> FloatArray:
        """Return what the encoders show of joint positions (nj,)."""
        values = self._noisy(values, self.config.position_noise)
        step = self.config.position_resolution
        return np.round(values / step) * step if step > 0.0 else values

    def velocities(self, values: FloatArray) -> FloatArray:
        """Return what is measured of joint velocities (nj,)."""
        return self._noisy(values, self.config.velocity_noise)

    def efforts(self, values: FloatArray) -> FloatArray:
        """Return what is measured of joint torques (nj,)."""
        if self.config.effort_noise == 0.0:
            return values
        return values + self._effort_noise * self._rng.normal(size=values.shape)

    def odometry(self, q: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is measured of a base's pose (7,) and twist (6,)."""
        s = self.config
        turn = self._noisy(np.zeros(3), s.base_orientation_noise)
        pose = np.concatenate([self._noisy(q[:3], s.base_position_noise), _turned(q[3:7], turn)])
        linear = self._noisy(v[:3], s.base_velocity_noise)
        return pose, np.concatenate([linear, self._noisy(v[3:6], s.gyroscope_noise)])

    def base(
        self, pose: FloatArray, twist: FloatArray, state: PlantState, contacts: FootContacts
    ) -> BaseReading:
        """Return what is measured of a floating base, given its odometry (7,), (6,)."""
        s = self.config
        q, v, a = state.q[:7], state.v[:6], state.a[:6]
        rotation = rotation_of(q[3:7])
        gravity = rotation.T @ np.array(self.robot.description.gravity)
        force = a[:3] + cross(v[3:6], v[:3]) - gravity
        return BaseReading(
            pose=pose,
            twist=twist,
            angular_velocity=self._noisy(v[3:6], s.gyroscope_noise),
            specific_force=self._noisy(force, s.accelerometer_noise),
            contacts=contacts.active,
            wrenches=contacts.wrenches if s.wrenches else None,
        )


def _turned(quaternion: FloatArray, turn: FloatArray) -> FloatArray:
    """Return a quaternion x, y, z, w turned by a small rotation vector [rad] in the body frame."""
    if not turn.any():
        return quaternion
    vector, w = quaternion[:3], quaternion[3]
    half = 0.5 * turn
    turned = np.concatenate([vector + w * half + cross(vector, half), [w - vector @ half]])
    return turned / np.linalg.norm(turned)
