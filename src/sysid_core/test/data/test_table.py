# SPDX-License-Identifier: Apache-2.0
"""Tables survive a round trip, and a bad one is refused with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sysid_core.data import read_recording, write_csv
from sysid_core.errors import DataError, OutputError
from sysid_core.recording import Recording

HEADER = "time,a/position,a/velocity,a/effort\n"


def _read(tmp_path: Path, text: str) -> Recording:
    path = tmp_path / "data.csv"
    path.write_text(text, encoding="utf-8")
    return read_recording(path)


def test_a_recording_survives_a_table_bit_by_bit(tmp_path: Path) -> None:
    rng = np.random.default_rng(24)
    position, effort = rng.standard_normal((2, 30, 3))
    effort[4, 1] = np.nan
    time = 1.7e9 + np.arange(30, dtype=np.float64) * 1e-3
    recording = Recording(time, ("a", "left/b", "c"), position, None, effort)
    write_csv(recording, tmp_path / "data.csv")
    again = read_recording(tmp_path / "data.csv")
    assert again.joint_names == recording.joint_names
    assert again.velocity is None
    np.testing.assert_array_equal(again.time, time)
    np.testing.assert_array_equal(again.position, position)
    np.testing.assert_array_equal(again.effort, effort)
    with pytest.raises(OutputError, match="exists already"):
        write_csv(recording, tmp_path / "data.csv")
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.csv"]


def test_habits_of_spreadsheets_are_understood(tmp_path: Path) -> None:
    text = "\ufefftime, a/position,b/position ,a/effort\r\n0, 1,2,\r\n0.1,3,4,5\r\n\r\n"
    recording = _read(tmp_path, text)
    np.testing.assert_array_equal(recording.position, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(recording.effort, [[np.nan, np.nan], [5, np.nan]])


BASE = ",".join(
    f"base/{q}"
    for q in ["x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz"]
)
IMU = ",".join(f"imu/{q}" for q in ["wx", "wy", "wz", "ax", "ay", "az"])
WRENCH = ",".join(f"L/{q}" for q in ["fx", "fy", "fz", "tx", "ty", "tz"])


def test_a_floating_base_has_columns_and_each_sensor_rows_of_its_own(tmp_path: Path) -> None:
    base, imu, push = (np.arange(first, first + n) for first, n in ((20, 13), (40, 6), (50, 6)))
    header = f"time,a/position,a/effort,{BASE},{IMU},L/contact,R/contact,{WRENCH}," + (
        WRENCH.replace("L/", "R/")
    )
    rows = [
        [0.0, 1.0, 2.0, *base, *[""] * 6, 1, 0, *push, *-push],
        [0.1, "", "", *[""] * 13, *imu, *[""] * 14],
        [0.2, 3.0, 4.0, *base[:5], *[""] * 8, *imu, 0, 1, *push, *-push],
    ]
    text = "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"
    found = _read(tmp_path, text)
    assert found.base is not None
    assert found.imu is not None
    assert found.contacts is not None
    np.testing.assert_array_equal(found.time, [0.0, 0.2])
    np.testing.assert_array_equal(found.position, [[1.0], [3.0]])
    np.testing.assert_array_equal(found.base.time, [0.0])  # a row that lacks some has none
    np.testing.assert_array_equal(
        np.hstack([found.base.position, found.base.orientation, found.base.twist]), [base]
    )
    np.testing.assert_array_equal(found.imu.time, [0.1, 0.2])
    np.testing.assert_array_equal(found.imu.angular_velocity, [imu[:3]] * 2)
    np.testing.assert_array_equal(found.imu.linear_acceleration, [imu[3:]] * 2)
    assert found.contacts.names == ("L", "R")
    np.testing.assert_array_equal(found.contacts.active, [[True, False], [False, True]])
    np.testing.assert_array_equal(found.contacts.wrenches, [[push, -push]] * 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time,a/position,base/x\n0,1,2\n", "line 1: lacks base/y, base/z, base/qx"),
        ("time,a/position,a/vx\n0,1,2\n", "line 1: unknown column 'a/vx'"),
        ("time,a/position,a/fx\n0,1,2\n", "line 1: unknown column 'a/fx'"),
        (f"time,a/position,L/contact,R/contact,{WRENCH}\n", "no rows"),
        (
            f"time,a/position,L/contact,R/contact,{WRENCH}\n0,1,1,0,1,2,3,4,5,6\n",
            "lacks R/fx, R/fy",
        ),
        ("time,a/position,L/contact\n0,1,0.5\n", "must be 0 or 1"),
        ("time;a/position\n0;1\n", "separate columns by commas, not by ';'"),
        ("", "empty"),
        (HEADER, "no rows"),
        ("t,a/position\n0,1\n", "line 1: the first column is 't'"),
        ("time\n0\n", "line 1: no columns beside the time"),
        ("time,a\n0,1\n", "line 1: unknown column 'a'"),
        ("time,a/torque\n0,1\n", "line 1: unknown column 'a/torque'"),
        ("time,a/position,a/position\n0,1,1\n", "twice"),
        ("time,a/effort\n0,1\n", "no column 'a/position'"),
        ("0.0,1.0,2.0\n0.1,1.0,2.0\n", "line 1"),
        ("time;a/position\n0;1\n", "line 1"),
        (HEADER + "0,1,2,3\n0.1,1,2\n", "line 3 has 3 values"),
        (HEADER + "0,1,2,3\n\n0.1,1,2,3,4\n", "line 4 has 5 values"),
        (HEADER + "0,1,2,3\n0.1,1,x,3\n", "line 3: 'x' in column 'a/velocity'"),
        (HEADER + "0,1,2,3\n,1,2,3\n", "line 3 has no time"),
        (HEADER + "0,,2,3\n", "position columns are empty"),
    ],
)
def test_a_bad_table_is_refused_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(DataError) as caught:
        _read(tmp_path, text)
    assert expected in str(caught.value)
    assert "data.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"time,a/position\n\xff\xfe\x00,1\n")
    with pytest.raises(DataError, match=r"UTF-8|number"):
        read_recording(tmp_path / "x.csv")


def test_a_table_has_no_topics(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(HEADER + "0,1,2,3\n", encoding="utf-8")
    with pytest.raises(DataError, match="no topics"):
        read_recording(tmp_path / "x.csv", joint_topic="/joint_states")
