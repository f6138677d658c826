# SPDX-License-Identifier: Apache-2.0
"""Joints get the friction terms that their data show, and none where the least law is true."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.signal import butter, lfilter

from sysid_core.arrays import FloatArray
from sysid_core.bounded_least_squares import bounded_least_squares
from sysid_core.dynamics.friction import JointMotion
from sysid_core.dynamics.open_tree import OpenTree, random_states
from sysid_core.friction_candidates import bending_terms
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import PrepareReport
from sysid_core.signals.synchronise import SynchroniseReport

ACTUAL = {
    "shoulder_lift_joint": {"load": 1.0},
    "elbow_joint": {"sigmoid": 0.15},
    "wrist_1_joint": {"stribeck": 0.1},
}
LOAD = 3.0


@pytest.fixture(scope="module")
def least() -> Robot:
    return load_robot("ur10")


def _truth(robot: Robot) -> FloatArray:
    vector, layout = robot.consistent_nominal.copy(), robot.layout
    vector[layout.term("viscous")] = [12.0, 15.0, 8.0, 2.0, 2.0, 1.5]
    vector[layout.term("coulomb")] = [9.0, 11.0, 6.0, 2.0, 1.8, 1.5]
    vector[layout.term("armature")] = [1.0, 1.0, 0.6, 0.2, 0.2, 0.2]
    vector[layout.term("load")] = 0.1
    vector[layout.term("sigmoid")] = 12.0
    vector[layout.term("stribeck")] = 6.0
    return vector


@pytest.fixture(scope="module")
def found(least: Robot, make_recording: Callable[..., Recording]) -> Identification:
    actual = least.with_friction(ACTUAL)
    recording = make_recording(actual, _truth(actual), duration=30.0, noise=0.3, seed=3)
    return identify(least, recording)


def test_joints_get_the_terms_that_their_friction_has(found: Identification) -> None:
    chosen = found.robot.description.friction_chosen
    assert chosen.keys() == ACTUAL.keys()
    assert all(terms.keys() <= chosen[joint].keys() for joint, terms in ACTUAL.items())


def test_a_term_bends_where_the_joints_friction_does(found: Identification) -> None:
    (scale,) = found.robot.description.friction_chosen["wrist_1_joint"].values()
    assert scale == pytest.approx(ACTUAL["wrist_1_joint"]["stribeck"], rel=0.02)


def test_a_load_never_seen_is_predicted_no_worse_at_any_joint(
    found: Identification, least: Robot, make_recording: Callable[..., Recording]
) -> None:
    actual = least.with_friction(ACTUAL)
    recording = make_recording(actual, _truth(actual), duration=30.0, noise=0.3, seed=3)
    plain = identify(least, recording, IdentifyConfig(friction="described"))
    q, v, a = random_states(least, 200)
    q, v = 0.5 * q, 0.5 * v

    def torques(robot: Robot, parameters: FloatArray) -> FloatArray:
        loaded = parameters.copy()
        loaded[robot.layout.body(5)] += LOAD * np.array([1, 0, 0, 0.1, 0.01, 0, 0.01, 0, 0, 0])
        return OpenTree(robot, parameters=loaded).torques(q, v, a)

    true = torques(actual, _truth(actual))
    errors = [
        np.sqrt(np.mean((torques(each.robot, each.estimate.parameters) - true) ** 2, axis=0))
        for each in (plain, found)
    ]
    assert (errors[1] < 1.05 * errors[0] + 0.05).all()
    assert np.linalg.norm(errors[1]) < 0.5 * np.linalg.norm(errors[0])


def test_where_the_least_law_is_true_it_stays(
    least: Robot, make_recording: Callable[..., Recording]
) -> None:
    recording = make_recording(least, _truth(least), duration=30.0, noise=0.3, seed=4)
    assert not identify(least, recording).robot.description.friction_chosen


def test_a_little_friction_per_load_shows_at_the_joints_that_bear_most(
    least: Robot, make_recording: Callable[..., Recording]
) -> None:
    actual = least.with_friction({joint: {"load": 1.0} for joint in least.joint_names})
    truth = _truth(actual)
    truth[actual.layout.term("load")] = 0.02
    recording = make_recording(actual, truth, duration=20.0, noise=2.0, seed=0)
    chosen = identify(least, recording).robot.description.friction_chosen
    assert {"shoulder_lift_joint", "elbow_joint"} <= chosen.keys()
    assert all(terms == {"load": 1.0} for terms in chosen.values())


@pytest.mark.parametrize(("stiffness", "told"), [(20.0, True), (0.12, False)])
def test_a_spring_is_one_that_gains_a_tenth(
    stiffness: float, told: bool, least: Robot, make_recording: Callable[..., Recording]
) -> None:
    actual = least.with_friction({"elbow_joint": {"spring": 1.0}, "wrist_1_joint": {"load": 1.0}})
    truth = _truth(actual)
    truth[actual.layout.term("spring")] = stiffness
    recording = make_recording(actual, truth, duration=30.0, noise=0.3, seed=4)
    chosen = identify(least, recording).robot.description.friction_chosen
    assert ("spring" in chosen.get("elbow_joint", {})) == told


SLIDING = {"elbow_joint": {"presliding": 0.01}, "wrist_2_joint": {"presliding": 0.02}}


def _presliding(robot: Robot) -> FloatArray:
    vector = _truth(robot)
    vector[robot.layout.term("coulomb")] *= 0.2
    vector[robot.layout.term("presliding")] = [9.0, 11.0, 6.0, 2.0, 1.8, 1.5]
    return vector


def test_friction_that_changes_over_a_distance_is_told(
    least: Robot, make_recording: Callable[..., Recording]
) -> None:
    actual = least.with_friction(SLIDING)
    recording = make_recording(actual, _truth(actual), duration=30.0, seed=3)
    q, v = recording.position, np.asarray(recording.velocity)
    effort = OpenTree(actual, 0.0, _presliding(actual)).torques(q, v, np.gradient(v, 0.01, axis=0))
    effort += 0.1 * np.random.default_rng(3).normal(size=q.shape)
    found = identify(least, replace(recording, effort=effort))
    chosen = found.robot.description.friction_chosen
    assert chosen.keys() == SLIDING.keys()
    joints = found.robot.layout.joints_of(found.estimate.parameters)
    for joint, true in (("elbow_joint", 6.0), ("wrist_2_joint", 1.8)):
        distance = SLIDING[joint]["presliding"]
        assert chosen[joint]["presliding"] == pytest.approx(distance, rel=0.5)
        assert joints[joint]["presliding"] == pytest.approx(true, rel=0.15)


@pytest.mark.parametrize(
    "actual",
    [pytest.param({}, marks=pytest.mark.heavy), {"shoulder_lift_joint": {"stribeck": 0.1}}],
)
def test_friction_that_is_felt_late_does_not_change_over_a_distance(
    actual: dict[str, dict[str, float]],
    least: Robot,
    make_recording: Callable[..., Recording],
) -> None:
    """As behind a driver's filter: its torques come so much later whatever the way."""
    robot = least.with_friction(actual)
    recording = make_recording(robot, _truth(robot), duration=30.0, rate=500.0, noise=0.1, seed=3)
    late = recording.effort
    assert late is not None
    slow = lfilter(*butter(1, 2.0 * 15.0 / 500.0), late - late[0], axis=0) + late[0]
    found = identify(least, replace(recording, effort=slow))
    chosen = found.robot.description.friction_chosen
    assert not any("presliding" in terms for terms in chosen.values())
    assert found.signals.lag == pytest.approx(1.0 / (2.0 * np.pi * 15.0), rel=0.1)


