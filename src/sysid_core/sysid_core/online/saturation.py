# SPDX-License-Identifier: Apache-2.0
"""Notices torques that are cut off: a value that stays while the motion asks for others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import LeftOut, Regression, Rows
from sysid_core.recording import Samples
from sysid_core.signals.plateaus import ALIKE, FEWEST, FrequentValues, most_alike

__all__ = ["ASKED", "CutEfforts", "Saturation", "cut_off", "needs", "varies"]

ASKED = 0.05
"""Share of the usual torque by which the nominal one must vary over those rows: a torque that is
constant because the motion needs no other is not cut off [-]."""

_BENDS = 0.1
"""Share of the samples from which efforts that are cut off would bend a model [-]: a coarse one
that begins slowly looks cut off for a few."""


class Saturation:
    """Rows of every group that lie at zero, as where a driver swallows small torques.

    What is left without them would be biased, so that nothing is learned there. No threshold has
    to be known, and the torque's unit does not matter. Takes the groups' usual torques (G,) [N·m],
    of which those that the motion needs must show a share, and after how many samples rows count
    half.
    """

    def __init__(self, groups: tuple[str, ...], usual: FloatArray, half_life: float) -> None:
        self._groups, self._usual = groups, usual
        self._forget = 0.5 ** (1.0 / half_life)
        self._last = np.full(len(groups), np.nan)
        self._rows = np.zeros(len(groups))
        self._square = np.zeros(len(groups))  # [N²·m²] sum over those rows
        # with sums and sums of squares of what the nominal model needs there
        self._values = FrequentValues(len(groups), 2)

    def push(self, rows: Rows, nominal: FloatArray, samples: int) -> None:
        """Look at the rows of some samples; `nominal` are base parameters (b,)."""
        fade = self._forget**samples
        self._rows *= fade
        self._square *= fade
        self._values.sums *= fade
        for g, block in enumerate(rows.blocks):
            values = block.target
            if not len(values):
                continue
            before = np.append(self._last[g], values[:-1])
            self._last[g] = values[-1]
            self._rows[g] += len(values)
            self._square[g] += float(values @ values)
            same = self._same(g)
            alike = np.abs(values - before) <= same
            if not alike.any():
                continue
            for value, needed in zip(values[alike], block.matrix[alike] @ nominal, strict=True):
                self._values.vote(g, float(value), same, float(needed), float(needed**2))

    def clear(self) -> None:
        """Forget all rows."""
        for known in (self._rows, self._square, self._values.sums):
            known[:] = 0.0

    def _same(self, g: int) -> float:
        """Return by how much torques [N·m] differ that are the same."""
        return ALIKE * float(np.sqrt(self._square[g] / max(self._rows[g], 1.0)))

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Name the groups whose torque stays at zero."""
        found = []
        least = most_alike(self._rows)
        for g, sums in enumerate(self._values.sums.reshape(len(self._groups), -1, 3)):
            first = int(np.argmax(sums[:, 0]))
            count, total, square = sums[first]
            zero = abs(self._values.level[g].flat[first]) <= self._same(g)
            if not (zero and least[g] < count < self._rows[g] - FEWEST):
                continue
            asked = max(square / count - (total / count) ** 2, 0.0) ** 0.5
            if asked > max(ASKED * self._usual[g], self._values.resolution(g, first)):
                found.append(cut_off(self._groups[g], 0.0, count, least[g], needs(asked)))
        return tuple(found)


