# SPDX-License-Identifier: Apache-2.0
"""The zero-phase low-pass of recorded signals."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.butterworth import filter_both_ways

__all__ = ["low_pass", "settling_time"]

_PASSES = 2
# Settling times of extension at each end, after which its own start does not show any more.
_PADDING = 2.5


def settling_time(cutoff: float) -> float:
    """Return how long [s] the start of a record shows in the output of `low_pass`.

    The slowest poles of a fourth-order Butterworth filter decay with the time constant
    1/(2π fc sin(π/8)) ≈ 0.42/fc; after five of them 1 % remains of an error at the edge, which the
    odd extension of the record has made small already.
    """
    return 2.0 / cutoff


def low_pass(values: FloatArray, rate: float, cutoff: float, *, order: int = 4) -> FloatArray:
    """Filter along the first axis with a Butterworth low-pass, forwards and backwards.

    The phase is zero. The gain at the cut-off is 1/√2 over both passes together, so that the
    figure means the same as for a single filter.

    Parameters
    ----------
    values : (n, ...)
        Uniform samples, finite.
    rate : float [Hz]
        Sampling rate.
    cutoff : float [Hz]
        Below half of the rate.
    order : int
        Order of each pass.

    Raises
    ------
    ParameterError
        If the cut-off is not between zero and half of the rate.
    DataError
        If there are too few samples, or some are not finite.
    """
    values = _checked(values)
    if not (np.isfinite(rate) and rate > 0.0):
        raise ParameterError(f"the sampling rate must be positive, not {rate} Hz")
    if not 0.0 < cutoff < 0.5 * rate:
        raise ParameterError(
            f"the cut-off of {cutoff:g} Hz must lie between 0 and {0.5 * rate:g} Hz, half of the "
            "sampling rate; lower it"
        )
    # Two passes square the gain; the design frequency is raised (in the warped frequency that the
    # bilinear transform keeps) so that their product is −3 dB where it was asked for.
    warped = np.tan(np.pi * cutoff / rate) / (2.0 ** (1.0 / _PASSES) - 1.0) ** (0.5 / order)
    design = min(np.arctan(warped) * 2.0 / np.pi, 1.0 - 1e-9)
    wanted = int(np.ceil(_PADDING * settling_time(cutoff) * rate))
    padding = min(len(values) - 1, wanted)
    return filter_both_ways(values, design, order, padding)


def _checked(values: FloatArray) -> FloatArray:
    values = np.asarray(values, dtype=np.float64)
    if len(values) < 2:
        raise DataError(f"{len(values)} samples are too few to filter; give at least 2")
    if not np.all(np.isfinite(values)):
        raise DataError("samples to filter must be finite; synchronise them first")
    return values
