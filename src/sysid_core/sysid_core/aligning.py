# SPDX-License-Identifier: Apache-2.0
"""From a recording to grids on which all sensors are on the joints' time."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from sysid_core.contacts.feet import foot_motion
from sysid_core.contacts.lateness import (
    UNFIT,
    FootTrack,
    Lateness,
    foot_track,
    late_sensors,
    lateness,
)
from sysid_core.cut_efforts import mark_cut_efforts
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.contact_kinematics import ContactKinematics
from sysid_core.errors import DataError
from sysid_core.leaps import without_leaps
from sysid_core.recording import ImuMounting, Recording
from sysid_core.robot.imu import described_cutoff
from sysid_core.robot.interpretation import interpret
from sysid_core.robot.model import Robot
from sysid_core.signals.align import Aligned, align
from sysid_core.signals.chain import ChainConfig, filter_grid, fuse_whole
from sysid_core.signals.filters import support
from sysid_core.signals.options import SignalConfig

__all__ = ["aligned_interpreted", "aligned_recording"]

_CUTOFF = 10.0  # [Hz] that sensors are compared at: above, odometry shows little but noise
_RATE = 100.0  # [Hz] of the samples that they are compared by
_AGAIN = 3  # Times that sensors are moved: late odometry hides that an inertial sensor is good


def aligned_recording(
    robot: Robot,
    recording: Recording,
    config: SignalConfig,
    *,
    lenient: bool = False,
) -> Aligned:
    """Interpret a recording as a robot's and bring it onto one grid.

    Raises
    ------
    DataError
        If the recording is not usable.
    """
    return aligned_interpreted(robot, interpret(robot, recording, lenient=lenient), config)


def aligned_interpreted(
    robot: Robot, interpreted: Recording, config: SignalConfig, began: float | None = None
) -> Aligned:
    """Bring an interpreted recording onto one grid.

    The description's `signals` apply where `config` leaves the choice open. A legged robot's
    sensors that come late are moved by that; an inertial sensor that is not the base's is left
    out. Efforts that are cut off are marked. Of a part, `began` [s] is when the whole did.

    Raises
    ------
    DataError
        If no stretch of it is usable, or odometry contradicts the legs.
    """
    try:
        interpreted, said = without_leaps(robot, interpreted, began)
        aligned = _on_grid(robot, interpreted, config)
        if interpreted.base is not None and robot.floating and robot.description.contacts:
            aligned = _on_time(robot, interpreted, config, aligned)
        aligned = replace(aligned, warnings=(*said, *aligned.warnings))
        return mark_cut_efforts(robot, aligned)
    except DataError as err:
        raise DataError(str(err), source=interpreted.source) from err


def _on_grid(robot: Robot, recording: Recording, config: SignalConfig) -> Aligned:
    """Align a recording at the cut-off that is asked for, or described as far as its rate lets."""
    inertial = recording.imu is not None and config.inertial
    described = described_cutoff(robot.description, inertial=inertial)
    return align(recording, config, described)


class _Compared(NamedTuple):
    """What feet and sensors say of each other, and why an inertial sensor is not used."""

    late: Lateness
    trouble: Diagnostic | None


def _on_time(
    robot: Robot, recording: Recording, config: SignalConfig, aligned: Aligned
) -> Aligned:
    """Align a recording anew where that mends its sensors, and say what was done."""
    whole = Lateness()
    for _ in range(_AGAIN):
        late, trouble = _compared(robot, aligned)
        if not late.matters:
            break
        whole = whole.plus(late)
        aligned = _on_grid(robot, whole.undone(recording), config)
    if late.unfit:
        raise DataError(str(UNFIT))
    said = late_sensors(whole)
    if trouble is not None:
        aligned = _on_grid(robot, replace(whole.undone(recording), imu=None), config)
        said.append(trouble)
    return replace(aligned, warnings=(*aligned.warnings, *map(str, said)))


def _compared(robot: Robot, aligned: Aligned) -> _Compared:
    rate, imu = aligned.rate, aligned.recording.imu
    cutoff, every = min(aligned.choice.cutoff, _CUTOFF), max(1, int(rate / _RATE))
    chain = ChainConfig(rate, cutoff)
    mounting = (imu and imu.mounting) or ImuMounting()
    kinematics = ContactKinematics(robot)
    parts, used, seen, trouble = list[FootTrack](), 0, 0, None
    for grid in aligned.grids:
        again = parts and grid.time[0] <= parts[-1].time[-1]  # the clock was set
        if again or len(grid.time) <= 2 * support(rate, cutoff):
            continue
        filtered = filter_grid(grid, chain, every=every)
        fused = fuse_whole(filtered, mounting, rate / every)
        samples, trouble = fused.samples, trouble or fused.diagnostic
        parts.append(foot_track(kinematics, samples, foot_motion(robot, samples)))
        used, seen = used + fused.used, seen + len(samples)
    inertial = 2 * used > seen
    late = Lateness()
    if parts:
        late = lateness(FootTrack.concatenate(parts), inertial=inertial)
    return _Compared(late, None if inertial else trouble)
