# SPDX-License-Identifier: Apache-2.0
"""The batch pipeline from a recording to uniform, filtered, differentiated samples."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import DataError
from sysid_core.recording import Recording, Samples
from sysid_core.signals.cutoff import choose_cutoff
from sysid_core.signals.filters import low_pass, settling_time
from sysid_core.signals.inertial import InertialSignal, with_inertial
from sysid_core.signals.motion import JointMotion, base_motion, joint_motion, velocity_agreement
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.outliers import hampel, unwrap, without_spoiled
from sysid_core.signals.rotation import continuous, normalised
from sysid_core.signals.synchronise import (
    Segment,
    Synchronised,
    SynchroniseReport,
    Track,
    synchronise,
)

__all__ = ["PrepareReport", "Prepared", "prepare"]

_MINIMUM_ROWS = 8
_RATE_TOLERANCE = 0.1
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


def prepare(recording: Recording, options: SignalConfig | None = None) -> Prepared:
    """Turn a recording into samples.

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
        return _prepare(recording, options)
    except DataError as err:
        raise DataError(str(err), source=recording.source) from err


def _prepare(recording: Recording, options: SignalConfig) -> Prepared:
    warnings: list[str] = []
    recording, outliers = _cleaned(recording, options, warnings)
    tracks, layout = _tracks(recording)
    synchronised = _synchronised(tracks, options, warnings)
    if synchronised.sensor_rate < _SLOW_RATE:
        warnings.append(
            f"the sensors run at {synchronised.sensor_rate:.3g} Hz, too slow for dynamics: is the "
            "time in seconds?"
        )
    cutoff, reason = _cutoff(synchronised, layout, options)
    measured = _use_measured(synchronised, layout, cutoff, options)
    step = 1
    if options.oversampling is not None:
        step = max(1, int(synchronised.rate / (options.oversampling * cutoff)))
    inertial = _inertial(recording, cutoff, options, warnings)
    segments = _segments(synchronised, layout, cutoff, measured, step, options, inertial, warnings)
    output_rate = synchronised.rate / step
    report = PrepareReport(
        synchronised.sensor_rate,
        synchronised.rate,
        output_rate,
        cutoff,
        reason,
        "measured" if measured else "differentiated",
        outliers,
        synchronised.report,
        sum(len(segment) for segment in segments) / output_rate,
        (*recording.warnings, *warnings),
    )
    return Prepared(tuple(segments), report)


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


def _segments(
    synchronised: Synchronised,
    layout: _Layout,
    cutoff: float,
    measured: bool,
    step: int,
    options: SignalConfig,
    inertial: InertialSignal | None,
    warnings: list[str],
) -> list[Samples]:
    """Filter every stretch that is long enough; trim its edges and thin it."""
    rate = synchronised.rate
    trim = settling_time(cutoff) if options.trim is None else options.trim
    edge = int(np.ceil(trim * rate))
    segments: list[Samples] = []
    for segment in synchronised.segments:
        if len(segment.time) < 2 * edge + _MINIMUM_ROWS:
            warnings.append(
                f"a stretch of {len(segment.time) / rate:.2g} s is too short to filter and is "
                "left out"
            )
            continue
        samples = _samples(segment, layout, rate, cutoff, measured, options)
        if inertial is not None:
            samples, trouble = with_inertial(samples, inertial, 1.0 / rate)
            if trouble and trouble not in warnings:
                warnings.append(trouble)
        kept = np.zeros(len(segment.time), dtype=np.bool_)
        kept[edge : len(kept) - edge : step] = True
        if samples.contacts is not None and options.contact_margin > 0.0:
            kept &= _steady(samples.contacts, options.contact_margin * rate)
        if kept.any():
            segments.append(samples.select(kept))
    if not segments:
        raise DataError(
            f"no uninterrupted stretch is longer than {2 * trim:.2g} s, the edges of the filter; "
            "record for longer or raise the cut-off"
        )
    return segments


@dataclass(frozen=True)
class _Layout:
    """Which track and columns hold what."""

    position: slice
    velocity: slice | None
    effort: slice | None
    base: int | None
    contacts: int | None
    wrenches: int | None


def _cleaned(
    recording: Recording, options: SignalConfig, warnings: list[str]
) -> tuple[Recording, tuple[tuple[str, int], ...]]:
    """Undo wraps of a full turn and replace outliers."""
    position = recording.position.copy()
    for joint, name in enumerate(recording.joint_names):
        wraps = unwrap(position[:, joint])
        if wraps:
            warnings.append(f"{name} wraps by a full turn {wraps} times: unwrapped")
    if options.outlier_threshold is None:
        return replace(recording, position=position), ()
    results = {
        quantity: hampel(
            without_spoiled(values),
            half_window=options.outlier_half_window,
            threshold=options.outlier_threshold,
        )
        for quantity, values in (
            ("position", position),
            ("velocity", recording.velocity),
            ("effort", recording.effort),
        )
        if values is not None
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
        velocity=velocity.values if velocity is not None else None,
        effort=effort.values if effort is not None else None,
    )
    return cleaned, found


