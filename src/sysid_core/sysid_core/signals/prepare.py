# SPDX-License-Identifier: Apache-2.0
"""The batch pipeline from a recording to uniform, filtered, differentiated samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import BoolArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import DataError
from sysid_core.recording import ImuMounting, ImuRecording, Recording, Samples
from sysid_core.signals.chain import ChainConfig, Grid, filter_grid, fuse
from sysid_core.signals.cutoff import CutoffChoice, choose_cutoff
from sysid_core.signals.filters import support
from sysid_core.signals.inertial import INSTEAD, Biases, too_slow
from sysid_core.signals.motion import velocity_agreement
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.outliers import hampel, unwrapped, without_spoiled
from sysid_core.signals.sensors import SENSORS
from sysid_core.signals.switching import switching
from sysid_core.signals.synchronise import Synchronised, SynchroniseReport, Track, synchronise
from sysid_core.signals.timing import estimate_clock

__all__ = ["Aligned", "PrepareReport", "Prepared", "align", "prepare"]

_MINIMUM_ROWS = 8
_RATE_TOLERANCE = 0.1
_QUANTITIES = ("position", "velocity", "effort")
_SLOW_RATE = 5.0
"""No dynamics [Hz] show at less; a table in milliseconds seems a thousand times slower."""


@dataclass(frozen=True)
class PrepareReport:
    """What was done to a recording.

    Attributes
    ----------
    sensor_rate, rate, output_rate : float [Hz]
        Of the sensors, of the grid, of the samples.
    cutoff : float [Hz]
    cutoff_reason : str
    velocity : str
        `measured` or `differentiated`.
    outliers : tuple[tuple[str, int], ...]
        Joint and number of values that were replaced; joints without any are left out.
    synchronisation : SynchroniseReport
    duration : float [s]
        Of all samples together.
    warnings : tuple[str, ...]
    """

    sensor_rate: float
    rate: float
    output_rate: float
    cutoff: float
    cutoff_reason: str
    velocity: str
    outliers: tuple[tuple[str, int], ...]
    synchronisation: SynchroniseReport
    duration: float
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Prepared:
    """Samples of every uninterrupted stretch, and the report.

    Attributes
    ----------
    segments : tuple[Samples, ...]
    report : PrepareReport
    """

    segments: tuple[Samples, ...]
    report: PrepareReport

    def samples(self) -> Samples:
        """Return all segments joined."""
        return Samples.concatenate(self.segments)


@dataclass(frozen=True)
class Aligned:
    """A recording on one uniform grid, ready to be filtered at any cut-off.

    Attributes
    ----------
    grids : tuple[Grid, ...]
        Uninterrupted stretches.
    rate, sensor_rate : float [Hz]
        Of the grid, of the sensors.
    choice : CutoffChoice
        What the spectrum of the motion, the description or the user says.
    """

    grids: tuple[Grid, ...]
    rate: float
    sensor_rate: float
    choice: CutoffChoice
    _recording: Recording
    _options: SignalConfig
    _outliers: tuple[tuple[str, int], ...]
    _synchronisation: SynchroniseReport
    _warnings: tuple[str, ...]

    def filtered(self, choice: CutoffChoice, *, oversampling: float | None = None) -> Prepared:
        """Low-pass and differentiate at one cut-off; thin to `oversampling` times it.

        Raises
        ------
        DataError
            If no stretch is longer than the filter's edges.
        ParameterError
            If the cut-off does not fit the rate.
        """
        recording, options, rate = self._recording, self._options, self.rate
        warnings, grids = list(self._warnings), list(self.grids)
        if recording.imu is not None:
            trouble = too_slow(_rate(recording.imu), choice.cutoff)
            if trouble is not None:
                warnings.append(str(trouble))
                grids = [grid.without("imu") for grid in grids]
        measured = _use_measured(grids, rate, choice.cutoff, options)
        chain = ChainConfig(rate, choice.cutoff, measured, options.velocity != "differentiated")
        step = 1
        if oversampling is not None:
            step = max(1, int(rate / (oversampling * choice.cutoff)))
        mounting = ImuMounting()
        if recording.imu is not None and recording.imu.mounting is not None:
            mounting = recording.imu.mounting
        segments = _segments(grids, chain, mounting, step, options, warnings)
        report = PrepareReport(
            self.sensor_rate,
            rate,
            rate / step,
            choice.cutoff,
            choice.reason,
            "measured" if measured else "differentiated",
            self._outliers,
            self._synchronisation,
            sum(len(segment) for segment in segments) * step / rate,
            (*recording.warnings, *warnings),
        )
        return Prepared(tuple(segments), report)


def prepare(recording: Recording, options: SignalConfig | None = None) -> Prepared:
    """Turn a recording into samples, at the cut-off of `options` or of the motion's spectrum.

    Outliers are replaced, all signals brought onto one uniform grid (never across a gap), and
    filtered by the same zero-phase low-pass, so that both sides of the regression see the same
    filter; then positions are differentiated by central differences, the filter's edges trimmed
    and redundant samples left out.

    Parameters
    ----------
    recording : Recording
        In the robot's joint order and SI units, on the joint side of transmissions.
    options : SignalConfig, optional

    Raises
    ------
    DataError
        If no stretch of the recording is usable.
    ParameterError
        If the cut-off does not fit the rate.
    """
    options = options or SignalConfig()
    try:
        aligned = align(recording, options)
        return aligned.filtered(aligned.choice, oversampling=options.oversampling)
    except DataError as err:
        raise DataError(str(err), source=recording.source) from err


def align(recording: Recording, options: SignalConfig) -> Aligned:
    """Clean a recording and bring it onto one grid: all that does not depend on the cut-off.

    Raises
    ------
    DataError
        If no stretch of the recording is usable.
    """
    warnings: list[str] = []
    if recording.base is None or not options.inertial:
        recording = replace(recording, imu=None)
    if recording.imu is not None and (trouble := _disorder(recording.imu)) is not None:
        warnings.append(str(trouble))
        recording = replace(recording, imu=None)
    recording, outliers = _cleaned(recording, options, warnings)
    tracks = _tracks(recording)
    synchronised = _synchronised(list(tracks.values()), options, warnings)
    if synchronised.sensor_rate < _SLOW_RATE:
        warnings.append(
            f"the sensors run at {synchronised.sensor_rate:.3g} Hz, too slow for dynamics: is the "
            "time in seconds?"
        )
    grids = _grids(synchronised, tuple(tracks))
    return Aligned(
        tuple(grids),
        synchronised.rate,
        synchronised.sensor_rate,
        _cutoff(grids, synchronised, options),
        recording,
        options,
        outliers,
        synchronised.report,
        tuple(warnings),
    )


def _disorder(imu: ImuRecording) -> Diagnostic | None:
    """Say why inertial readings cannot be put in order; None if they can."""
    steps = np.diff(imu.time[_readable(imu)])
    if len(steps) == 0:
        return Diagnostic("imu_empty", "the IMU's messages hold no numbers", hint=INSTEAD)
    if np.any(steps < 0.0):
        return Diagnostic("imu_clock", "the IMU's clock goes back", hint=INSTEAD)
    return None


def _readable(imu: ImuRecording) -> BoolArray:
    values = np.column_stack([imu.time, imu.angular_velocity, imu.linear_acceleration])
    return np.asarray(np.isfinite(values).all(axis=1))


def _rate(imu: ImuRecording) -> float:
    return estimate_clock(imu.time[_readable(imu)]).rate


def _synchronised(tracks: list[Track], options: SignalConfig, warnings: list[str]) -> Synchronised:
    """Bring the tracks onto a grid of the wanted rate, or a multiple no slower than the sensors.

    A grid slower than the sensors would fold their noise back, since filters come after it.
    """
    found = synchronise(tracks, gap=options.gap, timing=options.timing)
    if options.rate is None:
        return found
    if abs(found.rate / options.rate - 1.0) > _RATE_TOLERANCE:
        warnings.append(
            f"the sensors run at {found.rate:.4g} Hz where {options.rate:.4g} Hz was expected"
        )
    factor = max(1.0, np.ceil(found.rate / options.rate - _RATE_TOLERANCE))
    return synchronise(tracks, rate=options.rate * factor, gap=options.gap, timing=options.timing)


def _cleaned(
    recording: Recording, options: SignalConfig, warnings: list[str]
) -> tuple[Recording, tuple[tuple[str, int], ...]]:
    """Undo wraps of a full turn and replace outliers."""
    position, wraps = unwrapped(recording.position)
    for name, count in zip(recording.joint_names, wraps.tolist(), strict=True):
        if count:
            warnings.append(f"{name} wraps by a full turn {count} times: unwrapped")
    recording = replace(recording, position=position)
    if options.outlier_threshold is None:
        return recording, ()
    results = {
        quantity: hampel(
            without_spoiled(values),
            half_window=options.outlier_half_window,
            threshold=options.outlier_threshold,
        )
        for quantity in _QUANTITIES
        if (values := getattr(recording, quantity)) is not None
    }
    counts = np.sum([result.counts for result in results.values()], axis=0)
    found = tuple(
        (name, int(count))
        for name, count in zip(recording.joint_names, counts, strict=True)
        if count
    )
    velocity, effort = results.get("velocity"), results.get("effort")
    cleaned = replace(
        recording,
        position=results["position"].values,
        velocity=None if velocity is None else velocity.values,
        effort=None if effort is None else effort.values,
    )
    return cleaned, found


def _tracks(recording: Recording) -> dict[str, Track]:
    """Return the joints' quantities side by side, then the sensors."""
    measured = [q for q in _QUANTITIES if getattr(recording, q) is not None]
    joints = np.hstack([getattr(recording, quantity) for quantity in measured])
    tracks = {",".join(measured): Track(recording.time, joints)}
    for sensor in SENSORS:
        if (rows := sensor.rows(recording)) is not None:
            tracks[sensor.name] = Track(*rows, flags=sensor.flags, required=sensor.required)
    return tracks