class CutEfforts:
    """Joints of whose efforts some lie at an end of their range where the motion needs others.

    What rests on these is left out. What the motion needs is told by the nominal model, or where
    rows mix joints, so that nobody knows what one of them needs, by its speed.

    Parameters
    ----------
    regression : Regression
    usual : (G,) [N·m]
        Torques of the groups.
    still : (nj,) [rad/s]
        Below it a joint is at rest.
    half_life : float
        Samples after which one counts half.

    Attributes
    ----------
    joints : (G,)
        Which actuated joints are such ones.
    new : bool
        Whether the newest samples showed another to be one.
    """

    def __init__(
        self, regression: Regression, usual: FloatArray, still: FloatArray, half_life: float
    ) -> None:
        self._regression, self._usual, self._still = regression, usual, still
        self._nominal = regression.base.project(regression.robot.nominal)
        self._actuated = np.flatnonzero(regression.robot.actuated)
        self._forget = 0.5 ** (1.0 / half_life)
        joints = len(self._actuated)
        self.joints, self.new = np.zeros(joints, dtype=np.bool_), False
        self._speeds = np.zeros(1 + joints)  # samples and the sums of their speeds' squares
        # samples at an end, sums of squares about the mean of each stretch, degrees of freedom
        self._sums = np.zeros((joints, 3))
        # of the newest stretch: samples and their mean; whether the next sample may go on with it
        self._stretch, self._goes_on = np.zeros((joints, 2)), np.zeros(joints, dtype=np.bool_)
        self._level = np.zeros(joints)  # [N·m] newest effort at an end

    def leave_out(self, samples: Samples) -> tuple[Samples, LeftOut]:
        """Look at samples; return what of them does not rest on an effort that is cut off.

        Where rows mix joints these are samples, else `cut_off` tells the joints to leave out.
        """
        self.new = False
        if samples.cut_off is None or not len(samples):
            return samples, LeftOut()
        before = self.joints
        self._look(samples, samples.cut_off[:, self._actuated] > 1)
        self.new = bool((self.joints & ~before).any())
        if not samples.cut_off.any():
            return samples, LeftOut()
        cut_off = samples.cut_off.copy()
        cut_off[:, self._actuated[~self.joints]] = 0
        if self._regression.per_joint or not cut_off.any():
            return replace(samples, cut_off=cut_off), LeftOut()
        first = np.argmax(cut_off[:, self._actuated] > 0, axis=1)
        cut = cut_off.any(axis=1)
        causes = tuple(
            (replace(one, message=f"{{share}} of the samples are left out: {one.message}"), count)
            for one, g in zip(self.diagnostics(), np.flatnonzero(self.joints), strict=True)
            if (count := int(np.count_nonzero(cut & (first == g))))
        )
        return samples.select(~cut), LeftOut(int(np.count_nonzero(cut)), causes)

    def _look(self, samples: Samples, at_end: BoolArray) -> None:
        """Take in what the motion needs where efforts (n, G) lie at an end."""
        fade = self._forget ** len(samples)
        self._sums *= fade
        velocity = samples.velocity[:, self._actuated]
        self._speeds *= fade
        self._speeds += len(samples), *np.einsum("ij,ij->j", velocity, velocity)
        self._goes_on, before = at_end[-1], self._goes_on
        if not self._sums.any() and not at_end.any():
            return
        whole = np.flatnonzero(at_end.any(axis=1))
        if len(whole) and self._regression.per_joint:
            blocks = self._regression.rows(samples.select(whole), self._still).blocks
        for g in np.flatnonzero(at_end.any(axis=0)):
            where = np.flatnonzero(at_end[:, g])
            if self._regression.per_joint:
                chosen = at_end[whole[blocks[g].sample], g]
                where = whole[blocks[g].sample[chosen]]
                needed = blocks[g].matrix[chosen] @ self._nominal
            else:
                needed = np.abs(velocity[where, g])
            self._see(int(g), where, needed, goes_on=bool(before[g]))
            self._level[g] = samples.effort[np.flatnonzero(at_end[:, g])[-1], self._actuated[g]]
        self.joints = (self._sums[:, 0] >= FEWEST) & (self._asked > ASKED * self._usually)

    def _see(self, g: int, where: IndexArray, needed: FloatArray, *, goes_on: bool) -> None:
        """Take in what the motion needs in the samples `where` joint g is at an end.

        A stretch `goes_on` from the last sample before them.
        """
        before = -1 if goes_on else -2
        for sample, value in zip(where.tolist(), needed.tolist(), strict=True):
            if sample != before + 1:
                self._stretch[g] = 0.0
            before = sample
            count, mean = self._stretch[g]
            apart = value - mean if count else 0.0
            mean = mean + apart / (count + 1.0) if count else value
            self._stretch[g] = count + 1.0, mean
            self._sums[g] += 1.0, apart * (value - mean), float(count > 0.0)

    @property
    def _asked(self) -> FloatArray:
        """Deviation (G,) of what the motion needs over stretches at an end, as of a joint [N·m].

        Where rows mix joints that of the speed [rad/s].
        """
        return np.asarray(np.sqrt(self._sums[:, 1] / np.maximum(self._sums[:, 2], 1.0)))

    @property
    def _usually(self) -> FloatArray:
        if self._regression.per_joint:
            return self._usual
        return np.asarray(np.sqrt(self._speeds[1:] / max(self._speeds[0], 1.0)))

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Name the joints whose effort is cut off, and say that this is left out."""
        return tuple(
            replace(one, hint=f"these are left out; {one.hint}") for one in self._told(self.joints)
        )

    def suspected(self) -> tuple[Diagnostic, ...]:
        """Name the joints whose effort may be: the motion has not asked for others so far."""
        enough = max(FEWEST, _BENDS * self._speeds[0])
        open_ = self._told((self._sums[:, 0] >= enough) & ~self.joints)
        wait = "a first model waits for what the motion shows of it"
        return tuple(replace(one, hint=f"{wait}; {one.hint}") for one in open_)

    def _told(self, joints: BoolArray) -> Iterator[Diagnostic]:
        tell = needs if self._regression.per_joint else varies
        names = self._regression.robot.actuated_names
        for g in np.flatnonzero(joints):
            count, why = self._sums[g, 0], tell(float(self._asked[g]))
            yield cut_off(names[g], float(self._level[g]), count, FEWEST, why)


def cut_off(name: str, level: float, count: float, least: float, asked: str) -> Diagnostic:
    """Name a joint whose torque stays at a level [N·m], in more samples than so many.

    `asked` says what shows that others are needed there.
    """
    message = (
        f"the torque stays at {level:.3g} N·m in {count:.0f} samples, above {least:.0f}, while "
        f"{asked}"
    )
    hint = "widen the range of its sensor or driver, or move slower and with less load"
    if level == 0.0:
        hint = "let its driver report small torques, too: it shows none, or none below a threshold"
    return Diagnostic("torque_saturated", message, subject=name, hint=hint)


def needs(size: float) -> str:
    """Say that a motion needs torques that differ by a size [N·m]."""
    return f"the one that the motion needs varies by {size:.2g}"


def varies(size: float) -> str:
    """Say that a joint's speed differs by a size [rad/s]."""
    return f"its speed varies by {size:.2g} rad/s"
