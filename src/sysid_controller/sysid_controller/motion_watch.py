# SPDX-License-Identifier: Apache-2.0
"""Watches a motion that is played: tracking, and torques that nothing explains but a contact."""

from collections import deque
from typing import NamedTuple

import numpy as np
import scipy.linalg

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.select import make_regression
from sysid_core.inertia import pseudo_inertia, pseudo_inertia_basis
from sysid_core.priors import default_prior, free_parameters
from sysid_core.recording import Samples
from sysid_core.robot import Robot
from sysid_core.robot.strength import torque_scale

__all__ = ["ContactWatch", "MotionWatch"]

_AHEAD = 0.15  # [s] that errors are looked ahead: a blocked joint shows in its velocity first
_BLOCK = 0.02
"""Time [s] over which momentum changes, and that a velocity has to be off: noise and late cycles
count the less, the longer it is."""
_BLOCKS = 2  # In a row that have to be beyond all doubt: one may be a lost message or a shock
_DOUBT = 5.0
"""Standard deviations of a torque that the model still explains: one in 10⁶ if they are normal."""
_NOISE = 0.01  # Of torques, as a share of the joint's scale, before any is seen: ripple, gears
_LEAST_NOISE = 0.002  # The same, at least: resolution
_PRIOR_BLOCKS, _MOST_BLOCKS = 25.0, 500.0
"""Blocks that this first guess counts for, and those in which it is learned anew, 10 s."""
_BEHIND = 15  # Blocks, 0.3 s, that learning is behind: a contact is found before it is learned
_COLOUR = 10.0  # Blocks that tell as much as one would alone: a model's error stays for a while
_FORGET = 1.01  # By which the shortest time between states is forgotten with each of them
_REST = 0.02  # Speed [rad/s] around which dry friction takes any value up to its size
_SLIPS = 5.0 * _REST  # Speed [rad/s] from which on a joint does not stick and slip by itself
_HELD = 0.1  # Share of the speed that is asked for below which a joint stands still [-]
_STANDS = 0.12
"""Time [s] that it has to stand still: most of the 0.2 s in which a person is to be let go, since
one that only sticks is on its way again by then."""
_LATE = 0.15  # [s] that it has been asked to go on: drives may follow so late


class _Block(NamedTuple):
    """What was measured in a short time, for every joint."""

    rows: FloatArray  # (na, b)
    torque: FloatArray  # (na,) [N·m]
    hidden: FloatArray  # (na,) [N²·m²] variance by dry friction at rest
    rested: FloatArray  # (na,) blocks for which the joint has been at rest
    known: BoolArray  # (na,) whether the model explains it


class MotionWatch:
    """Judges how a motion is followed.

    A joint that followed and stands still while it is still asked to go on is held: what its
    friction let pass it does not stop, whatever it amounts to. So joints that are too light for
    their torques to tell are found, too. One that starts or turns may stick for a while, and one
    that was ahead may wait until it is as far behind as it stood. One that goes back does not
    stand: a soft drive that overshot brings it back, and turns it round by itself; where somebody
    pushes it, torques and the tolerance tell. The tolerance [rad] is the largest error of a
    joint's position, now or where it is heading.
    """

    def __init__(self, joint_names: tuple[str, ...], tolerance: float) -> None:
        self._names, self._tolerance = joint_names, tolerance
        none = np.full(len(joint_names), np.inf)
        self._asked, self._went, self._stood = -none, -none, none
        self._way, self._astray = np.zeros((2, len(joint_names)))
        self._strays = none

    def judge(
        self, time: float, asked: FloatArray, velocity: FloatArray, error: FloatArray
    ) -> str:
        """Say why the robot must stop; empty while it need not.

        Velocities asked for and measured are (na,) [rad/s], the error (na,) [rad] is the wanted
        position less the measured one, all at the time of joint states [s].
        """
        return self._follows(time, asked - velocity, error) or self._goes_on(
            time, asked, velocity, error
        )

    def _goes_on(
        self, time: float, asked: FloatArray, velocity: FloatArray, error: FloatArray
    ) -> str:
        way = np.where(np.abs(asked) > _SLIPS, np.sign(asked), 0.0)
        pace = way * velocity
        self._asked = np.where((way == 0.0) | (way != self._way), time, self._asked)
        self._way = way
        goes = (way != 0.0) & (pace > 0.5 * np.abs(asked))
        self._went = np.where(goes, time, self._went)
        moved = self._went >= self._asked
        held = moved & (way != 0.0) & (np.abs(pace) < _HELD * np.abs(asked))
        self._stood = np.where(held, np.minimum(self._stood, time), np.inf)
        behind = way * error > _STANDS * np.abs(asked)
        lasts = behind & (time - self._stood > _STANDS) & (time - self._asked > _LATE)
        if not lasts.any():
            return ""
        j = int(np.argmax(lasts))
        return (
            f"joint '{self._names[j]}' stands still that moved just now, and should go on at "
            f"{asked[j]:+.3g} rad/s: is it blocked?"
        )

    def _follows(self, time: float, velocity_error: FloatArray, error: FloatArray) -> str:
        soon = error + _AHEAD * np.nan_to_num(velocity_error)
        ahead, now = np.abs(soon), np.abs(error)
        astray = np.where(ahead > self._tolerance, np.sign(soon), 0.0)
        self._strays = np.where(astray == self._astray, self._strays, time)
        self._astray = astray
        lasts = (astray != 0.0) & (time - self._strays >= _BLOCK)
        off = (now > self._tolerance) | lasts
        if not off.any():
            return ""
        j = int(np.argmax(np.where(off, np.maximum(ahead, now), 0.0)))
        return (
            f"joint '{self._names[j]}' is {1e3 * now[j]:.0f} mrad from where it should be, and "
            f"soon {1e3 * ahead[j]:.0f}, more than {1e3 * self._tolerance:.0f}: is it blocked, "
            "or its model far off?"
        )


