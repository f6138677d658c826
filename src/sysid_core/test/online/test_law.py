# SPDX-License-Identifier: Apache-2.0
"""Joints get friction terms while they are driven, and keep what the model in use means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.open_tree import OpenTree, random_states
from sysid_core.online.law import Choices, Past, Seen
from sysid_core.online.payload_phases import Alarmed, Watching
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.stream import SampleStream
from sysid_core.online.update import Update
from sysid_core.recording import Recording, Samples
from sysid_core.robot import Robot, load_robot

ACTUAL = {"shoulder_lift_joint": {"load": 1.0}, "elbow_joint": {"sigmoid": 0.3}}
BATCH = 5


def _truth(robot: Robot) -> FloatArray:
    vector, layout = robot.consistent_nominal.copy(), robot.layout
    vector[layout.term("viscous")] = [12.0, 15.0, 8.0, 2.0, 2.0, 1.5]
    vector[layout.term("coulomb")] = [9.0, 11.0, 6.0, 2.0, 1.8, 1.5]
    vector[layout.term("armature")] = [1.0, 1.0, 0.6, 0.2, 0.2, 0.2]
    vector[layout.term("load")], vector[layout.term("sigmoid")] = 0.1, 15.0
    return vector


@pytest.fixture(scope="module")
def least() -> Robot:
    return load_robot("ur10")


class _Run(NamedTuple):
    recording: Recording
    updates: list[Update]

    def error(self) -> float:
        """Root mean square [N·m] of what the newest models left before they learned it."""
        late = [u.scores.candidate.rmse for u in self.updates[-100:]]
        return float(np.sqrt(np.mean(np.sum(np.square(late), axis=1))))


def _run(robot: Robot, recording: Recording, config: OnlineConfig) -> _Run:
    stream = stream_settings_for(recording, robot)
    return _Run(
        recording, [s.update for s in replay(recording, robot, stream=stream, online=config)]
    )


@pytest.fixture(scope="module")
def recording(least: Robot, make_recording: Callable[..., Recording]) -> Recording:
    actual = least.with_friction(ACTUAL)
    return make_recording(actual, _truth(actual), duration=20.0, rate=125.0, noise=0.3, seed=3)


@pytest.fixture(scope="module")
def found(least: Robot, recording: Recording) -> _Run:
    return _run(least, recording, OnlineConfig())


def laws(updates: list[Update]) -> list[dict[str, dict[str, float]]]:
    told = [u.robot.description.friction_chosen for u in updates]
    return [{joint: dict(terms) for joint, terms in law.items()} for law in told]


def test_driven_joints_get_the_terms_that_their_friction_has(found: _Run) -> None:
    last = laws(found.updates)[-1]
    assert all(terms.keys() <= last.get(joint, {}).keys() for joint, terms in ACTUAL.items())
    assert found.updates[-1].identified


def test_with_them_torques_are_predicted_better(found: _Run, least: Robot) -> None:
    plain = _run(least, found.recording, OnlineConfig(friction="described"))
    assert not any(laws(plain.updates))
    assert found.error() < 0.8 * plain.error()


def test_joints_only_get_terms_and_no_springs(found: _Run) -> None:
    for before, after in pairwise(laws(found.updates)):
        for joint, terms in before.items():
            assert terms.items() <= after[joint].items()
    assert all("spring" not in terms for terms in laws(found.updates)[-1].values())


def test_a_choice_leaves_model_and_state_in_use_as_they_are(found: _Run) -> None:
    changes = [(a, b) for a, b in pairwise(found.updates) if a.robot is not b.robot]
    assert changes
    for before, after in changes:
        assert after.samples > before.samples
        assert after.revision - before.revision <= 1
        assert after.state is before.state
        # the next estimate rests on all data that this one rested on
        assert after.window_samples >= before.window_samples - 10
        assert after.determined > 0.9 * before.determined


def test_parameters_mean_what_they_meant_when_joints_get_terms(
    least: Robot, recording: Recording
) -> None:
    identifier, states = (
        OnlineIdentifier(least, OnlineConfig(cutoff=10.0)),
        random_states(least, 5),
    )
    for part in _batches(least, recording):
        identifier.ingest(part)
        request = identifier.snapshot()
        update = identifier.apply(None if request is None else identifier.solve(request))
        identifier.look(request, identifier.judge(request))
        question = identifier.question()
        if question is None:
            continue
        before = OpenTree(identifier.robot, parameters=update.parameters).torques(*states)
        answer = question.answer()
        if identifier.adopt(answer) and answer.learner is not None:
            after = OpenTree(identifier.robot, parameters=update.parameters).torques(*states)
            np.testing.assert_allclose(after, before, rtol=1e-12)
            return
    pytest.fail("nothing was chosen")


def _batches(robot: Robot, recording: Recording) -> Iterator[Samples]:
    stream = SampleStream(robot, stream_settings_for(recording, robot))
    assert recording.effort is not None
    for start in range(0, len(recording), BATCH):
        part = slice(start, start + BATCH)
        samples = stream.push_joint_states(
            recording.time[part],
            recording.joint_names,
            recording.position[part],
            recording.effort[part],
        )
        if len(samples):
            yield samples


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [4, 5])
def test_where_the_least_law_is_true_chance_chooses_little_and_does_no_harm(
    least: Robot, make_recording: Callable[..., Recording], seed: int
) -> None:
    recording = make_recording(
        least, _truth(least), duration=12.0, rate=125.0, noise=0.3, seed=seed
    )
    run = _run(least, recording, OnlineConfig(low_pass="described"))
    assert len(laws(run.updates)[-1]) <= 2
    plain = _run(least, recording, OnlineConfig(friction="described", low_pass="described"))
    assert run.error() < 1.05 * plain.error()


def test_nothing_is_chosen_where_the_description_chose(least: Robot, recording: Recording) -> None:
    own = least.with_friction({"wrist_3_joint": {"sigmoid": 0.2}})
    assert {str(law) for law in laws(_run(own, recording, OnlineConfig()).updates)} == {
        "{'wrist_3_joint': {'sigmoid': 0.2}}"
    }


def test_nothing_is_chosen_while_the_cutoff_is_not_known(
    least: Robot, recording: Recording
) -> None:
    identifier = OnlineIdentifier(least)
    for part in _batches(least, recording):
        identifier.ingest(part)
        assert identifier.question() is None


def test_an_answer_that_comes_after_a_reset_is_out_of_date(
    least: Robot, recording: Recording
) -> None:
    identifier = OnlineIdentifier(least, OnlineConfig(cutoff=10.0))
    for part in _batches(least, recording):
        identifier.ingest(part)
        question = identifier.question()
        if question is not None and (answer := question.answer()).learner is not None:
            break
    else:
        pytest.fail("nothing was chosen")
    identifier.reset()
    assert not identifier.adopt(answer)
    assert identifier.robot.description.friction_chosen == {}


@pytest.mark.heavy
def test_a_reset_returns_to_the_friction_of_the_description(
    least: Robot, recording: Recording
) -> None:
    identifier = OnlineIdentifier(least, OnlineConfig(cutoff=10.0))
    for part in _batches(least, recording):
        identifier.ingest(part)
        identifier.choose_friction()
    assert identifier.robot.description.friction_chosen
    identifier.reset()
    assert identifier.update().robot is least
    for part in _batches(least, recording):  # and learns again
        identifier.ingest(part)
        identifier.choose_friction()
    assert identifier.robot.description.friction_chosen


def test_the_past_is_let_go_after_the_last_choice(least: Robot) -> None:
    config = OnlineConfig(window=1.0)
    past = Past(Choices(friction=True, low_pass=False))
    samples = Samples(np.arange(100.0) / 100.0, *np.zeros((4, 100, 6)))
    asked = 0
    for second in range(40):
        past.add(replace(samples, time=samples.time + second), 100)
        asked += past.question(least, config, Seen(None, np.ones(6))) is not None
        past.close()
    assert asked == 4
    assert past.parts == []
    past = Past(Choices(friction=False, low_pass=False))
    past.add(samples, 100)
    assert past.parts == []
    assert past.question(least, config, Seen(None, np.ones(6))) is None


def test_an_alarm_that_passes_puts_a_choice_off_and_loses_no_samples(
    least: Robot, recording: Recording
) -> None:
    identifier = OnlineIdentifier(least, OnlineConfig(cutoff=10.0))
    calm, kept = identifier._tracker.phase, 0
    for part in _batches(least, recording):
        time = float(part.time[-1])
        learned = identifier._learner.window.learned
        alarm = Alarmed(Watching(((time, identifier._model),)), time, learned, clear=True)
        identifier._tracker.phase = alarm
        identifier.ingest(part)
        assert identifier.question() is None
        before, kept = kept, sum(len(one.samples) for one in identifier._past.parts)
        assert kept >= before
        identifier._tracker.phase = calm
        if identifier.question() is not None:
            return
    pytest.fail("no choice was due")


def test_rests_are_kept_shortly_after_a_motion() -> None:
    past = Past(Choices(friction=True, low_pass=True))
    for k in range(6):
        time = 0.5 * k + np.arange(50.0) / 100.0
        past.add(Samples(time, *np.zeros((4, 50, 1))), 50 if k == 1 else 0)
    assert [part.samples.time[0] for part in past.parts] == [0.5, 1.0, 1.5]
    past.add(Samples(time - 2.0, *np.zeros((4, 50, 1))), 50)  # the clock was set
    assert [part.samples.time[0] for part in past.parts] == [0.5]


def test_friction_that_efforts_lack_is_not_looked_for(least: Robot) -> None:
    without = replace(least.description, effort_excludes=("friction", "gravity"))
    robot = Robot(without, least.urdf)
    config = OnlineConfig(cutoff=10.0, window=0.1, low_pass="described")
    identifier = OnlineIdentifier(robot, config)
    q, v, a = random_states(robot, 300)
    samples = Samples(np.arange(300) / 100.0, q, v, a, np.ones_like(v))
    identifier.ingest(samples)
    assert identifier.question() is None
