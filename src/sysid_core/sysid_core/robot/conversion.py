# SPDX-License-Identifier: Apache-2.0
"""Between a driver's joint values and joint positions and torques: gains, gears, zero offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.robot.model import Robot

__all__ = ["JointConversion", "are_others"]


def are_others(names: Iterable[str], joints: Iterable[str], aliases: Mapping[str, str]) -> bool:
    """Return whether published names are of none of the joints, say of a gripper's alone."""
    return set(joints).isdisjoint(aliases.get(name, name) for name in names)


class JointConversion:
    """Linear maps between a driver's values of the actuated joints and SI joint values.

    On the motors' side of a transmission M, ``q = M⁻¹ q_motor + offset`` and ``τ = Mᵀ gain u``;
    else ``τ = gain u``, and the offset is that of a robot without transmission. Nominal gravity
    torques that a driver takes off its efforts, or adds to commands, are undone. Whether data are
    on the motors' side is as the description says, unless given, where ``auto`` waits for the
    first data.
    """

    def __init__(self, robot: Robot, *, motor_side: bool | None = None) -> None:
        description, names = robot.description, robot.actuated_names
        self._robot = robot
        gain = description.effort_gain
        if isinstance(gain, (int, float)):
            gain = dict.fromkeys(names, float(gain))
        self._gain = np.array([gain.get(name, 1.0) for name in names])
        self._offset = np.array([description.position_offset.get(name, 0.0) for name in names])
        transmission = description.transmission
        self._gears = np.eye(len(names))
        self.motor_side = motor_side
        if transmission is None:
            self.motor_side = False
        else:
            index = np.array([names.index(joint) for joint in transmission.joints])
            self._gears[np.ix_(index, index)] = transmission.matrix
            if motor_side is None and transmission.side != "auto":
                self.motor_side = transmission.side == "motor"
        self._inverse = np.linalg.inv(self._gears)
        self._joint_offset = self._offset if transmission is None else np.zeros(len(names))
        self._data = robot.model.createData()

    @classmethod
    def described(cls, robot: Robot) -> JointConversion:
        """Return the conversion of data that come one by one: ``auto`` is the joints' side."""
        transmission = robot.description.transmission
        return cls(robot, motor_side=transmission is not None and transmission.side == "motor")

    def convert(self, position: FloatArray, effort: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return joint positions [rad] and torques [N·m], each (m, na), of published values."""
        if self.motor_side is None:
            self.motor_side = self.on_motor_side(position)
        effort, position = effort * self._gain, self.position(position)
        effort = effort @ self._gears if self.motor_side else effort
        return position, effort + self.unpublished(position)

    def unpublished(self, position: FloatArray) -> FloatArray:
        """Return torques (m, na) [N·m] that efforts published at joint positions lack."""
        return self._gravity(position, self._robot.description.effort_excludes)

    def uncommanded(self, position: FloatArray) -> FloatArray:
        """Return torques (m, na) [N·m] that the robot itself adds to what it is commanded."""
        return self._gravity(position, self._robot.description.command_excludes)

    def _gravity(self, position: FloatArray, excluded: tuple[str, ...]) -> FloatArray:
        if "gravity" not in excluded:
            return np.zeros(position.shape)
        model = self._robot.model
        torques = [
            pin.computeGeneralizedGravity(model, self._data, q).copy()
            for q in np.atleast_2d(position)
        ]
        return np.reshape(torques, position.shape)

    def position(self, position: FloatArray) -> FloatArray:
        """Return joint positions [rad] (…, na) of published ones."""
        if not self.motor_side:
            return position + self._joint_offset
        return position @ self._inverse.T + self._offset

    def velocity(self, velocity: FloatArray) -> FloatArray:
        """Return joint velocities [rad/s] (…, na) of published ones."""
        return velocity @ self._inverse.T if self.motor_side else velocity

    def command(self, effort: FloatArray) -> FloatArray:
        """Return what the driver calls joint torques (…, na) [N·m]."""
        return (effort @ self._inverse if self.motor_side else effort) / self._gain

    def published(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return what the driver says of joint positions, velocities and torques (…, na)."""
        shown = self.command(effort - self.unpublished(position))
        return self.published_position(position), self.published_velocity(velocity), shown

    def published_position(self, position: FloatArray) -> FloatArray:
        """Return what the driver calls joint positions (…, na) [rad]."""
        if not self.motor_side:
            return position - self._joint_offset
        return (position - self._offset) @ self._gears.T

    def published_velocity(self, velocity: FloatArray) -> FloatArray:
        """Return what the driver calls joint velocities (…, na) [rad/s], or accelerations."""
        return velocity @ self._gears.T if self.motor_side else velocity

    def check_commands(self) -> None:
        """Check that commands can be given in the driver's units.

        Raises
        ------
        ParameterError
            If the description leaves the side of the transmission open, or a gain is zero.
        """
        transmission, name = self._robot.description.transmission, self._robot.name
        if transmission is not None and transmission.side == "auto":
            raise ParameterError(
                f"robot '{name}': command_unit 'driver' needs effort.transmission.side to be "
                "'motor' or 'joint' in the robot description, not 'auto'"
            )
        if not self._gain.all():
            raise ParameterError(
                f"robot '{name}': effort.gain is zero for a joint, so that command_unit 'driver' "
                "cannot divide by it"
            )

    def on_motor_side(self, position: FloatArray) -> bool:
        """Whether positions (m, na) fit the joints' limits as the motors' rather than the joints'.

        Joint positions beyond their limits that come within them through the gears are motors'.
        """
        (least, most), actuated = self._robot.limits.known_range, self._robot.actuated
        lower = np.maximum(least, -2.0 * np.pi)[actuated]
        upper = np.minimum(most, 2.0 * np.pi)[actuated]

        def excess(q: FloatArray) -> float:
            low, high = np.nanmin(q, axis=0), np.nanmax(q, axis=0)
            return float(np.maximum(lower - low, high - upper).clip(min=0.0).sum())

        joint = excess(position)
        return joint > 0.1 and excess(position @ self._inverse.T + self._offset) < joint
