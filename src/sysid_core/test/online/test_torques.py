# SPDX-License-Identifier: Apache-2.0
"""A torque that cannot be one is refused by its joint's name; right torques are adopted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.select import make_regression
from sysid_core.online.gate import GateState
from sysid_core.online.learner import Learner
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.saturation import CutEfforts, Saturation
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.torque_checks import TorqueVerdict, refusing
from sysid_core.online.torque_scale import ScaleInformation, ScalePosterior
from sysid_core.online.update import Update
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot

Arm = Any
CONFIG = replace(OnlineConfig(), payload=replace(OnlineConfig().payload, enabled=False))


def told_of(robot: Robot, samples: Samples) -> list[Update]:
    """Return what is told of samples, a hundredth of a second after the other."""
    identifier, updates = OnlineIdentifier(robot, CONFIG), []
    for first in range(0, len(samples), 10):
        identifier.ingest(samples.select(slice(first, first + 10)))
        updates.append(identifier.update())
    return updates


def updates_of(
    arm: Arm, change: Callable[[np.ndarray], np.ndarray], joint: int, start: float = 0.0
) -> list[Update]:
    """Run ten seconds of motion; from `start` [s] on a joint's torque is changed."""
    samples = arm.samples(0.0, 10.0, noise=0.05)
    spoiled = samples.effort.copy()
    wrong = samples.time >= start
    spoiled[wrong, joint] = change(spoiled[wrong, joint])
    return told_of(arm.robot, replace(samples, effort=spoiled))


