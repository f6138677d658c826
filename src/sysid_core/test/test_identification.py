# SPDX-License-Identifier: Apache-2.0
"""The batch pipeline finds the truth in simulation, and says what it could not find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.batch import Batch, batch_of, near_rest, rest_speed, rows_of, training_rows
from sysid_core.dynamics.tree import TreeDynamics, TreeRegression
from sysid_core.errors import DataError, ModelError, ParameterError
from sysid_core.estimation import Entropic, Estimate, Problem, estimator
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.inertia import from_mass_com_inertia, from_pseudo_inertia, pseudo_inertia
from sysid_core.loads import Bare
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalConfig
from sysid_core.validation import validate

NOISE = 0.3


@pytest.fixture(scope="module")
def ur10() -> Robot:
    return load_robot("ur10")


@pytest.fixture(scope="module")
def truth(ur10: Robot) -> FloatArray:
    rng = np.random.default_rng(5)
    vector, layout = ur10.consistent_nominal.copy(), ur10.layout
    phi = layout.inertias(vector)
    L = np.linalg.cholesky(pseudo_inertia(phi))
    bend = np.eye(4) + 0.2 * rng.uniform(-1.0, 1.0, L.shape)
    phi[:] = from_pseudo_inertia(L @ bend @ np.swapaxes(bend, 1, 2) @ np.swapaxes(L, 1, 2))
    vector[layout.term("viscous")] = [12.0, 15.0, 8.0, 2.0, 2.0, 1.5]
    vector[layout.term("coulomb")] = [9.0, 11.0, 6.0, 2.0, 1.8, 1.5]
    vector[layout.term("armature")] = [1.0, 1.0, 0.6, 0.2, 0.2, 0.2]
    vector[layout.term("offset")] = [0.3, -0.5, 0.2, 0.1, -0.1, 0.1]
    return vector


@pytest.fixture(scope="module")
def recording(
    ur10: Robot, truth: FloatArray, make_recording: Callable[..., Recording]
) -> Recording:
    return make_recording(ur10, truth, duration=30.0, noise=NOISE, seed=2)


@pytest.fixture(scope="module")
def found(ur10: Robot, recording: Recording) -> Identification:
    return identify(ur10, recording)


def test_held_out_torques_are_predicted_to_the_noise(found: Identification) -> None:
    assert found.validation is not None
    assert (found.validation.rmse_identified < NOISE).all()  # the low-pass takes some of it
    assert found.validation.improvement > 10.0
    assert (found.validation.r2_identified > 0.9).all()


def test_friction_comes_out_within_its_confidence(
    ur10: Robot, truth: FloatArray, found: Identification
) -> None:
    for term, relative in (("viscous", 0.05), ("coulomb", 0.05)):
        where = ur10.layout.term(term)
        np.testing.assert_allclose(found.estimate.parameters[where], truth[where], rtol=relative)


def test_the_result_is_consistent_and_certified(found: Identification) -> None:
    assert (found.estimate.consistency > 0.0).all()
    assert found.estimate.converged
    assert found.estimate.optimality < 1e-4
    assert (found.correlation >= 1.0).all()


def test_the_last_solve_counts_rows_by_the_colour_that_is_reported(
    ur10: Robot, recording: Recording
) -> None:
    posed: list[Problem] = []

    class Watched(Entropic):
        def solve(self, problem: Problem, start: FloatArray | None = None) -> Estimate:
            posed.append(problem)
            return super().solve(problem, start)

    effort = np.array(recording.effort)
    effort[:, 1] += 4.0 * np.sin(recording.time)  # its residuals are more coloured than others'
    options = IdentifyConfig(
        friction="described", signals=SignalConfig(cutoff=8.0), estimator=Watched()
    )
    found = identify(ur10, replace(recording, effort=effort), options)
    np.testing.assert_array_equal(posed[-1].correlation, found.correlation)
    assert found.correlation[1] > 3.0 * found.correlation[0] > 3.0


def test_parts_are_split_by_time(found: Identification) -> None:
    curve = found.curves[0]
    learned, held = curve.time[~curve.held_out], curve.time[curve.held_out]
    assert learned.max() < held.min()
    assert len(learned) == pytest.approx(0.7 * len(curve.time), abs=1.0)


@pytest.mark.parametrize("method", ["wls", "sdp", "prior", "qp"])
def test_every_method_beats_the_nominal_model(
    ur10: Robot, recording: Recording, method: str
) -> None:
    options = IdentifyConfig(estimator=estimator(method))
    result = identify(ur10, recording, options)
    assert result.validation is not None
    assert result.validation.improvement > 5.0
    assert result.estimate.method == method


def test_nothing_is_held_out_when_all_is_learned_from(ur10: Robot, recording: Recording) -> None:
    result = identify(ur10, recording, IdentifyConfig(train=1.0))
    assert result.validation is None
    assert not any(curve.held_out.any() for curve in result.curves)


def test_a_load_is_found_with_the_rest_held(
    ur10: Robot,
    truth: FloatArray,
    found: Identification,
    make_recording: Callable[..., Recording],
) -> None:
    loaded = truth.copy()
    com = np.array([0.02, 0.05, 0.12])
    loaded[ur10.layout.body("wrist_3_link")] += from_mass_com_inertia(
        3.0, com, np.diag([0.01, 0.012, 0.008])
    )
    recording = make_recording(ur10, loaded, duration=30.0, noise=NOISE, seed=8)
    bare = Bare(found.estimate.parameters, found.estimate.base_covariance, found.discrepancy)
    options = IdentifyConfig(only=("wrist_3_link",), start=bare)
    result = identify(ur10, recording, options)
    (load,) = result.loads
    assert load.body == "wrist_3_link"
    assert load.mass == pytest.approx(3.0, rel=0.03)
    assert 0.0 < load.mass_std < 0.2
    np.testing.assert_allclose(load.com, com, atol=0.02)
    held = np.ones(ur10.layout.size, dtype=bool)
    held[ur10.layout.body("wrist_3_link")] = False
    start = found.estimate.parameters
    np.testing.assert_allclose(result.estimate.parameters[held], start[held], rtol=1e-5)


def test_slow_rows_are_not_learned_from(ur10: Robot, recording: Recording) -> None:
    batch = batch_of(ur10, recording, SignalConfig())
    regression, samples = TreeRegression(ur10), batch.samples
    rows = rows_of(regression, batch)
    used = training_rows(regression, rows, batch, rest_speed(samples, 0.01))
    top = np.abs(samples.velocity).max(axis=0)
    for j, block in enumerate(used.blocks):
        assert len(block.target) < len(rows.blocks[j].target)
        assert (np.abs(samples.velocity[block.sample, j]) >= 0.01 * top[j]).all()
    assert training_rows(regression, rows, batch, rest_speed(samples, 0.0)) is rows


def test_a_joint_that_stands_still_is_not_learned_from(ur10: Robot, recording: Recording) -> None:
    position, velocity = recording.position.copy(), np.array(recording.velocity)
    noise = np.random.default_rng(3).normal(size=len(position))
    position[:, 1], velocity[:, 1] = 0.3 + 1e-5 * noise, 1e-2 * noise
    still = replace(recording, position=position, velocity=velocity)
    batch = batch_of(ur10, still, SignalConfig())
    regression = TreeRegression(ur10)
    rows = rows_of(regression, batch)
    used = training_rows(regression, rows, batch, rest_speed(batch.samples, 0.01))
    assert [len(block.target) == 0 for block in used.blocks] == [j == 1 for j in range(6)]


@pytest.fixture(scope="module")
def sticking(ur10: Robot, truth: FloatArray, recording: Recording) -> Recording:
    """Let each joint wait for a tenth of a second where it turns around."""
    velocity = np.array(recording.velocity)
    turns = np.diff(np.sign(velocity), axis=0, append=0.0) != 0.0
    every = np.arange(len(velocity))
    taken = [np.repeat(every, 1 + 10 * turn)[: len(every)] for turn in turns.T]
    q, v = (
        np.stack([values[rows, j] for j, rows in enumerate(taken)], axis=1)
        for values in (recording.position, velocity)
    )
    dynamics = TreeDynamics(ur10)
    dynamics.set_parameters(truth)
    effort = dynamics.torques(q, v, np.gradient(v, recording.time, axis=0))
    return replace(recording, position=q, velocity=v, effort=effort)


def test_joints_that_stick_leave_their_friction_as_it_is(
    ur10: Robot, truth: FloatArray, sticking: Recording
) -> None:
    """The low-pass draws out what a joint at rest is held by, which may be any torque."""
    velocity, effort = np.array(sticking.velocity), np.array(sticking.effort)
    rests = np.abs(velocity) < 0.01 * np.abs(velocity).max(axis=0)
    dry = ur10.layout.term("coulomb")
    held = replace(sticking, effort=effort - 0.7 * rests * truth[dry] * np.sign(velocity))
    plain = IdentifyConfig(friction="described", signals=SignalConfig(cutoff=20.0))
    free, stuck = (identify(ur10, each, plain).estimate for each in (sticking, held))
    np.testing.assert_allclose(stuck.parameters[dry], free.parameters[dry], rtol=5e-3)


def test_rows_near_rest_are_left_out_where_joints_stick_and_few_are(
    ur10: Robot, recording: Recording, sticking: Recording
) -> None:
    regression = TreeRegression(ur10)

    def near(source: Recording, cutoff: float) -> tuple[BoolArray, BoolArray]:
        batch = batch_of(ur10, source, SignalConfig(cutoff=20.0))
        rest = rest_speed(batch.samples, 0.01)
        filtered = replace(batch, report=replace(batch.report, cutoff=cutoff))
        resting = np.asarray(np.abs(batch.samples.velocity) < rest)
        return near_rest(regression, filtered, rest), resting

    found, resting = near(sticking, 20.0)
    assert (found.sum(axis=0) > 1.2 * resting.sum(axis=0)).all()
    assert not (resting & ~found).any()
    for source, cutoff in ((sticking, 2.0), (recording, 20.0)):  # too many; hardly at rest
        np.testing.assert_array_equal(*near(source, cutoff))


def test_rests_are_told_by_the_times_of_each_recording(ur10: Robot, sticking: Recording) -> None:
    batch = batch_of(ur10, sticking, SignalConfig(cutoff=20.0))
    rest = rest_speed(batch.samples, 0.01)
    both = Batch.concatenate([batch, batch.before(500)], batch.report)  # time goes back
    found = near_rest(TreeRegression(ur10), both, rest)
    np.testing.assert_array_equal(
        found[: len(batch)], near_rest(TreeRegression(ur10), batch, rest)
    )


def test_rows_in_pieces_are_those_at_once(ur10: Robot, recording: Recording) -> None:
    batch = batch_of(ur10, recording, SignalConfig())
    samples = batch.samples
    plain = replace(batch, sign_factor=np.ones_like(batch.sign_factor))
    regression = TreeRegression(ur10)
    shares: list[float] = []
    pieces = rows_of(regression, plain, lambda stage, share: shares.append(share))
    for piece, whole in zip(pieces.blocks, regression.rows(samples).blocks, strict=True):
        np.testing.assert_array_equal(piece.matrix, whole.matrix)
        np.testing.assert_array_equal(piece.target, whole.target)
        np.testing.assert_array_equal(piece.sample, whole.sample)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_both_sides_of_the_rows_are_filtered_alike(
    ur10: Robot, truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    batch = batch_of(ur10, make_recording(ur10, truth, duration=20.0), SignalConfig())
    regression = TreeRegression(ur10)
    base = regression.base.project(truth)
    filtered = rows_of(regression, batch).residuals(base)
    plain = replace(batch, sign_factor=np.ones_like(batch.sign_factor))
    unfiltered = rows_of(regression, plain).residuals(base)
    for one, other in zip(filtered, unfiltered, strict=True):
        assert np.std(one) < 0.2 * np.std(other)


def test_validation_scores_any_two_models(
    ur10: Robot, truth: FloatArray, recording: Recording
) -> None:
    scores = validate(ur10, recording, np.array(ur10.nominal), truth).scores
    assert (scores.rmse_identified < NOISE).all()
    assert (scores.rmse_nominal > scores.rmse_identified).all()
    with pytest.raises(ModelError, match="parameters"):
        validate(ur10, recording, truth, truth[:-1])


def test_what_cannot_be_done_is_refused(ur10: Robot, recording: Recording) -> None:
    with pytest.raises(ParameterError, match="train"):
        IdentifyConfig(train=0.0)
    with pytest.raises(ParameterError, match="wrist_9"):
        identify(ur10, recording, IdentifyConfig(only=("wrist_9",)))
    n = 60
    assert recording.velocity is not None
    assert recording.effort is not None
    short = replace(
        recording,
        time=recording.time[:n],
        position=recording.position[:n],
        velocity=recording.velocity[:n],
        effort=recording.effort[:n],
    )
    with pytest.raises(DataError, match=r"record\s+for longer"):
        identify(ur10, short, IdentifyConfig(train=0.1))


def test_frictions_sign_is_filtered_to_the_end_as_if_the_motion_went_on(
    ur10: Robot, truth: FloatArray, make_recording: Callable[..., Recording]
) -> None:
    recording = make_recording(ur10, truth, duration=20.0)
    config = SignalConfig(cutoff=5.0, oversampling=None)
    whole = batch_of(ur10, recording, config)
    turns = np.flatnonzero(np.diff(np.sign(whole.samples.velocity[:, 0])))
    # the filter reaches over a reversal that lies beyond the last sample
    for last in turns[2:5] + 40:
        part = Recording(
            *(recording.time[:last], recording.joint_names, recording.position[:last]),
            effort=None if recording.effort is None else recording.effort[:last],
        )
        cut = batch_of(ur10, part, config)
        same = whole.sign_factor[: len(cut)]
        np.testing.assert_allclose(cut.sign_factor[:, 0], same[:, 0], atol=0.1)
        assert np.ptp(same[-20:, 0]) > 0.2


def test_bodies_are_not_bent_to_what_friction_and_gears_do() -> None:
    """Joints that move in turns for 14 s determine little, and 27 Hz let much noise through."""
    mixtures = pytest.importorskip("bench.mixtures", reason="the benchmarks are not at hand")
    robot, recording, *_ = mixtures.record(6025, {})
    found = identify(robot, recording, IdentifyConfig(signals=SignalConfig(cutoff=27.0)))
    assert found.validation is not None
    moved = found.validation.rmse_nominal > 0.0
    identified, nominal = found.validation.rmse_identified, found.validation.rmse_nominal
    assert (identified[moved] < nominal[moved]).all()
