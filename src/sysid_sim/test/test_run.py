# SPDX-License-Identifier: Apache-2.0
"""Scenarios, their bags, and the command line."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.data import read_recording
from sysid_core.dynamics.closed_chain import ClosedChainDynamics
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.errors import OutputError
from sysid_core.robot import known_robots, load_robot
from sysid_sim.cli import read_scenarios, simulate
from sysid_sim.errors import SimulationError
from sysid_sim.mjcf import PhysicsConfig
from sysid_sim.run import Run, run_scenario, write_run
from sysid_sim.scenarios import find_scenario
from sysid_sim.sensors import SensorConfig
from sysid_sim.simulation import SimulationConfig, Stribeck
from sysid_sim.truth import read_truth

FIXED = [
    name
    for name in read_scenarios()["scenarios"]
    if not load_robot(find_scenario(name).robot).floating
]


def exact(name: str, period: float = 0.00025) -> Run:
    """Run 2 s of a scenario with perfect sensors and a fine grid, at every period."""
    config = SimulationConfig(period=period, physics=PhysicsConfig(time_step=period / 2))
    scenario = replace(find_scenario(name), config=config, rate=1.0 / period)
    return run_scenario(scenario, duration=2.0)


def differentiated(run: Run) -> tuple[FloatArray, ...]:
    """Return positions, velocities, accelerations and torques from sampled positions alone."""
    q, period = run.recording.position, run.scenario.config.period
    assert run.recording.effort is not None
    gains = run.robot.description.effort_gain
    if isinstance(gains, (int, float)):
        gain = np.full(q.shape[1], gains)
    else:
        gain = np.array([gains[name] for name in run.robot.actuated_names])
    v = (q[2:] - q[:-2]) / (2.0 * period)
    a = (q[2:] - 2.0 * q[1:-1] + q[:-2]) / period**2
    return q[1:-1], v, a, gain * run.recording.effort[1:-1]


@pytest.mark.parametrize("name", ["panda_excite", "valkyrie_arm", "kuka_lwr", "ur10e_excite"])
def test_torques_of_a_noise_free_bag_are_the_regressor_times_the_truth(name: str) -> None:
    run = exact(name)
    q, v, a, effort = (series[::20] for series in differentiated(run))
    predicted = TreeRegression(run.robot).full(q, v, a) @ run.truth
    # sign(q̇) is only known away from where it changes
    sliding = (np.abs(v) > 0.02).all(axis=1)
    assert sliding.mean() > 0.3
    error = np.sqrt(np.mean((predicted - effort)[sliding] ** 2, axis=0))
    scale = np.sqrt(np.mean(effort[sliding] ** 2, axis=0))
    # the period of 0.25 ms leaves an error of first order in it, with a lever of some rad/s
    assert (error < 2e-3 * scale).all()


def test_torques_of_a_noise_free_leg_are_those_of_the_constrained_model() -> None:
    run = exact("digit_leg", period=0.0005)
    q, v, a, effort = (series[40::40] for series in differentiated(run))
    dynamics = ClosedChainDynamics(run.robot)
    dynamics.set_parameters(run.truth)
    predicted = dynamics.torques(q, v, a)
    # passive joints have no dry friction, so the motors' own speeds decide
    sliding = (np.abs(v) > 0.05).all(axis=1)
    assert sliding.sum() > 20
    error = np.sqrt(np.mean((predicted - effort)[sliding] ** 2, axis=0))
    scale = np.sqrt(np.mean(effort[sliding] ** 2, axis=0))
    assert (error < 5e-3 * scale).all()


@pytest.mark.parametrize("name", FIXED)
def test_scenarios_track_their_motion(name: str) -> None:
    scenario = find_scenario(name)
    run = run_scenario(scenario, duration=2.0)
    assert scenario.robot in known_robots()
    effort = run.recording.effort
    assert effort is not None
    assert np.isfinite(effort).all()
    assert len(run.recording) == 2.0 * scenario.rate
    # every motor moves its joint, and none is at its limit all the time
    assert (np.ptp(run.recording.position, axis=0) > 0.05).all()
    assert not run.payloads


def test_a_run_is_decided_by_its_seed() -> None:
    scenario = find_scenario("valkyrie_arm")
    one, same, other = (run_scenario(scenario, seed=seed, duration=1.0) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.recording.position, same.recording.position)
    np.testing.assert_array_equal(one.recording.effort, same.recording.effort)
    np.testing.assert_array_equal(one.truth, same.truth)
    assert not np.array_equal(one.truth, other.truth)


def test_payloads_happen_on_time() -> None:
    scenario = find_scenario("panda_payload")
    early = replace(scenario, payloads=(replace(scenario.payloads[0], time=0.5),))
    light, heavy = (run_scenario(s, duration=1.0) for s in (scenario, early))
    assert not light.payloads
    assert heavy.payloads == early.payloads
    moved = np.abs(light.recording.position - heavy.recording.position).max(axis=1)
    first = light.recording.time[np.argmax(moved > 0.0)]
    assert 0.5 <= first < 0.51
    document = heavy.ground_truth()["payloads"][0]
    assert document["mass"] == 2.0
    assert document["frame"] == "panda_link8"


def test_a_bag_holds_what_was_simulated(tmp_path: Path) -> None:
    run = run_scenario(find_scenario("panda_excite"), duration=1.0)
    write_run(run, tmp_path / "deep" / "bag")
    read = read_recording(tmp_path / "deep" / "bag")
    assert read.joint_names == run.robot.actuated_names
    np.testing.assert_allclose(read.time, run.recording.time, atol=1e-9)
    np.testing.assert_array_equal(read.position, run.recording.position)
    np.testing.assert_array_equal(read.velocity, run.recording.velocity)
    np.testing.assert_array_equal(read.effort, run.recording.effort)
    assert not read.warnings
    truth = tmp_path / "deep" / "bag" / "ground_truth.json"
    np.testing.assert_array_equal(read_truth(run.robot, truth)[1], run.truth)
    document = json.loads(truth.read_text())
    assert document["scenario"] == "panda_excite"
    assert document["simulation"]["sensors"]["effort_noise"] > 0.0
    assert not list((tmp_path / "deep").glob(".*"))


def test_a_bag_that_exists_is_not_touched(tmp_path: Path) -> None:
    run = run_scenario(find_scenario("valkyrie_arm"), duration=0.1)
    with pytest.raises(OutputError, match="exists already"):
        write_run(run, tmp_path)
    assert not list(tmp_path.iterdir())


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    simulate.add_arguments(parser)
    return parser.parse_args(list(words))


def test_the_command_writes_a_bag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bag"
    words = ("valkyrie_arm", "--out", str(target), "--duration", "0.5", "--seed", "9")
    assert simulate.run(arguments(*words)) == 0
    assert "250 samples of 4 joints" in capsys.readouterr().out
    assert json.loads((target / "ground_truth.json").read_text())["seed"] == 9
    assert len(read_recording(target)) == 250


def test_the_command_simulates_any_robot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    described = known_robots()["gen3"]
    for name, target in (("go2", tmp_path / "walk"), (str(described), tmp_path / "arm")):
        words = ("--robot", name, "--out", str(target), "--duration", "0.2")
        assert simulate.run(arguments(*words)) == 0
    said = capsys.readouterr().out
    assert "12 joints in 0.2 s, robot go2" in said
    assert "7 joints in 0.2 s, robot gen3" in said
    for wrong in (["--robot", "g1"], [], ["panda_payload", "--robot", "gen3"]):
        with pytest.raises(SimulationError, match=r"four feet|give a scenario, or a robot"):
            simulate.run(arguments(*wrong, "--out", str(tmp_path / "none")))


def test_the_command_names_the_scenarios_there_are(tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=r"nosuch.*panda_payload.*digit_leg"):
        simulate.run(arguments("nosuch", "--out", str(tmp_path / "bag")))


def test_the_command_refuses_before_it_simulates(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="exists already"):
        simulate.run(arguments("panda_payload", "--out", str(tmp_path)))


@pytest.mark.parametrize(
    "words",
    [("--duration", "-1"), ("--duration", "nan"), ("--duration", "1e-9"), ("--seed", "-1")],
)
def test_the_command_refuses_nonsense(words: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(SimulationError, match=r"duration must lie between 0\.1 and 3600 s"):
        simulate.run(arguments("valkyrie_arm", "--out", str(tmp_path / "bag"), *words))
    assert not (tmp_path / "bag").exists()


def test_a_run_without_duration_is_refused() -> None:
    with pytest.raises(SimulationError, match="duration"):
        run_scenario(find_scenario("valkyrie_arm"), duration=0.0)


def test_scenarios_say_what_they_lack_in_realism() -> None:
    leg = find_scenario("digit_leg").config
    assert leg.latency == 1
    assert leg.stribeck != Stribeck()
    assert find_scenario("kuka_lwr").config.sensors == SensorConfig()
