# SPDX-License-Identifier: Apache-2.0
"""Notices torques that are cut off: a value that stays while the motion asks for others."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Rows

__all__ = ["ALIKE", "ASKED", "COARSE", "FEWEST", "Saturation", "cut_off", "most_alike", "needs"]

ALIKE = 1e-4
"""Torques that differ by less than this share of their RMS are the same [-]."""

_DWELL = float(np.sqrt(2.0 * ALIKE) / np.pi)
"""Share of its time that a sine spends that close to its extreme (arcsine law) [-]."""

_DEVIATIONS = 5.0
"""Standard deviations of a count by which more rows must be alike than a sine's."""

FEWEST = 10.0
"""Rows that must be alike in any case, as a slow turn brings a few; and that must not be, as a
torque that is not measured at all has one value."""

ASKED = 0.05
"""Share of the usual torque by which the nominal one must vary over those rows: a torque that is
constant because the motion needs no other is not cut off [-]."""


COARSE = 0.2
"""Rows at another value on the same side, for each at the most frequent one, from which on the
torque is coarse: one that is cut off is so at one value [-]."""

_VALUES = 4
"""Values that are kept on each side of zero."""


def most_alike(rows: FloatArray | float) -> FloatArray:
    """Return how many of some rows may be alike where nothing is cut off."""
    usual = _DWELL * np.asarray(rows, dtype=float)
    return np.maximum(usual + _DEVIATIONS * np.sqrt(usual), FEWEST)


class Saturation:
    """Rows of every group that lie at a positive or negative value.

    A vote of all rows that equal the one before finds the most frequent values (Misra & Gries
    1982): it counts at least as many rows at a value as there are more than others. No limit
    has to be known, and the torque's unit does not matter. Takes the groups' usual torques (G,)
    [N·m], of which those that the motion needs must show a share, and after how many samples rows
    count half.
    """

    def __init__(self, groups: tuple[str, ...], usual: FloatArray, half_life: float) -> None:
        self._groups, self._usual = groups, usual
        self._forget = 0.5 ** (1.0 / half_life)
        self._last = np.full(len(groups), np.nan)
        self._rows = np.zeros(len(groups))
        self._square = np.zeros(len(groups))  # [N²·m²] sum over those rows
        self._level = np.zeros((len(groups), 2, _VALUES))
        # rows at that value; sum and sum of squares of what the nominal model needs there
        self._sums = np.zeros((len(groups), 2, _VALUES, 3))

    def push(self, rows: Rows, nominal: FloatArray, samples: int) -> None:
        """Look at the rows of some samples; `nominal` are base parameters (b,)."""
        fade = self._forget**samples
        self._rows *= fade
        self._square *= fade
        self._sums *= fade
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
                self._vote(g, float(value), float(needed), same)

    def _same(self, g: int) -> float:
        """Return by how much torques [N·m] differ that are the same."""
        return ALIKE * float(np.sqrt(self._square[g] / max(self._rows[g], 1.0)))

    def _vote(self, g: int, value: float, needed: float, same: float) -> None:
        side = int(value > 0.0)
        level, sums = self._level[g, side], self._sums[g, side]
        row, free = (1.0, needed, needed**2), None
        for k in range(_VALUES):
            if sums[k, 0] < 1.0:
                free = k if free is None else free
            elif abs(value - level[k]) <= same:
                sums[k] += row
                return
        if free is None:
            sums *= 1.0 - 1.0 / sums[:, :1]
        else:
            level[free], sums[free] = value, row

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Name the groups whose torque is cut off."""
        found = []
        least = most_alike(self._rows)
        for g, sums in enumerate(self._sums.reshape(len(self._groups), -1, 3)):
            first = int(np.argmax(sums[:, 0]))
            count, total, square = sums[first]
            if not least[g] < count < self._rows[g] - FEWEST:
                continue
            asked = max(square / count - (total / count) ** 2, 0.0) ** 0.5
            level = self._level[g].flat[first]
            if asked > max(ASKED * self._usual[g], self._resolution(g, first)):
                level = 0.0 if abs(level) <= self._same(g) else level
                found.append(cut_off(self._groups[g], level, count, least[g], needs(asked)))
        return tuple(found)

    def _resolution(self, g: int, first: int) -> float:
        """Return the step [N·m] from a value to the nearest that a coarse torque takes as well."""
        levels, counts = self._level[g].ravel(), self._sums[g, :, :, 0].ravel()
        others = counts >= COARSE * counts[first]
        others[first] = False
        others &= levels * levels[first] >= 0.0  # the other limit is far away
        steps = np.abs(levels - levels[first])[others]
        return float(steps.min()) if len(steps) else 0.0


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
