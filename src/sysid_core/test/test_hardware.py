# SPDX-License-Identifier: Apache-2.0
"""Recordings of real robots: what the command makes of them, against published figures."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.cli.main import main
from sysid_core.data import read_recording, write_csv
from sysid_core.robot import load_robot

UR10_FLOOR = (3.64, 3.78, 2.19, 0.93, 0.48, 1.17)
"""Held-out RMSE [N·m] of a plain weighted least squares, from the data's README."""
TX40_TERMS = {"viscous": "fv", "coulomb": "fs", "offset": "off", "armature": "Ia"}
"""Names of our terms in the published list of base parameters."""
TX40_GEARS = (32.0, 32.0, 45.0, -48.0, 45.0, 32.0)
UR10E_LOAD = 2.805
"""Mass [kg]; plain least squares finds 3.07 with these drive gains."""


def _square_sum(values: Any) -> float:
    return float((np.array(values) ** 2).sum())


def _identify(
    capsys: pytest.CaptureFixture[str], data: Path, robot: str, out: Path, *more: str
) -> Any:
    arguments = ["identify", str(data), "--robot", robot, "--out", str(out), "--no-report"]
    assert main([*arguments, "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def _write_table(
    path: Path, names: tuple[str, ...], time: FloatArray, **quantities: FloatArray
) -> Path:
    header = ["time"] + [f"{name}/{kind}" for kind in quantities for name in names]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(np.column_stack([time, *quantities.values()]).tolist())
    return path


@pytest.mark.parametrize("form", [pytest.param("mcap", marks=pytest.mark.heavy), "db3", "csv"])
def test_ur10_from_every_form_of_its_bag(
    form: str, data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_root / "ur10" / ("ur10_exciting_trajectory.db3" if form == "db3" else "mcap")
    if not data.exists():
        pytest.skip(f"no data at {data}")
    if form == "csv":
        recording, data = read_recording(data), tmp_path / "ur10.csv"
        write_csv(recording, data)
    found = _identify(capsys, data, "ur10", tmp_path / "out", "--train", "0.7")
    assert min(found["consistency"].values()) > 0.0
    rmse = found["validation"]["rmse"]
    assert _square_sum(rmse["identified"]) < 0.8 * _square_sum(UR10_FLOOR)
    assert _square_sum(rmse["identified"]) * 3.0**2 < _square_sum(rmse["nominal"])
    assert min(found["validation"]["r2"]["identified"]) > 0.95


def _tx40_table(data_root: Path, path: Path, side: str) -> Path:
    folder = data_root / "tx40"
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}")
    position = np.loadtxt(folder / "pos_read_data.csv", delimiter=",", skiprows=1)
    effort = np.loadtxt(folder / "curr_data.csv", delimiter=",", skiprows=1)
    time = 2e-4 * np.arange(len(position), dtype=np.float64)
    moving = (time >= 0.3) & (time <= 7.4)
    if side == "joint":
        gears = np.diag(TX40_GEARS)
        gears[5, 4] = 32.0
        position = position @ np.linalg.inv(gears).T
        position += np.array([0.0, -0.5, 0.5, 0.0, 0.0, 0.0]) * np.pi
        effort = effort @ gears
    names = load_robot("tx40").joint_names
    return _write_table(
        path, names, time[moving], position=position[moving], effort=effort[moving]
    )


PUBLISHED_LAW = ("--friction", "described")
"""The published parameters are of the least law."""


def _published(data_root: Path) -> dict[str, tuple[float, float]]:
    """Return the published base parameters with their standard deviations, by name."""
    with (data_root / "tx40" / "ref_TX40_bp_5.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    return {row[0]: (float(row[3]), 0.01 * abs(float(row[3])) * float(row[4])) for row in rows}


@pytest.mark.parametrize("side", ["motor", pytest.param("joint", marks=pytest.mark.heavy)])
def test_tx40_friction_and_armature_agree_with_the_published_ones(
    side: str, data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Within 2 standard deviations of the difference, whatever the data leave open."""
    data = _tx40_table(data_root, tmp_path / "tx40.csv", side)
    found = _identify(capsys, data, "tx40", tmp_path / "out", "--train", "1.0", *PUBLISHED_LAW)
    assert min(found["consistency"].values()) > 0.0
    published = _published(data_root)
    (coupling,), (coupling_std,) = found["couplings"].values(), found["std"]["couplings"].values()
    pairs = [
        (coupling[term], coupling_std[term], published[name])
        for term, name in (("viscous", "fvm6"), ("coulomb", "fsm6"), ("armature", "Iam6"))
    ]
    for number, joint in enumerate(found["joints"], start=1):
        for term, name in TX40_TERMS.items():
            # the first two armatures cannot be told from inertias, so the list leaves them out
            if f"{name}{number}" in published:
                value, std = found["joints"][joint][term], found["std"]["joints"][joint][term]
                pairs.append((value, std, published[f"{name}{number}"]))
    assert len(pairs) == 24
    for value, std, (reference, reference_std) in pairs:
        assert abs(value - reference) < 2.0 * np.hypot(std, reference_std)


def _ur10e_table(data_root: Path, path: Path, run: str, rows: slice) -> Path:
    source = data_root / "ur10e" / f"ur-20_02_19_{run}.csv"
    if not source.exists():
        pytest.skip(f"no data at {source}")
    table = np.loadtxt(source, delimiter=",")[rows]
    time, position, velocity, current = np.split(table[:, :19], [1, 7, 13], axis=1)
    names = load_robot("ur10e").joint_names
    return _write_table(
        path, names, time[:, 0], position=position, velocity=velocity, effort=current
    )


def test_ur10e_load_is_found_from_currents(
    data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = _ur10e_table(data_root, tmp_path / "bare.csv", "14harm50sec", slice(194, 4966))
    loaded = _ur10e_table(data_root, tmp_path / "load.csv", "14harm50secLoad", slice(307, 5071))
    first = _identify(capsys, bare, "ur10e", tmp_path / "bare")
    assert first["validation"]["rmse"]["identified"] < first["validation"]["rmse"]["nominal"]
    assert min(first["validation"]["r2"]["identified"]) > 0.95
    found = _identify(
        capsys,
        loaded,
        "ur10e",
        tmp_path / "load",
        "--from",
        str(tmp_path / "bare"),
        "--only",
        "wrist_3_link",
        "--train",
        "1.0",
    )
    (load,) = found["loads"]
    assert load["mass"] == pytest.approx(UR10E_LOAD, rel=0.025)
    assert abs(load["mass"] - UR10E_LOAD) < 1.96 * load["mass_std"] < 0.3
    assert found["consistency"]["wrist_3_link"] > 0.0


def test_panda_predicts_held_out_motion(
    data_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_root / "panda" / "mcap"
    if not data.exists():
        pytest.skip(f"no data at {data}")
    found = _identify(capsys, data, "panda", tmp_path / "out")
    rmse = found["validation"]["rmse"]
    assert _square_sum(rmse["identified"]) < _square_sum(rmse["nominal"])
    assert min(found["consistency"].values()) > 0.0


@pytest.mark.heavy
def test_accelerations_of_a_slow_log_do_not_make_a_torque_look_wrong(
    data_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_root / "panda" / "mcap"
    if not data.exists():
        pytest.skip(f"no data at {data}")
    assert main(["replay", str(data), "--robot", "panda", "--json"]) == 0
    updates = [json.loads(line) for line in capsys.readouterr().out.splitlines()[:-1]]
    reasons = [reason for update in updates for reason in update["reasons"]]
    assert reasons
    assert not [reason for reason in reasons if "times what masses" in reason]
    assert "IDENTIFIED" in {update["state"] for update in updates}
