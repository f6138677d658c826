# SPDX-License-Identifier: Apache-2.0
"""Which of two clocks is a signal's own: the one by which it is smoother."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sysid_core.arrays import FloatArray

__all__ = ["CLEARLY_SMOOTHER", "smoother", "unpredictability"]

CLEARLY_SMOOTHER = 0.95
"""Ratio of unpredictabilities below which one clock is clearly better than another [-]."""

_TINY = 1e-12


@np.errstate(divide="ignore", invalid="ignore")  # stamps may repeat
def unpredictability(time: FloatArray, values: FloatArray, runs: Sequence[slice]) -> FloatArray:
    """Return, per channel, the RMS error of predicting values from two neighbours on each side.

    Values (n, nc) lie at ascending times (n,) [s]; nothing is predicted across the ends of runs.
    """
    total, count = np.zeros(values.shape[1]), 0
    for run in runs:
        t, y = time[run], values[run]
        if len(t) < 5:
            continue
        nodes = np.stack([t[:-4], t[1:-3], t[3:-1], t[4:]])
        known = np.stack([y[:-4], y[1:-3], y[3:-1], y[4:]])
        here, truth = t[2:-2], y[2:-2]
        predicted = np.zeros_like(truth)
        for i in range(4):
            weight = np.ones_like(here)
            for j in range(4):
                if j != i:
                    weight *= (here - nodes[j]) / (nodes[i] - nodes[j])
            predicted += weight[:, np.newaxis] * known[i]
        total += np.sum((truth - predicted) ** 2, axis=0)
        count += len(here)
    return np.sqrt(total / max(count, 1))


def smoother(errors: FloatArray, others: FloatArray) -> float:
    """Return the ratio of two unpredictabilities (nc,): below one, the first clock is smoother.

    Noisy channels tell nothing (ratio 1), so the geometric mean lets the smooth ones decide; one
    that nothing moves is left out. NaN where none moves.
    """
    moving = others > 0.0
    if not moving.any():
        return np.nan
    ratios = np.maximum(errors[moving], _TINY) / others[moving]
    return float(np.exp(np.mean(np.log(ratios))))
