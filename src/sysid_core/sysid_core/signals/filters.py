# SPDX-License-Identifier: Apache-2.0
"""The one low-pass that every signal passes, and the derivatives of what it leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.differences import central_difference

__all__ = ["Smoothed", "low_pass", "settling_time", "smoothed", "support"]

_STENCIL = 2
"""Neighbours on each side that a fourth-order central difference takes."""


class Smoothed(NamedTuple):
    """Filtered channels and their derivatives, each (m, nc)."""

    value: FloatArray
    first: FloatArray
    second: FloatArray


def settling_time(cutoff: float) -> float:
    """Return how far [s] the filter reaches to each side: one period of the cut-off [Hz].

    Twice as far would be steeper, but delay live samples twice as long.
    """
    return 1.0 / cutoff


def support(rate: float, cutoff: float) -> int:
    """Return the samples on each side of one that its value and derivatives rest on."""
    return max(2 * _STENCIL, round(settling_time(cutoff) * rate))


def low_pass(values: FloatArray, rate: float, cutoff: float) -> FloatArray:
    """Filter along the first axis with a local cubic of zero phase and finite length.

    Each value is that of the cubic through its neighbours which Blackman's window weights: cubics
    pass as they are, a tenth of the cut-off loses 1e-4. The gain is about 1/2 at the cut-off,
    less than 0.01 from twice that on. Only values with a whole neighbourhood come out, so a
    recording and any piece of it give the same.

    Parameters
    ----------
    values : (n, ...)
        Uniform samples; a NaN spoils what it reaches in its own channel.
    rate, cutoff : float [Hz]

    Returns
    -------
    (n - 2 h, ...)
        Without h = ``support(rate, cutoff) - 2`` values at both ends.

    Raises
    ------
    ParameterError
        If the cut-off is not between zero and half of the rate.
    DataError
        If there are too few samples.
    """
    if not (np.isfinite(rate) and rate > 0.0):
        raise ParameterError(f"the sampling rate must be positive, not {rate} Hz")
    if not 0.0 < cutoff < 0.5 * rate:
        raise ParameterError(
            f"the cut-off of {cutoff:g} Hz must lie between 0 and {0.5 * rate:g} Hz, half of the "
            "sampling rate; lower it"
        )
    half = support(rate, cutoff) - _STENCIL
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2 * half + 1:
        raise DataError(f"{len(values)} samples are too few to filter; record for longer")
    kernel = _kernel(half).reshape(-1, *[1] * (values.ndim - 1))
    lacking = ~np.isfinite(values)
    # Less its start, a signal far from zero loses no digits in the transform.
    start = np.where(lacking[:1], 0.0, values[:1])
    spectrum = np.fft.rfft(np.where(lacking, 0.0, values - start), axis=0)
    spectrum *= np.fft.rfft(kernel, len(values), axis=0)
    result = np.fft.irfft(spectrum, len(values), axis=0)[2 * half :] + start
    if lacking.any():
        lost = np.cumsum(np.concatenate([np.zeros_like(lacking[:1]), lacking]), axis=0)
        result[lost[2 * half + 1 :] > lost[: -2 * half - 1]] = np.nan
    return np.asarray(result)


def _kernel(half: int) -> FloatArray:
    """Return the weights (2 half + 1,): their sum is one, their second moment zero."""
    square = (np.arange(-half, half + 1) / half) ** 2
    window = np.blackman(2 * half + 3)[1:-1]
    second, fourth = window @ square, window @ square**2
    weights = window * (fourth - second * square)
    return np.asarray(weights / weights.sum())


def smoothed(values: FloatArray, rate: float, cutoff: float) -> Smoothed:
    """Filter and differentiate uniform samples (n, nc).

    Returns
    -------
    Smoothed
        ``n - 2 support(rate, cutoff)`` rows: those whose neighbourhood is complete.
    """
    value = low_pass(values, rate, cutoff)
    first, second = (central_difference(value, 1.0 / rate, derivative=d) for d in (1, 2))
    return Smoothed(value[_STENCIL:-_STENCIL], first, second)
