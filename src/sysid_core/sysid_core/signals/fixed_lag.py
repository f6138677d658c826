# SPDX-License-Identifier: Apache-2.0
"""Causal smoothing and differentiation of streams with a fixed delay."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError

__all__ = ["FixedLagFilter", "FixedLagLowPass", "FixedLagSavitzkyGolay", "SmoothedBatch"]

_STENCIL = 2
# First and second derivative of fourth order for unit spacing.
_DIFFERENCES = (
    np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0,
    np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0,
)
_MISFIT = 1.5


class SmoothedBatch(NamedTuple):
    """Estimates that a stream has completed.

    Attributes
    ----------
    time : (m,) [s]
        What the estimates refer to: the delay is already taken off.
    position, velocity, acceleration : (m, nc)
        Smoothed channels and their derivatives.
    companions : (m, nk)
        Companion channels through the kernel that smoothed the positions.
    """

    time: FloatArray
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    companions: FloatArray


class FixedLagFilter:
    """Finite filters that estimate channels and their derivatives `lag` samples ago.

    Efforts go through the same kernel as positions (as companions), so that both sides of the
    regression see the same filter.

    Parameters
    ----------
    kernels : (3, window)
        Weights of the oldest to the newest sample for value, first and second derivative.
    lag : int [samples]
        Age of what is estimated.
    dt : float [s]
        Sampling period.
    """

    def __init__(self, kernels: FloatArray, lag: int, dt: float) -> None:
        kernels = np.array(kernels, dtype=np.float64)
        if kernels.ndim != 2 or kernels.shape[0] != 3:
            raise ParameterError("kernels must be three rows: value, first, second derivative")
        _check(kernels.shape[1], lag, dt)
        kernels.setflags(write=False)
        self.kernels = kernels
        self.lag = lag
        self.dt = dt
        self._time = np.zeros(0)
        self._rows: FloatArray | None = None

    @property
    def window(self) -> int:
        """Number of samples that an estimate needs."""
        return int(self.kernels.shape[1])

    @property
    def delay(self) -> float:
        """Time [s] from a sample to the estimate for it."""
        return self.lag * self.dt

    def reset(self) -> None:
        """Forget all samples, as after a gap."""
        self._time, self._rows = np.zeros(0), None

    def push(
        self, time: FloatArray | float, values: FloatArray, companions: FloatArray | None = None
    ) -> SmoothedBatch:
        """Take one or several samples and return the estimates that they complete.

        A step in time that is not one period starts afresh: estimates never span a gap.

        Parameters
        ----------
        time : (m,) or float [s]
            On the uniform grid.
        values : (m, nc) or (nc,)
            Channels to smooth and differentiate.
        companions : (m, nk) or (nk,), optional
            Channels to smooth only.

        Raises
        ------
        DataError
            If shapes do not fit each other or the channels before.
        """
        time = np.atleast_1d(np.asarray(time, dtype=np.float64))
        values = np.atleast_2d(np.asarray(values, dtype=np.float64))
        extra = np.zeros((len(time), 0)) if companions is None else np.atleast_2d(companions)
        if len(values) != len(time) or len(extra) != len(time):
            raise DataError(
                f"{len(time)} times, {len(values)} samples and {len(extra)} companions differ"
            )
        rows = np.hstack([values, extra])
        if self._rows is not None and self._rows.shape[1] != rows.shape[1]:
            raise DataError(
                f"{rows.shape[1]} channels came after {self._rows.shape[1]}; reset before"
            )
        if self._rows is not None:
            time, rows = np.concatenate([self._time, time]), np.vstack([self._rows, rows])
        steps = np.diff(time)
        breaks = np.flatnonzero((steps > _MISFIT * self.dt) | (steps < 0.5 * self.dt)) + 1
        edges = [0, *breaks.tolist(), len(time)]
        parts = [self._filter(time[a:b], rows[a:b], values.shape[1]) for a, b in pairwise(edges)]
        start = max(edges[-2], len(time) - self.window + 1)
        self._time, self._rows = time[start:].copy(), rows[start:].copy()
        if len(parts) == 1:
            return parts[0]
        return SmoothedBatch(*(np.concatenate(field) for field in zip(*parts, strict=True)))

    def _filter(self, time: FloatArray, rows: FloatArray, channels: int) -> SmoothedBatch:
        if len(time) < self.window:
            empty, none = np.zeros((0, channels)), np.zeros((0, rows.shape[1] - channels))
            return SmoothedBatch(np.zeros(0), empty, empty, empty, none)
        windows = sliding_window_view(rows, self.window, axis=0)
        smooth = windows @ self.kernels[0]
        derivatives = windows[:, :channels] @ self.kernels[1:].T
        newest = time[self.window - 1 :]
        return SmoothedBatch(
            newest - self.delay,
            smooth[:, :channels],
            derivatives[..., 0],
            derivatives[..., 1],
            smooth[:, channels:],
        )


class FixedLagSavitzkyGolay(FixedLagFilter):
    """Least-squares polynomial over a sliding window, evaluated `lag` samples ago.

    Exact on polynomials up to its order. A lag of half the window has the least noise; a smaller
    one costs noise, in the acceleration above all.

    Parameters
    ----------
    window : int
        Number of samples.
    order : int
        Degree of the polynomial, from 2 to window − 1.
    lag : int [samples]
    dt : float [s]
    """

    def __init__(self, window: int, order: int, lag: int, dt: float) -> None:
        if not 2 <= order < window:
            raise ParameterError(
                f"the order must lie between 2 and {window - 1} (the window less one), not {order}"
            )
        _check(window, lag, dt)
        kernels = [
            scipy.signal.savgol_coeffs(
                window, order, deriv=d, delta=dt, pos=window - 1 - lag, use="dot"
            )
            for d in range(3)
        ]
        super().__init__(np.stack(kernels), lag, dt)
        self.order = order


class FixedLagLowPass(FixedLagFilter):
    """Linear-phase low-pass followed by fourth-order central differences.

    Unlike with a Savitzky–Golay filter, values and derivatives see one and the same low-pass, as
    in the batch pipeline.

    Parameters
    ----------
    cutoff : float [Hz]
        Where the gain is 1/2.
    dt : float [s]
    lag : int [samples]
        Half of the window; longer means steeper.
    """

    def __init__(self, cutoff: float, dt: float, lag: int) -> None:
        _check(2 * lag + 1, lag, dt)
        if not 0.0 < cutoff < 0.5 / dt:
            raise ParameterError(
                f"the cut-off of {cutoff:g} Hz must lie between 0 and {0.5 / dt:g} Hz, half of "
                "the sampling rate"
            )
        if lag <= _STENCIL:
            raise ParameterError(f"the lag must be more than {_STENCIL} samples, not {lag}")
        smoothing = _low_pass_kernel(lag - _STENCIL, cutoff * dt)
        derivatives = [
            # Kernels are applied as scalar products, hence the correlation.
            np.convolve(smoothing, stencil) / dt ** (degree + 1)
            for degree, stencil in enumerate(_DIFFERENCES)
        ]
        super().__init__(np.stack([np.pad(smoothing, _STENCIL), *derivatives]), lag, dt)
        self.cutoff = cutoff


def _low_pass_kernel(half: int, cutoff: float) -> FloatArray:
    """Return a windowed sinc (2 half + 1,) with unit gain at rest; `cutoff` in cycles per sample.

    Hamming's window, as in `scipy.signal.firwin`, which takes a second to import.
    """
    n = np.arange(-half, half + 1)
    kernel = np.sinc(2.0 * cutoff * n) * np.hamming(len(n))
    return np.asarray(kernel / kernel.sum())


def _check(window: int, lag: int, dt: float) -> None:
    if not (np.isfinite(dt) and dt > 0.0):
        raise ParameterError(f"the sampling period must be positive, not {dt} s")
    if not 0 <= lag < window:
        raise ParameterError(f"the lag must lie between 0 and {window - 1} samples, not {lag}")
