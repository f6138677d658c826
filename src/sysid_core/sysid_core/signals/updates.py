# SPDX-License-Identifier: Apache-2.0
"""What a log holds between two updates of a slower sensor: repeated or interpolated values."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray

__all__ = ["fresh_rows", "knot_rate", "longest_by_chance", "quantum"]

_MOVED = 2.5
"""Quanta by which a signal moves where its rounding explains neither a repeated value nor a
straight line."""
_SHARE = 0.01
"""Share of rows that must be held: fewer are chance, or do no harm."""
_TOGETHER = 0.5
"""Agreement beyond chance of two channels' updates (Cohen 1960) from which both are of one message
[-]: a coarse one seems to miss some, where a new value is rounded to the one before."""
_REST = 4.0
"""Updates for which a value stays the same before it is at rest rather than held."""
_CHANCE = 1e-2
"""Probability that a recording in which updates are missed at random seems to rest anywhere."""
_LEAP = 0.5
"""Usual steps by which a value moves at once that was held while the robot moved on; one that
rested sets out gently [-]."""
_STRAIGHT = 1e-3
"""Bend relative to the usual one below which three values lie on a line."""
_DRAWN = 0.3
"""Share of straight rows that a log drawn out by interpolation has at least: two rows of five."""
_EVEN = 2.0
"""Ratio of a long interval between knots to the usual one: the knots of a sensor are even."""
_CORNER = 2.0
"""Rows at which a line drawn between knots turns: a knot lies on a row or between two."""
_TURNING = 0.95
"""Quantile of the bends that is one between two lines, down to knots at a tenth of the rate."""
_ENOUGH = 5000
"""Changes among which a common one is looked for: more take time and show the same."""
_FEW = 100
"""Changes below which a value that occurs twice may be chance, and one that stays a rest, or
coarsely rounded."""
_COMMON = 0.005
"""Share of the changes that have the same size where a signal is rounded."""
_OFF, _MOST = 0.15, 0.6
"""Part of a quantum by which most changes of a rounded signal miss its multiples, and how many."""
_DIGITS = 6
"""Digits, relative to the median change, in which equal changes agree."""


def fresh_rows(values: FloatArray, smooth: BoolArray | None = None) -> BoolArray:
    """Return which values (n, nc) are new: all of a channel's that holds none.

    A sensor that is slower than the log leaves runs of equal values with jumps between them. So
    do quantised signals that creep, but by one quantum; where noise jumps by more, it hits the
    quanta beside a value as often as the value itself. Channels that mostly update together are
    one message, so that a joint that rests goes on with the others.

    Parameters
    ----------
    values : (n, nc)
        NaN where a row lacks a channel.
    smooth : (nc,), optional
        Channels that never leap, as positions.
    """
    fresh = np.isfinite(values)
    changed: dict[int, BoolArray] = {}
    leaps: dict[int, BoolArray] = {}
    messages: dict[int, BoolArray] = {}
    rests: dict[int, BoolArray] = {}
    for channel in range(values.shape[1]):
        present = np.flatnonzero(fresh[:, channel])
        found = _updates(values[present, channel])
        if found is not None:
            changed[channel], leaps[channel] = np.zeros((2, len(values)), dtype=np.bool_)
            changed[channel][present], leaps[channel][present] = found
    for channel, own in changed.items():
        kin = [key for key, other in changed.items() if _agreement(own, other) >= _TOGETHER]
        messages[channel] = np.any([changed[key] for key in kin], axis=0)
        # torques may leap alone: where a joint sets out, or where they were cut off until then
        leapt = 2 * np.sum([leaps[key] for key in kin], axis=0)
        rests[channel] = leapt <= (len(kin) if len(kin) > 1 else values.shape[1])
        if smooth is not None and smooth[channel]:
            rests[channel] &= ~leaps[channel]
    still = np.diff(values, axis=0, prepend=np.inf) == 0.0
    for channel in range(values.shape[1]):
        rows = np.flatnonzero(fresh[:, channel])
        if channel not in messages:
            # too coarse to tell by itself, it repeats all that its message repeats
            like = (key for key in rests if still[rows, channel][~messages[key][rows]].all())
            key = next(like, None)
            if key is None:
                continue
            messages[channel], rests[channel] = messages[key], rests[key]
        fresh[rows, channel] = _with_rests(messages[channel][rows], rests[channel][rows])
    return fresh


def _updates(series: FloatArray) -> tuple[BoolArray, BoolArray] | None:
    """Return where a series without gaps changes (n,), and where by more than in setting out.

    None if nothing is held in it.
    """
    step = np.diff(series)
    moves = np.flatnonzero(step)
    if len(moves) < _FEW or len(step) - len(moves) < _SHARE * len(series):
        return None
    size = np.abs(step[moves])
    least = _MOVED * quantum(series)
    far = size >= least
    held = int(np.sum((np.diff(moves) - 1)[far[:-1] & far[1:]]))
    # a step of one quantum between two long ones: how often noise stays where it is
    beside = int(np.sum(far[:-2] & ~far[1:-1] & far[2:]))
    if held < max(_SHARE * len(series), 2.0 * beside):
        return None
    leaps = np.abs(step) > max(least, _LEAP * float(np.median(size)))
    return np.concatenate([[True], step != 0.0]), np.concatenate([[False], leaps])


def _agreement(some: BoolArray, others: BoolArray) -> float:
    """Return how far rarer updates (n,) are among the more frequent ones, beyond chance."""
    rare, often = sorted((some.mean(), others.mean()))
    if often == 1.0:
        return 1.0
    return float(((some & others).mean() / rare - often) / (1.0 - often))


def _with_rests(message: BoolArray, rests: BoolArray) -> BoolArray:
    """Return the updates (n,), and where there would have been some while nothing moved.

    `rests` (n,) tells updates that may end a rest.
    """
    if message.all():
        return message
    rows = np.flatnonzero(message)
    gaps = np.diff([*rows, len(message)])
    usual, by_chance = _gaps_by_chance(gaps)
    resting = gaps > max(_REST, by_chance) * usual
    resting[:-1] &= rests[rows[1:]]
    since = np.arange(len(message)) - np.repeat(rows, gaps)
    return np.asarray((since % usual == 0) & np.repeat(resting, gaps) | message)


def _gaps_by_chance(gaps: IndexArray) -> tuple[int, float]:
    """Return the usual of the rows between updates, and how many of it chance explains."""
    usual = max(1, round(float(np.median(gaps))))
    missed = float(np.mean(gaps > usual))
    longest = np.log(_CHANCE / len(gaps)) / np.log(missed) if 0.0 < missed < 1.0 else 0.0
    return usual, 1.0 + float(longest)


def longest_by_chance(updates: BoolArray) -> float:
    """Return the rows for which updates (n,) stay away at most where they are missed by chance."""
    usual, longest = _gaps_by_chance(np.diff([*np.flatnonzero(updates), len(updates)]))
    return usual * longest


def knot_rate(time: FloatArray, values: FloatArray) -> float:
    """Return the lowest rate [Hz] of the knots between which channels are straight; inf if none.

    A logger that interpolates leaves values on lines, which measured ones never are.

    Parameters
    ----------
    time : (n,) [s]
        Ascending.
    values : (n, nc)
        Finite.
    """
    knots = [_knots(time, series) for series in values.T]
    return min((len(k) - 1) / float(np.ptp(time[k])) if len(k) > 1 else np.inf for k in knots)


def _knots(time: FloatArray, series: FloatArray) -> IndexArray:
    """Return the rows at which a series turns, if it is straight in between; else none."""
    step, none = np.diff(series), np.zeros(0, dtype=np.intp)
    least = _MOVED * quantum(series)
    seen = (np.abs(step) > least)[1:]
    if np.count_nonzero(seen) < 0.5 * len(step):
        return none
    bend = np.abs(np.diff(step / np.diff(time))) * np.diff(time)[1:]
    usual = float(np.quantile(bend[seen], _TURNING))
    straight = bend < _STRAIGHT * usual
    if np.mean(straight[seen]) < _DRAWN or quantum(np.cumsum(bend[~straight])) > 0.0:
        return none
    turns = np.flatnonzero(~straight[1:] & straight[:-1]) + 2
    ends = np.flatnonzero(straight[1:] & ~straight[:-1]) + 2
    gaps = np.diff(turns)
    if len(gaps) < 3 or np.quantile(gaps, 0.9) > _EVEN * np.median(gaps):
        return none
    corners = ends[np.searchsorted(ends, turns[:-1], side="right")] - turns[:-1]
    if np.median(corners) > _CORNER:  # a smooth motion without noise, which is straight at times
        return none
    return turns


def quantum(series: FloatArray) -> float:
    """Return the smallest of the changes that a rounded channel (n,) has often; 0 if none is."""
    size = np.abs(np.diff(series[np.isfinite(series)]))
    size = size[size > 0.0]
    if len(size) < _FEW:
        return 0.0
    usual = float(np.median(size))
    # along a line, equal changes are no sign of rounding
    turns = np.abs(np.diff(size)) > _STRAIGHT * usual
    if turns.sum() >= _FEW:
        size = size[1:][turns]
    size = size[:: max(1, len(size) // _ENOUGH)]
    values, counts = np.unique(np.round(size / usual, _DIGITS), return_counts=True)
    common = values[(counts > _COMMON * len(size)) & (values > 0.0)]
    if not len(common):
        return 0.0
    step = usual * float(common[0])
    multiples = size / step
    return step if np.mean(np.abs(multiples - np.round(multiples)) < _OFF) > _MOST else 0.0
