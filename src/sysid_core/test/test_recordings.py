# SPDX-License-Identifier: Apache-2.0
"""Several recordings, long ones and many workers give what one short recording would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.cli.main import main
from sysid_core.data import write_csv
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.errors import DataError
from sysid_core.gathering import Gathering
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.recording import Recording, Samples
from sysid_core.recordings import KnownLoad, Source, read_sources
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalConfig
from sysid_core.validation import validate
from sysid_core.workers import Workers, workers

Make = Callable[..., Recording]
AT_FIVE = IdentifyConfig(signals=SignalConfig(cutoff=5.0))


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot("ur10")


@pytest.fixture(scope="module")
def truth(robot: Robot) -> FloatArray:
    vector = robot.consistent_nominal.copy()
    vector[robot.layout.body("forearm_link")] *= 1.3
    vector[robot.layout.term("viscous")] = 5.0
    return vector


@pytest.fixture(scope="module")
def tables(
    robot: Robot, truth: FloatArray, make_recording: Make, tmp_path_factory: pytest.TempPathFactory
) -> list[Path]:
    """Return tables of two runs of one robot."""
    folder = tmp_path_factory.mktemp("runs")
    paths = [folder / f"{seed}.csv" for seed in (1, 2)]
    for seed, path in enumerate(paths, 1):
        write_csv(make_recording(robot, truth, duration=12.0, noise=0.2, seed=seed), path)
    return paths


def _same(one: Identification, other: Identification) -> None:
    scale = np.abs(one.estimate.parameters).max()
    difference = np.abs(one.estimate.parameters - other.estimate.parameters).max()
    assert difference < 1e-9 * scale
    assert len(one.samples) == len(other.samples)


@pytest.mark.parametrize("rows", [1500, pytest.param(2200, marks=pytest.mark.heavy)])
def test_a_recording_in_parts_gives_what_it_gives_whole(
    robot: Robot,
    truth: FloatArray,
    make_recording: Make,
    monkeypatch: pytest.MonkeyPatch,
    rows: int,
) -> None:
    recording = make_recording(robot, truth, duration=60.0, noise=0.2, seed=3)
    whole = identify(robot, recording, AT_FIVE)
    checked = validate(robot, recording, robot.nominal, truth, AT_FIVE)
    monkeypatch.setattr(Source.parts, "__defaults__", (rows,))
    _same(whole, identify(robot, recording, AT_FIVE))
    again = validate(robot, recording, robot.nominal, truth, AT_FIVE)
    np.testing.assert_allclose(
        again.scores.rmse_identified, checked.scores.rmse_identified, rtol=1e-9
    )
    found = identify(robot, recording)  # its cut-off is chosen on an excerpt
    assert found.train.r2_identified.min() > 0.99


def test_a_long_pause_takes_no_part_in_the_choice_of_the_cutoff(
    robot: Robot, truth: FloatArray, make_recording: Make
) -> None:
    recording = make_recording(robot, truth, duration=30.0, noise=0.2, seed=3)
    late = np.where(recording.time > 12.0, 3600.0, 0.0)
    paused = replace(recording, time=recording.time + late)
    with workers() as here:
        gathering = Gathering(robot, [Source(paused)], SignalConfig(), False, here)
        aligned, _ = gathering.excerpt(0.7)
    looked_at = sum(grid.time[-1] - grid.time[0] for grid in aligned.grids)
    assert looked_at > 0.9 * 0.7 * 30.0
    whole, found = identify(robot, recording), identify(robot, paused)
    assert found.signals.cutoff == pytest.approx(whole.signals.cutoff, rel=0.2)


def test_a_part_in_which_the_robot_rests_is_used(
    robot: Robot, truth: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    still = moving_at_times(robot, truth, [(0.0, 15.0), (35.0, 60.0)], 60.0)
    monkeypatch.setattr(Source.parts, "__defaults__", (1250,))
    assert len(identify(robot, still, AT_FIVE).samples) > 2000


def moving_at_times(
    robot: Robot, truth: FloatArray, moves: Sequence[tuple[float, float]], duration: float
) -> Recording:
    """Return a recording of a robot that moves and rests [s]; each move begins and ends slowly."""
    time = np.arange(round(100.0 * duration)) / 100.0
    speed = np.zeros_like(time)
    for start, end in moves:
        speed += np.clip(np.minimum(time - start, end - time), 0.0, 1.0)
    rng, joints = np.random.default_rng(6), len(robot.joint_names)
    angle = np.outer(np.cumsum(speed) / 100.0, rng.uniform(1.0, 2.5, joints))
    position = 0.8 * np.sin(angle + rng.uniform(0.0, 6.0, joints)) + 0.4 * np.sin(2.3 * angle)
    velocity = np.gradient(position, 0.01, axis=0)
    states = position, velocity, np.gradient(velocity, 0.01, axis=0)
    effort = TreeRegression(robot).full(*states) @ truth
    effort += 0.2 * rng.normal(size=effort.shape)
    return Recording(time, robot.joint_names, position, None, effort, source="at times")


MOVES = {
    "after": [(0.0, 30.0)],
    "early": [(0.0, 5.0), (80.0, 110.0)],
    "between": [(10.0, 15.0), (40.0, 70.0), (100.0, 105.0)],
}


@pytest.mark.parametrize(
    ("when", "rows"),
    [
        ("between", 2500),
        pytest.param("after", 2500, marks=pytest.mark.heavy),
        pytest.param("early", 100_000, marks=pytest.mark.heavy),
    ],
)
def test_rests_take_no_part(
    robot: Robot, truth: FloatArray, monkeypatch: pytest.MonkeyPatch, when: str, rows: int
) -> None:
    def error(one: Identification) -> float:
        return float(np.linalg.norm(one.regression.base.project(one.estimate.parameters - truth)))

    usual = identify(robot, moving_at_times(robot, truth, MOVES["after"], 30.0))
    monkeypatch.setattr(Source.parts, "__defaults__", (rows,))
    found = identify(robot, moving_at_times(robot, truth, MOVES[when], 120.0))
    moved = sum(end - start for start, end in MOVES[when])
    assert moved < len(found.samples) / 100.0 <= moved + 3.0 * len(MOVES[when])
    assert found.split == pytest.approx(0.7 * len(found.samples), abs=1.0)
    assert found.train.r2_identified.min() > 0.99
    assert error(found) < 2.0 * error(usual)


def test_recordings_weigh_by_their_weights(
    robot: Robot, truth: FloatArray, make_recording: Make, tables: Sequence[Path]
) -> None:
    viscous = robot.layout.term("viscous")
    warmer = truth.copy()
    warmer[viscous] *= 0.9
    other = make_recording(robot, warmer, duration=12.0, noise=0.2, seed=6)
    for weight, expected in ((1e-4, truth), (1e4, warmer)):
        found = identify(robot, [Source(tables[0]), Source(other, weight=weight)], AT_FIVE)
        np.testing.assert_allclose(
            found.estimate.parameters[viscous], expected[viscous], rtol=0.04
        )


def test_a_stated_load_is_taken_off(
    robot: Robot, truth: FloatArray, make_recording: Make, tables: Sequence[Path]
) -> None:
    load = KnownLoad("wrist_3_link", 4.0, (0.0, 0.02, 0.1))
    loaded = make_recording(
        robot, truth + load.parameters(robot), duration=12.0, noise=0.2, seed=5
    )
    found = identify(robot, [Source(tables[0]), Source(loaded, load=load)])
    mass = found.estimate.parameters[robot.layout.masses]
    assert mass[-1] == pytest.approx(truth[robot.layout.masses][-1], abs=0.5)
    with pytest.raises(DataError, match="not of one robot under one load"):
        identify(robot, [Source(tables[0]), Source(loaded)])
    with pytest.raises(DataError, match="heavier than robot"):
        KnownLoad("wrist_3_link", 4000.0, (0.0, 0.0, 0.0)).parameters(robot)


def test_recordings_of_two_robots_end_in_one_line(
    tables: Sequence[Path],
    make_recording: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = load_robot("ur10e")  # its joints have the same names
    write_csv(make_recording(other, other.consistent_nominal, duration=12.0), tmp_path / "o.csv")
    panda = load_robot("panda")
    write_csv(make_recording(panda, panda.consistent_nominal, duration=5.0), tmp_path / "p.csv")
    for second, words in (("o.csv", "not of one robot"), ("p.csv", "are missing")):
        arguments = ["identify", str(tables[0]), str(tmp_path / second), "--robot", "ur10"]
        assert main([*arguments, "--out", str(tmp_path / "out"), "--no-report"]) == 2
        (line,) = (t for t in capsys.readouterr().err.splitlines() if t.startswith("sysid:"))
        assert words in line
        assert not (tmp_path / "out").exists()


def test_a_list_of_recordings_says_what_is_known_of_each(
    robot: Robot, tables: Sequence[Path], tmp_path: Path
) -> None:
    listed = tmp_path / "runs.yaml"
    listed.write_text(
        f"recordings:\n- {tables[0]}\n- data: {tables[1]}\n  weight: 0.5\n"
        "  load: {body: wrist_3_link, mass: 2, com: [0, 0, 0.1]}\n"
    )
    plain, loaded = read_sources([listed])
    assert plain == Source(tables[0])
    assert loaded == Source(tables[1], 0.5, KnownLoad("wrist_3_link", 2, (0, 0, 0.1)))
    for text, words in (
        ("recordings: []", "lists none"),
        ("recordings: x", "'recordings' must be a list"),
        ("recordings: [{weight: 1}]", r"'recordings\[0\]' must have a 'data'"),
        ("recordings: [{data: x, wieght: 1}]", r"unknown key \['wieght'\]"),
        ("recordings: [{data: x, weight: -1}]", r"recordings\[0\].weight' must be"),
        ("recordings: [{data: x, load: {mass: 1}}]", "load' must have a 'body'"),
        (
            "recordings: [{data: x, load: {body: b, mass: 1, com: [0]}}]",
            "com' must be a list of 3",
        ),
        ("recordings: [{data: x, contacts: foot}]", "contacts' must be a list of names"),
    ):
        listed.write_text(text)
        with pytest.raises(DataError, match=words):
            read_sources([listed])


def _through(pool: Workers, robot: Robot, tables: Sequence[Path]) -> Identification:
    return identify(robot, [Source(path) for path in tables], pool=pool)


def test_workers_change_nothing(robot: Robot, tables: Sequence[Path]) -> None:
    with workers() as here, workers(2) as two:
        _same(_through(here, robot, tables), _through(two, robot, tables))


def test_a_dask_cluster_changes_nothing(robot: Robot, tables: Sequence[Path]) -> None:
    distributed = pytest.importorskip("distributed", reason="Dask is not installed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, protocol="tcp"
    )
    with cluster, workers() as here, workers(scheduler=cluster.scheduler_address) as dask:
        _same(_through(here, robot, tables), _through(dask, robot, tables))


def test_a_scheduler_that_does_not_answer_ends_in_one_line(
    tables: Sequence[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sysid_core.workers._PATIENCE", 0.2)
    arguments = ["identify", str(tables[0]), "--robot", "ur10", "--out", str(tmp_path / "out")]
    assert main([*arguments, "--scheduler", "tcp://127.0.0.1:1"]) == 2
    (line,) = (t for t in capsys.readouterr().err.splitlines() if t.startswith("sysid:"))
    assert "Dask" in line


def test_nothing_cannot_be_joined() -> None:
    for kind in (Recording, Samples):
        with pytest.raises(DataError, match="at least one batch"):
            kind.concatenate([])
