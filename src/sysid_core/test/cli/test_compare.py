# SPDX-License-Identifier: Apache-2.0
"""Estimates of one truth agree, those of two differ, and other robots' are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sysid_core.cli.main import main
from sysid_core.data import write_csv
from sysid_core.estimate_json import estimate_json, write_estimate
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.robot import load_robot
from sysid_core.signals.options import SignalConfig


@pytest.fixture(scope="module")
def folder(
    make_recording: Callable[..., Recording], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return a folder with estimates of one UR10 twice, of it with a load, and of a TX40."""
    target = tmp_path_factory.mktemp("estimates")
    ur10, tx40 = load_robot("ur10"), load_robot("tx40")
    loaded = ur10.consistent_nominal.copy()
    loaded[ur10.layout.body("wrist_3_link")][0] += 3.0
    options = IdentifyConfig(signals=SignalConfig(cutoff=5.0))
    for name, robot, truth, seed in (
        ("one", ur10, ur10.consistent_nominal, 1),
        ("again", ur10, ur10.consistent_nominal, 2),
        ("loaded", ur10, loaded, 3),
        ("tx40", tx40, tx40.consistent_nominal, 4),
    ):
        run = make_recording(robot, truth, duration=10.0, noise=0.2, seed=seed)
        found = estimate_json(identify(robot, run, options), {})
        write_estimate(found, target / f"{name}.json")
        write_csv(run, target / f"{name}.csv")
    return target


def _compare(
    folder: Path, capsys: pytest.CaptureFixture[str], second: str, *more: str
) -> tuple[int, Any]:
    status = main(["compare", str(folder / "one.json"), str(folder / f"{second}.json"), *more])
    return status, capsys.readouterr()


def test_estimates_of_one_truth_agree(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _compare(folder, capsys, "one")[0] == 0
    status, printed = _compare(folder, capsys, "again", str(folder / "again.csv"), "--json")
    found = json.loads(printed.out)
    assert (status, found["agree"]) == (0, True)
    assert found["torque"]["differ"] == []
    assert 0.0 < max(abs(entry["z"]) for entry in found["base"].values()) < found["bound"]


def test_a_load_makes_them_differ(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _compare(folder, capsys, "loaded")[0] == 1
    status, printed = _compare(folder, capsys, "loaded", str(folder / "one.csv"), "--json")
    found = json.loads(printed.out)
    assert (status, found["agree"]) == (1, False)
    assert "shoulder_lift_joint" in found["torque"]["differ"]
    assert len(found["bodies"]) == 60


def test_estimates_of_two_robots_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, printed = _compare(folder, capsys, "tx40")
    assert status == 2
    (line,) = printed.err.splitlines()
    assert "tx40" in line
