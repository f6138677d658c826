# SPDX-License-Identifier: Apache-2.0
"""Closed chains on a fixed base: rows ``Gᵀ[Y | F] x = u``, and torques in actuated coordinates."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.dynamics.base_parameters import BaseParameters, well_conditioned_base
from sysid_core.dynamics.friction import FrictionLaw
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.dynamics.rows import LeftOut, PerJoint, Rows, joint_rows
from sysid_core.recording import Samples
from sysid_core.robot.loop_check import random_closed_states
from sysid_core.robot.loops import (
    MAX_CONDITION,
    ClosedConfiguration,
    ClosedMotion,
    LoopClosure,
    MotionMaps,
)
from sysid_core.robot.model import Robot

__all__ = ["ClosedChainDynamics", "ClosedChainRegression"]

_ROUNDING = 1e-11
"""Share of a column's largest entry below which entries are rounding of J_u's inverse [-]."""
_SLACK = 0.01
"""References may take passive joints this far beyond their limits [rad]."""
_OPEN = Diagnostic(
    "open_loop",
    "{share} of the samples are left out: the loops do not close at their actuated positions",
    hint="check position offsets and the loops' frames",
)
_SINGULAR = Diagnostic(
    "singular_linkage",
    "{share} of the samples are left out: near a singular configuration of the linkage the "
    "actuated joints do not determine the passive motion",
)


class ClosedChainRegression(PerJoint):
    """Rows of a robot with kinematic loops, one group per actuated joint.

    Passive joints need no sensors: their positions are solved from the loops, their velocities
    and accelerations follow from q̇ = G q̇_a and q̈ = G q̈_a + Ġ q̇_a, and the constraint forces
    drop out of Gᵀτ (Zhang et al. eqs. 18–23 and 27–29). Measured passive positions only tell
    where to start.

    Raises
    ------
    RobotError
        If the robot has a passive joint that no loop determines, or loops that cannot close.
    """

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self.closure = LoopClosure(robot)
        self._tree = OpenTree(robot)
        self._last = self.closure.home

    @property
    def base(self) -> BaseParameters:
        """Structural base of the regressor, found at random closed states."""
        return self._structure[0]

    @property
    def supports(self) -> tuple[IndexArray, ...]:
        """Per group the base columns that its rows can fill; the others hold rounding only."""
        return self._structure[1]

    @cached_property
    def _structure(self) -> tuple[BaseParameters, tuple[IndexArray, ...]]:
        memo, gravity = self.robot.memo, self.robot.description.gravity
        key = ("closed base", self.robot.friction_scales.tobytes(), gravity)
        if key not in memo:
            memo[key] = self._found_structure()
        base, supports = memo[key]
        return base, supports

    def _found_structure(self) -> tuple[BaseParameters, tuple[IndexArray, ...]]:
        p = self.layout.size
        q, v, a = random_closed_states(self.closure, max(60, 4 * p // len(self.groups)))
        motion = self.closure.motion(q[:, self.robot.actuated], v, a, q)
        A = self.contract(motion, motion.valid.nonzero()[0], np.arange(p))
        base = well_conditioned_base(A.reshape(-1, p), self.layout.labels)
        size = np.abs(A[:, :, base.columns]).max(axis=0)
        filled = size > _ROUNDING * size.max(axis=0)
        return base, tuple(np.flatnonzero(row) for row in filled)

    def contract(
        self, motion: ClosedMotion, samples: IndexArray, columns: IndexArray
    ) -> FloatArray:
        """Return the columns of Gᵀ[Y | F] (n, na, k) at some of the samples."""
        q, v, a = motion.q[samples], motion.v[samples], motion.a[samples]
        GT = np.ascontiguousarray(np.swapaxes(motion.G[samples], 1, 2))
        return self._tree.projected(q, v, a, columns, GT)

    def passive_states(self, samples: Samples) -> ClosedMotion:
        """Return the states of all joints at the samples, solved from the actuated ones."""
        active = self.robot.actuated
        start = samples.position.copy()
        start[:, active] = np.nan
        if np.isnan(start).all():
            start = self._last
        motion = self.closure.motion(
            samples.position[:, active],
            samples.velocity[:, active],
            samples.acceleration[:, active],
            start,
        )
        valid = motion.valid.nonzero()[0]
        if len(valid):
            self._last = motion.q[valid[-1]]  # a warm start for the next batch, nothing more
        return motion

    def all_rows(self, samples: Samples) -> Rows:
        """Return the rows of the samples, one block per actuated joint.

        Samples whose loops do not close or whose J_u is near singular get no rows, so that
        estimates are held rather than spoiled.
        """
        motion = self.passive_states(samples)
        used = motion.valid.nonzero()[0]
        closed = np.isfinite(motion.q).all(axis=1)
        singular = closed & ~motion.valid
        causes = ((_OPEN, int((~closed).sum())), (_SINGULAR, int(singular.sum())))
        A = self.contract(motion, used, self.base.columns)
        effort = samples.effort[:, self.robot.actuated][used]
        pushed = self.pushed(samples.select(used), motion.q[used])
        if pushed is not None:
            pushed = np.einsum("nva,nv->na", motion.G[used], pushed)
        matrices = (np.ascontiguousarray(A[:, j]) for j in range(len(self.groups)))
        return joint_rows(matrices, effort, pushed, used, LeftOut(len(samples), causes))


class ClosedChainDynamics:
    """Torques of a robot with kinematic loops, u = Gᵀ(q) W(q, q̇, q̈) θ (Zhang et al. eq. 29).

    All arrays (na,) are in the order of the actuated joints. Each call starts the loops' solution
    from that of the call before, so that motion in small steps costs least.

    Where the loops do not close, or near a singular configuration, results are NaN and `failure`
    says why: a caller in a control loop must look, not catch. The width of the smoothed sign of
    dry friction [rad/s] is the description's, unless given.

    Raises
    ------
    RobotError
        If the robot has a passive joint that no loop determines, or loops that cannot close.
    """

    def __init__(self, robot: Robot, sign_width: float | None = None) -> None:
        self.closure = LoopClosure(robot)
        self.joint_names = robot.actuated_names
        self.configuration = self.closure.home  # (nq,) [rad] of all joints, as last solved
        self.failure: Diagnostic | None = None  # Why the last result is NaN
        self.tree = OpenTree(robot, sign_width)  # The robot with its loops cut
        self.set_parameters = self.tree.set_parameters
        middle = np.mean(robot.sampling_range, axis=0)[robot.actuated]
        found = self.closure.solve(middle)
        fits = found.converged and self.closure.inside(found.configuration)
        self.rest = found.configuration if fits else self.closure.home
        # home, rest: (na,), (nq,) [rad] actuated and all positions in the middle of the ranges, or
        # in the closure's home.
        self.home = self.rest[self.closure.equations.actuated]
        self._tangent = np.zeros((robot.model.nv, len(self.joint_names)))
        self._jacobian: FloatArray | None = None  # at `configuration`, where it is known
        self._closed = True
        self._robot = robot

    @property
    def friction(self) -> FrictionLaw:
        """The friction law in use."""
        return self.tree.friction

    def close(self, position: FloatArray) -> bool:
        """Solve the loops at actuated positions (na,) [rad]; False, with `failure`, if they fail.

        Raises
        ------
        ModelError
            If `position` is not one finite number per actuated joint.
        """
        start = self.configuration
        if position.shape == (len(self.joint_names),):
            start = self.closure.predict(start, self._tangent, position)
        # out of reach, one failure in full is enough: the way back leads past where it closed last
        found = self.closure.solve(position, start, persist=self._closed)
        self.failure, self._closed = None, found.converged
        if found.converged:
            self.configuration, self._jacobian = found.configuration, found.jacobian
        else:
            self._tangent = np.zeros_like(self._tangent)
            self.failure = self._gap(found, position)
        return found.converged

    def _gap(self, found: ClosedConfiguration, position: FloatArray) -> Diagnostic:
        return Diagnostic(
            "open_loop",
            f"the loops of '{self._robot.name}' leave a gap of {found.residual:.2g} m or rad "
            f"at actuated positions {np.round(position, 4).tolist()}",
            Severity.ERROR,
            hint="keep references within the linkage's reach",
        )

    def unreachable(self, positions: FloatArray) -> Diagnostic | None:
        """Say why the linkage cannot follow actuated positions (n, na) [rad]; None if it can.

        Each position is solved from the one before. Passive joints that start beyond their limits
        may stay there, but go no further. What other methods return is not affected.
        """
        closure, last = self.closure, self.configuration
        allowed = np.full(len(closure.equations.passive), _SLACK)
        for k, position in enumerate(positions):
            found = closure.newton(position, last)
            if not found.converged:
                found = closure.newton(position, closure.home)
            if not found.converged:
                return self._gap(found, position)
            last = found.configuration
            beyond = closure.excess(last)
            if k == 0:
                allowed = np.maximum(allowed, beyond + _SLACK)
            if (beyond > allowed).any():
                return self._beyond(position, beyond)
            condition = closure.map(last, found.jacobian)[1]
            if condition > MAX_CONDITION:
                return self._near_singular(condition)
        return None

    def _beyond(self, position: FloatArray, beyond: FloatArray) -> Diagnostic:
        worst = int(np.argmax(beyond))
        joint = self._robot.joint_names[self.closure.equations.passive[worst]]
        return Diagnostic(
            "beyond_limits",
            f"actuated positions {np.round(position, 4).tolist()} of '{self._robot.name}' drive "
            f"passive joint '{joint}' {beyond[worst]:.2g} rad beyond its limits",
            Severity.ERROR,
            hint="keep references within the linkage's reach",
        )

    def _near_singular(self, condition: float) -> Diagnostic:
        return Diagnostic(
            "singular_linkage",
            f"the linkage of '{self._robot.name}' is near a singular configuration (condition "
            f"{condition:.2g} of J_u, at most {MAX_CONDITION:.2g} is "
            "allowed)",
            Severity.ERROR,
            hint="keep away from it",
        )

    def _maps(self, position: FloatArray, velocity: FloatArray) -> MotionMaps | None:
        """Return the maps at a state; None, with `failure`, where there are none."""
        if not self.close(position):
            return None
        maps = self.closure.maps(self.configuration, velocity, self._jacobian)
        regular = maps.condition <= MAX_CONDITION
        self._tangent = maps.G if regular else np.zeros_like(maps.G)
        if not regular:
            self.failure = self._near_singular(maps.condition)
        return maps if regular else None

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        sliding: FloatArray | None = None,
    ) -> FloatArray:
        """Return the torque (na,) [N·m] of a motion; NaN, with `failure`, where there is none.

        `sliding` (na,) [rad/s] is the velocity that friction sees, by default `velocity`.
        """
        maps = self._maps(position, velocity)
        if maps is None:
            return np.full(len(position), np.nan)
        G = maps.G
        seen = None if sliding is None else G @ sliding
        full = G @ acceleration + maps.G_dot @ velocity
        torque = self.tree.torque(self.configuration, G @ velocity, full, seen)
        return np.asarray(G.T @ torque, dtype=float)

    def torques(
        self, q: FloatArray, v: FloatArray, a: FloatArray, slack: float = np.inf
    ) -> FloatArray:
        """Return the torques (n, na) [N·m] of states (n, na), each solved from the one before.

        They are NaN where loops do not close or passive joints are more than `slack` [rad] beyond
        their limits.
        """
        motion = self.closure.motion(q, v, a, self.rest)
        ok = motion.valid.copy()
        ok[ok] = [self.closure.inside(row, slack) for row in motion.q[ok]]
        torques = np.full(q.shape, np.nan)
        full = self.tree.torques(motion.q[ok], motion.v[ok], motion.a[ok])
        torques[ok] = np.einsum("nva,nv->na", motion.G[ok], full)
        return torques

    def gravity(self, position: FloatArray) -> FloatArray:
        """Return the torque (na,) [N·m] that holds a configuration at rest."""
        maps = self._maps(position, np.zeros_like(position))
        if maps is None:
            return np.full(len(position), np.nan)
        return np.asarray(maps.G.T @ self.tree.gravity(self.configuration), dtype=float)

    def inertia(self, position: FloatArray) -> FloatArray:
        """Return the inertia Gᵀ(M + Ia)G (na, na) [kg·m²] that the actuated joints feel."""
        maps = self._maps(position, np.zeros_like(position))
        if maps is None:
            return np.full((len(position), len(position)), np.nan)
        inertia = self.tree.inertia(self.configuration)
        return np.asarray(maps.G.T @ inertia @ maps.G, dtype=float)

    def acceleration(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> FloatArray:
        """Return the actuated acceleration (na,) [rad/s²] that torques (na,) [N·m] cause.

        From u = Gᵀ(M(G q̈_a + Ġ q̇_a) + …): what drives q̈_a is u less the torque at q̈_a = 0.
        """
        maps = self._maps(position, velocity)
        if maps is None:
            return np.full(len(position), np.nan)
        G, q = maps.G, self.configuration
        bias = G.T @ self.tree.torque(q, G @ velocity, maps.G_dot @ velocity)
        inertia = G.T @ self.tree.inertia(q) @ G
        return np.asarray(np.linalg.solve(inertia, effort - bias), dtype=float)
