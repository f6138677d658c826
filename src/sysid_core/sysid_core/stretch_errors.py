# SPDX-License-Identifier: Apache-2.0
"""Errors on stretches of the data that were not learned from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.rows import Rows, select_rows
from sysid_core.dynamics.sums import Places, Sums

__all__ = ["log_errors", "log_errors_of_each", "sums_of"]


def sums_of(places: Places, rows: Rows, chosen: BoolArray) -> Sums:
    """Return the sums over the rows whose samples are chosen (n,)."""
    sums = Sums(places)
    sums.add_rows(select_rows(rows, lambda _, block: chosen[block.sample]))
    return sums


def log_errors(parts: Sequence[Sums], learned: Sequence[FloatArray]) -> FloatArray:
    """Return the log error of each stretch by what was learned without it; NaN without rows."""
    means = [
        float((part.residual_square(base_vector) / np.maximum(part.count, 1.0)).sum())
        if part.count.any()
        else np.nan
        for part, base_vector in zip(parts, learned, strict=True)
    ]
    return np.asarray(0.5 * np.log(np.maximum(means, 1e-300)))


def log_errors_of_each(parts: Sequence[Sums], learned: Sequence[FloatArray]) -> FloatArray:
    """Return the same as the mean over the groups' own log errors: all weigh alike."""
    errors = np.full(len(parts), np.nan)
    for k, (part, base_vector) in enumerate(zip(parts, learned, strict=True)):
        some = part.count > 0.0
        if some.any():
            means = part.residual_square(base_vector)[some] / part.count[some]
            errors[k] = 0.5 * np.mean(np.log(np.maximum(means, 1e-300)))
    return errors
