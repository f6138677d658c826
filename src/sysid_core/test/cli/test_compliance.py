# SPDX-License-Identifier: Apache-2.0
"""``sysid compliance`` reads a table of poses, and says in one line what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.cli.main import main
from sysid_core.robot import load_robot

PARTS = ("x", "y", "z", "qx", "qy", "qz", "qw")


@pytest.fixture(scope="module")
def table() -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the UR10's last link and the one before it, swinging."""
    robot = load_robot("ur10")
    model, data = robot.model, robot.model.createData()
    links = robot.layout.bodies[-2:]
    rows = []
    for t in np.arange(200) / 120.0:
        pin.forwardKinematics(model, data, 0.5 * np.sin(3.0 * t + np.arange(6.0)))
        row = [t]
        for place in (data.oMi[5], data.oMi[6]):
            row += [*place.translation, *pin.Quaternion(place.rotation).coeffs()]
        rows.append([f"{float(value):.12g}" for value in row])
    return ["time", *(f"{link}/{part}" for link in links for part in PARTS)], rows


def _write(path: Path, header: list[str], rows: list[list[str]]) -> str:
    path.write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n", encoding="utf-8")
    return str(path)


def test_results_hold_every_joint_that_the_poses_determine(
    table: tuple[list[str], list[list[str]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = _write(tmp_path / "poses.csv", *table)
    out = tmp_path / "out"
    assert main(["compliance", data, "--robot", "ur10", "--out", str(out), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "compliance.json").read_text(encoding="utf-8"))
    (joint,) = printed["joints"]
    assert joint == "wrist_3_joint"
    assert np.shape(printed["joints"][joint]["stiffness"]) == (6, 6)
    assert (out / "wrenches.png").stat().st_size > 10_000
    assert main(["compliance", data, "--robot", "ur10", "--out", str(out)]) == 0
    assert "stiffness" in capsys.readouterr().out


Fault = Callable[[list[str], list[list[str]]], None]


def _no_time(header: list[str], rows: list[list[str]]) -> None:
    header[0] = "t"


def _unknown_part(header: list[str], rows: list[list[str]]) -> None:
    header[3] = "wrist_2_link/w"


def _part_missing(header: list[str], rows: list[list[str]]) -> None:
    for row in [header, *rows]:
        del row[3]


def _unknown_link(header: list[str], rows: list[list[str]]) -> None:
    header[:] = [name.replace("wrist_3", "tail") for name in header]


def _gap(header: list[str], rows: list[list[str]]) -> None:
    rows[7][5] = ""


def _back_in_time(header: list[str], rows: list[list[str]]) -> None:
    rows[50][0] = "0.1"


def _no_quaternion(header: list[str], rows: list[list[str]]) -> None:
    rows[3][4] = "0.9"


def _short_row(header: list[str], rows: list[list[str]]) -> None:
    del rows[3][-1]


def _few_rows(header: list[str], rows: list[list[str]]) -> None:
    del rows[20:]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (_no_time, "not 'time'"),
        (_unknown_part, "unknown column"),
        (_part_missing, "lacks z"),
        (_unknown_link, "no moving link tail"),
        (_gap, "line 9: column 'wrist_2_link/qy' holds no finite number"),
        (_back_in_time, "line 52: time does not ascend"),
        (_no_quaternion, "line 5: the quaternion of 'wrist_2_link'"),
        (_short_row, "line 5 has 14 values"),
        (_few_rows, "20 rows are too few"),
    ],
)
def test_bad_poses_are_one_line_and_status_two(
    table: tuple[list[str], list[list[str]]],
    fault: Fault,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    header, rows = list(table[0]), [list(row) for row in table[1]]
    fault(header, rows)
    data = _write(tmp_path / "poses.csv", header, rows)
    out = tmp_path / "out"
    assert main(["compliance", data, "--robot", "ur10", "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not out.exists()


def test_a_missing_file_is_said_to_be_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "out")
    missing = str(tmp_path / "nothing.csv")
    assert main(["compliance", missing, "--robot", "ur10", "--out", out]) == 2
    assert "No such file" in capsys.readouterr().err
