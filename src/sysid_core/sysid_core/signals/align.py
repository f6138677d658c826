# SPDX-License-Identifier: Apache-2.0
"""From a recording to uniform grids: all that does not depend on the cut-off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import BoolArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import DataError
from sysid_core.recording import ImuRecording, Recording
from sysid_core.signals.chain import Grid
from sysid_core.signals.cutoff import CutoffChoice, choose_cutoff, highest_cutoff
from sysid_core.signals.filters import support
from sysid_core.signals.group import Track
from sysid_core.signals.inertial import INSTEAD
from sysid_core.signals.motion import velocity_agreement
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.outliers import hampel, unwrapped, without_spoiled
from sysid_core.signals.sensors import SENSORS
from sysid_core.signals.synchronise import Synchronised, SynchroniseReport, synchronise
from sysid_core.signals.timing import estimate_clock

__all__ = ["Aligned", "align", "imu_rate"]

_RATE_TOLERANCE = 0.1
_SLOWER = 0.9
"""Share of the log's rate below which a sensor is slower, rather than missing now and then."""
_QUANTITIES = ("position", "velocity", "effort")
_FEW = 8
"""Samples below which nothing can be compared."""
_SLOW_RATE = 5.0
"""No dynamics [Hz] show at less; a table in milliseconds seems a thousand times slower."""

_HEARD = 1.0 / 3.0
"""Share of a recording that the inertial sensor must have told of for the rest to be left out."""
_ENDS = 0.3
"""Time [s] that a filter may take of the ends of a stretch."""


@dataclass(frozen=True)
class Aligned:
    """A recording on one uniform grid, ready to be filtered at any cut-off."""

    grids: tuple[Grid, ...]  # Uninterrupted stretches
    # rate, sensor_rate: [Hz] of the grid, of the sensors.
    rate: float
    sensor_rate: float
    choice: CutoffChoice  # What the spectrum of the motion, the description or the user says
    recording: Recording  # Cleaned
    config: SignalConfig
    outliers: tuple[tuple[str, int], ...]  # Joint and number of values that were replaced
    synchronisation: SynchroniseReport
    warnings: tuple[str, ...]
    behind: float = np.inf  # [Hz] cut-off of a low-pass that the grids went through already


def align(recording: Recording, options: SignalConfig, described: float | None = None) -> Aligned:
    """Clean a recording and bring it onto one grid: all that does not depend on the cut-off.

    `described` [Hz] is the cut-off that the robot's description asks for: as far as the sensors'
    rate lets, where `options` do not ask for another.

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
    recording, outliers = _cleaned(recording, warnings)
    tracks = _tracks(recording)
    synchronised = _without_silence(tracks, options, warnings)
    if synchronised.sensor_rate < _SLOW_RATE:
        warnings.append(
            f"the sensors run at {synchronised.sensor_rate:.3g} Hz, too slow for dynamics: is the "
            "time in seconds?"
        )
    warnings += map(str, _slow_updates(synchronised, recording))
    grids = _grids(synchronised, tuple(tracks))
    wanted = options.cutoff
    if wanted is None and described is not None:
        wanted = min(described, highest_cutoff(synchronised.sensor_rate))
    choice = choose_cutoff(
        [grid.joints["position"] for grid in grids],
        synchronised.rate,
        wanted=wanted,
        sensor_rate=synchronised.sensor_rate,
    )
    if (late := _late_velocity(grids, synchronised.rate, choice.cutoff)) is not None:
        warnings.append(str(late))
    return Aligned(
        tuple(grids),
        synchronised.rate,
        synchronised.sensor_rate,
        choice,
        recording,
        options,
        outliers,
        synchronised.report,
        tuple(warnings),
    )


def _slow_updates(found: Synchronised, recording: Recording) -> Iterator[Diagnostic]:
    """Say which joints' signals are slower than the log, or stood while the robot moved on."""
    if found.report.frozen:
        message = f"values stood for {found.report.frozen:.2g} s while the robot moved on"
        yield Diagnostic(
            "frozen", f"{message}: left out", hint="mend the driver, which repeats them"
        )
    joints, steps = recording.joint_names, np.diff(recording.time)
    log_rate = 1.0 / float(np.median(steps[steps > 0.0]))
    measured = [q for q in _QUANTITIES if getattr(recording, q) is not None]
    cases = (
        ("held_samples", found.held, "repeated in between", "the repeated values are left out"),
        ("interpolated_log", found.drawn, "interpolated in between", "log the raw messages"),
    )
    for kind, rates, what, hint in cases:
        for place, quantity in enumerate(measured):
            first = place * len(joints)
            own = {
                j: rate
                for j in range(len(joints))
                if (rate := rates.get(first + j, np.inf)) < _SLOWER * log_rate
            }
            if own:
                names = ", ".join(joints[j] for j in own)
                message = f"{quantity} is updated at {min(own.values()):.3g} Hz and {what}"
                yield Diagnostic(kind, message, subject=names, hint=hint)


