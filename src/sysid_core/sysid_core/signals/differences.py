# SPDX-License-Identifier: Apache-2.0
"""Derivatives of uniform samples by fourth-order finite differences."""

from __future__ import annotations

from functools import lru_cache
from math import factorial

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError

__all__ = ["central_difference", "differentiate"]

_ACCURACY = 4


def differentiate(values: FloatArray, dt: float, *, derivative: int = 1) -> FloatArray:
    """Return the first or second derivative along the first axis.

    Central differences inside, one-sided ones of the same order at the ends, so that the error is
    O(dt⁴) everywhere and polynomials up to degree four are differentiated exactly.

    Parameters
    ----------
    values : (n, ...)
    dt : float [s]
    derivative : {1, 2}

    Raises
    ------
    ParameterError
        If `dt` is not positive or the derivative is neither 1 nor 2.
    DataError
        If there are fewer samples than a one-sided difference needs (5 or 6).
    """
    if not (np.isfinite(dt) and dt > 0.0):
        raise ParameterError(f"the sampling period must be positive, not {dt} s")
    if derivative not in (1, 2):
        raise ParameterError(f"the derivative must be 1 or 2, not {derivative}")
    values = np.asarray(values, dtype=np.float64)
    n, width, half = len(values), _ACCURACY + derivative, _ACCURACY // 2
    if n < width:
        raise DataError(f"{n} samples are too few for a fourth-order difference; give {width}")
    result = np.zeros_like(values)
    result[half : n - half] = _central(values, derivative)
    for row in range(half):
        weights = _weights(tuple(range(-row, width - row)), derivative)
        result[row] = np.tensordot(weights, values[:width], axes=1)
        # Mirrored: reversing time changes the sign of odd derivatives.
        result[n - 1 - row] = (-1) ** derivative * np.tensordot(
            weights, values[::-1][:width], axes=1
        )
    return result / dt**derivative


def central_difference(values: FloatArray, dt: float, *, derivative: int = 1) -> FloatArray:
    """Return `differentiate`'s result (n - 4, ...) without the two rows at either end."""
    return _central(values, derivative) / dt**derivative


def _central(values: FloatArray, derivative: int) -> FloatArray:
    half = _ACCURACY // 2
    inner = len(values) - 2 * half
    weights = _weights(tuple(range(-half, half + 1)), derivative)
    result = np.zeros((inner, *values.shape[1:]))
    for offset, weight in enumerate(weights):
        result += weight * values[offset : inner + offset]
    return result


@lru_cache(maxsize=16)
def _weights(nodes: tuple[int, ...], derivative: int) -> FloatArray:
    """Return the weights, for unit spacing, that are exact on polynomials through all nodes."""
    powers = np.arange(len(nodes))
    vandermonde = np.array(nodes, dtype=np.float64)[np.newaxis] ** powers[:, np.newaxis]
    moments = np.where(powers == derivative, float(factorial(derivative)), 0.0)
    return np.asarray(np.linalg.solve(vandermonde, moments))