class ContactWatch:
    """Tells torques of a contact from those that the model may be wrong by.

    As an observer of momentum does, it compares over short blocks of time the mean torque with the
    change of momentum and what gravity and friction take (De Luca et al. 2006). The model is not
    one but all that its prior holds likely, ``φ ~ N(φ₀, Σ)``: the difference ``e = τ − A φ`` has
    the variance ``A P Aᵀ + R``, and every block that a model explains narrows P (Kalman). What it
    leaves unexplained is learned as R. Dry friction at rest widens the bound by its size; it stays
    as it is while a joint rests, so that a rest tells as much as one block, however long.
    """

    def __init__(self, robot: Robot) -> None:
        self._regression = make_regression(robot)
        self._robot, self._names = robot, robot.actuated_names
        base = self._regression.base
        mean, covariance = _prior(robot)
        self._estimate = base.project(mean)
        self._covariance = base.mapping @ covariance @ base.mapping.T
        scale = torque_scale(robot)[robot.actuated]
        self._noise, self._least = (_NOISE * scale) ** 2, (_LEAST_NOISE * scale) ** 2
        self._learned = np.full(len(scale), _PRIOR_BLOCKS)
        self._fresh: deque[_Block] = deque()
        dry = np.arange(robot.layout.size)[robot.layout.term("coulomb")][robot.actuated]
        self._dry = base.places(dry)
        self._has_dry = self._dry >= 0
        self._begin: tuple[float, FloatArray] | None = None
        self._last: tuple[float, FloatArray] = 0.0, np.zeros(3)
        self._integral: FloatArray = np.zeros(3)
        self._period = np.inf  # [s] from state to state where none is lost
        self._beyond = np.zeros(len(self._names), dtype=int)
        self._rested = np.zeros(len(self._names))

    def push(
        self, time: float, position: FloatArray, velocity: FloatArray, effort: FloatArray
    ) -> str:
        """Take a measured state (na,) [rad, rad/s, N·m], and say why the robot must stop, if so.

        What is not finite counts as right.
        """
        state = np.array([position, velocity, effort])
        if self._begin is None or time < self._last[0]:
            self._start(time, state)
            return ""
        self._integral = self._integral + self._meanwhile(time - self._last[0], state)
        self._last = time, state
        elapsed = time - self._begin[0]
        if elapsed < _BLOCK:
            return ""
        acceleration = (velocity - self._begin[1]) / elapsed
        q, v, torque = self._integral / elapsed
        self._start(time, state)
        return self._judge(time, q, v, acceleration, torque)

    def _meanwhile(self, elapsed: float, state: FloatArray) -> FloatArray:
        """Return the integral (3, na) over a time [s] that leads to a state (3, na).

        The mean of those states that came is another one where some were lost. An effort is what
        acted for the period until its state.
        """
        if elapsed <= 0.0:
            return np.zeros_like(state)
        self._period = min(_FORGET * self._period, elapsed)
        share = np.array([0.5, 0.5, 0.5 * (1.0 + self._period / elapsed)])[:, None]
        return elapsed * (share * state + (1.0 - share) * self._last[1])

    def _start(self, time: float, state: FloatArray) -> None:
        """Begin a block at a state (3, na)."""
        self._begin, self._last = (time, state[1]), (time, state)
        self._integral = np.zeros_like(state)

    def _judge(
        self, time: float, q: FloatArray, v: FloatArray, a: FloatArray, torque: FloatArray
    ) -> str:
        rows = self._rows(time, q, v, a)
        if rows is None:
            return ""
        slow = np.exp(-((v / _REST) ** 2))
        (low, low_bound), (high, high_bound) = (
            self._explained(self._slipping(rows, slow, way)) for way in (-1.0, 1.0)
        )
        below, above = low - torque, torque - high
        error = np.maximum(below, above)
        bound = np.where(below > above, low_bound, high_bound)
        unexplained = np.isfinite(error) & (error > bound)
        self._beyond = np.where(unexplained, self._beyond + 1, 0)
        size = self._estimate[self._dry] ** 2 + self._covariance[self._dry, self._dry]
        self._rested = np.where(slow > 0.5, self._rested + 1.0, 0.0)
        known = np.isfinite(error) & ~unexplained
        hidden = slow**2 * size * self._has_dry
        still = self._slipping(rows, slow, 0.0)
        self._fresh.append(_Block(still, torque, hidden, self._rested, known))
        if len(self._fresh) > _BEHIND:
            self._learn(self._fresh.popleft())
        if self._beyond.max() < _BLOCKS:
            return ""
        j = int(np.argmax(np.where(self._beyond >= _BLOCKS, error / bound, 0.0)))
        return (
            f"joint '{self._names[j]}' gives {torque[j]:.4g} N·m where its model asks for "
            f"{np.clip(torque[j], low[j], high[j]):.4g}, more than {bound[j]:.4g} apart: is it "
            "blocked, or its model far off?"
        )

    def _slipping(self, rows: FloatArray, slow: FloatArray, way: float) -> FloatArray:
        """Return rows whose dry friction acts one way (±1), or not at all (0), at rest."""
        rows, joints = rows.copy(), np.flatnonzero(self._has_dry)
        columns = self._dry[joints]
        moving = (1.0 - slow[joints]) * rows[joints, columns]
        rows[joints, columns] = moving + way * slow[joints]
        return rows

    def _explained(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the torque (na,) [N·m] that rows expect, and how far it may be off."""
        variance = np.einsum("jb,bc,jc->j", rows, self._covariance, rows)
        return rows @ self._estimate, _DOUBT * np.sqrt(variance + self._noise)

    def _rows(self, time: float, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray | None:
        """Return the regressor (na, b); None where a linkage has none."""
        count, active = len(self._robot.joint_names), self._robot.actuated
        states = np.full((4, 1, count), np.nan)
        for row, values in zip(states, (q, v, a, np.zeros_like(q)), strict=True):
            row[0, active] = values
        rows = self._regression.rows(Samples(np.array([time]), *states))
        if any(len(block.matrix) == 0 for block in rows.blocks):
            return None
        return np.array([block.matrix[0] for block in rows.blocks])

    def _learn(self, block: _Block) -> None:
        """Narrow the model by a block, and note how large the part is that it leaves unexplained.

        The noise is the mean of the guess, as so many blocks, and of what was seen since.
        """
        for j in np.flatnonzero(block.known):
            row, torque, hidden = block.rows[j], block.torque[j], block.hidden[j]
            repeated = block.rested[j] * (block.rested[j] + 1.0)  # Σ 1/k(k+1) = 1
            error = torque - row @ self._estimate
            gain = self._covariance @ row
            variance = float(row @ gain)
            excess = max(error**2 - variance - hidden, self._least[j])
            self._learned[j] = min(self._learned[j] + 1.0, _MOST_BLOCKS)
            self._noise[j] += (excess - self._noise[j]) / self._learned[j]
            gain_size = variance + _COLOUR * self._noise[j] + max(repeated, _COLOUR) * hidden
            self._estimate = self._estimate + gain / gain_size * error
            self._covariance = self._covariance - np.outer(gain, gain) / gain_size


def _prior(robot: Robot) -> tuple[FloatArray, FloatArray]:
    """Return mean (p,) and covariance (p, p) of what is believed of a robot's parameters.

    Of a body it is the inverse Hessian of its log-det divergence (Lee, Wensing & Park 2020).
    """
    prior, layout, free = default_prior(robot), robot.layout, free_parameters(robot)
    basis, blocks = pseudo_inertia_basis(), []
    for phi, std in zip(layout.inertias(prior.mean), prior.body_std, strict=True):
        scaled = np.linalg.solve(pseudo_inertia(phi), basis)
        hessian = np.einsum("kij,lji->kl", scaled, scaled) / (4.0 * std**2)
        blocks.append(np.linalg.inv(hessian))
    std = prior.scalar_std * np.abs(prior.mean)
    offset = layout.term("offset")
    std[offset] = prior.scalar_std[offset]
    covariance = scipy.linalg.block_diag(*blocks, np.diag(std[layout.friction] ** 2))
    covariance[~free] = covariance[:, ~free] = 0.0
    return prior.mean, covariance
