# SPDX-License-Identifier: Apache-2.0
"""The small controller that scenarios track with: inverse dynamics of the nominal model."""

from __future__ import annotations

from functools import cached_property
from typing import Protocol

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import friction_columns
from sysid_core.robot import Robot
from sysid_core.robot.loops import LoopClosure
from sysid_sim.errors import SimulationError
from sysid_sim.plant import rest_configuration
from sysid_sim.simulation import Simulation

__all__ = ["MotionModel", "Trajectory", "TrajectoryTracker"]

_BLOCK = 1000
_STRIDE = 5
_ROTOR_TIME = 0.005  # [s] to the velocity limit at the torque limit


class Trajectory(Protocol):
    """A motion of the actuated joints over time."""

    def at(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return positions, velocities and accelerations (n, na) at times (n,) [s]."""
        ...


class MotionModel:
    """Torques that a parameter vector predicts for motions of the actuated joints.

    Parameters
    ----------
    robot : Robot
        On a fixed base, with or without loops.
    parameters : (p,)

    Raises
    ------
    SimulationError
        If the robot's base floats.
    """

    def __init__(self, robot: Robot, parameters: FloatArray) -> None:
        if robot.floating:
            raise SimulationError(
                f"robot '{robot.name}' has a floating base: a joint trajectory alone would not "
                "keep it standing"
            )
        self.robot = robot
        self.model = robot.with_parameters(parameters)
        self._data = self.model.createData()
        self._friction = parameters[robot.layout.friction]
        self._armature = parameters[robot.layout.term("armature")]
        self._loops = LoopClosure(robot) if robot.description.loops else None

    @cached_property
    def rest(self) -> FloatArray:
        """Configuration (nq,) in the middle of the ranges."""
        return rest_configuration(self.robot)

    def torques(
        self, q: FloatArray, v: FloatArray, a: FloatArray, *, slack: float = np.inf
    ) -> FloatArray:
        """Return the motor torques (n, na) for actuated motion; NaN where loops do not close.

        ``u = Gᵀ (RNEA(q, q̇, q̈) + F)`` (Zhang et al. eq. 29, without feedback).

        Parameters
        ----------
        q, v, a : (n, na) [rad, rad/s, rad/s²]
        slack : float [rad]
            How far passive joints may be beyond their limits.
        """
        if self._loops is None:
            return self._tree_torques(q, v, a)
        motion = self._loops.motion(q, v, a, self.rest)
        ok = motion.valid.copy()
        ok[ok] = [self._loops.inside(row, slack) for row in motion.q[ok]]
        torques = np.full(q.shape, np.nan)
        full = self._tree_torques(motion.q[ok], motion.v[ok], motion.a[ok])
        torques[ok] = np.einsum("nva,nv->na", motion.G[ok], full)
        return torques

    def _tree_torques(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        rigid = [pin.rnea(self.model, self._data, *state) for state in zip(q, v, a, strict=True)]
        return np.reshape(rigid, v.shape) + friction_columns(self.robot, v, a) @ self._friction

    def inertia(self, q: FloatArray) -> FloatArray:
        """Return the inertia (na, na) that the motors feel in a closed configuration q (nq,)."""
        M = pin.crba(self.model, self._data, q)
        M = np.triu(M) + np.triu(M, 1).T + np.diag(self._armature)
        if self._loops is None:
            return M
        G, _ = self._loops.map(q)
        return G.T @ M @ G


class TrajectoryTracker:
    """Follows a trajectory: nominal torques fed forward, feedback through the nominal inertia.

    Parameters
    ----------
    robot : Robot
    trajectory : Trajectory
    bandwidth : float [rad/s]
        Of the feedback, by the nominal inertia at rest; it is critically damped.
    period : float [s]
        Control period.

    Attributes
    ----------
    start : (nq,)
        Where the trajectory rests, loops closed.
    trouble : str
        Empty: a joint trajectory can always go on.
    """

    trouble = ""

    def __init__(
        self, robot: Robot, trajectory: Trajectory, *, bandwidth: float, period: float
    ) -> None:
        self.robot = robot
        self._trajectory = trajectory
        self._model = MotionModel(robot, robot.consistent_nominal)
        self._period = period
        self._bandwidth = bandwidth
        self._rotors = np.diag(self._rotor_inertia())
        self._inertia = self._model.inertia(self._model.rest) + self._rotors
        self.start: FloatArray = self._model.rest
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
        if not self.robot.description.loops:
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
