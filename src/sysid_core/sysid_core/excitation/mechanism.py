# SPDX-License-Identifier: Apache-2.0
"""Trees and linkages as the design of motions sees them: actuated joints in, rows and gaps out."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import (
    BaseParameters,
    find_base_parameters,
    well_conditioned_base,
)
from sysid_core.dynamics.closed_chain import ClosedChainRegression
from sysid_core.dynamics.friction import FrictionLaw
from sysid_core.dynamics.open_tree import OpenTree, random_states
from sysid_core.errors import ModelError
from sysid_core.excitation.fourier import States
from sysid_core.excitation.lagrangian import TreeGradient
from sysid_core.parameters import COUPLING_TERMS, FRICTION_TERMS
from sysid_core.robot.clearance import Clearance, Obstacles
from sysid_core.robot.library import load_robot
from sysid_core.robot.loop_check import random_closed_states
from sysid_core.robot.model import Robot

__all__ = ["Mechanism", "View", "make_mechanism"]

_SMOOTH = 0.05  # Width of the smoothed sign of velocity in derivatives [rad/s]
_OPEN = -1.0  # Room [rad] of passive joints where the loops do not close
_NO_GAPS = np.zeros((0, 0))
_STEP = 1e-6  # Of the finite differences [rad, rad/s, rad/s²]


class View(NamedTuple):
    """What a design asks of states, or how an objective changes with it."""

    rows: FloatArray
    """(n, k, b) regressor of the k moving joints in the columns of interest, zero where the robot
    cannot be."""
    torque: FloatArray  # (n, k) [N·m] by the nominal model
    gaps: FloatArray
    """(n, g) [m, rad] to obstacles, and of passive joints to their limits; negative where there is
    none."""


class _Common:
    """A robot on a fixed base; states are of the actuated joints, only some of which move.

    Friction at rest can be anything, so that torques of joints that do not move tell nothing.
    """

    def __init__(self, robot: Robot, moving: IndexArray, obstacles: Obstacles) -> None:
        self.robot, self.moving, self.clearance = robot, moving, Clearance(robot, obstacles)
        # (b,) ascending indices of the parameters of interest; to begin with all
        self.columns: IndexArray = np.arange(robot.layout.size)
        self._nominal = robot.consistent_nominal
        width = robot.description.coulomb_velocity
        self._widths = width, max(width, _SMOOTH)


class _Tree(_Common):
    def __init__(self, robot: Robot, moving: IndexArray, obstacles: Obstacles) -> None:
        super().__init__(robot, moving, obstacles)
        self._tree = OpenTree(robot)
        self._gradient = TreeGradient(robot, moving)
        layout, every = robot.layout, np.arange(robot.layout.size)
        parts = [every[layout.term(term)][moving] for term in FRICTION_TERMS]
        parts += [every[layout.coupling_term(term)] for term in COUPLING_TERMS]
        self._friction = np.concatenate(parts)
        directions = np.array([c.direction for c in robot.couplings])
        directions = directions.reshape(-1, len(robot.joint_names))[:, moving]
        self._laws = [
            FrictionLaw(directions, w, robot.friction_scales[:, moving]) for w in self._widths
        ]
        for law in self._laws:
            law.set_parameters(self._nominal[self._friction])

    def _rigid(self, states: States) -> FloatArray:
        model, data = self._tree.model, self._tree.data
        rows = [pin.rnea(model, data, *state) for state in zip(*states, strict=True)]
        return np.reshape(rows, states.position.shape)[:, self.moving]

    def _parts(self, states: States) -> States:
        return States(*(part[:, self.moving] for part in states))

    def view(self, states: States, *, steer: bool = False) -> View:
        """Return what a design asks of states.

        To `steer` a search, signs of velocity are smoothed; only then gaps are measured.
        """
        inertial = self.columns[self.columns < self.robot.layout.friction.start]
        rigid, parts = self._rigid(states), self._parts(states)
        F = self._laws[steer].columns(*parts, rigid=rigid)
        rows = np.zeros((*rigid.shape, len(self.columns)))
        picked = np.eye(states.velocity.shape[1])[self.moving]
        picked = np.broadcast_to(picked, (len(rows), *picked.shape))
        rows[:, :, : len(inertial)] = self._tree.projected(*states, inertial, picked)
        _, place, used = np.intersect1d(self.columns, self._friction, return_indices=True)
        rows[:, :, place] = F[:, :, used]
        torque = rigid + self._laws[steer].torque(*parts, rigid=rigid)
        gaps = self.clearance.gaps(states.position) if steer else _NO_GAPS
        return View(rows, torque, gaps)

    def pullback(self, states: States, by: View) -> States:
        """Return the gradient (n, k) of an objective by states from that by their view."""
        layout, rigid = self.robot.layout, self._rigid(states)
        pull = np.zeros((*rigid.shape, layout.size))
        pull[:, :, self.columns] = by.rows
        pull[:, :, self._friction] += by.torque[:, :, None] * self._nominal[self._friction]
        own, load = self._friction_pull(states, pull[:, :, self._friction], rigid)
        inertial = pull[:, :, layout.inertial]
        inertial += (by.torque + load)[:, :, None] * self._nominal[layout.inertial]
        found = self._gradient(states, inertial.reshape(*rigid.shape, -1, 10))
        own[0] += self.clearance.push(states.position, by.gaps)[:, self.moving]
        return States(*(part + more for part, more in zip(found, own, strict=True)))

    def _friction_pull(
        self, states: States, pull: FloatArray, rigid: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the gradient of friction's share by states (3, n, k), and by its load (n, k)."""
        law = self._laws[True]

        def share(parts: States, load: FloatArray) -> FloatArray:
            return np.asarray((law.columns(*parts, rigid=load) * pull).sum(axis=2))

        parts, k = self._parts(states), len(self.moving)
        here, gradient = share(parts, rigid), np.zeros((3, *rigid.shape))
        # joints that share no motor are independent: one step moves all of them
        steps = np.eye(k) if len(law.directions) else np.ones((1, k))
        for kind in range(3):
            for step in steps:
                moved = [part + _STEP * step * (i == kind) for i, part in enumerate(parts)]
                change = (share(States(*moved), rigid) - here) / _STEP
                gradient[kind] += step * (change if len(steps) < k else change.sum(1)[:, None])
        if not self.robot.load_friction:
            return gradient, np.zeros_like(rigid)
        return gradient, (share(parts, rigid + _STEP) - here) / _STEP

    def geometry(self, position: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the positions (n, nq) of all joints, and the gaps (n, g) of a `View`."""
        return position, self.clearance.gaps(position)

    def random(self, count: int) -> States:
        """Return random states that the robot can be in."""
        return States(*random_states(self.robot, count))

    def base(self, regressor: FloatArray, labels: tuple[str, ...]) -> BaseParameters:
        return find_base_parameters(regressor, labels)


class _Linkage(_Common):
    def __init__(self, robot: Robot, moving: IndexArray, obstacles: Obstacles) -> None:
        super().__init__(robot, moving, obstacles)
        self._regressions = [
            ClosedChainRegression(load_robot(replace(robot.description, coulomb_velocity=width)))
            for width in self._widths
        ]
        self._closure = self._regressions[0].closure
        self._last = np.zeros((0, 0))

    def view(self, states: States, *, steer: bool = False) -> View:
        motion = self._closure.motion(*states, self._start(len(states.position)))
        self._last = motion.q
        valid = motion.valid.nonzero()[0]
        every = np.arange(self.robot.layout.size)
        A = np.zeros((len(motion.q), len(self.moving), len(every)))
        A[valid] = self._regressions[steer].contract(motion, valid, every)[:, self.moving]
        gaps = self._gaps(motion.q) if steer else _NO_GAPS
        return View(A[:, :, self.columns], A @ self._nominal, gaps)

    def pullback(self, states: States, by: View) -> States:
        def share(*parts: FloatArray) -> FloatArray:
            view = self.view(States(*parts), steer=True)
            sums = [(v * b).reshape(len(v), -1).sum(1) for v, b in zip(view, by, strict=True)]
            return np.asarray(np.sum(sums, axis=0))

        here = share(*states)
        gradient = np.zeros((3, *by.torque.shape))
        for kind in range(3):
            for k, joint in enumerate(self.moving.tolist()):
                moved = [part.copy() for part in states]
                moved[kind][:, joint] += _STEP
                gradient[kind, :, k] = (share(*moved) - here) / _STEP
        return States(*gradient)

    def _start(self, count: int) -> FloatArray | None:
        """Return the last motion's configurations: derivatives and steps stay close to it."""
        return self._last if len(self._last) == count else None

    def geometry(self, position: FloatArray) -> tuple[FloatArray, FloatArray]:
        rest = np.zeros_like(position)
        self._last = self._closure.motion(position, rest, rest, self._start(len(position))).q
        return self._last, self._gaps(self._last)

    def _gaps(self, q: FloatArray) -> FloatArray:
        room = np.array([-self._closure.excess(row) for row in q])
        room = np.where(np.isnan(room), _OPEN, room)
        return np.hstack([self.clearance.gaps(q), room])

    def random(self, count: int) -> States:
        q, v, a = random_closed_states(self._closure, count)
        return States(q[:, self.robot.actuated], v, a)

    def base(self, regressor: FloatArray, labels: tuple[str, ...]) -> BaseParameters:
        return well_conditioned_base(regressor, labels)


Mechanism = _Tree | _Linkage


def make_mechanism(robot: Robot, moving: IndexArray, obstacles: Obstacles) -> Mechanism:
    """Return the mechanism of a robot on a fixed base, of which some actuated joints move.

    Raises
    ------
    ModelError
        If its base floats.
    """
    if robot.floating:
        raise ModelError(
            f"robot '{robot.name}' has a floating base; exciting motions are designed for robots "
            "on a fixed base only"
        )
    if robot.linked:
        return _Linkage(robot, moving, obstacles)
    return _Tree(robot, moving, obstacles)
