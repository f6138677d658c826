# SPDX-License-Identifier: Apache-2.0
"""Kinematic loops: solves passive joints from actuated ones, with the maps of their motion."""

import math

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ModelError, RobotError, found_in
from sysid_core.robot.loop_equations import (
    ClosedConfiguration,
    ClosedMotion,
    LoopEquations,
    MotionMaps,
)
from sysid_core.robot.model import Robot

__all__ = ["MAX_CONDITION", "ClosedConfiguration", "ClosedMotion", "LoopClosure", "MotionMaps"]

_TOLERANCE = 1e-12  # [m, rad] largest residual of any closure equation that counts as closed
_MAX_ITERATIONS = 40  # Levenberg–Marquardt steps of one solve
_MAX_STEP = 0.1  # [rad] of actuated joints between the steps of a continuation
MAX_CONDITION = 300.0
"""Condition number of J_u beyond which a configuration counts as singular [-].

A four-bar reaches it at 1e-4 rad, an encoder's error, from its dead point.
"""
_HOME_STARTS = 60
_BEYOND = 0.3  # [rad] that passive joints may exceed their limits in the robot's own assembly
_NEAR = 0.1  # [rad] that passive joints move at most in one step without changing assembly
_STALL = 0.01  # relative change of the squared residual of a step that leads nowhere
_STALLS = 3  # such steps in a row after which a gap remains
_FARTHEST = 4.0 * math.pi  # [rad] from home that a linkage is led: two turns, none goes farther


