# SPDX-License-Identifier: Apache-2.0
"""The small controller that scenarios track with: inverse dynamics of the nominal model."""

from typing import Protocol

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainDynamics
from sysid_core.dynamics.select import make_dynamics
from sysid_core.dynamics.stance import rest_configuration
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.excitation.fourier import States
from sysid_core.robot import Robot
from sysid_sim.errors import SimulationError
from sysid_sim.simulation import Simulation

__all__ = ["TrajectoryTracker", "nominal_dynamics"]

_BLOCK = 1000
_STRIDE = 5
_ROTOR_TIME = 0.005  # [s] to the velocity limit at the torque limit


def nominal_dynamics(robot: Robot) -> TreeDynamics | ClosedChainDynamics:
    """Return the dynamics that a scenario's controller knows.

    Raises
    ------
    SimulationError
        If the robot's base floats.
    """
    if robot.floating:
        raise SimulationError(
            f"robot '{robot.name}' has a floating base: a joint trajectory alone would not "
            "keep it standing"
        )
    return make_dynamics(robot)


class _Trajectory(Protocol):
    def at(self, time: FloatArray) -> States:
        """Return the motion at times (n,) [s]."""
        ...


class TrajectoryTracker:
    """Follows a trajectory: nominal torques fed forward, feedback through the nominal inertia.

    The feedback is critically damped and has a bandwidth [rad/s] by the inertia at rest.

    Attributes
    ----------
    start : (nq,)
        Where the trajectory rests, loops closed.
    trouble : str
        Empty: a joint trajectory can always go on.
    """

    trouble = ""

    def __init__(
        self, robot: Robot, trajectory: _Trajectory, *, bandwidth: float, period: float
    ) -> None:
        self.robot = robot
        self._trajectory = trajectory
        self._model = nominal_dynamics(robot)
        self._period = period
        self._bandwidth = bandwidth
        self._rotors = np.diag(self._rotor_inertia())
        self.start: FloatArray = rest_configuration(robot)
        self._inertia = self._model.inertia(self.start[robot.actuated]) + self._rotors
        self._block = -1
        self._planned: tuple[FloatArray, ...] = ()

    def _rotor_inertia(self) -> FloatArray:
        """Return the rotor inertias (na,) that the gains assume beyond the nominal ones.

        Whoever tunes a robot knows of its rotors even where nothing is published on them.
        """
        robot = self.robot
        _, _, velocity, effort = (limit[robot.actuated] for limit in robot.limits)
        known = np.isfinite(velocity) & np.isfinite(effort)
        rotor = np.zeros(len(known))
        if "armature" in robot.description.friction_terms:
            rotor[known] = _ROTOR_TIME * effort[known] / velocity[known]
        nominal = robot.nominal[robot.layout.term("armature")][robot.actuated]
        return np.maximum(rotor - nominal, 0.0)

    def command(self, simulation: Simulation) -> FloatArray:
        """Return the torques (na,) [N·m] to apply now, from what `simulation` senses."""
        block, row = divmod(round(simulation.time / self._period), _BLOCK)
        if block != self._block:
            self._block, self._planned = block, self._plan(block)
        desired, speed, torque = (series[row] for series in self._planned)
        position, velocity = (sensed[self.robot.actuated] for sensed in simulation.sense())
        error, error_rate = desired - position, speed - velocity
        acceleration = self._bandwidth**2 * error + 2.0 * self._bandwidth * error_rate
        if not self.robot.linked:
            # With loops the inertia at rest must do: its rotors outweigh the links.
            self._inertia = self._model.inertia(desired) + self._rotors
        return torque + self._inertia @ acceleration

    def _plan(self, block: int) -> tuple[FloatArray, ...]:
        """Return positions, velocities and torques (n, na) of a block of control periods."""
        first = block * _BLOCK
        time = np.arange(first, first + _BLOCK, dtype=np.float64) * self._period
        q, v, _ = self._trajectory.at(time)
        # Feed-forward changes slowly beside the control period: a coarser grid will do.
        coarse = np.arange(0, _BLOCK + _STRIDE, _STRIDE)
        torque = self._model.torques(*self._trajectory.at(time[0] + self._period * coarse))
        rows = np.arange(_BLOCK)
        return q, v, np.column_stack([np.interp(rows, coarse, column) for column in torque.T])
