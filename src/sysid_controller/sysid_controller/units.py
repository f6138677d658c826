# SPDX-License-Identifier: Apache-2.0
"""Converts between a driver's joints and units and the model's."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.robot import Robot

__all__ = ["DriverUnits"]


class DriverUnits:
    """The actuated joints as the driver sees them, after the robot description.

    Positions: ``q = M⁻¹ q_motor + offset``, with M the transmission where the description says
    that data are on the motors' side, else 1. Torques: ``u = M⁻ᵀ τ / gain``.

    Parameters
    ----------
    robot : Robot
    command_unit : str
        ``joint`` sends torques at the joints [N·m], ``driver`` what the formula above gives.

    Raises
    ------
    ParameterError
        If driver units are asked for but the description leaves them open.
    """

    def __init__(self, robot: Robot, command_unit: str) -> None:
        description = robot.description
        names = robot.actuated_names
        self.aliases = dict(description.names)
        gains = description.effort_gain
        if isinstance(gains, (int, float)):
            gain = np.full(len(names), float(gains))
        else:
            gain = np.array([gains.get(name, 1.0) for name in names])
        self._offset = np.array([description.position_offset.get(name, 0.0) for name in names])
        matrix = np.eye(len(names))
        transmission = description.transmission
        if transmission is not None and transmission.side == "motor":
            index = [names.index(name) for name in transmission.joints]
            matrix[np.ix_(index, index)] = np.array(transmission.matrix)
        self._from_motor = None if transmission is None else np.linalg.inv(matrix)
        self._to_driver: FloatArray | None = None
        if command_unit == "driver":
            self._to_driver = self._driver_matrix(robot, gain, matrix)

    @staticmethod
    def _driver_matrix(robot: Robot, gain: FloatArray, matrix: FloatArray) -> FloatArray:
        transmission = robot.description.transmission
        if transmission is not None and transmission.side == "auto":
            raise ParameterError(
                f"robot '{robot.name}': command_unit 'driver' needs effort.transmission.side to "
                "be 'motor' or 'joint' in the robot description, not 'auto'"
            )
        if not gain.all():
            raise ParameterError(
                f"robot '{robot.name}': effort.gain is zero for a joint, so that command_unit "
                "'driver' cannot divide by it"
            )
        return np.asarray(np.linalg.inv(matrix.T) / gain[:, None])

    def position(self, data: FloatArray) -> FloatArray:
        """Return joint positions (na,) [rad] from the driver's."""
        joints = data if self._from_motor is None else self._from_motor @ data
        return joints + self._offset

    def velocity(self, data: FloatArray) -> FloatArray:
        """Return joint velocities (na,) [rad/s] from the driver's."""
        return data if self._from_motor is None else self._from_motor @ data

    def command(self, effort: FloatArray) -> FloatArray:
        """Return what to send for joint torques (na,) [N·m]."""
        return effort if self._to_driver is None else self._to_driver @ effort