CASES = {
    "flipped": ("panda", 6, lambda tau: -tau, "torque_sign"),
    "noise": (
        "panda",
        6,
        lambda tau: np.random.default_rng(0).normal(size=len(tau)),
        "torque_noise",
    ),
    "zero": ("panda", 6, lambda tau: 0.0 * tau, "torque_stuck"),
    "swallowed": (
        "ur10",
        1,
        lambda tau: np.where(np.abs(tau) < 60.0, 0.0, tau),
        "torque_saturated",
    ),
    "gain": ("ur10", 1, lambda tau: 1.5 * tau, "torque_scale"),
    "amperes": ("panda", 3, lambda tau: 0.1 * tau, "torque_scale"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_torque_is_refused_and_named(arm_of: Callable[[str], Arm], case: str) -> None:
    name, joint, change, kind = CASES[case]
    arm = arm_of(name)
    last = updates_of(arm, change, joint)[-1]
    assert not last.identified
    assert last.state is GateState.NOMINAL
    found = {(cause.kind, cause.subject) for cause in last.causes}
    assert found == {(kind, arm.robot.joint_names[joint])}
    assert all(cause.hint and any(c.isdigit() for c in cause.message) for cause in last.causes)


@pytest.mark.parametrize("name", ["panda", "ur10", "valkyrie_arm"])
def test_right_torques_are_never_refused(arm_of: Callable[[str], Arm], name: str) -> None:
    updates = updates_of(arm_of(name), lambda tau: tau, 0)
    kinds = {cause.kind for update in updates for cause in update.causes}
    assert not {kind for kind in kinds if kind.startswith("torque_")}
    assert updates[-1].identified
    scores = updates[-1].scores
    assert (scores.candidate.rmse < scores.nominal.rmse).all()
    assert (updates[-1].scores.centred_r2 > 0.5).all()


@pytest.mark.parametrize("name", ["panda", "ur10", "valkyrie_arm"])
def test_friction_that_no_description_tells_of_is_no_wrong_scale(
    arm_of: Callable[[str], Arm], name: str
) -> None:
    last = updates_of(arm_of(name).altered(viscous=15.0, coulomb=5.0), lambda tau: tau, 0)[-1]
    assert last.identified, [str(cause) for cause in last.causes]


@pytest.mark.parametrize(("name", "share"), [("ur10", 0.1), ("valkyrie_arm", 0.15)])
def test_friction_that_follows_another_joint_is_no_wrong_scale(
    arm_of: Callable[[str], Arm], name: str, share: float
) -> None:
    arm = arm_of(name)
    samples = arm.samples(0.0, 10.0, noise=0.05)
    other = np.roll(samples.velocity, 1, axis=1)
    rubbed = share * samples.effort.std(axis=0) * (np.sign(other) + other)
    last = told_of(arm.robot, replace(samples, effort=samples.effort + rubbed))[-1]
    assert last.identified, [str(cause) for cause in last.causes]


def test_a_scale_that_is_not_known_yet_waits_for_its_data() -> None:
    def refused(weight: float, *, in_use: bool, early: bool) -> bool:
        verdicts = {
            0: TorqueVerdict(Diagnostic("scale_unknown", "…"), weight),
            1: TorqueVerdict(None),
        }
        return bool(refusing(verdicts, in_use=in_use, early=early))

    # odds of a wrong scale: against, hardly, for, certain
    odds = (-2.0, -0.5, 0.5, 7.0)
    first = [refused(w, in_use=False, early=True) for w in odds]
    later = [refused(w, in_use=False, early=False) for w in odds]
    used = [refused(w, in_use=True, early=False) for w in odds]
    assert first == [False, True, True, True]
    assert later == [False, False, True, True]
    assert used == [False, False, False, True]


@pytest.mark.parametrize(("weight", "told"), [(9.5, True), (6.5, False)])
def test_a_joint_whose_scale_is_about_as_likely_to_be_wrong_is_named_too(
    weight: float, told: bool
) -> None:
    def wrong(name: str, weight: float) -> TorqueVerdict:
        return TorqueVerdict(Diagnostic("torque_scale", "is 1.5 times", subject=name), weight)

    found = refusing({0: wrong("elbow", weight), 1: wrong("wrist", 10.0)}, in_use=True)
    ((joint, verdict),) = found.items()
    assert joint == 1
    assert verdict.finding is not None
    assert ("unless elbow's torque is wrong instead" in str(verdict.finding)) is told


def test_a_joint_that_masses_hardly_load_is_named_where_it_makes_others_look_wrong() -> None:
    wrong = Diagnostic("torque_scale", "…")
    faint = TorqueVerdict(wrong, 400.0, faint=True)
    assert refusing({0: faint, 1: TorqueVerdict(None)}, in_use=True) == {}
    assert refusing({0: faint, 1: TorqueVerdict(wrong, 90.0)}, in_use=True) == {0: faint}


def test_a_wrong_torque_is_not_forgotten_before_it_is_shown_to_be_right(
    arm_of: Callable[[str], Arm],
) -> None:
    robot = arm_of("valkyrie_arm").robot
    learner = Learner(robot, make_regression(robot), OnlineConfig())
    wrong = TorqueVerdict(Diagnostic("torque_scale", "…"), 8.0)

    def judged(verdict: TorqueVerdict) -> dict[int, TorqueVerdict]:
        learner.take_verdicts(learner.epoch, {2: verdict})
        return dict(learner.suspects)

    assert judged(wrong) == {2: wrong}
    assert judged(TorqueVerdict(Diagnostic("scale_unknown", "…"), 1.0)) == {2: wrong}
    assert judged(TorqueVerdict(None)) == {2: wrong}  # nothing can be said
    assert judged(TorqueVerdict(None, -3.0)) == {}


def test_a_changed_robot_waits_for_its_scales_like_a_new_one(
    arm_of: Callable[[str], Arm],
) -> None:
    arm = arm_of("valkyrie_arm")
    learner = Learner(arm.robot, make_regression(arm.robot), OnlineConfig())
    nothing = np.zeros(learner.regression.base.size)
    assert len(list(learner.learn(arm.samples(0.0, 4.0), nothing, nothing))) > 0
    assert learner.windows == pytest.approx(2.0, abs=0.1)
    learner.forget()
    assert learner.windows == 0.0


def test_evidence_beyond_rounding_has_one_likely_scale() -> None:
    none, likelihood = np.zeros(3), -1e30 * np.linspace(0.0, 1.0, 143)
    found = ScalePosterior(likelihood, none, none, none, 0.0, UNSEEN)
    assert found.range == (found.best, found.best)


UNSEEN = ScaleInformation(np.arange(3), 2.0 * np.eye(3), np.zeros((0, 0)), np.zeros(0))
"""What is known of three parameters that the joint's own rows do not show."""


def test_a_joint_that_shows_nothing_leaves_what_others_know() -> None:
    others = np.array([[1.0, 9.0, 9.0], [2.0, 9.0, 9.0], [3.0, 9.0, 9.0]])
    np.testing.assert_allclose(UNSEEN.mean(others, 0.0), [0.5, 1.0, 1.5])
    assert UNSEEN.deviation(np.array([0.0, 3.0, 4.0])) == pytest.approx(2.5)


class Joint:
    """Rows of one joint whose nominal torque is known, seen by a watch for saturation."""

    def __init__(self, unit: float = 1.0) -> None:
        self.unit = unit
        self.watch = Saturation(("elbow",), np.array([unit]), 2000.0)

    def see(
        self, torque: np.ndarray, nominal: np.ndarray, batch: int = 10
    ) -> tuple[Diagnostic, ...]:
        for part in np.array_split(np.arange(len(torque)), len(torque) // batch):
            block = RowBlock(self.unit * nominal[part, None], self.unit * torque[part], part)
            self.watch.push(Rows((block,)), np.ones(1), len(part))
        return self.watch.diagnostics()


TIME = np.arange(1000) / 100.0
SWING = 1.4 * np.sin(2.0 * np.pi * 0.4 * TIME) + 0.2 * np.sin(2.0 * np.pi * 1.1 * TIME)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_driver_that_shows_no_small_torques_is_asked_for_them(unit: float) -> None:
    (found,) = Joint(unit).see(np.where(np.abs(SWING) < 0.8, 1e-6, SWING), 0.8 * SWING)
    assert (found.kind, found.subject) == ("torque_saturated", "elbow")
    assert "stays at 0 N·m" in found.message
    assert "small torques" in found.hint


def test_rows_that_come_one_by_one_are_counted() -> None:
    torque = np.where(np.abs(SWING) < 0.8, 0.0, SWING)
    assert Joint().see(torque, 0.8 * SWING, batch=1)


@pytest.mark.parametrize(
    ("torque", "nominal"),
    [
        (SWING, 0.8 * SWING),
        (np.round(SWING, 1), 0.8 * SWING),  # a coarse sensor
        (np.round(SWING), 0.8 * SWING),  # one of three values
        (0.02 * SWING, 0.8 * SWING),  # amperes
        (0.3 * np.sign(SWING), 0.2 * np.sign(SWING)),  # friction alone
        (0.0 * SWING, SWING),  # stuck, which is another fault
        (np.clip(SWING, -1.0, 1.0), SWING),  # cut off, which its samples tell
    ],
)
def test_a_torque_that_dwells_for_a_reason_is_not_cut_off(
    torque: np.ndarray, nominal: np.ndarray
) -> None:
    assert not Joint().see(torque, nominal)


def test_a_cut_that_was_mended_is_forgotten() -> None:
    joint = Joint()
    assert joint.see(np.where(np.abs(SWING) < 0.8, 0.0, SWING), SWING)
    rng = np.random.default_rng(2)
    for _ in range(12):
        found = joint.see(SWING + 0.01 * rng.normal(size=len(SWING)), SWING)
    assert not found


def test_a_torque_that_turns_wrong_leaves_the_model_from_before_it(
    arm_of: Callable[[str], Arm],
) -> None:
    arm, joint, wrong_from = arm_of("panda"), 1, 7.0
    identifier = OnlineIdentifier(arm.robot)
    samples = arm.samples(0.0, 13.5, noise=0.05)
    right = samples.effort.copy()
    samples.effort[samples.time >= wrong_from, joint] *= 1.5
    for first in range(0, len(samples), 10):
        identifier.ingest(samples.select(slice(first, first + 10)))
        last = identifier.update()
    assert (last.state, last.identified) == (GateState.REJECTED, True)
    named = {(cause.kind, cause.subject) for cause in last.causes}
    assert named == {("torque_scale", arm.robot.joint_names[joint])}
    states = samples.position, samples.velocity, samples.acceleration
    used, nominal = (
        np.linalg.norm(arm.torque(x, *states) - right)
        for x in (last.parameters, arm.robot.nominal)
    )
    assert used < 0.1 * nominal


def marked(samples: Samples, joint: int, most: float) -> Samples:
    """Return samples of which a joint's efforts are cut off at `most` [N·m], as they tell."""
    effort, cut_off = samples.effort.copy(), np.zeros(samples.effort.shape, dtype=np.intp)
    cut_off[np.abs(effort[:, joint]) >= most, joint] = 2
    effort[:, joint] = np.clip(effort[:, joint], -most, most)
    return replace(samples, effort=effort, cut_off=cut_off)


def test_efforts_at_an_end_of_their_range_are_left_out_and_the_rest_is_learned(
    arm_of: Callable[[str], Arm],
) -> None:
    arm, joint = arm_of("ur10"), 1
    samples = arm.samples(0.0, 10.0, noise=0.05)
    updates = told_of(arm.robot, marked(samples, joint, 110.0))
    assert updates[-1].identified
    told = [(n.kind, n.subject) for n in updates[-1].notes]
    assert ("torque_saturated", arm.robot.joint_names[joint]) in told
    states = samples.position, samples.velocity, samples.acceleration

    def error(parameters: np.ndarray) -> float:
        return float(np.linalg.norm(arm.torque(parameters, *states) - samples.effort))

    worst = max(error(u.parameters) for u in updates if u.identified)
    assert worst < error(arm.robot.nominal)
    assert error(updates[-1].parameters) < 0.3 * error(arm.robot.nominal)


class Motor:
    """A regression of one joint whose acceleration is what the nominal model needs."""

    per_joint = True

    def __init__(self) -> None:
        self.robot = SimpleNamespace(
            actuated=np.array([True]), actuated_names=("elbow",), nominal=np.ones(1)
        )
        self.base = SimpleNamespace(project=lambda parameters: parameters)

    def rows(self, samples: Samples, still: np.ndarray) -> Rows:
        where = np.flatnonzero(np.abs(samples.velocity[:, 0]) >= still)
        return Rows((RowBlock(samples.acceleration[where], samples.effort[where, 0], where),))


def seen(needed: np.ndarray, speed: float = 1.0) -> CutEfforts:
    """Return what is known of 40 efforts in four stretches at an end, each sample by itself."""
    motor: Any = Motor()
    watch, at_end = CutEfforts(motor, np.ones(1), np.full(1, 0.1), 1000.0), np.arange(80) % 20 < 10
    for k in range(80):
        one = np.ones((1, 1))
        cut_off = np.full((1, 1), 2 * at_end[k], dtype=np.intp)
        needs = one * needed[k]
        samples = Samples(np.array([float(k)]), one, speed * one, needs, one, cut_off=cut_off)
        watch.leave_out(samples)
    return watch


def test_an_end_is_one_where_the_motion_needs_other_torques() -> None:
    ramp = 0.1 * (np.arange(80) % 20)
    (told,) = seen(ramp).diagnostics()
    assert (told.kind, told.subject) == ("torque_saturated", "elbow")
    assert "left out" in told.hint
    # errors of a model that change from one stretch to the next tell nothing
    steps = 0.3 * (np.arange(80) // 20)
    assert not seen(steps).diagnostics()
    (suspected,) = seen(steps).suspected()
    assert suspected.subject == "elbow"
    resting = seen(ramp, speed=0.05)
    assert not resting.diagnostics()
    assert not resting.suspected()


def test_a_first_model_waits_until_it_is_known_whether_torques_are_cut_off(
    arm_of: Callable[[str], Arm],
) -> None:
    arm = arm_of("panda")
    samples = arm.samples(0.0, 10.0, noise=0.05)
    cut_off = np.zeros(samples.effort.shape, dtype=np.intp)
    cut_off[::5, 3] = 2  # single ones, of which nothing can be told
    updates = told_of(arm.robot, replace(samples, cut_off=cut_off))
    plain = told_of(arm.robot, samples)
    first, usual = ([u.identified for u in some].index(True) for some in (updates, plain))
    assert first > usual + 20
    held = {(c.kind, c.subject) for u in updates[usual : first - 1] for c in u.causes}
    assert held == {("torque_saturated", arm.robot.joint_names[3])}


def test_a_legs_samples_are_left_out_while_an_effort_is_cut_off() -> None:
    dog = load_robot("solo12")
    nj = len(dog.joint_names)
    watch = CutEfforts(make_regression(dog), np.ones(1), np.zeros(nj), 1000.0)
    values = np.ones((100, nj))
    cut_off = np.zeros((100, nj), dtype=np.intp)
    cut_off[15:65, 4] = 1
    cut_off[20:60, 4] = 2
    steady = Samples(np.arange(100.0), values, values, values, values, cut_off=cut_off)
    kept, left_out = watch.leave_out(steady)
    assert (len(kept), left_out.count, watch.new) == (100, 0, False)
    velocity = values * np.sin(np.arange(100.0) / 5.0)[:, None]
    kept, left_out = watch.leave_out(replace(steady, velocity=velocity))
    assert (len(kept), left_out.count, watch.new) == (50, 50, True)
    ((cause, count),) = left_out.causes
    assert (cause.subject, count) == (dog.actuated_names[4], 50)
    assert "{share} of the samples are left out" in cause.message


def test_what_was_learned_before_efforts_were_cut_off_stays_in_use(
    arm_of: Callable[[str], Arm],
) -> None:
    arm, joint = arm_of("ur10"), 1
    samples = arm.samples(0.0, 14.0, noise=0.05)
    late = int(np.searchsorted(samples.time, 8.0))
    whole = marked(samples, joint, 100.0)
    assert whole.cut_off is not None
    whole.effort[:late] = samples.effort[:late]
    whole.cut_off[:late] = 0
    updates = told_of(arm.robot, whole)
    states = samples.position, samples.velocity, samples.acceleration
    before, after = (
        max(
            float(np.linalg.norm(arm.torque(u.parameters, *states) - samples.effort))
            for u in updates
            if first < u.time < last
        )
        for first, last in ((6.0, 8.0), (8.0, 14.0))
    )
    assert after < 2.0 * before
    assert any(n.kind == "torque_saturated" for n in updates[-1].notes)


@pytest.mark.parametrize("unit", ["amperes", "limits"])
def test_efforts_that_are_all_in_another_unit_are_refused(
    arm_of: Callable[[str], Arm], unit: str
) -> None:
    arm = arm_of("ur10")
    samples = arm.samples(0.0, 10.0, noise=0.01)
    per = 5.0 if unit == "amperes" else arm.robot.limits.effort
    updates = told_of(arm.robot, replace(samples, effort=samples.effort / per))
    assert not any(update.identified for update in updates)
    assert "times the description's" in str(updates[-1].causes[0])
    assert "effort.gain" in str(updates[-1].causes[0])


def test_a_first_model_of_efforts_in_another_unit_does_not_stay(
    arm_of: Callable[[str], Arm],
) -> None:
    # two seconds of this motion leave room for masses that are half the description's
    arm = replace(arm_of("panda"), seed=1)
    samples = arm.samples(0.0, 6.0, noise=0.01)
    updates = told_of(arm.robot, replace(samples, effort=0.1 * samples.effort))
    assert any(update.identified for update in updates)
    assert updates[-1].state is GateState.NOMINAL
    assert "times the description's" in str(updates[-1].causes[0])