def test_columns_that_agree_leave_a_solution() -> None:
    rng = np.random.default_rng(0)
    free, bound = rng.normal(size=(2, 200, 1))
    columns = np.hstack([free, bound, bound - free, free + 1e-9 * bound, -bound])
    target = 3.0 * bound[:, 0] - free[:, 0]
    gram, moment = columns.T @ columns + 1e-9 * np.eye(5), columns.T @ target
    (x,) = bounded_least_squares(gram[None], moment[None], np.arange(5)[None] > 0)
    assert (x[1:] >= 0.0).all()
    np.testing.assert_allclose(columns @ x, target, atol=1e-3)


def test_bounded_least_squares_are_those_of_scipy() -> None:
    rng = np.random.default_rng(1)
    columns, target = rng.normal(size=(50, 30, 8)), rng.normal(size=(50, 30))
    bound = np.arange(8) > 1
    x = bounded_least_squares(
        np.einsum("fmk,fml->fkl", columns, columns),
        np.einsum("fmk,fm->fk", columns, target),
        np.tile(bound, (50, 1)),
    )
    for own, A, b in zip(x, columns, target, strict=True):
        known = lsq_linear(A, b, (np.where(bound, 0.0, -np.inf), np.inf), method="bvls").x
        np.testing.assert_allclose(own, known, atol=1e-9)


@pytest.mark.parametrize("rate", [50.0, 100.0, 1000.0])
@pytest.mark.parametrize("cutoff", [5.0, 50.0])
def test_no_bend_is_offered_that_looks_like_a_step(rate: float, cutoff: float) -> None:
    time = np.arange(0.0, 10.0, 0.01)
    velocity, acceleration = np.sin(2.0 * time), 2.0 * np.cos(2.0 * time)
    motion = JointMotion(-0.5 * acceleration, velocity, acceleration, np.sign(velocity))
    report = PrepareReport(
        sensor_rate=rate,
        rate=rate,
        output_rate=rate,
        cutoff=cutoff,
        cutoff_reason="given",
        velocity="differentiated",
        outliers=(),
        synchronisation=SynchroniseReport(),
        duration=10.0,
        warnings=(),
    )
    offered = bending_terms(motion, report)
    for name, filtered in (("stribeck", 0.24 / cutoff), ("sigmoid", 0.48 / cutoff)):
        drawn_out = max(2.0 / rate, filtered)
        finest = min(scale for term, scale, _ in offered if term.name == name)
        assert finest >= 0.95 * max(2.0 * drawn_out, 0.02)
        assert finest <= 1.25 * max(2.0 * drawn_out, 0.02)


@pytest.mark.parametrize("cutoff", [0.7, 1.0, 1.5])
def test_a_low_pass_that_draws_steps_out_brings_no_sigmoid(
    cutoff: float, least: Robot, make_recording: Callable[..., Recording]
) -> None:
    recording = make_recording(least, _truth(least), duration=30.0, noise=0.3, seed=3)
    config = IdentifyConfig(signals=SignalConfig(cutoff=cutoff))
    chosen = identify(least, recording, config).robot.description.friction_chosen
    assert not any("sigmoid" in terms for terms in chosen.values())
