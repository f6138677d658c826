# SPDX-License-Identifier: Apache-2.0
"""The online pipeline over a recording, as fast as it goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import DataError
from sysid_core.online.columns import columns_of, values_of
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.stream import SampleStream
from sysid_core.online.stream_config import StreamConfig, stream_cutoffs, stream_rate
from sysid_core.online.update import Update
from sysid_core.recording import Recording, Samples
from sysid_core.robot.locked import locked_elsewhere
from sysid_core.robot.model import Robot
from sysid_core.signals.parts import joined
from sysid_core.signals.sensors import SOURCES

__all__ = ["ReplayStep", "played", "replay", "stream_settings_for"]


_REASONS = {
    "late": "come too late",
    "duplicate": "have the time of another",
    "repeated": "repeat another",
    "not_finite": "are not finite",
    "implausible": "stand out of the others or are beyond the robot's limits",
}
"""Why joint states are left out, by the name that they are counted under."""


class ReplayStep(NamedTuple):
    """One update of a replay."""

    update: Update
    solve_time: float  # [s] by the clock that was given; NaN where nothing was solved


def stream_settings_for(
    recording: Recording, robot: Robot, *, cutoff: float | None = None, sample_rate: float = 100.0
) -> StreamConfig:
    """Return stream settings that fit a recording's own rate, as a live recorder would choose.

    Raises
    ------
    DataError
        If the recording's clock does not advance.
    """
    own = _of_robot(recording, robot)
    try:
        rate = stream_rate(own.time, values_of(robot, own))
    except DataError as err:
        raise DataError(
            "the clock stands still; check the time stamps", source=recording.source
        ) from err
    cutoffs = stream_cutoffs(robot, rate, wanted=cutoff, inertial=recording.imu is not None)
    return StreamConfig(rate=rate, **cutoffs, sample_rate=sample_rate)


def _of_robot(recording: Recording, robot: Robot) -> Recording:
    """Return the rows that hold joints of a robot, all of them: others may share its topic."""
    columns = columns_of(robot, recording.joint_names)
    if columns is None:
        return recording
    held: BoolArray = np.asarray(np.isfinite(recording.position[:, columns]).any(axis=1))
    names = robot.description.names
    return joined(recording.select(held), robot.actuated_names, names)


def replay(
    recording: Recording,
    robot: Robot,
    *,
    stream: StreamConfig,
    online: OnlineConfig | None = None,
    update_rate: float = 20.0,
    clock: Callable[[], float] | None = None,
    tell: Callable[[tuple[str, ...]], None] | None = None,
) -> Iterator[ReplayStep]:
    """Run recorder and identifier over a recording; yields one step per update.

    Parameters
    ----------
    recording : Recording
        As recorded: names, gains and gears are put right here, as live.
    online : OnlineConfig, optional
        Its sample rate is replaced by the stream's.
    update_rate : float [Hz]
        Updates per second of recorded time.
    clock : callable, optional
        Returns seconds, to time solves with.
    tell : callable, optional
        Is told at the end what a live recorder would ask to have mended.

    Raises
    ------
    DataError
        If the recording holds no efforts, never the robot's joints, or no usable odometry of a
        floating base.
    """
    locked = tuple(map(str, locked_elsewhere(robot, recording)))
    recording = _of_robot(recording, robot)
    config = replace(
        online or OnlineConfig(), sample_rate=stream.output_rate, cutoff=stream.cutoff
    )
    identifier = OnlineIdentifier(robot, config)
    live = SampleStream(robot, stream)
    used = 0
    for samples in played(recording, live, 1.0 / update_rate):
        used += len(samples)
        # what waited for sensors comes at once
        for start, stop in _batches(samples.time, 2.0 / update_rate):
            identifier.ingest(samples.select(slice(start, stop)))
            if live.cutoff != config.cutoff:
                config = replace(config, cutoff=live.cutoff)
                identifier.configure(config)
            yield _step(identifier, clock)
    found = locked + _noticed(live, recording, used)
    if found and tell is not None:
        tell(found)


def played(recording: Recording, live: SampleStream, period: float) -> Iterator[Samples]:
    """Push a recording's messages to a stream, so many seconds at once; yield what comes out.

    Raises
    ------
    DataError
        If the recording lacks efforts, or the odometry of a floating base.
    """
    effort = _efforts(live.robot, recording)
    feed = _Companions(recording, live)
    for start, stop in _batches(recording.time, period):
        part = slice(start, stop)
        feed.until(float(recording.time[stop - 1]))
        samples = live.push_joint_states(
            recording.time[part],
            recording.joint_names,
            recording.position[part],
            effort[part],
        )
        if len(samples):
            yield samples
    if len(samples := live.release()):
        yield samples


def _step(identifier: OnlineIdentifier, clock: Callable[[], float] | None) -> ReplayStep:
    begin = clock() if clock else np.nan
    request = identifier.snapshot()
    update = identifier.apply(None if request is None else identifier.solve(request))
    elapsed = clock() - begin if clock and request is not None else np.nan
    identifier.look(request, identifier.judge(request))
    identifier.choose_friction()
    return ReplayStep(update, elapsed)


def _efforts(robot: Robot, recording: Recording) -> FloatArray:
    """Return the efforts (n, nj) of a recording that has what a robot needs."""
    if recording.effort is None:
        raise DataError(
            "holds no efforts; identification needs torques: let the driver publish effort",
            source=recording.source,
        )
    if robot.floating and recording.base is None:
        raise DataError(
            f"robot '{robot.name}' has a floating base, but the data hold no odometry; record "
            "'odom' (nav_msgs/Odometry) along with the joint states",
            source=recording.source,
        )
    return recording.effort


def _noticed(live: SampleStream, recording: Recording, used: int) -> tuple[str, ...]:
    """Return what the stream has to say at the end; `used` samples came out of it."""
    if live.counts["without the robot's joints"] == len(recording):
        raise DataError(
            f"the joints of robot '{live.robot.name}' are not in the data, which have "
            f"{list(recording.joint_names)}; give the robot that was recorded, or map the names "
            "under 'names' in its description",
            source=recording.source,
        )
    found = tuple(map(str, live.take_diagnostics()))
    if used == 0:
        why = "; ".join(found) or _left_out(live, recording)
        raise DataError(f"no sample is usable: {why}", source=recording.source)
    if live.contact_source == "torques":
        found += ("contact flags are missing; the stance is estimated from the torques",)
    return found


def _left_out(live: SampleStream, recording: Recording) -> str:
    """Say why no sample came of a recording."""
    counts = vars(live.joint_counts)
    reasons = {name: counts[name] for name in _REASONS if counts[name]}
    if not reasons:
        span = float(np.ptp(recording.time)) if len(recording) else 0.0
        return f"{len(recording)} joint states in {span:.2g} s are too few; record for longer"
    said = ", ".join(f"{count} {_REASONS[name]}" for name, count in reasons.items())
    return f"of {len(recording)} joint states {said}; check their time stamps, units and limits"


def _batches(time: FloatArray, period: float) -> Iterator[tuple[int, int]]:
    """Cut a recording into stretches of one period, and wherever time goes back."""
    start = 0
    for i in range(1, len(time)):
        # a little less, as stamps are rounded
        if not 0.0 <= time[i] - time[start] < 0.999 * period:
            yield start, i
            start = i
    if len(time):
        yield start, len(time)


class _Companions:
    """Feeds the other sensors' messages to a stream in step with the joint states."""

    def __init__(self, recording: Recording, stream: SampleStream) -> None:
        self._left = {name: getattr(recording, name) for name in SOURCES}
        self._stream = stream

    def until(self, time: float) -> None:
        due = {}
        for name, part in self._left.items():
            if part is not None:
                count = int(np.argmax(np.append(part.time, np.inf) > time))
                due[name], self._left[name] = (
                    part.select(slice(count)),
                    part.select(slice(count, None)),
                )
        self._stream.push(Recording.of_sensors(**due))