class LoopClosure:
    """Solves a robot's loops: q_u = Γ(q_a), and the maps between actuated and full motion.

    Raises
    ------
    RobotError
        If the robot has no loops, a passive joint that no loop determines, or loops that cannot
        close, only repeat others, or fix actuated joints.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        with found_in(robot.name):
            self.equations = LoopEquations(robot)
            self._a, self._u = self.equations.actuated, self.equations.passive
            self._eye = np.eye(len(self._u))
            self._selection = np.eye(robot.model.nv)[:, self._a]  # G but for its passive rows
            self._lower, self._upper = robot.limits.lower[self._u], robot.limits.upper[self._u]
            # (nq,) [rad], within the limits: the assembly that the robot has
            self.home: FloatArray = self._find_home()
            self.home.setflags(write=False)
            # Loop name → number of its equations that repeat others (planar linkages have some)
            self.redundant = self.equations.redundant_rows(self._near_home())

    # -- positions --------------------------------------------------------------------------

    def newton(self, q_a: FloatArray, start: FloatArray) -> ClosedConfiguration:
        """Solve the loops at q_a (na,) [rad] from one start (nq,) [rad], without a second try.

        Levenberg–Marquardt with a damping that vanishes with the squared residual: as fast as
        Newton near the solution (Yamashita & Fukushima 2001), and safe far from it.
        """
        u, evaluate = self._u, self.equations.residual_and_jacobian
        q = np.array(start, dtype=float)
        q[self._a] = q_a
        r, J = evaluate(q)
        square, damping, iterations, stalled = float(r @ r), 1.0, 0, 0
        while (
            square > _TOLERANCE**2
            and np.abs(r).max() > _TOLERANCE
            and iterations < _MAX_ITERATIONS
            and stalled < _STALLS
        ):
            iterations += 1
            J_u = J[:, u]
            normal = J_u.T @ J_u + max(damping * square, 1e-15) * self._eye
            trial = q.copy()
            trial[u] -= np.linalg.solve(normal, J_u.T @ r)
            r_next, J_next = evaluate(trial)
            square_next = float(r_next @ r_next)
            stalled = stalled + 1 if abs(square_next - square) < _STALL * square else 0
            if square_next < square:
                q, J, r, square = trial, J_next, r_next, square_next
                damping *= 0.25
            elif square < 100.0 * _TOLERANCE**2:
                break  # rounding keeps it from falling further
            else:
                damping = max(10.0 * damping, 1e-3)
        error = float(np.abs(r).max())
        return ClosedConfiguration(q, error, iterations, error <= _TOLERANCE, J)

    def excess(self, q: FloatArray) -> FloatArray:
        """Return how far the passive joints (nu,) are beyond their limits [rad]; within, < 0."""
        u = q[self._u]
        return np.maximum(self._lower - u, u - self._upper)

    def inside(self, q: FloatArray, slack: float = 0.0) -> bool:
        """Tell whether the passive joints keep their limits to within `slack` [rad]."""
        return bool((self.excess(q) <= slack).all())

    def solve(
        self, q_a: FloatArray, start: FloatArray | None = None, *, persist: bool = True
    ) -> ClosedConfiguration:
        """Solve the loops at q_a (na,) [rad], q_u = Γ(q_a) (Zhang et al. eq. 18).

        The start (nq,) [rad] is a configuration nearby, by default the home. Where the direct
        solve fails or ends on another assembly of the linkage (passive joints far beyond their
        limits), the linkage is led from its home to `q_a` in small steps; to `persist` is to do so
        where nothing is found at all. What lies farther than two turns from there counts as not
        closed: the cost is bounded.

        Raises
        ------
        ModelError
            If `q_a` does not hold one finite number per actuated joint.
        """
        if q_a.shape != self._a.shape or not math.isfinite(q_a.sum()):
            raise ModelError(
                f"robot '{self.robot.name}' has {len(self._a)} actuated joints: give that many "
                f"finite positions, got {q_a}"
            )
        found = self.newton(q_a, self.home if start is None else start)
        if found.converged and self._same_assembly(found.configuration, start):
            return found
        if not (found.converged or persist):
            return found
        distance = float(np.abs(q_a - self.home[self._a]).max())
        if distance > _FARTHEST:
            return found._replace(converged=False)
        return self._lead(q_a, distance)

    def _same_assembly(self, q: FloatArray, start: FloatArray | None) -> bool:
        """Tell whether passive joints are about within their limits, or close to their start."""
        beyond = self.excess(q).max()
        near = start is not None and np.abs(q - start)[self._u].max() < _NEAR
        return bool(beyond <= _BEYOND or near)

    def _lead(self, q_a: FloatArray, distance: float) -> ClosedConfiguration:
        origin = self.home[self._a]
        steps = max(1, math.ceil(distance / _MAX_STEP))
        found = self.newton(origin, self.home)
        iterations = 0
        for share in np.arange(1, steps + 1) / steps:
            found = self.newton(origin + share * (q_a - origin), found.configuration)
            iterations += found.iterations
            if not found.converged:
                found = self.newton(q_a, found.configuration)
                iterations += found.iterations
                break
        return found._replace(iterations=iterations)

    def _find_home(self) -> FloatArray:
        rng = np.random.default_rng(0)
        lower, upper = self.robot.sampling_range
        q = np.clip(0.0, lower, upper)
        best = self.newton(q[self._a], q)
        for _ in range(_HOME_STARTS):
            found = self.newton(q[self._a], q)
            if found.converged and self.inside(found.configuration):
                return found.configuration
            if found.residual < best.residual:
                best = found
            q = rng.uniform(lower, upper)
        raise self._cannot_close(best)

    def _cannot_close(self, best: ClosedConfiguration) -> RobotError:
        if best.converged:
            beyond = self.excess(best.configuration)
            joint = self.robot.joint_names[self._u[int(np.argmax(beyond))]]
            return RobotError(
                f"the loops close only with passive joint '{joint}' beyond its limits (by "
                f"{beyond.max():.3g} rad): correct its limits or the loops' frames"
            )
        r = np.abs(self.equations.residual(best.configuration))
        gaps = [float(r[rows].max()) for rows in self.equations.rows]
        worst = int(np.argmax(gaps))
        return RobotError(
            f"loop '{self.equations.names[worst]}' cannot close: {_HOME_STARTS} starts left a gap "
            f"of at least {gaps[worst]:.3g} m or rad; correct its frame_a and frame_b, "
            "or declare more joints passive"
        )

    def _near_home(self) -> FloatArray:
        """Return a closed configuration off the symmetric, perhaps singular home."""
        rng = np.random.default_rng(1)
        for _ in range(10):
            found = self.newton(
                self.home[self._a] + rng.normal(0.0, 0.02, len(self._a)), self.home
            )
            if found.converged:
                return found.configuration
        return self.home

    def predict(self, q: FloatArray, G: FloatArray, q_a: FloatArray) -> FloatArray:
        """Return a first guess (nq,) at `q_a` from a closed configuration and its G nearby."""
        step = q_a - q[self._a]
        # beyond this the linkage is too curved for its tangent to help
        return q + G @ step if abs(step).max() < 0.2 else q

    # -- motion -----------------------------------------------------------------------------

    def map(self, q: FloatArray, jacobian: FloatArray | None = None) -> tuple[FloatArray, float]:
        """Return G (nv, na) with G_u = −J_u⁻¹ J_a at q (nq,) [rad], and J_u's condition number.

        The Jacobian (m, nv) of the closure equations need not be made again where it is known.
        """
        G, condition, _ = self._map(q, jacobian)
        return G, condition

    def _map(
        self, q: FloatArray, jacobian: FloatArray | None
    ) -> tuple[FloatArray, float, FloatArray]:
        J = self.equations.jacobian(q) if jacobian is None else jacobian
        J_u = J[:, self._u]
        G = self._selection.copy()
        try:
            inverse = _inverse(J_u)
        except np.linalg.LinAlgError:
            return G, np.inf, np.zeros((len(self._u), len(J)))
        G[self._u] = -(inverse @ J[:, self._a])
        # joints on short levers must not count as nearly singular: columns of unit length
        squares = np.einsum("ij,ij->j", J_u, J_u) @ np.einsum("ij,ij->i", inverse, inverse)
        return G, math.sqrt(len(self._u) * squares), inverse

    def maps(
        self, q: FloatArray, v_a: FloatArray, jacobian: FloatArray | None = None
    ) -> MotionMaps:
        """Return G and Ġ at a closed configuration (nq,) [rad] and speeds (na,) [rad/s].

        From J G = 0: Ġ_a = 0 and Ġ_u = −J_u⁻¹ J̇ G (Zhang et al. eq. 22); the Jacobian as for
        `map`.
        """
        G, condition, inverse = self._map(q, jacobian)
        G_dot = np.zeros_like(G)
        G_dot[self._u] = -(inverse @ (self.equations.jacobian_dot(q, G @ v_a) @ G))
        return MotionMaps(G, G_dot, condition)

    def motion(
        self, q_a: FloatArray, v_a: FloatArray, a_a: FloatArray, start: FloatArray | None = None
    ) -> ClosedMotion:
        """Return the states of the whole robot along actuated motion, each warm-started.

        Arrays are (n, na) [rad, rad/s, rad/s²]. The start (nq,) or (n, nq) [rad] is the first
        guess, of the first state or of each; NaN entries are filled from the state before. None:
        the home configuration.

        Raises
        ------
        ModelError
            If the arrays do not have one column per actuated joint.
        """
        n, na = q_a.shape
        if na != len(self._a) or v_a.shape != q_a.shape or a_a.shape != q_a.shape:
            raise ModelError(
                f"robot '{self.robot.name}' has {len(self._a)} actuated joints, got "
                f"{q_a.shape}, {v_a.shape} and {a_a.shape}"
            )
        out = ClosedMotion.unknown(n, self.robot.model.nv, na)
        finite = np.isfinite(q_a).all(1) & np.isfinite(v_a).all(1) & np.isfinite(a_a).all(1)
        last = self.home if start is None or start.ndim == 2 else start
        G = np.zeros((self.robot.model.nv, na))
        closed = True
        for i in np.flatnonzero(finite):
            guess = self.predict(last, G, q_a[i])
            if start is not None and start.ndim == 2:
                guess = np.where(np.isfinite(start[i]), start[i], guess)
            # out of reach, one failure in full is enough: the way back starts from `last`
            found = self.solve(q_a[i], guess, persist=closed)
            closed = found.converged
            out.residual[i], out.iterations[i] = found.residual, found.iterations
            if not closed:
                continue
            last = q = found.configuration
            G, G_dot, out.condition[i] = self.maps(q, v_a[i], found.jacobian)
            out.q[i], out.v[i], out.G[i] = q, G @ v_a[i], G
            out.a[i] = G @ a_a[i] + G_dot @ v_a[i]
            out.valid[i] = out.condition[i] <= MAX_CONDITION
            if not out.valid[i]:
                G = np.zeros_like(G)  # its tangent leads astray
        return out


def _inverse(J_u: FloatArray) -> FloatArray:
    """Return the inverse (nu, m) of J_u, in the least-squares sense for redundant rows."""
    if J_u.shape[0] == J_u.shape[1]:
        return np.asarray(np.linalg.inv(J_u), dtype=float)
    U, s, Vt = np.linalg.svd(J_u, full_matrices=False)
    if s[-1] <= 1e-14 * s[0]:
        raise np.linalg.LinAlgError
    return np.asarray((Vt.T / s) @ U.T, dtype=float)
