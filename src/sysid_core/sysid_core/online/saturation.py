# SPDX-License-Identifier: Apache-2.0
"""Notices torques that are cut off: a value that stays while the motion asks for others."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Rows

__all__ = ["Saturation"]

_ALIKE = 1e-4
"""Torques that differ by less than this share of the usual one are the same [-]."""

_DWELL = float(np.sqrt(2.0 * _ALIKE) / np.pi)
"""Share of its time that a sine spends that close to its extreme (arcsine law) [-]."""

_DEVIATIONS = 5.0
"""Standard deviations of a count by which more rows must be alike than a sine's."""

_FEWEST = 10.0
"""Rows that must be alike in any case, as a slow turn brings a few; and that must not be, as a
torque that is not measured at all has one value."""

_ASKED = 0.05
"""Share of the usual torque by which the nominal one must vary over those rows: a torque that is
constant because the motion needs no other is not cut off [-]."""


class Saturation:
    """Rows of every group that lie at one positive or negative value.

    A vote of all rows that equal the one before finds the value (Boyer & Moore 1991): it counts at
    least as many rows at a value that most of them share as there are more than others. No limit
    has to be known, and the torque's unit does not matter. Takes the groups' usual torques (G,)
    [N·m], and after how many samples rows count half.
    """

    def __init__(self, groups: tuple[str, ...], usual: FloatArray, half_life: float) -> None:
        self._groups, self._usual = groups, usual
        self._forget = 0.5 ** (1.0 / half_life)
        self._last = np.full(len(groups), np.nan)
        self._rows = np.zeros(len(groups))
        self._level = np.zeros((len(groups), 2))
        # rows at that value; sum and sum of squares of what the nominal model needs there
        self._sums = np.zeros((len(groups), 2, 3))

    def push(self, rows: Rows, nominal: FloatArray, samples: int) -> None:
        """Look at the rows of some samples; `nominal` are base parameters (b,)."""
        fade = self._forget**samples
        self._rows *= fade
        self._sums *= fade
        for g, block in enumerate(rows.blocks):
            values = block.target
            if not len(values):
                continue
            before = np.append(self._last[g], values[:-1])
            self._last[g] = values[-1]
            self._rows[g] += len(values)
            alike = np.abs(values - before) <= _ALIKE * self._usual[g]
            if not alike.any():
                continue
            for value, needed in zip(values[alike], block.matrix[alike] @ nominal, strict=True):
                self._vote(g, float(value), float(needed))

    def _vote(self, g: int, value: float, needed: float) -> None:
        side = int(value > 0.0)
        sums = self._sums[g, side]
        if abs(value - self._level[g, side]) <= _ALIKE * self._usual[g]:
            sums += [1.0, needed, needed**2]
        elif sums[0] >= 1.0:
            sums *= 1.0 - 1.0 / sums[0]
        else:
            self._level[g, side], sums[:] = value, [1.0, needed, needed**2]

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Name the groups whose torque is cut off."""
        found = []
        usual = _DWELL * self._rows
        least = np.maximum(usual + _DEVIATIONS * np.sqrt(usual), _FEWEST)
        for g, side in enumerate(np.argmax(self._sums[:, :, 0], axis=1)):
            count, total, square = self._sums[g, side]
            if not least[g] < count < self._rows[g] - _FEWEST:
                continue
            asked = max(square / count - (total / count) ** 2, 0.0) ** 0.5
            if asked > _ASKED * self._usual[g]:
                level = self._level[g, side]
                none = abs(level) <= _ALIKE * self._usual[g]
                found.append(_cut(self._groups[g], 0.0 if none else level, count, least[g], asked))
        return tuple(found)


def _cut(name: str, level: float, count: float, least: float, asked: float) -> Diagnostic:
    message = (
        f"the torque stays at {level:.3g} N·m in {count:.0f} samples, above {least:.0f}, while "
        f"the one that the motion needs varies by {asked:.2g}"
    )
    hint = "widen the range of its sensor or driver, or move slower and with less load"
    if level == 0.0:
        hint = "let its driver report small torques, too: it shows none, or none below a threshold"
    return Diagnostic("torque_saturated", message, subject=name, hint=hint)
