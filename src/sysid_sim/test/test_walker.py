# SPDX-License-Identifier: Apache-2.0
"""Quadrupeds that walk, sway and jump by themselves, and what their bags are good for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.condition import condition_contacts
from sysid_core.data import read_recording
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.stance import stance_of
from sysid_core.robot import Robot
from sysid_core.robot.initialise import initialise
from sysid_core.robot.interpretation import interpret
from sysid_core.robot.library import resolve_urdf
from sysid_core.signals.align import align
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import filter_aligned
from sysid_sim.cli import read_scenarios
from sysid_sim.errors import SimulationError
from sysid_sim.plant import rotation_of
from sysid_sim.run import Run, run_scenario, write_run
from sysid_sim.scenarios import find_scenario, scenario_of
from sysid_sim.sensors import SensorConfig
from sysid_sim.simulation import Simulation, SimulationConfig
from sysid_sim.walker import MOTIONS, Walker

LEGGED = [
    name
    for name in read_scenarios()["scenarios"]
    if name.startswith(("solo12_", "spot_")) and not name.endswith("_payload")
]
CUTOFF = 25.0


@cache
def walked(name: str, duration: float = 3.0) -> Run:
    return run_scenario(find_scenario(name), duration=duration)


def contacts_of(run: Run) -> BoolArray:
    assert run.recording.contacts is not None
    return run.recording.contacts.active


def poses_of(run: Run) -> tuple[FloatArray, FloatArray]:
    assert run.recording.base is not None
    return run.recording.base.position, run.recording.base.orientation


@pytest.mark.parametrize("name", ["solo12", "spot"])
def test_the_stance_is_balanced_on_level_ground(
    name: str, robot_of: Callable[[str], Robot]
) -> None:
    robot = robot_of(name)
    stance = stance_of(robot)
    assert np.ptp(stance.feet[:, 2]) < 1e-9
    radii = [contact.radius for contact in robot.description.contacts]
    np.testing.assert_allclose(stance.feet[:, 2], radii, atol=1e-9)
    assert (stance.joints > robot.limits.lower).all()
    assert (stance.joints < robot.limits.upper).all()
    # symmetric robots: so the middle of the feet is below the trunk's middle but for a little
    assert np.abs(stance.feet[:, :2].mean(axis=0)).max() < 0.05


def test_an_arm_cannot_walk(robot_of: Callable[[str], Robot]) -> None:
    robot = robot_of("panda")
    with pytest.raises(Exception, match="floating"):
        Walker(MOTIONS["trot"], robot, 1, 0.001)
    with pytest.raises(SimulationError, match="fixed"):
        Simulation(robot, robot.consistent_nominal).sense_base()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "spot_trot" else pytest.mark.heavy)
        for name in LEGGED
    ],
)
def test_no_scenario_ends_in_a_fall(name: str) -> None:
    run = walked(name)
    position, orientation = poses_of(run)
    start = position[0, 2]
    assert (position[:, 2] > 0.6 * start).all()
    assert min(rotation_of(q)[2, 2] for q in orientation[::50]) > 0.9
    effort = run.recording.effort
    assert effort is not None
    limits = run.robot.limits.effort
    # swings may drive a hip to its limit, but not for long
    assert (np.mean(np.abs(effort) > 0.95 * limits, axis=0) < 0.05).all()
    assert run.recording.imu is not None


@pytest.mark.parametrize(
    "name", [pytest.param("solo12_trot", marks=pytest.mark.heavy), "spot_trot", "spot_new_trot"]
)
def test_a_trot_steps_with_diagonal_pairs_and_gets_somewhere(name: str) -> None:
    run = walked(name)
    active = contacts_of(run)[run.recording.time > 1.5]
    pairs = (active == [True, False, False, True]).all(1)
    others = (active == [False, True, True, False]).all(1)
    assert min(pairs.mean(), others.mean()) > 0.2
    assert (active.sum(axis=1) < 2).mean() < 0.1
    position, _ = poses_of(run)
    assert np.linalg.norm(position[-1, :2] - position[0, :2]) > 0.1


def test_a_crawl_lifts_one_foot_at_a_time() -> None:
    run = walked("solo12_crawl")
    active = contacts_of(run)[run.recording.time > 1.5]
    assert (active.sum(axis=1) >= 3).mean() > 0.9
    assert (active.sum(axis=1) == 3).mean() > 0.3


def test_a_wobble_turns_the_base_over_feet_that_stay() -> None:
    run = walked("solo12_wobble")
    assert contacts_of(run)[100:].all()
    _, orientation = poses_of(run)
    assert np.ptp(orientation[:, :3], axis=0).min() > 0.05


def test_a_jump_leaves_the_ground_and_lands_on_all_feet() -> None:
    run = walked("spot_jump")
    feet = contacts_of(run).sum(axis=1)
    assert 0.05 < (feet == 0).mean() < 0.3
    assert feet[-1] == 4 or feet[-100] == 4


@pytest.mark.parametrize(
    "name", [pytest.param("solo12_trot", marks=pytest.mark.heavy), "spot_jump"]
)
def test_the_true_parameters_explain_the_torques_up_to_the_noise(name: str) -> None:
    scenario = find_scenario(name)
    exact = replace(scenario.config, sensors=SensorConfig())
    run = run_scenario(replace(scenario, config=exact), duration=3.0)
    share = {}
    for kind, each in (("exact", run), ("noisy", walked(name))):
        recording = interpret(each.robot, each.recording)
        aligned = align(recording, SignalConfig(cutoff=CUTOFF))
        samples = filter_aligned(aligned, aligned.choice).samples()
        thinned = slice(None, None, max(1, int(aligned.rate / (5.0 * CUTOFF))))
        fit = condition_contacts(each.robot, samples.select(thinned))
        assert not [one for one in fit.noticed if "frame" in str(one.diagnostic)]
        found = ContactRegression(each.robot).residuals(fit.kept, each.truth)
        left, size = (np.linalg.norm(part[:, 6:]) for part in (found.residual, found.target))
        share[kind] = left / size
    # what is left are impacts, and dry friction around rest
    assert share["exact"] < 0.05
    assert share["noisy"] < 0.08


@pytest.mark.heavy
def test_a_walk_is_decided_by_its_seed() -> None:
    scenario = find_scenario("solo12_trot")
    one, same, other = (run_scenario(scenario, seed=seed, duration=1.3) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one.recording.position, same.recording.position)
    np.testing.assert_array_equal(poses_of(one)[0], poses_of(same)[0])
    np.testing.assert_array_equal(contacts_of(one), contacts_of(same))
    assert not np.array_equal(one.recording.position, other.recording.position)


def test_the_true_mass_is_what_the_scales_showed() -> None:
    for name in ("solo12_trot", "spot_trot"):
        run = walked(name)
        known = run.robot.description.total_mass
        assert known is not None
        value, std = known
        assert abs(run.truth[run.robot.layout.masses].sum() - value) <= std


def test_a_walking_robot_takes_up_a_payload() -> None:
    scenario = find_scenario("spot_payload")
    event = replace(scenario.payloads[0], time=1.5)
    run = run_scenario(replace(scenario, payloads=(event,)), duration=3.5)
    position, _ = poses_of(run)
    settled = position[run.recording.time > 2.5, 2]
    assert np.abs(settled - position[0, 2]).max() < 0.1 * position[0, 2]


def _joint(name: str, parent: str, axis: str) -> str:
    """Return a joint and the body of an arm that it moves, as a URDF's text."""
    return f"""
  <link name="{name}_link"><inertial><origin xyz="0 0 0.05"/><mass value="0.1"/>
    <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name}_link"/>
    <origin xyz="0 0 0.1"/><axis xyz="{axis}"/>
    <limit lower="-1.5" upper="1.5" effort="2.0" velocity="5.0"/></joint>"""


