# SPDX-License-Identifier: Apache-2.0
"""Choosing the cut-off of the low-pass from the spectrum of the motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import DataError
from sysid_core.signals.differences import differentiate

__all__ = ["LEAST_BAND_FACTOR", "CutoffChoice", "choose_cutoff", "highest_cutoff"]

_DEFAULT = 10.0
"""Cut-off [Hz] where neither a description nor a spectrum says more: a quick arm's motion."""
_HIGHEST = 0.25
"""Share of the sensors' rate that the cut-off may reach: the low-pass ends at twice the cut-off,
then half of the rate."""
_HIGHEST_LIVE = 0.2
"""The same where no prediction judges it: a tenfold sine is still a sine there."""
_BAND_FACTOR = 12.0
"""Harmonics of the motion that torques show: Gautier asks for 5 to 10, for gravity and inertia;
the steps of dry friction have 3 % of their power beyond twelve."""
LEAST_BAND_FACTOR = 2.0
"""What noise may reduce that factor to: less would filter the motion itself."""
_MOTION_POWER = 0.999
"""Share of the velocities' power that the motion's band holds."""
_MOTION_DISTANCE = 0.99999
"""The same of the positions' power: what shakes with a 300th of the motion's amplitude is a
vibration, unless it were 17 times as fast and as strong."""
_NOISE_BAND = (0.6, 0.9)
"""Part of the spectrum, up to half of the sensors' rate, that holds noise only: above all motion,
below what anti-aliasing filters of drivers take away."""
_SIGNAL_TO_NOISE = 3.0
"""Power over the noise floor from which a bin is signal: half of the bins of noise exceed 0.7."""
_NOISE_SHARE = 0.01
"""Power of the accelerations that may be noise: a tenth of their RMS."""
_WINDOW = 4.0
"""Length [s] of the spectrum's windows: resolves a quarter of a hertz."""
_SMOOTHED_BINS = 3
"""Bins that a median smooths over, so that a single one of noise is no signal."""
_MOVING_PART = 1e-6
"""Share of the liveliest joint's power below which a joint stands still."""
_MOVES = 0.5
"""Share of its positions' power that must stand out of the noise, where a joint moves."""


@dataclass(frozen=True)
class CutoffChoice:
    """A cut-off and why; and what else all signals of a robot share."""

    cutoff: float  # [Hz]
    motion_band: float
    """[Hz] frequency below which 99.9 % of the velocities' power lies, or all but 1e-5 of the
    positions', on average over the joints."""
    noise_frequency: float
    """[Hz]: Cut-off at which a tenth (RMS) of the median joint's acceleration would be noise."""
    reason: str
    given: bool = False  # Whether the user or the robot's description gave it
    lag: float = 0.0  # [s] by which efforts come after the positions that they go with

    def lowered(self, cutoff: float, times: float) -> CutoffChoice:
        """Return a lower cut-off [Hz] that predicts held-out torque so many times better."""
        reason = (
            f"{cutoff:.3g} Hz predicts held-out torque {times:.2f} times better than "
            f"{self.cutoff:.3g} Hz, "
            + ("which was asked for" if self.given else "which the spectrum would allow")
        )
        return replace(self, cutoff=cutoff, reason=reason)


def choose_cutoff(
    positions: Sequence[FloatArray],
    rate: float,
    *,
    wanted: float | None = None,
    sensor_rate: float | None = None,
) -> CutoffChoice:
    """Choose the cut-off for a robot's positions and efforts, live or recorded.

    Twelve times the band of the motion keeps the harmonics that gravity, inertia and friction make
    of it (Gautier's rule asks for five to ten). Less, down to twice the band, if more than a tenth
    of the accelerations would be noise, and no more than a quarter of the sensor rate.

    Parameters
    ----------
    positions : sequence of (n, nj)
        Uniform segments; columns that are NaN throughout are left out. Without any, as live,
        10 Hz are taken, or 0.2 of the rate if that is less.
    rate : float [Hz]
        Of the segments.
    wanted : float, optional [Hz]
        What the user or the robot's description asks for: taken as it is.
    sensor_rate : float, optional [Hz]
        Of the sensors, if lower.

    Raises
    ------
    DataError
        If no segment is long enough for a spectrum.
    """
    if wanted is not None:
        return CutoffChoice(wanted, 0.0, 0.0, f"{wanted:g} Hz, as asked for", given=True)
    sensors = min(rate, sensor_rate or rate)
    limit = highest_cutoff(sensors, live=not positions)
    if not positions:
        cutoff = min(_DEFAULT, limit)
        return CutoffChoice(cutoff, 0.0, limit, f"{cutoff:.3g} Hz, without a spectrum")
    frequencies, power = _velocity_spectrum(positions, rate)
    if power.shape[1] == 0 or not np.any(power > 0.0):
        return CutoffChoice(
            limit, 0.0, limit, f"{limit:.3g} Hz, a quarter of the sensor rate: nothing moves"
        )
    moving = power.sum(axis=0) > _MOVING_PART * power.sum(axis=0).max()
    above, floor = _above_noise(frequencies, power, rate, sensors)
    signals = np.where(above, power, 0.0)
    distance = [(p / frequencies[:, np.newaxis] ** 2).sum(axis=0) for p in (signals, power)]
    clear = moving & (distance[0] > _MOVES * distance[1])
    moving = clear if clear.any() else moving
    signals, floor = signals[:, moving], floor[moving]
    noise = float(np.median(_noise_frequency(frequencies, signals, floor)))
    band = min(
        _band(frequencies, signals, _MOTION_POWER),
        _band(frequencies, signals / frequencies[:, np.newaxis] ** 2, _MOTION_DISTANCE),
    )
    return _within(band, noise, limit, sensors)


