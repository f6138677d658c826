# SPDX-License-Identifier: Apache-2.0
"""Contact flags over time: which samples lie near a change, and flags with a margin."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray

__all__ = ["switching", "widened"]


def switching(time: FloatArray, contacts: BoolArray, margin: float) -> BoolArray:
    """Return which samples (n,) lie within `margin` [s] of a change of contacts (n, nc).

    A change lies halfway between the samples that it separates.
    """
    near = np.zeros(len(time), dtype=bool)
    changed = np.flatnonzero((contacts[1:] != contacts[:-1]).any(axis=1))
    if len(changed) == 0:
        return near
    moments = 0.5 * (time[changed] + time[changed + 1])
    after = np.searchsorted(moments, time)
    to_next = moments[np.minimum(after, len(moments) - 1)] - time
    to_last = time - moments[np.maximum(after - 1, 0)]
    near |= (np.abs(to_next) < margin) | (np.abs(to_last) < margin)
    return near


def widened(time: FloatArray, contacts: BoolArray, margin: float) -> BoolArray:
    """Return contacts (n, nc) that begin and end `margin` [s] earlier and later."""
    result = np.zeros_like(contacts)
    for c, active in enumerate(contacts.T):
        moments = time[active]
        if len(moments) == 0:
            continue
        after = np.searchsorted(moments, time)
        to_next = moments[np.minimum(after, len(moments) - 1)] - time
        to_last = time - moments[np.maximum(after - 1, 0)]
        result[:, c] = np.minimum(np.abs(to_next), np.abs(to_last)) <= margin
    return result | contacts
