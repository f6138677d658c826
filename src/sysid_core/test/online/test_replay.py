# SPDX-License-Identifier: Apache-2.0
"""A replay does over a recording what recorder and identifier do live."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, OutputError
from sysid_core.estimate_file import read_estimate
from sysid_core.online.export import export_update
from sysid_core.online.gate import GateState
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.stream_config import StreamConfig
from sysid_core.recording import Recording
from sysid_core.robot import load_robot, parse_description

Arm = Any
RATE = 200.0


@pytest.fixture(scope="module")
def recording(valkyrie: Arm) -> Recording:
    """Return ten seconds of Valkyrie's arm as its driver would publish them."""
    samples = valkyrie.samples(0.0, 10.0, rate=RATE, noise=0.02)
    return Recording(
        1000.0 + samples.time,
        valkyrie.robot.joint_names,
        samples.position,
        samples.velocity,
        samples.effort,
        source="arm.mcap",
    )


def steps(recording: Recording, arm: Arm, **options: Any) -> list[Any]:
    settings = stream_settings_for(recording, arm.robot)
    return list(replay(recording, arm.robot, stream=settings, **options))


def test_the_gate_opens_and_solves_are_timed(recording: Recording, valkyrie: Arm) -> None:
    ticks = iter(range(10**6))
    seen = steps(recording, valkyrie, clock=lambda: float(next(ticks)))
    first = next(step for step in seen if step.update.identified)
    assert first.update.time - 1000.0 < 2.5
    assert seen[-1].update.state is GateState.IDENTIFIED
    times = [step.solve_time for step in seen]
    assert {t for t in times if np.isfinite(t)} == {1.0}
    # twenty updates per recorded second, but for the filter's delay at the start
    assert 195 <= len(seen) <= 200


def test_a_recording_played_twice_is_another_run_each_time(
    recording: Recording, valkyrie: Arm
) -> None:
    assert recording.effort is not None
    twice = replace(
        recording,
        time=np.tile(recording.time, 2),
        position=np.tile(recording.position, (2, 1)),
        velocity=None,
        effort=np.tile(recording.effort, (2, 1)),
    )
    seen = steps(twice, valkyrie)
    assert (np.diff([step.update.time for step in seen]) < 0.0).sum() == 1
    assert seen[-1].update.identified
    assert seen[-1].update.samples > 1900


def test_settings_choose_rates_that_the_recording_has(recording: Recording, valkyrie: Arm) -> None:
    settings = stream_settings_for(recording, valkyrie.robot)
    assert settings.rate == pytest.approx(RATE)
    assert settings.cutoff <= 0.2 * settings.rate
    assert stream_settings_for(recording, valkyrie.robot, cutoff=5.0).cutoff == 5.0
    with_gripper = replace(
        recording,
        time=np.repeat(recording.time, 2) + np.tile([0.0, 0.3 / settings.rate], len(recording)),
        joint_names=(*recording.joint_names, "finger"),
        position=np.full((2 * len(recording), len(recording.joint_names) + 1), np.nan),
        velocity=None,
        effort=None,
    )
    with_gripper.position[::2, :-1] = recording.position
    with_gripper.position[1::2, -1] = 0.01
    assert stream_settings_for(with_gripper, valkyrie.robot).rate == pytest.approx(settings.rate)


def test_a_clock_that_stands_still_is_told(recording: Recording, valkyrie: Arm) -> None:
    still = replace(recording, time=np.zeros_like(recording.time))
    with pytest.raises(DataError, match="clock stands still"):
        stream_settings_for(still, valkyrie.robot)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (np.floor, "stand out|have the time of another"),
        (lambda time: np.random.default_rng(1).permutation(time), "of .* joint states"),
        (lambda time: time[:10], "10 joint states in .* are too few"),
    ],
)
def test_a_recording_without_a_usable_sample_says_why(
    spoil: Callable[[FloatArray], FloatArray],
    said: str,
    recording: Recording,
    valkyrie: Arm,
) -> None:
    time = spoil(recording.time)
    spoiled = replace(recording.select(slice(0, len(time))), time=time)
    with pytest.raises(DataError, match=f"no sample is usable: .*({said})"):
        list(replay(spoiled, valkyrie.robot, stream=StreamConfig(rate=200.0)))


def test_data_without_torques_are_refused(recording: Recording, valkyrie: Arm) -> None:
    with pytest.raises(DataError, match="efforts"):
        steps(replace(recording, effort=None), valkyrie)


def test_another_robots_data_are_refused_with_its_joints(
    recording: Recording, valkyrie: Arm
) -> None:
    other = replace(recording, joint_names=("a", "b", "c", "d"))
    with pytest.raises(DataError, match=r"\['a', 'b', 'c', 'd'\]"):
        steps(other, valkyrie)


@pytest.fixture(scope="module")
def learned(valkyrie: Arm) -> OnlineIdentifier:
    identifier = OnlineIdentifier(valkyrie.robot, OnlineConfig())
    for start in range(4):
        identifier.ingest(valkyrie.samples(start, start + 1.0))
        identifier.update()
    return identifier


def test_what_is_exported_reads_back_as_what_was_in_use(
    learned: OnlineIdentifier, valkyrie: Arm, tmp_path: Path
) -> None:
    update = learned.update()
    assert update.identified
    urdf = export_update(update, learned, tmp_path / "out")
    found = read_estimate(tmp_path / "out" / "estimate.json")
    np.testing.assert_allclose(found.parameters(valkyrie.robot), update.parameters)
    np.testing.assert_allclose(found.nominal(valkyrie.robot), valkyrie.robot.nominal)
    data = json.loads((tmp_path / "out" / "estimate.json").read_text())
    assert data["validation"]["joints"] == list(valkyrie.robot.actuated_names)
    assert data["reasons"] == list(update.reasons)
    again = load_robot(
        parse_description(
            {
                "name": "again",
                "urdf": str(urdf),
                "joints": {"actuated": list(valkyrie.robot.actuated_names)},
            }
        )
    )
    inertial = valkyrie.robot.layout.inertial
    scale = np.abs(update.parameters[inertial]).max()
    # a URDF holds about ten digits
    np.testing.assert_allclose(
        again.nominal[inertial], update.parameters[inertial], atol=1e-8 * scale
    )


def test_before_anything_was_learned_the_nominal_model_is_exported(
    valkyrie: Arm, tmp_path: Path
) -> None:
    identifier = OnlineIdentifier(valkyrie.robot)
    export_update(identifier.update(), identifier, tmp_path / "out")
    text = (tmp_path / "out" / "estimate.json").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["method"] == "nominal"


def test_an_export_replaces_nothing(
    learned: OnlineIdentifier, valkyrie: Arm, tmp_path: Path
) -> None:
    mine = tmp_path / f"{valkyrie.robot.name}.urdf"
    mine.write_text("mine")
    with pytest.raises(OutputError, match="exists already"):
        export_update(learned.update(), learned, tmp_path)
    assert mine.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [mine]


def test_a_folder_that_cannot_be_made_leaves_nothing_behind(
    learned: OnlineIdentifier, valkyrie: Arm, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        export_update(learned.update(), learned, tmp_path / "file" / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]
