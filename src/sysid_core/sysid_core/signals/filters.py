# SPDX-License-Identifier: Apache-2.0
"""The one low-pass that every signal passes, and the derivatives of what it leaves."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.differences import central_difference

__all__ = [
    "Smoothed",
    "low_pass",
    "neighbourhood",
    "rise_time",
    "settling_time",
    "smoothed",
    "smoothed_value",
    "support",
]

_STENCIL = 2
"""Neighbours on each side that a fourth-order central difference takes."""
_FEW = 50
"""A transform of n values costs about as much as so many products of weights with n values."""

_PLACES = 16
"""Times on each side at which a function of the motion is looked at, in place of all samples."""


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


def rise_time(cutoff: float) -> float:
    """Return how long [s] the filtered step of a signal takes from 10 % to 90 % of its height."""
    return 0.48 / cutoff


def support(rate: float, cutoff: float) -> int:
    """Return the samples on each side of one that its value and derivatives rest on."""
    return max(2 * _STENCIL, round(settling_time(cutoff) * rate))


def low_pass(values: FloatArray, rate: float, cutoff: float, *, every: int = 1) -> FloatArray:
    """Filter along the first axis with a local cubic of zero phase and finite length.

    Each value is that of the cubic through its neighbours which Blackman's window weights: cubics
    pass as they are, a tenth of the cut-off loses 1e-4. The gain is about 1/2 at the cut-off,
    less than 0.01 from twice that on. Only values with a whole neighbourhood come out, so a
    recording and any piece of it give the same.

    Parameters
    ----------
    values : (n,) or (n, nc)
        Uniform samples; a NaN spoils what it reaches in its own channel.
    rate, cutoff : float [Hz]
    every : int
        Return every so manieth value.

    Returns
    -------
    (m, ...)
        Every `every`-th of the values, without h = ``support(rate, cutoff) - 2`` at both ends.

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
    kernel = _kernel(half)
    if _is_few(len(values), 2 * half + 1, every):
        return _weighted(kernel[np.newaxis], values, every)[0]
    kernel = kernel.reshape(-1, *[1] * (values.ndim - 1))
    lacking = ~np.isfinite(values)
    # Less its start, a signal far from zero loses no digits in the transform.
    start = np.where(lacking[:1], 0.0, values[:1])
    spectrum = np.fft.rfft(np.where(lacking, 0.0, values - start), axis=0)
    spectrum *= np.fft.rfft(kernel, len(values), axis=0)
    result = np.fft.irfft(spectrum, len(values), axis=0)[2 * half :] + start
    if lacking.any():
        lost = np.cumsum(np.concatenate([np.zeros_like(lacking[:1]), lacking]), axis=0)
        result[lost[2 * half + 1 :] > lost[: -2 * half - 1]] = np.nan
    return np.asarray(result[::every])


def neighbourhood(rate: float, cutoff: float, finer: int = 1) -> tuple[FloatArray, FloatArray]:
    """Return times [s] around a sample and the low-pass's weights of them, each (k,)."""
    half = finer * _PLACES
    ends = support(rate, cutoff) - _STENCIL + 1  # where the window is zero
    return np.arange(-half, half + 1) * ends / (rate * (half + 1)), _kernel(half)


def smoothed(values: FloatArray, rate: float, cutoff: float, *, every: int = 1) -> Smoothed:
    """Filter and differentiate uniform samples (n, nc).

    Returns
    -------
    Smoothed
        Every `every`-th of the ``n - 2 support(rate, cutoff)`` rows with a whole neighbourhood.
    """
    reach = support(rate, cutoff)
    if _is_few(len(values), 2 * reach + 1, every):
        value = smoothed_value(values, rate, cutoff, every=every)
        return Smoothed(value, *_weighted(_slope_weights(reach, rate), values, every))
    value = low_pass(values, rate, cutoff)
    first, second = (central_difference(value, 1.0 / rate, derivative=d)[::every] for d in (1, 2))
    return Smoothed(value[_STENCIL:-_STENCIL:every], first, second)


def smoothed_value(
    values: FloatArray, rate: float, cutoff: float, *, every: int = 1
) -> FloatArray:
    """Return the value alone of what `smoothed` returns."""
    return low_pass(values[_STENCIL:-_STENCIL], rate, cutoff, every=every)


@lru_cache(maxsize=16)
def _kernel(half: int) -> FloatArray:
    """Return the weights (2 half + 1,): their sum is one, their second moment zero."""
    square = (np.arange(-half, half + 1) / half) ** 2
    window = np.blackman(2 * half + 3)[1:-1]
    second, fourth = window @ square, window @ square**2
    weights = np.asarray(window * (fourth - second * square))
    weights /= weights.sum()
    weights.setflags(write=False)
    return weights


@lru_cache(maxsize=16)
def _slope_weights(reach: int, rate: float) -> FloatArray:
    """Return the weights (2, 2 reach + 1) of the filtered signal's two derivatives."""
    kernel = np.pad(_kernel(reach - _STENCIL), 2 * _STENCIL)
    # A sum over neighbours takes the kernel forwards; a convolution would turn it around.
    weights = np.stack(
        [(-1) ** d * central_difference(kernel, 1.0 / rate, derivative=d) for d in (1, 2)]
    )
    weights.setflags(write=False)
    return weights


def _is_few(count: int, width: int, every: int) -> bool:
    """Whether direct sums are cheaper than a transform of all values."""
    return (count - width) // every * width < _FEW * count


def _weighted(weights: FloatArray, values: FloatArray, every: int) -> FloatArray:
    """Return weighted sums (k, m, ...) of every `every`-th neighbourhood; weights (k, width)."""
    flat = values.reshape(len(values), -1)
    around = sliding_window_view(flat, weights.shape[1], axis=0)[::every]
    sums = np.swapaxes(weights @ np.swapaxes(around, 1, 2), 0, 1)
    return np.ascontiguousarray(sums).reshape(*sums.shape[:2], *values.shape[1:])
