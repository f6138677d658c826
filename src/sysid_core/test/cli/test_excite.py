# SPDX-License-Identifier: Apache-2.0
"""``sysid excite`` writes what players and tables need, or says in one line why not."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from sysid_core.cli.main import main


def test_table_message_and_summary_tell_of_the_same_motion(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--duration", "4", "--starts", "1", "--seed", "3", "--json"]
    assert main(["excite", "valkyrie_arm", "--out", str(tmp_path), *arguments]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["condition"]["optimised"] < summary["condition"]["random"]
    assert all(max(shares) <= 1.0 for shares in summary["usage"].values())
    joints = summary["joints"]
    with (tmp_path / "trajectory.csv").open(encoding="utf-8") as file:
        header = file.readline().strip().split(",")
    kinds = ("position", "velocity", "acceleration")
    assert header == ["time", *(f"{joint}/{kind}" for joint in joints for kind in kinds)]
    table = np.loadtxt(tmp_path / "trajectory.csv", delimiter=",", skiprows=1)
    message = yaml.safe_load((tmp_path / "trajectory.yaml").read_text(encoding="utf-8"))
    assert message["joint_names"] == joints
    first, last = message["points"][0], message["points"][-1]
    np.testing.assert_allclose(first["positions"], summary["start"], atol=1e-8)
    np.testing.assert_allclose(table[0, 1::3], summary["start"], atol=1e-8)
    np.testing.assert_allclose(table[-1, 1::3], last["positions"], atol=1e-8)
    np.testing.assert_allclose(last["velocities"], 0.0, atol=1e-8)
    assert last["time_from_start"] == {"sec": 4, "nanosec": 0}
    assert (tmp_path / "trajectory.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nobody"], "known robots"),
        (["panda", "--duration", "nan"], "duration"),
        (["panda", "--share", "2"], "share"),
        (["panda", "--rate", "0"], "--rate"),
    ],
)
def test_bad_input_is_one_line_and_status_two(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["excite", *arguments, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())
