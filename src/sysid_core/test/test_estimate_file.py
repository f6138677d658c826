# SPDX-License-Identifier: Apache-2.0
"""An estimate survives writing and reading; what is no estimate is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.errors import ModelError
from sysid_core.estimate_file import read_estimate
from sysid_core.estimate_json import estimate_json, write_estimate
from sysid_core.identification import Identification, identify
from sysid_core.recording import Recording
from sysid_core.robot import load_robot


@pytest.fixture(scope="module")
def found(make_recording: Callable[..., Recording]) -> Identification:
    robot = load_robot("tx40")  # its coupled wrist fills every section of the file
    parameters = robot.nominal.copy()
    parameters[robot.layout.coupling_term("viscous")] = 0.5
    return identify(robot, make_recording(robot, parameters, duration=15.0, noise=0.05))


@pytest.fixture
def data(found: Identification) -> dict[str, Any]:
    contents = json.loads(json.dumps(estimate_json(found, {"estimation": 0.25, "reading": 0.5})))
    assert isinstance(contents, dict)
    return contents


def test_keys_are_the_contract(found: Identification, data: dict[str, Any]) -> None:
    contract = {
        "robot",
        "model_hash",
        "method",
        "bodies",
        "joints",
        "std",
        "consistency",
        "train",
        "validation",
        "timing_s",
        "warnings",
    }
    assert contract <= set(data)
    assert data["robot"] == "tx40"
    assert data["timing_s"] == 0.75
    assert all(len(values) == 10 for values in data["bodies"].values())
    chosen = found.robot.description.friction_chosen
    for joint, terms in data["joints"].items():
        least = ("viscous", "coulomb", "armature", "offset")
        assert tuple(terms) == (*least, *chosen.get(joint, ()))
    assert set(data["consistency"]) == set(data["bodies"])
    for part in ("train", "validation"):
        assert data[part]["joints"] == list(found.robot.joint_names)
        for figure in ("rmse", "r2"):
            assert {len(data[part][figure][k]) for k in ("nominal", "identified")} == {6}


def test_parameters_survive_writing_and_reading(
    found: Identification, data: dict[str, Any], tmp_path: Path
) -> None:
    write_estimate(data, tmp_path / "estimate.json")
    for path in (tmp_path, tmp_path / "estimate.json"):
        estimate = read_estimate(path)
        read = estimate.parameters(found.robot)
        np.testing.assert_array_equal(read, found.estimate.parameters)
        np.testing.assert_array_equal(estimate.nominal(found.robot), found.nominal)
        bare = estimate.bare(found.robot)
        np.testing.assert_array_equal(bare.covariance, found.estimate.base_covariance)
        np.testing.assert_array_equal(bare.error, found.discrepancy)


def test_chosen_friction_survives_writing_and_reading(
    found: Identification, data: dict[str, Any], tmp_path: Path
) -> None:
    """A file of a version that knew no chosen friction leaves the robot as it is."""
    data["friction"] = {"joint_3": {"load": 1.0, "sigmoid": 0.2}}
    for section in (data, data["std"]):
        section["joints"]["joint_3"].update(load=0.1, sigmoid=2.5)
    write_estimate(data, tmp_path / "estimate.json")
    estimate = read_estimate(tmp_path)
    robot = estimate.as_identified(found.robot)
    assert robot.model_hash == found.robot.model_hash
    assert robot.description.friction_chosen == data["friction"]
    assert robot.layout.joints_of(estimate.parameters(robot))["joint_3"]["sigmoid"] == 2.5
    del data["friction"]
    write_estimate(data, tmp_path / "estimate.json")
    assert read_estimate(tmp_path).as_identified(found.robot) is found.robot


def test_gravity_that_the_recording_told_survives_writing_and_reading(
    found: Identification, data: dict[str, Any], tmp_path: Path
) -> None:
    turned = found.robot.in_gravity((0.0, -9.0, -3.9))
    data.update(gravity=[0.0, -9.0, -3.9], model_hash=turned.model_hash)
    write_estimate(data, tmp_path / "estimate.json")
    estimate = read_estimate(tmp_path)
    robot = estimate.as_identified(found.robot)
    np.testing.assert_array_equal(estimate.parameters(robot), found.estimate.parameters)
    assert robot.description.gravity == turned.description.gravity


def test_another_model_is_refused(
    found: Identification, data: dict[str, Any], tmp_path: Path
) -> None:
    write_estimate(data, tmp_path / "estimate.json")
    estimate = read_estimate(tmp_path)
    tilted = load_robot(replace(found.robot.description, gravity=(0.0, -9.81, 0.0)))
    for robot in (load_robot("ur10"), tilted):
        with pytest.raises(ModelError, match="another model"):
            estimate.parameters(robot)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d.pop("robot"), "'robot'"),
        (lambda d: d["bodies"]["link_1"].pop(), "bodies.link_1"),
        (lambda d: d["std"]["joints"]["joint_1"].pop("viscous"), "std.joints.joint_1"),
        (lambda d: d["joints"]["joint_2"].update(coulomb=None), "joints.joint_2"),
        (lambda d: d.update(bodies=3), "'bodies'"),
        (lambda d: d.pop("std"), "'std'"),
        (lambda d: d.update(friction=3), "'friction'"),
        (lambda d: d.update(friction={"joint_1": {"magic": 1.0}}), "friction.joint_1"),
        (lambda d: d.update(friction={"joint_1": {"load": 0.0}}), "friction.joint_1"),
        (lambda d: d["joints"]["joint_2"].update(load="much"), "joints.joint_2"),
        (lambda d: d["joints"]["joint_2"].update(load=0.1), "std.joints"),
        (lambda d: d["std"]["bodies"].pop("link_1"), "std.bodies"),
        (lambda d: d.update(base_parameters="all"), "base_parameters"),
        (lambda d: d["base_parameters"][0].update(expression=2), "base_parameters"),
    ],
)
def test_the_place_of_a_fault_is_named(
    data: dict[str, Any],
    change: Callable[[dict[str, Any]], Any],
    complaint: str,
    tmp_path: Path,
) -> None:
    change(data)
    (tmp_path / "estimate.json").write_text(json.dumps(data))
    with pytest.raises(ModelError, match=complaint):
        read_estimate(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_what_is_no_estimate_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "estimate.json").write_text(text)
    with pytest.raises(ModelError, match="identif"):
        read_estimate(tmp_path)
    with pytest.raises(ModelError, match="no such file"):
        read_estimate(tmp_path / "nowhere.json")
