# SPDX-License-Identifier: Apache-2.0
"""Describing a recording: rates, gaps, and what is missing."""

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.recording import Recording, TopicInfo
from sysid_core.signals.timing import estimate_clock, find_passes, split_at_gaps, thin_duplicates

__all__ = ["JointSummary", "RecordingSummary", "StreamSummary", "summarise"]

_GAP = 5.0
_AT_REST = 1e-9
_SENSORS = {
    "odometry": ("base", ("position", "orientation", "twist")),
    "imu": ("imu", ("angular_velocity", "linear_acceleration")),
    "contacts": ("contacts", ("wrenches",)),
}
"""Sensor → field of the recording, and those of its fields that are looked at."""


@dataclass(frozen=True)
class StreamSummary:
    """The time stamps of one source."""

    name: str  # `joint states`, `odometry`, `imu` or `contacts`
    count: int  # Rows
    duration: float  # [s]
    rate: float  # [Hz] of the clock behind the stamps; NaN with fewer than two distinct ones
    jitter: float  # [s] standard deviation of the intervals around whole periods
    gaps: int  # Interruptions of more than five periods
    longest_gap: float  # [s] the longest interval
    lost: int  # Missing rows outside of gaps
    # duplicates, late, resets: rows less than a fifth of a period after another; rows after
    # younger ones; times that the clock went back for good.
    duplicates: int
    late: int
    resets: int
    not_finite: int  # Values that are NaN or infinite where their column has others


@dataclass(frozen=True)
class JointSummary:
    """What one joint's signals look like."""

    name: str
    range: float  # [rad or as published] of the positions
    missing: tuple[str, ...]  # Of `position`, `velocity` and `effort`, those without any value
    moves: bool


@dataclass(frozen=True)
class RecordingSummary:
    """What a recording holds and lacks."""

    source: str
    topics: tuple[TopicInfo, ...]  # All topics of the bag, whether used or not
    streams: tuple[StreamSummary, ...]
    joints: tuple[JointSummary, ...]
    missing: tuple[str, ...]  # In words: what identification would want and does not find
    warnings: tuple[str, ...]  # What was noticed while reading


def summarise(recording: Recording) -> RecordingSummary:
    """Describe a recording for a reader who wants to know whether it can be identified from."""
    quantities = {
        "position": recording.position,
        "velocity": recording.velocity,
        "effort": recording.effort,
    }
    present = [values for values in quantities.values() if values is not None]
    streams = [_stream("joint states", recording.time, present)]
    for name, (field, parts) in _SENSORS.items():
        sensor = getattr(recording, field)
        if sensor is not None:
            values = [getattr(sensor, part) for part in parts]
            flat = [value.reshape(len(value), -1) for value in values if value is not None]
            streams.append(_stream(name, sensor.time, flat))
    joints = tuple(
        _joint(name, number, quantities) for number, name in enumerate(recording.joint_names)
    )
    return RecordingSummary(
        recording.source,
        recording.topics,
        tuple(streams),
        joints,
        _missing(recording, joints),
        recording.warnings,
    )


def _stream(name: str, time: FloatArray, values: list[FloatArray]) -> StreamSummary:
    not_finite = 0
    for array in values:
        finite = np.isfinite(array)
        not_finite += int(np.count_nonzero(~finite[:, finite.any(axis=0)]))
    passes = find_passes(time, gap=_GAP)
    duration, rate, jitter, longest = 0.0, np.nan, 0.0, 0.0
    gaps = lost = duplicates = 0
    for rows in passes.rows:
        stamps = time[rows]
        if len(np.unique(stamps)) < 2:
            continue
        keep = thin_duplicates(stamps, 1.0 / estimate_clock(stamps, gap=_GAP).rate)
        duplicates += int(np.count_nonzero(~keep))
        clock = estimate_clock(stamps[keep], gap=_GAP)
        rate = clock.rate if np.isnan(rate) else rate
        jitter = max(jitter, clock.jitter)
        lost += clock.lost
        duration += float(stamps[-1] - stamps[0])
        longest = max(longest, float(np.diff(stamps).max()))
        gaps += len(split_at_gaps(stamps[keep], _GAP / clock.rate)) - 1
    return StreamSummary(
        name,
        len(time),
        duration,
        float(rate),
        jitter,
        gaps,
        longest,
        lost,
        duplicates,
        passes.late,
        passes.resets,
        not_finite,
    )


def _joint(name: str, number: int, quantities: dict[str, FloatArray | None]) -> JointSummary:
    missing = tuple(
        quantity
        for quantity, values in quantities.items()
        if values is None or not np.isfinite(values[:, number]).any()
    )
    extent = 0.0
    position = quantities["position"]
    if position is not None and "position" not in missing:
        column = position[:, number]
        extent = float(np.ptp(column[np.isfinite(column)]))
    return JointSummary(name, extent, missing, extent > _AT_REST)


def _missing(recording: Recording, joints: tuple[JointSummary, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for quantity in ("position", "velocity", "effort"):
        lacking = [joint.name for joint in joints if quantity in joint.missing]
        if len(lacking) == len(joints):
            found.append(f"no {quantity} of any joint")
        elif lacking:
            found.append(f"no {quantity} of {', '.join(lacking)}")
    still = [j.name for j in joints if not j.moves and "position" not in j.missing]
    if still:
        found.append(f"no motion of {', '.join(still)}")
    for name, (field, _) in _SENSORS.items():
        if getattr(recording, field) is None:
            found.append(f"no {name} (floating bases need odometry and contacts)")
    return tuple(found)
