# SPDX-License-Identifier: Apache-2.0
"""Choosing the cut-off of the low-pass from the spectrum of the motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import signal

from sysid_core.errors import DataError
from sysid_core.recording import FloatArray
from sysid_core.signals.differences import differentiate

__all__ = ["CutoffChoice", "choose_cutoff"]

# Gautier's rule: to leave the torques' harmonics of the motion alone, five to ten times its band.
_BAND_FACTOR = 8.0
_MOTION_POWER = 0.999
_NYQUIST_PART = 0.4
_NOISE_BAND = (0.6, 0.9)
_SIGNAL_TO_NOISE = 3.0
_WINDOW = 4.0
_MOVING_PART = 1e-6


@dataclass(frozen=True)
class CutoffChoice:
    """A cut-off and why.

    Attributes
    ----------
    cutoff : float [Hz]
    motion_band : float [Hz]
        Frequency below which 99.9 % of the velocities' power lies, on average over the joints.
    noise_frequency : float [Hz]
        Where the positions of the median joint sink into their noise.
    reason : str
    """

    cutoff: float
    motion_band: float
    noise_frequency: float
    reason: str


def choose_cutoff(
    positions: Sequence[FloatArray], rate: float, *, sensor_rate: float | None = None
) -> CutoffChoice:
    """Choose the cut-off for a robot's positions and efforts.

    Eight times the band of the motion keeps the harmonics that gravity, inertia and friction make
    of it (Gautier's rule asks for five to ten). No more than where positions sink into the noise,
    beyond which accelerations are noise only; no more than 0.4 of half of the sensor rate.

    Parameters
    ----------
    positions : sequence of (n, nj)
        Uniform segments; columns that are NaN throughout are left out.
    rate : float [Hz]
        Of the segments.
    sensor_rate : float, optional [Hz]
        Of the sensors, if lower.

    Raises
    ------
    DataError
        If no segment is long enough for a spectrum.
    """
    limit = _NYQUIST_PART * 0.5 * min(rate, sensor_rate or rate)
    frequencies, power = _velocity_spectrum(positions, rate)
    if power.shape[1] == 0 or not np.any(power > 0.0):
        return CutoffChoice(
            limit, 0.0, limit, f"{limit:.3g} Hz, 0.4 of half of the sensor rate: nothing moves"
        )
    moving = power.sum(axis=0) > _MOVING_PART * power.sum(axis=0).max()
    noise = _noise_frequency(frequencies, power[:, moving], rate)
    clean = frequencies <= max(noise, frequencies[0])
    shares = np.cumsum(power[np.ix_(clean, moving)], axis=0)
    # Every joint counts the same, however far it moves.
    share = np.mean(shares / shares[-1], axis=1)
    band = float(frequencies[clean][np.argmax(share >= _MOTION_POWER)])
    wanted = _BAND_FACTOR * band
    cutoff = min(wanted, max(noise, band), limit)
    if cutoff == limit:
        why = "0.4 of half of the sensor rate"
    elif cutoff == wanted:
        why = f"{_BAND_FACTOR:g} times the band of the motion"
    else:
        why = "where positions sink into their noise"
    return CutoffChoice(
        cutoff,
        band,
        noise,
        f"{cutoff:.3g} Hz, {why} (99.9 % of the motion below {band:.3g} Hz, noise from "
        f"{noise:.3g} Hz, sensors at {min(rate, sensor_rate or rate):.4g} Hz)",
    )


def _velocity_spectrum(
    positions: Sequence[FloatArray], rate: float
) -> tuple[FloatArray, FloatArray]:
    """Return frequencies (k,) without zero and the mean power of the velocities (k, nj).

    Velocities, because a slow drift of the positions would hide the rest of the spectrum.
    """
    longest = max((len(segment) for segment in positions), default=0)
    window = min(longest, max(16, int(_WINDOW * rate)))
    if window < 16:
        raise DataError(
            f"the longest uninterrupted stretch has {longest} samples, too few to judge its "
            "spectrum; record for longer or give a cut-off"
        )
    measured = np.all([np.isfinite(s).all(axis=0) for s in positions], axis=0)
    total, weight = 0.0, 0
    frequencies = np.zeros(0)
    for segment in positions:
        if len(segment) < window:
            continue
        velocity = differentiate(segment[:, measured], 1.0 / rate)
        frequencies, power = signal.welch(velocity, rate, nperseg=window, axis=0, detrend=False)
        total = total + power * len(segment)
        weight += len(segment)
    return frequencies[1:], np.asarray(total)[1:] / weight


def _noise_frequency(frequencies: FloatArray, power: FloatArray, rate: float) -> float:
    """Return where the spectrum of the median joint's positions meets its floor."""
    # A fourth-order difference passes (8 sin ω − sin 2ω)/6 instead of ω.
    omega = 2.0 * np.pi * frequencies / rate
    gain = np.abs(8.0 * np.sin(omega) - np.sin(2.0 * omega)) / 6.0 * rate
    position = power / np.maximum(gain, 1e-9 * rate)[:, np.newaxis] ** 2
    part = frequencies / (0.5 * rate)
    band = (part > _NOISE_BAND[0]) & (part < _NOISE_BAND[1])
    floor = np.median(position[band], axis=0)
    above = position > _SIGNAL_TO_NOISE * floor
    first_below = np.where(above.all(axis=0), len(frequencies) - 1, np.argmin(above, axis=0))
    return float(np.median(frequencies[first_below]))
