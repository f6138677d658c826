# SPDX-License-Identifier: Apache-2.0
"""How large innovations usually are and how coloured, learned while samples pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.rows import Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.sums import Sums
from sysid_core.online.changes import CERTAIN, log_odds
from sysid_core.online.innovations import Noise, negligible
from sysid_core.online.intake import LEAST_CORRELATION

__all__ = ["LAG", "Bursts", "Colours", "ResidualColour"]

LAG = 3.5
"""Innovations are held to the model and the errors of so long ago: neither has learned from a
change that is looked for [s]."""

_MEMORY = 20.0
"""Time constant of what is usual [s]: some cycles of a task; the robot warms up slower [s]."""

_LONGEST = 1.5
"""Longest batch whose mean is looked at [s]; the memory still holds a dozen of them."""

_FEWEST = 8
"""Batches of one length that must have been seen before their scatter is believed."""

_LEAST = 0.5
"""Time that a group must have been seen for [s]."""

_OUTLIER = 4.0
"""Residuals beyond so many standard deviations count as that many: a glitch must not make what
comes after it look usual [-]."""


class _Stretches:
    """Squares of sums over stretches of 1, 2, 4, … values, each built from two of the last.

    So a value costs the same however long the stretches are.
    """

    def __init__(self, sample_rate: float) -> None:
        levels = 1 + max(0, int(np.log2(max(1.0, _LONGEST * sample_rate))))
        self.length = np.exp2(np.arange(levels, dtype=float))
        self.seen = 0  # Values
        self.power = np.zeros(len(self.length))  # Sums of the squares, faded
        self._open = [np.zeros(0) for _ in self.length]

    def push(self, values: FloatArray, fade: float) -> None:
        """Add values (n,)."""
        self.seen += len(values)
        self.power *= fade
        for level in range(len(self.length)):
            self.power[level] += values @ values
            values = np.concatenate([self._open[level], values])
            pairs = len(values) // 2
            self._open[level] = values[2 * pairs :]
            if not pairs:
                break
            values = values[: 2 * pairs : 2] + values[1 : 2 * pairs : 2]


def _grown(factors: FloatArray, length: FloatArray, seen: IndexArray | int) -> FloatArray:
    """Return factors (…, L) ≥ 1 that only stretches seen often enough raise."""
    usable = length * _FEWEST <= seen
    return np.maximum.accumulate(np.where(usable, np.maximum(factors, 1.0), 1.0), axis=-1)


class _Residuals(NamedTuple):
    """What a model leaves of the rows (n,) of one group."""

    sample: IndexArray
    predicted: FloatArray
    residual: FloatArray


class _Size(ABC):
    """Mean square of the innovations of every row group over the last while.

    A change must not become its own yardstick, so the newest innovations wait, at first as many as
    were learned. The joints' usual torques (G,) [N·m] say what is not worth a word.
    """

    def __init__(self, groups: int, sample_rate: float, usual: FloatArray | float = 0.0) -> None:
        self._groups, self._rate = groups, sample_rate
        self._usual = np.full(groups, usual) ** 2
        self._forget = np.exp(-1.0 / (_MEMORY * sample_rate))
        self.clear()

    def clear(self) -> None:
        """Forget what was usual."""
        self._square, self._weight, self._seen = np.zeros((3, self._groups))
        self._samples = 0  # That were learned from
        self.forget_newest()

    def forget_newest(self) -> None:
        """Drop what was not learned yet."""
        self._waiting: deque[tuple[int, list[_Residuals]]] = deque()
        self._held = 0

    def push(self, rows: Rows, base_vector: FloatArray, samples: int) -> None:
        """Take in the residuals that base parameters (b,) leave of so many samples."""
        found = []
        for block in rows.blocks:
            predicted: FloatArray = block.matrix @ base_vector
            found.append(_Residuals(block.sample, predicted, block.target - predicted))
        self._waiting.append((samples, found))
        self._held += samples
        most = LAG * self._rate
        while self._waiting and self._held - self._waiting[0][0] >= min(most, self._samples):
            samples, found = self._waiting.popleft()
            self._held -= samples
            self._samples += samples
            self._learn(found, samples, self._forget**samples)

    @abstractmethod
    def _learn(self, groups: list[_Residuals], samples: int, fade: float) -> None:
        """Learn from the residuals of so many samples."""

    @property
    def duration(self) -> float:
        """Time [s] that residuals were taken in from."""
        return (self._samples + self._held) / self._rate

    def _learned(self, g: int, residual: FloatArray, fade: float) -> FloatArray:
        """Return residuals (n,) as they count."""
        if self._weight[g] > _FEWEST:
            bound = _OUTLIER * np.sqrt(self._square[g] / self._weight[g])
            residual = np.minimum(np.maximum(residual, -bound), bound)
        self._square[g] = fade * self._square[g] + residual @ residual
        self._weight[g] = fade * self._weight[g] + len(residual)
        self._seen[g] += len(residual)
        return residual

    @property
    def known(self) -> BoolArray:
        """Whether a group (G,) was seen long enough to say what is usual."""
        return self._seen >= _LEAST * self._rate

    @property
    def variance(self) -> FloatArray:
        """Usual mean square (G,) [N²·m²] of the innovations; 0 where none were seen."""
        return self._square / np.maximum(self._weight, 1.0)

    def expected(self, recent: Sums | Statistics) -> FloatArray:
        """Return the mean square (G,) to expect.

        Of a joint that hardly moved until now, the whole torque may be an error.
        """
        torque = recent.square / np.maximum(recent.count, 1.0)
        seen = np.where(self.known, self.variance, np.maximum(torque, self._usual))
        return np.maximum(seen, negligible(torque, self._usual))


class ResidualColour(_Size):
    """Mean square and colour of the innovations of every row group.

    Batch means: if neighbouring residuals were independent, sums over L of them would have L times
    the variance of one. How much more they have, at the length L where it is largest, is the
    integrated autocorrelation time: for so many rows stands one independent row.

    Where a sample has several rows in one group, as in the null space of contacts, the turn of
    those rows is arbitrary; the product with the prediction, summed over the sample, is not.
    """

    def clear(self) -> None:
        """Forget what was usual."""
        super().clear()
        self._sums = [_Stretches(self._rate) for _ in range(self._groups)]

    def _learn(self, groups: list[_Residuals], samples: int, fade: float) -> None:
        for g, (sample, predicted, residual) in enumerate(groups):
            if not len(residual):
                continue
            residual = self._learned(g, residual, fade)
            if len(residual) > samples:
                _, index = np.unique(sample, return_inverse=True)
                residual = np.bincount(index, predicted * residual).astype(float)
            self._sums[g].push(residual, fade)

    @property
    def factor(self) -> FloatArray:
        """Rows (G,) ≥ 1 that stand for one independent row."""
        return self.factors[:, -1]

    @property
    def factors(self) -> FloatArray:
        """The same (G, L) within stretches of 1, 2, 4, … rows, where errors vary less."""
        power = np.stack([sums.power for sums in self._sums])
        relative = power / np.maximum(power[:, :1], 1e-300)
        seen = np.array([[sums.seen] for sums in self._sums])
        return _grown(relative, self._sums[0].length, seen)

    @property
    def cautious_factors(self) -> FloatArray:
        """The same (G, L), as if errors lasted through every stretch not seen often enough."""
        length = self._sums[0].length
        beyond = length * _FEWEST / np.maximum([[sums.seen] for sums in self._sums], 1.0)
        return np.asarray(np.minimum(self.factors * np.maximum(beyond, 1.0), length))

    def noise(self, recent: Sums | Statistics) -> Noise:
        """Return the usual noise."""
        return Noise(self.expected(recent), self.cautious_factors)


class Bursts(_Size):
    """How the power of the innovations of all row groups together scatters.

    Errors come in bursts, in several groups at once, say where joints turn.
    """

    def clear(self) -> None:
        """Forget what was usual."""
        super().clear()
        # Of samples' square errors in units of what is usual; their sum and number
        self._powers, self._total, self._count = _Stretches(self._rate), 0.0, 0.0

    def _learn(self, groups: list[_Residuals], samples: int, fade: float) -> None:
        power = np.zeros(1 + max(int(sample.max(initial=-1)) for sample, _, _ in groups))
        for g, (sample, _, residual) in enumerate(groups):
            if len(residual):
                square = self._learned(g, residual, fade) ** 2 / max(self.variance[g], 1e-300)
                power += np.bincount(sample, square, len(power))
        power = power[power > 0.0]
        self._total = fade * self._total + float(power.sum())
        self._count = fade * self._count + len(power)
        self._powers.push(power, fade)

    def rise(self, square: float, samples: int) -> tuple[float, float]:
        """Return Σe² of a stretch in units of what is expected, and the rows that it stands for.

        `square` is Σe² of so many samples in units of the variance. The sum over n independent
        Gaussian rows has the relative variance 2/n, which tells n.
        """
        sums, whole = self._powers, max(self._total, 1e-300)
        scatter = self._count * sums.power / whole**2
        factors = _grown(0.5 * (scatter - sums.length), sums.length, sums.seen)
        level = min(int(np.log2(max(samples, 1))), len(factors) - 1)
        count = samples / float(factors[level])
        return square / samples * self._count / whole * count, count

    def holds(self, recent: Sums, square: FloatArray) -> bool:
        """Tell whether Σe² (G,) [N²·m²] is no larger than the model's errors are at times."""
        whole, count = self.rise(float((square / self.expected(recent)).sum()), recent.samples)
        return log_odds(whole, 0.0, whole, count) < CERTAIN


class Colours(NamedTuple):
    """What innovations of two models usually are."""

    used: ResidualColour  # Of the model in use, which learns from them
    judging: Bursts  # Of the older one that changes are judged by

    @property
    def correlation(self) -> FloatArray:
        """Samples (G,) that stand for an independent one of the model in use [-]."""
        return np.maximum(self.used.factor, LEAST_CORRELATION)

    def clear(self) -> None:
        """Forget what was usual."""
        for one in self:
            one.clear()

    def forget_newest(self) -> None:
        """Drop what was not learned yet: it may hold a change."""
        for one in self:
            one.forget_newest()
