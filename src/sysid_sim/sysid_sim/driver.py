# SPDX-License-Identifier: Apache-2.0
"""What a robot's driver publishes of joint-side readings: its units, zeros and side of gears."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.robot import Robot
from sysid_sim.sensors import Reading

__all__ = ["Driver"]


class Driver:
    """Turns readings into what joint states of this robot show; undoes what the core applies.

    Actuated joints only: real robots rarely measure passive ones.

    Parameters
    ----------
    robot : Robot

    Attributes
    ----------
    names : tuple[str, ...]
        Joints in the order of the published arrays.
    """

    def __init__(self, robot: Robot) -> None:
        self.names = robot.actuated_names
        description = robot.description
        self._actuated = robot.actuated
        gain = description.effort_gain
        if isinstance(gain, (int, float)):
            self._gain = np.full(len(self.names), float(gain))
        else:
            self._gain = np.array([gain.get(name, 1.0) for name in self.names])
        self._zero = np.array([description.position_offset.get(n, 0.0) for n in self.names])
        self._matrix: FloatArray | None = None
        transmission = description.transmission
        if transmission is not None and transmission.side == "motor":
            matrix = np.eye(len(self.names))
            places = [self.names.index(name) for name in transmission.joints]
            matrix[np.ix_(places, places)] = transmission.matrix
            self._matrix = matrix

    def publish(self, reading: Reading) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return position, velocity and effort (na,) as the driver publishes them."""
        position = reading.position[self._actuated] - self._zero
        velocity = reading.velocity[self._actuated]
        effort = reading.effort[self._actuated]
        if self._matrix is not None:
            position, velocity = self._matrix @ position, self._matrix @ velocity
            effort = np.linalg.solve(self._matrix.T, effort)
        return position, velocity, effort / self._gain