def _tracks(recording: Recording) -> tuple[list[Track], _Layout]:
    nj = len(recording.joint_names)
    columns, velocity, effort = [recording.position], None, None
    if recording.velocity is not None:
        velocity = slice(nj, 2 * nj)
        columns.append(recording.velocity)
    if recording.effort is not None:
        effort = slice(nj * len(columns), nj * (len(columns) + 1))
        columns.append(recording.effort)
    tracks = [Track(recording.time, np.hstack(columns))]
    base = contacts = wrenches = None
    if recording.base is not None:
        base = len(tracks)
        pose = (recording.base.position, continuous(recording.base.orientation))
        tracks.append(Track(recording.base.time, np.hstack([*pose, recording.base.twist])))
    if recording.contacts is not None:
        contacts = len(tracks)
        active = recording.contacts.active.astype(np.float64)
        tracks.append(Track(recording.contacts.time, active, flags=True))
        if recording.contacts.wrenches is not None:
            wrenches = len(tracks)
            flat = recording.contacts.wrenches.reshape(len(active), -1)
            tracks.append(Track(recording.contacts.time, flat))
    return tracks, _Layout(slice(nj), velocity, effort, base, contacts, wrenches)


def _cutoff(
    synchronised: Synchronised, layout: _Layout, options: SignalConfig
) -> tuple[float, str]:
    if options.cutoff is not None:
        return options.cutoff, f"{options.cutoff:g} Hz, as asked for"
    positions = [segment.values[0][:, layout.position] for segment in synchronised.segments]
    choice = choose_cutoff(positions, synchronised.rate, sensor_rate=synchronised.sensor_rate)
    return choice.cutoff, choice.reason


def _use_measured(
    synchronised: Synchronised, layout: _Layout, cutoff: float, options: SignalConfig
) -> bool:
    if options.velocity == "differentiated":
        return False
    if layout.velocity is None:
        if options.velocity == "measured":
            raise DataError("no velocities were recorded; use 'differentiated' velocities")
        return False
    if options.velocity == "measured":
        return True
    longest = max(synchronised.segments, key=lambda segment: len(segment.time)).values[0]
    return velocity_agreement(
        longest[:, layout.position], longest[:, layout.velocity], synchronised.rate, cutoff
    ).preferable


def _samples(
    segment: Segment,
    layout: _Layout,
    rate: float,
    cutoff: float,
    measured: bool,
    options: SignalConfig,
) -> Samples:
    joints = segment.values[0]
    smooth = _low_passed(joints, rate, cutoff, options.order)
    motion: JointMotion = joint_motion(
        smooth[:, layout.position],
        smooth[:, layout.velocity] if measured and layout.velocity is not None else None,
        1.0 / rate,
    )
    effort = np.full(motion.position.shape, np.nan)
    if layout.effort is not None:
        effort = smooth[:, layout.effort]
    samples = Samples(segment.time, motion.position, motion.velocity, motion.acceleration, effort)
    if layout.base is not None:
        base = _low_passed(segment.values[layout.base], rate, cutoff, options.order)
        moved = base_motion(base, 1.0 / rate, measured=options.velocity != "differentiated")
        pose = np.hstack([base[:, :3], normalised(base[:, 3:7])])
        samples = replace(
            samples,
            base_pose=pose,
            base_twist=moved.twist,
            base_acceleration=moved.acceleration,
        )
    if layout.contacts is not None:
        samples = replace(samples, contacts=segment.values[layout.contacts] > 0.5)
    if layout.wrenches is not None:
        wrenches = _low_passed(segment.values[layout.wrenches], rate, cutoff, options.order)
        samples = replace(samples, wrenches=wrenches.reshape(len(wrenches), -1, 6))
    return samples


def _inertial(
    recording: Recording, cutoff: float, options: SignalConfig, warnings: list[str]
) -> InertialSignal | None:
    if recording.imu is None or recording.base is None or not options.inertial:
        return None
    signal = InertialSignal(recording.imu, cutoff, options.order, options.gap)
    if signal.trouble:
        warnings.append(signal.trouble)
    return None if signal.trouble else signal


def _low_passed(values: FloatArray, rate: float, cutoff: float, order: int) -> FloatArray:
    """Filter the columns that have values; the others stay NaN."""
    result = np.full_like(values, np.nan)
    present = np.isfinite(values).all(axis=0)
    if present.any():
        result[:, present] = low_pass(values[:, present], rate, cutoff, order=order)
    return result


def _steady(contacts: BoolArray, margin: float) -> BoolArray:
    """Return which samples are at least `margin` samples away from any change of contact."""
    changes = np.flatnonzero(np.any(contacts[1:] != contacts[:-1], axis=1)) + 0.5
    if not len(changes):
        return np.ones(len(contacts), dtype=np.bool_)
    rows = np.arange(len(contacts))
    right = np.clip(np.searchsorted(changes, rows), 0, len(changes) - 1)
    left = np.clip(right - 1, 0, None)
    distance = np.minimum(np.abs(changes[right] - rows), np.abs(rows - changes[left]))
    return np.asarray(distance >= margin)