def _late_velocity(grids: list[Grid], rate: float, cutoff: float) -> Diagnostic | None:
    """Say whether a driver's filter delays the velocities behind the positions."""
    joints = max(grids, key=lambda grid: len(grid.time)).joints
    if "velocity" not in joints or len(joints["velocity"]) < 2 * support(rate, cutoff) + _FEW:
        return None
    delay = velocity_agreement(joints["position"], joints["velocity"], rate, cutoff).delay
    if not 1.0 < delay < np.inf:
        return None
    message = f"velocities lag positions by {1e3 * delay / rate:.3g} ms: the driver filters them"
    return Diagnostic("late_velocity", message, hint="positions are differentiated instead")


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


def imu_rate(imu: ImuRecording) -> float:
    """Return the rate [Hz] of inertial readings."""
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


def _without_silence(
    tracks: dict[str, Track], options: SignalConfig, warnings: list[str]
) -> Synchronised:
    """Synchronise, and leave out where the inertial sensor is silent if enough remains.

    The odometry's accelerations, which would stand for its own, are far noisier.
    """
    found = _synchronised(list(tracks.values()), options, warnings)
    place = list(tracks).index("imu") if "imu" in tracks else None
    if place is None or all(np.isfinite(s.values[place]).all() for s in found.segments):
        return found
    whole = {**tracks, "imu": replace(tracks["imu"], required=True)}
    try:
        heard = _synchronised(list(whole.values()), options, [])
    except DataError:
        heard = None
    if heard is None or _inner_time(heard) < _HEARD * _inner_time(found):
        paced = {**tracks, "base": replace(tracks["base"], paces=True)}
        return _synchronised(list(paced.values()), options, [])
    silent = sum(len(s.time) for s in found.segments) / found.rate
    silent -= sum(len(s.time) for s in heard.segments) / heard.rate
    if silent > options.gap / found.rate:
        warnings.append(f"the IMU is silent or frozen for {silent:.2g} s: left out")
    return replace(heard, sensor_rate=found.sensor_rate, report=found.report)


def _inner_time(found: Synchronised) -> float:
    """Return the time [s] of segments without what a filter may take of their ends."""
    return sum(max(0.0, len(s.time) / found.rate - _ENDS) for s in found.segments)


def _cleaned(
    recording: Recording, warnings: list[str]
) -> tuple[Recording, tuple[tuple[str, int], ...]]:
    """Undo wraps of a full turn and replace outliers."""
    position, wraps = unwrapped(recording.position)
    for name, count in zip(recording.joint_names, wraps.tolist(), strict=True):
        if count:
            warnings.append(f"{name} wraps by a full turn {count} times: unwrapped")
    recording = replace(recording, position=position)
    results = {
        quantity: hampel(without_spoiled(values))
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
    count = len(recording.joint_names)  # positions come first
    tracks = {",".join(measured): Track(recording.time, joints, positions=count)}
    for sensor in SENSORS:
        if (rows := sensor.rows(recording)) is not None:
            # of odometry beside an inertial sensor only what is slow is used; flags only switch
            paces = not sensor.flags and (sensor.name != "base" or recording.imu is None)
            required = sensor.required
            tracks[sensor.name] = Track(*rows, sensor.flags, required, paces=paces)
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
