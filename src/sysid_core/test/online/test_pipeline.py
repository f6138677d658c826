# SPDX-License-Identifier: Apache-2.0
"""The online identifier learns an arm in motion, and nothing spoiled gets in or out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.errors import ParameterError
from sysid_core.online.gate import GateConfig, GateState
from sysid_core.online.intake import usable_samples
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.update import Solved, Update
from sysid_core.recording import Samples

BATCH = 10

Arm = Any


def feed(identifier: OnlineIdentifier, samples: Samples) -> Iterator[Update]:
    """Ingest samples in small batches, with an update after each."""
    for start in range(0, len(samples), BATCH):
        identifier.ingest(samples.select(slice(start, start + BATCH)))
        yield identifier.update()


def finite(update: Update) -> bool:
    scores = update.scores
    fits = (*scores.candidate, *scores.nominal, *scores.used)
    numbers = [update.parameters, *fits, update.consistency_bodies]
    return all(bool(np.isfinite(values).all()) for values in numbers)


def spoiled(samples: Samples, **changes: Callable[[np.ndarray], None]) -> Samples:
    """Return samples with arrays changed in place by functions."""
    arrays = {name: getattr(samples, name).copy() for name in changes}
    for name, change in changes.items():
        change(arrays[name])
    return replace(samples, **arrays)


@pytest.fixture
def opened(valkyrie: Arm) -> OnlineIdentifier:
    """Return an identifier whose gate three seconds of motion have opened."""
    identifier = OnlineIdentifier(valkyrie.robot)
    last = list(feed(identifier, valkyrie.samples(0.0, 3.0)))[-1]
    assert last.state is GateState.IDENTIFIED, last.reasons
    return identifier


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_gate_of_valkyries_arm_opens_within_two_seconds(valkyrie: Arm, noise: float) -> None:
    identifier = OnlineIdentifier(valkyrie.robot)
    updates = list(feed(identifier, valkyrie.samples(0.0, 4.0, noise=noise)))
    opened = next(u for u in updates if u.identified)
    assert opened.time <= 2.0
    assert {u.state for u in updates if u.time < 1.5} == {GateState.FILLING}
    assert all(u.identified for u in updates if u.time > opened.time)
    assert [u.revision for u in updates] == sorted(u.revision for u in updates)


def test_torques_on_a_motion_never_seen_are_predicted(valkyrie: Arm) -> None:
    identifier = OnlineIdentifier(valkyrie.robot, OnlineConfig(window=4.0))
    *_, last = feed(identifier, valkyrie.samples(0.0, 10.0))
    unseen = replace(valkyrie, seed=77).samples(0.0, 10.0)
    predicted = valkyrie.torque(
        last.parameters, unseen.position, unseen.velocity, unseen.acceleration
    )
    nominal = valkyrie.torque(
        valkyrie.robot.nominal, unseen.position, unseen.velocity, unseen.acceleration
    )
    error = np.sqrt(np.mean((predicted - unseen.effort) ** 2))
    # the nominal model has its say where ten seconds of motion leave torques open
    assert error < 0.05 * np.sqrt(np.mean((nominal - unseen.effort) ** 2))


def test_every_update_is_possible_and_tells_why(valkyrie: Arm) -> None:
    identifier = OnlineIdentifier(valkyrie.robot)
    for update in feed(identifier, valkyrie.samples(0.0, 4.0, noise=0.5)):
        assert update.reasons
        assert finite(update)
        assert (update.consistency_bodies > 0.0).all() or not update.identified


@pytest.mark.parametrize("name", ["position", "velocity", "acceleration", "effort"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_spoiled_samples_are_counted_and_leave_no_trace(
    valkyrie: Arm, name: str, value: float
) -> None:
    samples = valkyrie.samples(0.0, 3.0)
    hit = np.arange(40, 300, 60)

    def spoil(values: np.ndarray) -> None:
        values[hit, 1] = value

    identifier = OnlineIdentifier(valkyrie.robot)
    updates = list(feed(identifier, spoiled(samples, **{name: spoil})))
    assert all(finite(update) for update in updates)
    assert updates[-1].rejected == len(hit)
    assert updates[-1].samples == len(samples) - len(hit)
    assert updates[-1].scores.r2 > 0.999
    assert updates[-1].identified


def test_torques_beyond_twice_their_limit_are_left_out(valkyrie: Arm) -> None:
    def spike(effort: np.ndarray) -> None:
        effort[::50, 0] = 2.1 * valkyrie.robot.limits.effort[0]

    identifier = OnlineIdentifier(valkyrie.robot)
    *_, last = feed(identifier, spoiled(valkyrie.samples(0.0, 4.0), effort=spike))
    assert last.rejected == 8
    assert last.identified
    assert last.scores.r2 > 0.999


@pytest.mark.parametrize(
    ("name", "factor", "reason"),
    [
        ("velocity", 60.0, "velocities exceed 10 times the limit"),
        ("effort", 1e3, "torques exceed 2 times the limit"),
        ("position", 57.3, "positions lie half a turn or more out of range"),
    ],
)
def test_signals_in_other_units_are_named_with_the_joint(
    valkyrie: Arm, name: str, factor: float, reason: str
) -> None:
    def scale(values: np.ndarray) -> None:
        values[:, 1] = factor * np.maximum(np.abs(values[:, 1]), 1.0)

    identifier = OnlineIdentifier(valkyrie.robot)
    *_, last = feed(identifier, spoiled(valkyrie.samples(0.0, 4.0), **{name: scale}))
    assert last.state is GateState.FILLING
    assert last.rejected == 400
    assert "100 % of the newest samples cannot be used" in last.reasons[0]
    (note,) = (note for note in last.notes if "left out" in str(note))
    assert str(note) == last.reasons[1]
    assert note.subject == valkyrie.robot.joint_names[1]
    assert note.share == 1.0
    assert reason in note.message


def test_each_sample_is_left_out_for_one_cause(valkyrie: Arm) -> None:
    def spoil(values: np.ndarray) -> None:
        values[:4, 0] = np.nan
        values[2:8, 1] = 1e5
        values[6:10, 2] = 1e5

    samples = spoiled(valkyrie.samples(0.0, 1.0), effort=spoil, velocity=spoil)
    kept, left_out = usable_samples(valkyrie.robot, samples)
    assert len(kept) == len(samples) - 10
    assert left_out.samples == left_out.count == 10
    assert [(cause.kind, count) for cause, count in left_out.causes] == [
        ("not_finite", 4),
        ("velocity_beyond", 4),
        ("velocity_beyond", 2),
        ("torque_beyond", 0),
        ("torque_beyond", 0),
    ]


def test_spoiled_time_is_left_out(valkyrie: Arm) -> None:
    def spoil(time: np.ndarray) -> None:
        time[150] = np.nan

    identifier = OnlineIdentifier(valkyrie.robot)
    updates = list(feed(identifier, spoiled(valkyrie.samples(0.0, 4.0), time=spoil)))
    assert updates[-1].rejected == 1
    assert np.isfinite(updates[-1].time)
    assert updates[-1].identified


def test_time_that_goes_back_starts_the_window_anew_but_keeps_the_model(
    opened: OnlineIdentifier, valkyrie: Arm
) -> None:
    updates = list(feed(opened, valkyrie.samples(0.0, 3.0)))
    assert updates[0].window_samples == BATCH
    assert updates[0].state is GateState.HOLDING
    assert all(update.identified for update in updates)
    assert updates[-1].state is GateState.IDENTIFIED


def test_a_robot_that_stands_still_is_not_learned_from(
    opened: OnlineIdentifier, valkyrie: Arm
) -> None:
    before = opened.update()
    updates = list(feed(opened, valkyrie.samples(3.0, 5.0, still=True)))
    assert updates[-1].state is GateState.HOLDING
    assert "no informative samples" in updates[-1].reasons[0]
    assert updates[-1].window_samples == before.window_samples
    np.testing.assert_array_equal(updates[-1].parameters, before.parameters)
    *_, moving = feed(opened, valkyrie.samples(5.0, 6.0))
    assert moving.state is GateState.IDENTIFIED


def test_silence_holds_the_model(opened: OnlineIdentifier) -> None:
    held = opened.apply(None, silence=2.0)
    assert held.state is GateState.HOLDING
    assert "2.0 s" in held.reasons[0]
    assert held.identified


def test_before_any_sample_the_nominal_parameters_are_in_use(valkyrie: Arm) -> None:
    update = OnlineIdentifier(valkyrie.robot).update()
    assert update.state is GateState.FILLING
    assert not update.identified
    np.testing.assert_array_equal(update.parameters, valkyrie.robot.nominal)


def test_reset_forgets_everything_but_the_revision(
    opened: OnlineIdentifier, valkyrie: Arm
) -> None:
    before = opened.update()
    pending = opened.snapshot()
    opened.reset()
    after = opened.apply(None if pending is None else opened.solve(pending))
    assert not after.identified
    assert after.state is GateState.FILLING
    assert after.window_samples == 0
    assert after.revision > before.revision
    np.testing.assert_array_equal(after.parameters, valkyrie.robot.nominal)
    assert list(feed(opened, valkyrie.samples(0.0, 3.0)))[-1].identified


def test_a_solution_from_before_a_reset_is_dropped(valkyrie: Arm) -> None:
    identifier = OnlineIdentifier(valkyrie.robot)
    list(feed(identifier, valkyrie.samples(0.0, 1.9)))
    identifier.ingest(valkyrie.samples(1.9, 2.5))
    request = identifier.snapshot()
    assert request is not None
    solution = identifier.solve(request)
    identifier.reset()
    assert identifier.apply(solution).estimate is None


def test_a_wrong_model_is_dropped_for_the_nominal_one(
    opened: OnlineIdentifier, valkyrie: Arm
) -> None:
    def shuffle(effort: np.ndarray) -> None:
        effort[:] = np.random.default_rng(1).permutation(effort, axis=0)

    ignored = replace(opened.config.payload, enabled=False)
    opened.configure(replace(opened.config, payload=ignored))
    updates = list(feed(opened, spoiled(valkyrie.samples(3.0, 8.0), effort=shuffle)))
    assert updates[-1].state is GateState.NOMINAL
    assert not updates[-1].identified
    assert updates[-1].causes[0].kind == "torque_noise"
    np.testing.assert_array_equal(updates[-1].parameters, valkyrie.robot.nominal)


def test_a_solution_far_from_its_optimum_is_refused(
    opened: OnlineIdentifier, valkyrie: Arm
) -> None:
    opened.ingest(valkyrie.samples(3.0, 3.1))
    before, solution = opened.update(), solved(opened, valkyrie, 3.1)
    poor = replace(solution, estimate=replace(solution.estimate, optimality=0.1))
    refused = opened.apply(poor)
    assert refused.state is GateState.REJECTED
    assert refused.causes[0].kind == "suboptimal"
    np.testing.assert_array_equal(refused.parameters, before.parameters)


def test_a_torque_that_would_jump_is_refused(opened: OnlineIdentifier, valkyrie: Arm) -> None:
    opened.ingest(valkyrie.samples(3.0, 3.1))
    before, solution = opened.update(), solved(opened, valkyrie, 3.1)
    far = replace(solution.estimate, base_parameters=4.0 * solution.estimate.base_parameters)
    refused = opened.apply(replace(solution, estimate=far))
    assert refused.state is GateState.REJECTED
    assert refused.causes[0].kind == "jump"
    np.testing.assert_array_equal(refused.parameters, before.parameters)


def test_a_solve_counts_rows_by_the_colour_of_the_innovations(valkyrie: Arm) -> None:
    identifier = OnlineIdentifier(valkyrie.robot)
    samples = valkyrie.samples(0.0, 12.0)
    # the second joint's innovations last for a second, the others' a sample
    errors = np.random.default_rng(4).normal(size=samples.effort.shape)
    errors[:, 1] = np.repeat(errors[::100, 1], 100)
    base = identifier.regression.base.project(valkyrie.truth)
    rubbing = replace(samples, effort=samples.effort + errors)
    for _ in identifier._learner.learn(rubbing, base, base):
        pass
    request = identifier.snapshot()
    assert request is not None
    assert request.problem.correlation is not None
    least = request.colour[0]
    assert request.colour[1] > 1.5 * least
    np.testing.assert_array_equal(np.delete(request.colour, 1), least)
    # the share that no model explains has the least
    assert least < request.problem.correlation[1] < request.colour[1]
    np.testing.assert_allclose(np.delete(request.problem.correlation, 1), least)


def solved(identifier: OnlineIdentifier, arm: Arm, time: float) -> Solved:
    """Return the solution of what a tenth of a second of motion asks for."""
    identifier.ingest(arm.samples(time, time + 0.1))
    request = identifier.snapshot()
    assert request is not None
    solution = identifier.solve(request)
    assert isinstance(solution, Solved)
    return solution


def test_a_new_threshold_acts_at_once_and_keeps_the_data(valkyrie: Arm) -> None:
    strict = OnlineConfig(gate=GateConfig(min_determined=0.999))
    identifier = OnlineIdentifier(valkyrie.robot, strict)
    *_, last = feed(identifier, valkyrie.samples(0.0, 4.0, noise=0.5))
    assert not last.identified
    identifier.configure(OnlineConfig())
    *_, last = feed(identifier, valkyrie.samples(4.0, 4.05, noise=0.5))
    assert last.identified


def test_a_new_window_starts_empty_and_fills(opened: OnlineIdentifier, valkyrie: Arm) -> None:
    opened.configure(replace(opened.config, window=1.0))
    updates = list(feed(opened, valkyrie.samples(3.0, 4.5)))
    assert updates[0].state is GateState.HOLDING
    assert updates[-1].state is GateState.IDENTIFIED
    assert 100 <= updates[-1].window_samples <= 105


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("window", 0.0),
        ("window", np.nan),
        ("memory", -1.0),
        ("still_velocity", np.inf),
        ("sample_rate", 0.0),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=name):
        OnlineConfig(**{name: value})  # type: ignore[arg-type]


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ParameterError, match="magic"):
        OnlineConfig(method="magic")


@pytest.mark.parametrize("method", ["wls", "qp"])
def test_other_estimators_open_the_gate_too(valkyrie: Arm, method: str) -> None:
    identifier = OnlineIdentifier(valkyrie.robot, OnlineConfig(method=method))
    samples = valkyrie.samples(0.0, 3.0)
    for start in range(0, len(samples), 25):
        identifier.ingest(samples.select(slice(start, start + 25)))
        update = identifier.update()
    assert update.estimate is not None
    assert update.estimate.method == method
    assert finite(update)
