# SPDX-License-Identifier: Apache-2.0
"""Least squares of which some unknowns may not be negative, many problems at once."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray

__all__ = ["bounded_least_squares"]

_TRIES = 3
"""Exchanges of many entries at once that may mend nothing, before they are exchanged singly."""
_PIVOTS = 100
"""Exchanges at most: mostly there are two."""


def bounded_least_squares(gram: FloatArray, moment: FloatArray, bound: BoolArray) -> FloatArray:
    """Return the least squares solutions (f, k) whose `bound` (f, k) entries are not negative.

    Block principal pivoting for all `gram` (f, k, k) and `moment` (f, k) at once: Kim, J. and
    Park, H., Fast nonnegative matrix factorization: an active-set-like method and comparisons,
    SIAM J. Sci. Comput. 33(6), 2011.
    """
    places = np.arange(moment.shape[1])
    within = 1e-12 * np.abs(moment).max(axis=1, keepdims=True)
    inside = np.ones(moment.shape, dtype=bool)
    least = np.full(len(moment), len(places) + 1)
    tries = np.full(len(moment), _TRIES)
    for _ in range(_PIVOTS):
        both = inside[:, :, None] & inside[:, None]
        rest = np.where(inside, moment, 0.0)
        x = np.linalg.solve(np.where(both, gram, np.eye(len(places))), rest[:, :, None])[:, :, 0]
        slope = np.einsum("fkl,fl->fk", gram, x) - moment
        wrong = bound & np.where(inside, x < 0.0, slope < -within)
        count = wrong.sum(axis=1)
        if not count.any():
            break
        tries = np.where(count < least, _TRIES, tries - 1)
        least = np.minimum(least, count)
        last = np.where(wrong, places, -1).max(axis=1, keepdims=True)
        inside ^= wrong & ((tries >= 0)[:, None] | (places == last))
    return np.where(bound, np.maximum(x, 0.0), x)