def _within(band: float, noise: float, limit: float, sensors: float) -> CutoffChoice:
    """Choose for a band of the motion, where noise begins and what sensors allow [Hz]."""
    wanted = _BAND_FACTOR * band
    cutoff = min(wanted, max(noise, LEAST_BAND_FACTOR * band), limit)
    if cutoff == limit:
        why = "a quarter of the sensor rate"
    elif cutoff == wanted:
        why = f"{_BAND_FACTOR:g} times the band of the motion"
    else:
        why = "to keep noise out of the accelerations"
    return CutoffChoice(
        cutoff,
        band,
        noise,
        f"{cutoff:.3g} Hz, {why} (99.9 % of the motion below {band:.3g} Hz, a tenth of the "
        f"accelerations noise at {noise:.3g} Hz, sensors at {sensors:.4g} Hz)",
    )


def _band(frequencies: FloatArray, power: FloatArray, share: float) -> float:
    """Return the frequency [Hz] below which a share of the power (k, nj) lies."""
    shares = np.cumsum(power, axis=0)
    # Every joint counts the same, however far it moves.
    return float(frequencies[np.argmax(np.mean(shares / shares[-1], axis=1) >= share)])


def highest_cutoff(rate: float, *, live: bool = False) -> float:
    """Return the highest cut-off [Hz] that fits sensors of a rate [Hz]."""
    return (_HIGHEST_LIVE if live else _HIGHEST) * rate


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
    total: FloatArray = np.zeros((window // 2 + 1, int(measured.sum())))
    weight = 0
    for segment in positions:
        if len(segment) < window:
            continue
        velocity = differentiate(segment[:, measured], 1.0 / rate)
        total = total + _power_density(velocity, rate, window) * len(segment)
        weight += len(segment)
    frequencies = np.asarray(np.fft.rfftfreq(window, 1.0 / rate), dtype=np.float64)
    return frequencies[1:], total[1:] / weight


def _power_density(values: FloatArray, rate: float, window: int) -> FloatArray:
    """Return Welch's estimate of the one-sided power density (window // 2 + 1, m).

    Hann windows overlap by half. `scipy.signal.welch` is the same, but takes a second to import.
    """
    hann = np.hanning(window + 1)[:-1]
    step = window - window // 2
    pieces = np.lib.stride_tricks.sliding_window_view(values, window, axis=0)[::step]
    power: FloatArray = np.mean(np.abs(np.fft.rfft(pieces * hann, axis=-1)) ** 2, axis=0).T
    power[1 : None if window % 2 else -1] *= 2.0
    return power / (rate * np.sum(hann**2))


def _noise_frequency(
    frequencies: FloatArray, signals: FloatArray, floor: FloatArray
) -> FloatArray:
    """Return, per joint, the cut-off that lets noise make up its share of the acceleration.

    White noise of density N in the positions has the power N (2π)⁴ f⁵/5 in accelerations below f.
    """
    omega = 2.0 * np.pi * frequencies[:, np.newaxis]
    acceleration = np.sum(signals * omega**2, axis=0) * (frequencies[1] - frequencies[0])
    tiny = np.finfo(np.float64).tiny
    ratio = _NOISE_SHARE * acceleration / np.maximum(floor, tiny)
    return np.asarray(np.minimum((5.0 * ratio / (2.0 * np.pi) ** 4) ** 0.2, frequencies[-1]))


def _above_noise(
    frequencies: FloatArray, power: FloatArray, rate: float, sensors: float
) -> tuple[BoolArray, FloatArray]:
    """Return where the positions' spectrum stands out of its floor (k, nj), and the floor (nj,).

    The floor is the level at the highest frequencies that the sensors' own rate [Hz] tells of,
    where a robot's positions hold noise only; single bins are smoothed over, and a joint's
    strongest bin always stands out.
    """
    # A fourth-order difference passes (8 sin ω − sin 2ω)/6 instead of ω.
    omega = 2.0 * np.pi * frequencies / rate
    gain = np.abs(8.0 * np.sin(omega) - np.sin(2.0 * omega)) / 6.0 * rate
    position = power / np.maximum(gain, 1e-9 * rate)[:, np.newaxis] ** 2
    part = frequencies / (0.5 * sensors)
    floor = np.median(position[(part > _NOISE_BAND[0]) & (part < _NOISE_BAND[1])], axis=0)
    mirrored = np.pad(position, [(_SMOOTHED_BINS // 2,) * 2, (0, 0)], mode="symmetric")
    neighbours = np.lib.stride_tricks.sliding_window_view(mirrored, _SMOOTHED_BINS, axis=0)
    above = np.median(neighbours, axis=-1) > _SIGNAL_TO_NOISE * floor
    above[part > _NOISE_BAND[0]] = False
    above[np.argmax(power, axis=0), np.arange(power.shape[1])] = True
    return np.asarray(above), np.asarray(floor)
