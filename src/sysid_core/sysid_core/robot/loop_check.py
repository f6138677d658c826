# SPDX-License-Identifier: Apache-2.0
"""Checks that actuated joints determine a closed-chain robot's configuration (Assumption 1)."""

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ModelError
from sysid_core.robot.loops import LoopClosure

__all__ = ["LoopReport", "check_loops", "random_closed_configurations", "random_closed_states"]

_STARTS = 5  # Random starts per configuration, besides the home configuration


@dataclass(frozen=True)
class LoopReport:
    """What a check of the loops at random actuated configurations found.

    Assumption 1 of Zhang et al. asks that actuated positions determine the passive ones. It is
    checked where the linkage can be: coupled joints seldom reach every corner of their limits.
    """

    robot: str
    loops: tuple[str, ...]
    # equations, passive: number of closure equations and of passive joints.
    equations: int
    passive: int
    redundant: dict[str, int]  # Loop name → number of its equations that repeat others
    tried: int  # Random actuated configurations within the limits
    unreachable: int  # Those at which no start closed the loops
    beyond_limits: int  # Those that close only with passive joints beyond their limits
    reachable: int  # Those that close within the limits; the next figures concern these
    unique: int  # Those at which all starts that closed within the limits agreed
    residual: float  # [m, rad] largest residual
    condition: float  # [-] largest condition number of J_u

    @property
    def holds(self) -> bool:
        """Whether a unique solution exists at every reachable configuration tried."""
        return self.reachable > 0 and self.unique == self.reachable

    def lines(self) -> tuple[str, ...]:
        """Return the report as lines of text."""
        verdict = (
            "a unique solution exists"
            if self.holds
            else "does not hold: other assemblies fit within the limits of the passive joints; "
            "the one next to the zero configuration is followed"
            if self.reachable
            else "does not hold: no random configuration closes within the limits"
        )
        lines = [
            f"{len(self.loops)} loops ({', '.join(self.loops)}), {self.equations} closures for "
            f"{self.passive} passive joints",
            f"Assumption 1: {verdict} ({self.unique} of {self.reachable} reachable random "
            f"configurations unique, largest residual {self.residual:.1e}, largest condition "
            f"of J_u {self.condition:.0f})",
        ]
        lines += [
            f"loop '{name}': {count} of its closures repeat others"
            for name, count in self.redundant.items()
        ]
        lost = self.unreachable + self.beyond_limits
        if lost:
            lines.append(
                f"{lost} of {self.tried} configurations within the actuated limits cannot be "
                f"reached ({self.unreachable} leave a loop open, {self.beyond_limits} drive "
                "passive joints beyond their limits)"
            )
        return tuple(lines)


def random_closed_configurations(
    closure: LoopClosure, count: int, *, seed: int = 0, reach: float = 1.0
) -> FloatArray:
    """Return up to `count` random closed configurations (n, nq) within the limits.

    They are drawn from a share `reach` of the actuated joints' range about the home configuration,
    each solved from the nearest of those before it: half of all draws close nowhere, and to find
    that out is what takes long.
    """
    rng = np.random.default_rng(seed)
    active = closure.equations.actuated
    lower, upper = (bound[active] for bound in closure.robot.sampling_range)
    home = np.clip(closure.home[active], lower, upper)
    known = np.empty((count + 1, closure.robot.model.nq))  # home, then what was found
    known[0], n = closure.home, 1
    for _ in range(50 * count):
        if n > count:
            break
        q_a = home + reach * (rng.uniform(lower, upper) - home)
        nearest = np.abs(known[:n, active] - q_a).max(axis=1).argmin()
        found = closure.newton(q_a, known[nearest])
        if found.converged and closure.inside(found.configuration):
            known[n], n = found.configuration, n + 1
    return known[1:n]


def random_closed_states(
    closure: LoopClosure, count: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return closed configurations (n, nq), and velocities and accelerations (n, na) of actuators.

    Raises
    ------
    ModelError
        If the loops hardly ever close.
    """
    memo, key = closure.robot.memo, ("closed states", count)
    if key in memo:
        return memo[key]
    q = random_closed_configurations(closure, count)
    if len(q) < count:
        raise ModelError(
            f"robot '{closure.robot.name}' closes its loops at only {len(q)} of many random "
            "configurations within its limits; correct the limits of its joints"
        )
    v, a = np.random.default_rng(0).normal(size=(2, count, len(closure.equations.actuated)))
    memo[key] = found = q, v, a
    return found


def check_loops(closure: LoopClosure, *, count: int = 100) -> LoopReport:
    """Check that a solution exists and is unique at `count` random reachable configurations."""
    rng = np.random.default_rng(0)
    equations, robot = closure.equations, closure.robot
    lower, upper = robot.sampling_range
    active = equations.actuated
    tried = unreachable = beyond = reachable = unique = 0
    residual = condition = 0.0
    while reachable < count and tried < 20 * count:
        tried += 1
        q_a = rng.uniform(lower[active], upper[active])
        found = [closure.solve(q_a)]
        found += [closure.newton(q_a, rng.uniform(lower, upper)) for _ in range(_STARTS)]
        closed = [f for f in found if f.converged]
        inside = [f for f in closed if closure.inside(f.configuration)]
        if not inside:
            unreachable += not closed
            beyond += bool(closed)
            continue
        reachable += 1
        first = inside[0].configuration
        unique += all(np.abs(f.configuration - first).max() < 1e-6 for f in inside)
        residual = max(residual, inside[0].residual)
        condition = max(condition, closure.map(first)[1])
    return LoopReport(
        robot.name,
        equations.names,
        equations.size,
        len(equations.passive),
        closure.redundant,
        tried,
        unreachable,
        beyond,
        reachable,
        unique,
        residual,
        condition,
    )
