# SPDX-License-Identifier: Apache-2.0
"""Published joint values to joint positions and torques: gains, gears and zero offsets."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.robot.model import Robot

__all__ = ["JointConversion"]


class JointConversion:
    """Linear maps from published values of the actuated joints to SI joint values.

    Parameters
    ----------
    robot : Robot
    motor_side : bool, optional
        Whether the data are on the motors' side of the transmission; default: as the description
        says, where ``auto`` waits for the first data.
    """

    def __init__(self, robot: Robot, *, motor_side: bool | None = None) -> None:
        description, names = robot.description, robot.actuated_names
        self._robot = robot
        self._gain = np.ones(len(names))
        if isinstance(description.effort_gain, (int, float)):
            self._gain[:] = description.effort_gain
        else:
            for name, value in description.effort_gain.items():
                if name in names:
                    self._gain[names.index(name)] = value
        self._offset = np.zeros(len(names))
        for name, value in description.position_offset.items():
            if name in names:
                self._offset[names.index(name)] = value
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
        self._coupled = transmission is not None

    def convert(self, position: FloatArray, effort: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return joint positions [rad] and torques [N·m], each (m, na), of published values."""
        if self.motor_side is None:
            self.motor_side = self.on_motor_side(position)
        effort = effort * self._gain
        if not self.motor_side:
            return position + (0.0 if self._coupled else self._offset), effort
        return position @ self._inverse.T + self._offset, effort @ self._gears

    def velocity(self, velocity: FloatArray) -> FloatArray:
        """Return joint velocities [rad/s] (m, na) of published ones."""
        return velocity @ self._inverse.T if self.motor_side else velocity

    def on_motor_side(self, position: FloatArray) -> bool:
        """Whether positions (m, na) fit the joints' limits as the motors' rather than the joints'.

        Joint positions beyond their limits that come within them through the gears are motors'.
        """
        limits, actuated = self._robot.limits, self._robot.actuated
        lower = np.maximum(limits.lower, -2.0 * np.pi)[actuated]
        upper = np.minimum(limits.upper, 2.0 * np.pi)[actuated]

        def excess(q: FloatArray) -> float:
            low, high = np.nanmin(q, axis=0), np.nanmax(q, axis=0)
            return float(np.maximum(lower - low, high - upper).clip(min=0.0).sum())

        joint = excess(position)
        return joint > 0.1 and excess(position @ self._inverse.T + self._offset) < joint
