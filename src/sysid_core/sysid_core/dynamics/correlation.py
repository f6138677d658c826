# SPDX-License-Identifier: Apache-2.0
"""For how many independent rows coloured residuals stand."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError

__all__ = ["effective_sample_factor"]


def effective_sample_factor(residuals: FloatArray) -> float:
    """Return by what factor ≥ 1 coloured residuals (n,) count for less than their number.

    The integrated autocorrelation time τ = 1 + 2 Σ ρ_k of evenly spaced residuals, summed up to
    the first lag that exceeds 5 τ (Sokal's window); outliers are clipped at 4 robust standard
    deviations first.
    """
    e = np.asarray(residuals, dtype=float)
    if e.ndim != 1 or not np.isfinite(e).all():
        raise ParameterError("the sample factor needs a finite, one-dimensional series")
    if len(e) < 4:
        return 1.0
    e = e - np.median(e)
    spread = 1.4826 * np.median(np.abs(e))
    if spread > 0.0:
        e = np.clip(e, -4.0 * spread, 4.0 * spread)
    e = e - e.mean()
    size = 1 << (2 * len(e) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(e, size)) ** 2
    autocovariance = np.fft.irfft(spectrum, size)[: len(e)]
    if autocovariance[0] <= 0.0:
        return 1.0
    times = 2.0 * np.cumsum(autocovariance / autocovariance[0]) - 1.0
    beyond = np.flatnonzero(np.arange(len(e)) >= 5.0 * times)
    window = int(beyond[0]) if len(beyond) else len(e) - 1
    return float(np.clip(times[window], 1.0, len(e)))