@pytest.mark.heavy
def test_an_arm_on_a_quadruped_sways_within_its_range(
    robot_of: Callable[[str], Robot], tmp_path: Path
) -> None:
    solo12 = robot_of("solo12")
    arm = _joint("turn", "base_link", "0 0 1") + _joint("bend", "turn_link", "0 1 0")
    text = resolve_urdf(solo12.description).read_text("utf-8")
    (tmp_path / "armed.urdf").write_text(text.replace("</robot>", f"{arm}</robot>"), "utf-8")
    found = initialise(tmp_path / "armed.urdf", tmp_path / "armed.yaml")
    (tmp_path / "armed.yaml").write_text(found.text, "utf-8")
    recording = run_scenario(scenario_of(str(tmp_path / "armed.yaml")), duration=6.0).recording
    own = [recording.joint_names.index(name) for name in ("turn", "bend")]
    reached = np.abs(recording.position[:, own]).max(axis=0)
    assert (reached > 0.1).all()
    assert (reached < 0.6).all()


def test_a_robot_that_falls_says_so(robot_of: Callable[[str], Robot]) -> None:
    robot = robot_of("solo12")
    walker = Walker(MOTIONS["trot"], robot, 1, 0.001)
    tipped = walker.start.copy()
    tipped[2] += 0.3
    tipped[3:7] = [1.0, 0.0, 0.0, 0.0]  # on its back
    simulation = Simulation(robot, robot.consistent_nominal, SimulationConfig(), start=tipped)
    assert not walker.command(simulation).any()
    assert "fell" in walker.trouble


def test_a_bag_holds_base_feet_and_inertial_unit(tmp_path: Path) -> None:
    run = walked("solo12_trot")
    write_run(run, tmp_path / "bag")
    read = read_recording(tmp_path / "bag")
    assert read.base is not None
    assert read.contacts is not None
    assert read.imu is not None
    np.testing.assert_array_equal(read.base.position, poses_of(run)[0])
    np.testing.assert_array_equal(read.contacts.active, contacts_of(run))
    assert read.contacts.names == ("FL", "FR", "HL", "HR")
    # the twist is in the base frame: turned into the world it is the pose's derivative
    turned = np.array(
        [
            rotation_of(q) @ v
            for q, v in zip(read.base.orientation, read.base.twist[:, :3], strict=True)
        ]
    )
    moved = np.cumsum(turned[:-1] * np.diff(read.base.time)[:, None], axis=0)
    np.testing.assert_allclose(
        moved[-1], read.base.position[-1] - read.base.position[0], atol=0.01
    )
