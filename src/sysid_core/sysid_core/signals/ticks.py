# SPDX-License-Identifier: Apache-2.0
"""Which ticks of an even clock messages belong to that come late, if they come at all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sysid_core.arrays import FloatArray, IndexArray

__all__ = ["CONTEXT", "Ticks", "find_ticks"]

_BLOCK = 256
"""Stamps whose phases are averaged: over more of them, a clock may drift."""
_DECIDED = 64
"""Stamps whose ticks are decided at once."""
CONTEXT = 16
"""Stamps on each side of those that are decided: their ticks depend on each other no farther."""
_REACH = 3
"""Ticks on each side of a stamp that are considered."""
_RESULTANT = 0.3
"""Length of the mean phasor below which stamps show no clock; by chance it is 1/16 for a block,
and jitter of a quarter of a period (standard deviation) leaves it."""
_LEAST_JITTER = 0.02
"""Jitter [periods] that is assumed at least, as of rounded stamps."""
_FEWEST_LOST = 1e-3
"""Share of lost messages that is assumed at least."""


class Ticks(NamedTuple):
    """Ticks of a clock that stamps belong to."""

    number: IndexArray  # (n,) strictly ascending
    time: FloatArray  # (n,) [s] of each tick, later than it by the usual delay


def find_ticks(stamps: FloatArray, rate: float, newest: int | None = None) -> Ticks | None:
    """Return the most probable ticks of a clock of a rate [Hz] for stamps (n,) [s].

    Delays scatter around their mean as their phases do (a wrapped normal distribution, Mardia and
    Jupp, Directional Statistics, eq. 3.5.63), and every message is lost with the same probability.
    The most probable sequence under both is found by Viterbi's algorithm, in blocks at once.

    Parameters
    ----------
    stamps : (n,) [s]
        At least one.
    rate : float [Hz]
    newest : int, optional
        How many of the last stamps need ticks; by default, all.

    Returns
    -------
    Ticks or None
        None where the stamps show no clock of that rate, or belong to no ascending ticks.
    """
    count = len(stamps)
    periods = (stamps - stamps[0]) * rate
    blocks = max(1, round(count / _BLOCK))
    edges = np.linspace(0, count, blocks + 1).astype(np.int64)
    phasors = np.exp(2j * np.pi * periods)
    means = np.add.reduceat(phasors, edges[:-1]) / np.diff(edges)
    resultant = min(float(np.mean(np.abs(means))), 1.0)
    if resultant < _RESULTANT:
        return None
    phase = np.unwrap(np.angle(means)) / (2.0 * np.pi)
    middle = 0.5 * (edges[:-1] + edges[1:])
    phase = np.interp(np.arange(count), middle, phase)
    jitter = max(_LEAST_JITTER, np.sqrt(-2.0 * np.log(resultant)) / (2.0 * np.pi))
    lost = max(_FEWEST_LOST, 1.0 - (count - 1) / max(1.0, float(periods[-1])))
    first = 0 if newest is None else max(0, count - newest - CONTEXT)
    number = _most_probable((periods - phase)[first:], jitter, -float(np.log(lost)))
    if np.any(np.diff(number) < 1):
        return None
    wanted = slice(0 if newest is None else count - newest, None)
    number = number[wanted.start - first :]
    return Ticks(number, stamps[0] + (number + phase[wanted]) / rate)


def _most_probable(periods: FloatArray, jitter: float, loss: float) -> IndexArray:
    """Return the ticks (n,) of stamps (n,) [periods]; a tick without a stamp costs `loss`."""
    count, width = len(periods), min(len(periods), _DECIDED + 2 * CONTEXT)
    starts = np.arange(0, max(1, count - width + _DECIDED), _DECIDED).clip(max=count - width)
    window = np.asarray(sliding_window_view(periods, width)[starts])  # (blocks, width)
    nearest = np.rint(window).astype(np.int64)
    around = np.arange(-_REACH, _REACH + 1)
    off = (nearest - window)[..., np.newaxis] + around
    own = 0.5 * (off / jitter) ** 2
    cost = own[:, 0]
    came = np.zeros((width, len(starts), len(around)), dtype=np.int64)
    for k in range(1, width):
        # ticks that are skipped from each of the last stamp's (second axis) to each of this one's
        step = (nearest[:, k] - nearest[:, k - 1])[:, np.newaxis, np.newaxis]
        skipped = step + around - around[:, np.newaxis] - 1
        ways = cost[:, :, np.newaxis] + np.where(skipped >= 0, loss * skipped, np.inf)
        came[k] = ways.argmin(axis=1)
        cost = ways.min(axis=1) + own[:, k]
    state = cost.argmin(axis=1)
    rows = np.arange(len(starts))
    ticks = np.empty((len(starts), width), dtype=np.int64)
    for k in reversed(range(width)):
        ticks[:, k] = nearest[:, k] + around[state]
        state = came[k][rows, state]
    number = np.empty(count, dtype=np.int64)
    for start, found in zip(starts, ticks, strict=True):
        first = CONTEXT if start else 0
        number[start + first : start + width] = found[first:]
    return number
