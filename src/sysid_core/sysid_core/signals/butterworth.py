# SPDX-License-Identifier: Apache-2.0
"""The zero-phase Butterworth low-pass, without `scipy.signal`, which takes a second to import."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from sysid_core.arrays import FloatArray

__all__ = ["filter_both_ways"]


def filter_both_ways(values: FloatArray, cutoff: float, order: int, padding: int) -> FloatArray:
    """Return `values` (n, ...) after a low-pass along the first axis, forwards, then backwards.

    Parameters
    ----------
    values : (n, ...)
    cutoff : float
        Where each pass has the gain 1/√2, as part of half of the sampling rate, in (0, 1).
    order : int
        Of each pass.
    padding : int
        Samples below n by which both ends are extended, mirrored about their end point.
    """
    rows = values.reshape(len(values), -1).T
    head = 2.0 * rows[:, :1] - rows[:, padding:0:-1]
    tail = 2.0 * rows[:, -1:] - rows[:, -2 : -padding - 2 : -1]
    filtered = np.concatenate([head, rows, tail], axis=1)
    sections = _sections(order, cutoff)
    for _ in range(2):
        filtered = _filtered(filtered, sections)[:, ::-1]
    return filtered[:, padding : padding + len(values)].T.reshape(values.shape)


def _sections(order: int, cutoff: float) -> list[tuple[float, ...]]:
    """Return the coefficients a₁ (, a₂) of the denominators of first- and second-order sections.

    They are the bilinear transform of the analogue poles. Numerators are (1 + 1/z)ᵏ, times the
    gain that makes the section's gain one at rest.
    """
    warped = np.tan(0.5 * np.pi * cutoff)
    sections: list[tuple[float, ...]] = [((warped - 1.0) / (warped + 1.0),)] if order % 2 else []
    for k in range(order // 2):
        damping = 2.0 * np.sin(np.pi * (2 * k + 1) / (2 * order)) * warped
        scale = 1.0 + damping + warped**2
        sections.append((2.0 * (warped**2 - 1.0) / scale, (scale - 2.0 * damping) / scale))
    return sections


def _filtered(rows: FloatArray, sections: list[tuple[float, ...]]) -> FloatArray:
    """Filter each row (m, n) forwards, as if its first sample had been there for ever.

    A recursion is a triangular system with as many bands as it has terms, which LAPACK solves.
    """
    start = rows[:, :1]
    y = rows - start
    for denominator in sections:
        y *= (1.0 + sum(denominator)) / 2.0 ** len(denominator)
        for _ in denominator:
            y[:, 1:] += y[:, :-1].copy()
        bands = np.repeat([[1.0], *([a] for a in denominator)], y.shape[1], axis=1)
        y = lapack.dtbtrs(bands, y.T, uplo="L", diag="U", overwrite_b=True)[0].T
    return np.asarray(y + start)
