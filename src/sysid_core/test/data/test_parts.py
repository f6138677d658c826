# SPDX-License-Identifier: Apache-2.0
"""Parts of a recording hold all of its rows, and around each the filter's reach of more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sysid_core.data import read_parts, read_recording, write_csv, write_recording
from sysid_core.recording import ImuRecording, Recording, cut
from sysid_core.robot import load_robot

REACH = 0.2


@pytest.fixture(scope="module")
def recording(make_recording: Callable[..., Recording]) -> Recording:
    robot = load_robot("ur10")
    return make_recording(robot, robot.nominal, duration=20.0)


@pytest.mark.parametrize("kind", ["table", "bag"])
def test_parts_own_every_row_once(recording: Recording, kind: str, tmp_path: Path) -> None:
    target = tmp_path / ("run.csv" if kind == "table" else "run")
    (write_csv if kind == "table" else write_recording)(recording, target)
    whole = read_recording(target)
    rows = len(whole) // 5
    parts = list(read_parts(target, rows=rows, reach=REACH))
    assert len(parts) > 3
    owned = []
    for part in parts:
        time = part.recording.time
        assert len(time) < 1.5 * rows
        if part is not parts[0]:
            assert time[0] <= part.start - 0.9 * REACH
        if part is not parts[-1]:
            assert time[-1] >= part.end + 0.9 * REACH
        mine = (time >= part.start) & (time < part.end)
        owned.append(np.column_stack([time, part.recording.position])[mine])
    np.testing.assert_array_equal(
        np.concatenate(owned), np.column_stack([whole.time, whole.position])
    )


def test_sensors_are_cut_with_the_joints(recording: Recording) -> None:
    time = np.arange(0.0, 20.0, 0.003)
    sensed = Recording(
        recording.time,
        recording.joint_names,
        recording.position,
        imu=ImuRecording(time, np.zeros((len(time), 3)), np.zeros((len(time), 3))),
    )
    for part in cut(sensed, len(sensed) // 5, REACH):
        assert part.recording.imu is not None
        assert part.recording.imu.time[0] <= part.recording.time[0] + 0.003
        assert part.recording.imu.time[-1] >= min(part.recording.time[-1], time[-1]) - 0.003


def test_a_clock_that_goes_back_is_left_whole(recording: Recording) -> None:
    again = Recording(
        np.where(recording.time > 10.0, recording.time - 5.0, recording.time),
        recording.joint_names,
        recording.position,
    )
    (part,) = cut(again, len(again) // 5, REACH)
    assert part.recording is again