def _grids(synchronised: Synchronised, names: tuple[str, ...]) -> list[Grid]:
    quantities = names[0].split(",")
    grids = []
    for segment in synchronised.segments:
        parts = np.split(segment.values[0], len(quantities), axis=1)
        joints = dict(zip(quantities, parts, strict=True))
        sensors = dict(zip(names[1:], segment.values[1:], strict=True))
        grids.append(Grid(segment.time, joints, sensors))
    return grids


def _cutoff(grids: list[Grid], synchronised: Synchronised, options: SignalConfig) -> CutoffChoice:
    return choose_cutoff(
        [grid.joints["position"] for grid in grids],
        synchronised.rate,
        wanted=options.cutoff,
        sensor_rate=synchronised.sensor_rate,
    )


def _use_measured(grids: list[Grid], rate: float, cutoff: float, options: SignalConfig) -> bool:
    if options.velocity == "differentiated":
        return False
    if "velocity" not in grids[0].joints:
        if options.velocity == "measured":
            raise DataError("no velocities were recorded; use 'differentiated' velocities")
        return False
    if options.velocity == "measured":
        return True
    joints = max(grids, key=lambda grid: len(grid.time)).joints
    return velocity_agreement(joints["position"], joints["velocity"], rate, cutoff).preferable


def _segments(
    grids: list[Grid],
    chain: ChainConfig,
    mounting: ImuMounting,
    step: int,
    options: SignalConfig,
    warnings: list[str],
) -> list[Samples]:
    """Filter every stretch that is long enough; trim its edges and thin it."""
    reach = support(chain.rate, chain.cutoff)
    edge = reach if options.trim is None else max(reach, int(np.ceil(options.trim * chain.rate)))
    segments: list[Samples] = []
    for grid in grids:
        if len(grid.time) < 2 * edge + _MINIMUM_ROWS:
            warnings.append(
                f"a stretch of {len(grid.time) / chain.rate:.2g} s is too short to filter and is "
                "left out"
            )
            continue
        samples = _fused(grid, chain, mounting, warnings)
        kept = np.zeros(len(samples), dtype=np.bool_)
        kept[edge - reach : len(kept) - (edge - reach) : step] = True
        if samples.contacts is not None and options.contact_margin > 0.0:
            kept &= ~switching(samples.time, samples.contacts, options.contact_margin)
        if kept.any():
            segments.append(samples.select(kept))
    if not segments:
        raise DataError(
            f"no uninterrupted stretch is longer than {2 * edge / chain.rate:.2g} s, the edges of "
            "the filter; record for longer or raise the cut-off"
        )
    return segments


def _fused(grid: Grid, chain: ChainConfig, mounting: ImuMounting, warnings: list[str]) -> Samples:
    """Filter a stretch and fuse its sensors, their biases learned from the whole of it before."""
    filtered = filter_grid(grid, chain)
    learned = fuse(filtered, mounting, Biases(), chain.rate).biases
    fused = fuse(filtered, mounting, learned, chain.rate)
    troubles = [] if fused.diagnostic is None else [str(fused.diagnostic)]
    silent = 0
    if filtered.readings is not None:
        silent = int(np.isnan(filtered.readings.specific_force).any(axis=1).sum())
    if silent > support(chain.rate, chain.cutoff):
        troubles.append(f"the IMU is silent for a part of the recording; {INSTEAD}")
    warnings += [text for text in troubles if text not in warnings]
    return fused.samples
