# SPDX-License-Identifier: Apache-2.0
"""Loads are found for what they are, soon, and only where there are any."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.inertia import from_mass_com_inertia, pseudo_inertia
from sysid_core.online.changes import CERTAIN, Change, Verdict, describe
from sysid_core.online.colour import LAG, ResidualColour
from sysid_core.online.gate import GateState
from sysid_core.online.hand_guiding import HandGuiding
from sysid_core.online.innovations import Evidence, Noise
from sysid_core.online.intake import LEAST_CORRELATION
from sysid_core.online.load_likeness import LoadLikeness
from sysid_core.online.payload import PayloadConfig, PayloadEstimator
from sysid_core.online.payload_estimate import PayloadEstimate
from sysid_core.online.payload_phases import Following, Watching
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.saturation import Saturation
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.update import KnownBase, ModelInUse, Update
from sysid_core.recording import Samples

Arm = Any
PUSH = np.array([6.0, -15.0, 5.0, 9.0, -2.0, 2.0, 0.5])  # [N·m]
CENTRAL = (0.02, 0.002, 0.015, 0.0, 0.001, 0.01)
"""Inertia of the load about its centre of mass [kg·m²]."""


@pytest.fixture(scope="module")
def panda(arm_of: Callable[[str], Arm]) -> Arm:
    return arm_of("panda")


def run(identifier: OnlineIdentifier, samples: Samples) -> list[Update]:
    updates = []
    for start in range(0, len(samples), 10):
        identifier.ingest(samples.select(slice(start, start + 10)))
        updates.append(identifier.update())
    return updates


def white(groups: int, std: float) -> Noise:
    return Noise(np.full(groups, std**2), np.ones((groups, 1)))


class Bench:
    """An arm with an estimator of its load, fed with its true parameters."""

    def __init__(self, arm: Arm) -> None:
        self.regression = make_regression(arm.robot)
        self.groups = len(self.regression.groups)
        self.loads = PayloadEstimator(self.regression, PayloadConfig())
        self.base = self.regression.base.project(arm.truth)
        self.known = np.zeros((len(self.base), len(self.base)))

    def statistics(self, samples: Samples) -> Statistics:
        return Statistics.of(self.regression.rows(samples))

    def estimate(
        self,
        samples: Samples,
        noise: Noise,
        covariance: FloatArray | None = None,
        before: PayloadEstimate | None = None,
    ) -> PayloadEstimate:
        known = self.known if covariance is None else covariance
        return self.loads.estimate(self.statistics(samples), self.base, known, noise, before)


# the UR's tool frame is turned by 90 degrees against its body, the Panda's is not
@pytest.mark.parametrize("robot", ["panda", "ur10"])
def test_without_noise_all_ten_parameters_come_out(
    arm_of: Callable[[str], Arm], robot: str, load: FloatArray
) -> None:
    arm = arm_of(robot)
    bench = Bench(arm)
    found = bench.estimate(arm.samples(0.0, 5.0, load=load), white(bench.groups, 1e-6))
    # the prior's weight at this noise is below one part in a million
    np.testing.assert_allclose(found.parameters, load, atol=1e-6)
    np.testing.assert_allclose(found.mass, 2.0, rtol=1e-6)
    np.testing.assert_allclose(found.com, [0.03, -0.02, 0.08], atol=1e-6)
    np.testing.assert_allclose(found.inertia, CENTRAL, atol=1e-6)
    assert found.odds > 100.0


@pytest.mark.parametrize("seed", range(3))
def test_any_estimate_is_a_possible_body(panda: Arm, load: FloatArray, seed: int) -> None:
    bench = Bench(panda)
    rng = np.random.default_rng(seed)
    samples = panda.samples(seed, seed + 0.2, load=load, noise=5.0)
    wrong = panda.truth * rng.uniform(0.8, 1.2, panda.truth.shape)
    bench.base = bench.regression.base.project(wrong)
    found = bench.estimate(samples, white(bench.groups, 5.0))
    assert np.linalg.eigvalsh(pseudo_inertia(found.parameters))[0] > 0.0
    assert found.mass > 0.0


@pytest.mark.parametrize("pole", [0.0, 0.9])
def test_the_standard_deviations_cover_the_truth(
    panda: Arm, load: FloatArray, pole: float
) -> None:
    bench = Bench(panda)
    true = np.array([2.0, 0.03, -0.02, 0.08, *CENTRAL])
    rng = np.random.default_rng(7)
    scores = []
    for start in range(25):
        samples = panda.samples(start, start + 3.0, load=load)
        white_noise = rng.normal(size=(600, samples.effort.shape[1]))
        coloured = lfilter([np.sqrt(1.0 - pole**2)], [1.0, -pole], white_noise, axis=0)
        samples = replace(samples, effort=samples.effort + coloured[300:])
        colour = ResidualColour(bench.groups, 100.0)
        block = [RowBlock(np.zeros((300, 1)), e, np.arange(300)) for e in coloured[:300].T]
        colour.push(Rows(tuple(block)), np.zeros(1), 300)
        found = bench.estimate(samples, Noise(colour.variance, colour.factors))
        seen = np.array([found.mass, *found.com, *found.inertia])
        std = np.array([found.mass_std, *found.com_std, *found.inertia_std])
        scores.append((seen - true) / std)
    # 100 standard normal numbers: their root mean square is within 0.79 … 1.21 with 99.7 %
    for some in (slice(4), slice(4, 10)):
        assert 0.6 < np.sqrt(np.mean(np.square(scores)[:, some])) < 1.3


def test_what_is_not_known_of_the_robot_is_not_known_of_its_load(
    panda: Arm, load: FloatArray
) -> None:
    bench = Bench(panda)
    rng = np.random.default_rng(1)
    samples = panda.samples(0.0, 2.0, load=load)
    covariance = 1e-3 * np.diag(np.maximum(bench.base**2, 1e-4))
    true, scores = bench.base, []
    for _ in range(25):
        bench.base = rng.multivariate_normal(true, covariance)
        found = bench.estimate(samples, white(bench.groups, 0.01), covariance)
        scores.append((found.mass - 2.0) / found.mass_std)
    assert 0.5 < np.sqrt(np.mean(np.square(scores))) < 1.5


def test_residuals_that_rise_with_the_load_widen_its_intervals(
    panda: Arm, load: FloatArray
) -> None:
    bench = Bench(panda)
    small, large = (
        bench.estimate(panda.samples(0.0, 2.0, load=load, noise=noise), white(bench.groups, 0.1))
        for noise in (0.1, 1.0)
    )
    assert large.mass_std > 3.0 * small.mass_std


def test_errors_that_a_load_explains_are_told_from_those_it_does_not(
    panda: Arm, load: FloatArray
) -> None:
    bench = Bench(panda)
    usual = white(bench.groups, 0.05)
    loaded = bench.estimate(panda.samples(0.0, 3.0, load=load, noise=0.05), usual)
    assert loaded.unexplained < 0.01
    unloaded = panda.samples(0.0, 3.0, noise=0.05)
    assert bench.estimate(unloaded, white(bench.groups, 0.1)).unexplained == 0.0
    step = 3.0 * np.random.default_rng(2).normal(size=unloaded.effort.shape[1])
    stepped = replace(unloaded, effort=unloaded.effort + step)
    assert bench.estimate(stepped, usual).unexplained > 0.3


@pytest.mark.parametrize("robot", ["panda", "ur10"])
def test_friction_that_grows_with_what_joints_carry_is_no_part_of_the_load(
    arm_of: Callable[[str], Arm], load: FloatArray, robot: str
) -> None:
    arm = arm_of(robot)
    bench, samples = Bench(arm), arm.samples(0.0, 5.0, load=load)
    bodies = arm.loaded(load)
    bodies[arm.robot.layout.friction] = 0.0
    rigid = arm.torque(bodies, samples.position, samples.velocity, samples.acceleration)
    rubbing = 0.03 * np.abs(rigid) * np.sign(samples.velocity)
    rows = bench.regression.rows(replace(samples, effort=samples.effort + rubbing))
    told, blind = (
        bench.loads.estimate(statistics, bench.base, bench.known, white(bench.groups, 0.05))
        for statistics in (bench.loads.statistics(rows, bodies), Statistics.of(rows))
    )
    assert abs(told.mass - 2.0) < 0.5 * abs(blind.mass - 2.0)
    assert abs(told.mass - 2.0) < 2.0 * told.mass_std
    assert (np.abs(told.com - [0.03, -0.02, 0.08]) < 2.0 * told.com_std).all()


@pytest.fixture(scope="module")
def episode(panda: Arm, load: FloatArray) -> list[Update]:
    """Return the updates of 10 s without, 10 s with and 8 s without the load again."""
    identifier = OnlineIdentifier(panda.robot)
    return (
        run(identifier, panda.samples(0.0, 10.0, noise=0.05))
        + run(identifier, panda.samples(10.0, 20.0, noise=0.05, load=load))
        + run(identifier, panda.samples(20.0, 28.0, noise=0.05))
    )


def test_a_load_is_noticed_within_a_second(episode: list[Update]) -> None:
    assert not any(u.payload_attached for u in episode if u.time < 10.0)
    first = next(u for u in episode if u.payload_attached)
    assert 10.0 < first.time < 11.0
    assert first.detected_after <= 0.5


def test_the_load_and_its_release_are_told(episode: list[Update]) -> None:
    carried = [u for u in episode if 13.5 < u.time < 19.9]
    assert all(u.payload_attached for u in carried)
    last = carried[-1].payload
    assert last is not None
    assert abs(last.mass - 2.0) < max(0.05, 4.0 * last.mass_std)
    assert np.all(np.abs(last.com - [0.03, -0.02, 0.08]) < 0.02)
    assert not any(u.payload_attached for u in episode if u.time > 21.5)


def test_the_model_follows_the_load(episode: list[Update], panda: Arm, load: FloatArray) -> None:
    for until, carried in ((9.9, None), (19.9, load), (27.9, None)):
        update = max((u for u in episode if u.time <= until), key=lambda u: u.time)
        assert update.identified
        assert update.state is GateState.IDENTIFIED
        samples = panda.samples(until, until + 1.0, load=carried)
        error = samples.effort - panda.torque(
            update.parameters, samples.position, samples.velocity, samples.acceleration
        )
        nominal = samples.effort - panda.torque(
            panda.robot.nominal, samples.position, samples.velocity, samples.acceleration
        )
        assert np.linalg.norm(error) < 0.1 * np.linalg.norm(nominal)


@pytest.mark.parametrize("noise", [0.0, pytest.param(0.1, marks=pytest.mark.heavy), 1.0])
def test_a_calm_robot_raises_no_alarm(panda: Arm, noise: float) -> None:
    identifier = OnlineIdentifier(panda.robot)
    updates = run(identifier, panda.samples(0.0, 15.0, noise=noise))
    assert not any(u.payload_attached for u in updates)
    assert updates[-1].identified


@pytest.fixture(scope="module")
def calm(panda: Arm) -> OnlineIdentifier:
    """Return an identifier after 10 s without a load; to be copied."""
    identifier = OnlineIdentifier(panda.robot)
    run(identifier, panda.samples(0.0, 10.0, noise=0.05))
    return identifier


def changed(calm: OnlineIdentifier, samples: Samples) -> tuple[list[Update], set[tuple[str, str]]]:
    """Return the updates of a robot that changes after 10 s, and what was told of it."""
    updates = run(deepcopy(calm), samples)
    return updates, {(note.kind, note.subject) for u in updates for note in u.notes}


def test_friction_that_doubles_is_no_load(panda: Arm, calm: OnlineIdentifier) -> None:
    rubbing = panda.altered(viscous=2.0, coulomb=2.0)
    updates, told = changed(calm, rubbing.samples(10.0, 16.0, noise=0.05))
    assert not any(u.payload_attached for u in updates)
    assert ("torque_errors_rose", "") in told


def test_efforts_that_go_dead_are_no_load(panda: Arm, calm: OnlineIdentifier) -> None:
    samples = panda.samples(10.0, 16.0)
    dead = replace(samples, effort=np.zeros_like(samples.effort))
    updates, _ = changed(calm, dead)
    assert not any(u.payload_attached for u in updates)
    causes = {cause.kind for u in updates for cause in u.causes}
    assert "torque_saturated" in causes


def test_no_load_is_told_while_a_torque_is_cut_off(
    panda: Arm, calm: OnlineIdentifier, load: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    samples = panda.samples(10.0, 12.0, noise=0.05, load=load)
    assert changed(calm, samples)[0][-1].payload_attached
    finding = Diagnostic("torque_saturated", "it stays at 0 N·m", subject="panda_joint4")
    monkeypatch.setattr(Saturation, "diagnostics", lambda _: (finding,))
    assert not any(u.payload_attached for u in changed(calm, samples)[0])


def test_errors_that_come_with_each_period_are_no_change(
    panda: Arm, calm: OnlineIdentifier
) -> None:
    """Once some of them were learned, which waits; larger ones are told."""
    samples = panda.samples(10.0, 24.0, noise=0.05)
    size = np.where(samples.time % 2.0 < 0.15, 0.4, 0.0)
    size[samples.time > 22.0] *= 5.0
    samples.effort[:] += size[:, None] * np.random.default_rng(5).normal(size=(len(size), 7))
    updates, _ = changed(calm, samples)
    told = [u.time for u in updates if u.notes and u.notes[0].kind == "torque_errors_rose"]
    assert all(time < 14.0 + LAG or time > 22.0 for time in told)
    assert max(told) > 22.0
    assert not any(u.payload_attached for u in updates)


def test_nothing_is_told_of_a_change_once_the_nominal_model_is_in_use(
    panda: Arm, calm: OnlineIdentifier
) -> None:
    told = deepcopy(calm)
    rubbing = panda.altered(viscous=2.0, coulomb=2.0).samples(10.0, 16.0, noise=0.05)
    kinds: set[str] = set()
    while "torque_errors_rose" not in kinds:
        told.ingest(rubbing.select(slice(0, 10)))
        rubbing = rubbing.select(slice(10, None))
        kinds = {note.kind for note in told.update().notes}
    told._use(told._nominal)
    told.update()
    assert "torque_errors_rose" not in {note.kind for note in told.update().notes}


@pytest.mark.parametrize(
    ("kind", "joint", "scale", "offset"),
    [
        ("gain_changed", 1, 1.5, 0.0),
        ("gain_changed", 5, 1.5, 0.0),
        ("joint_limp", 3, 0.0, 0.0),
        ("friction_changed", 5, 1.0, 3.0),
    ],
)
def test_a_change_of_one_joint_is_named_and_no_load(
    panda: Arm, calm: OnlineIdentifier, kind: str, joint: int, scale: float, offset: float
) -> None:
    samples = panda.samples(10.0, 12.0, noise=0.05)
    samples.effort[:, joint] = scale * samples.effort[:, joint] + offset
    updates, told = changed(calm, samples)
    assert not any(u.payload_attached for u in updates)
    assert (kind, panda.robot.joint_names[joint]) in told


@pytest.mark.parametrize(
    ("lasting", "named", "kind"),
    [
        (False, True, "torque_errors_rose"),  # it may have passed
        (True, False, "joint_changed"),
        (True, True, "gain_changed"),
    ],
)
def test_no_more_is_told_of_a_change_than_is_clear(lasting: bool, named: bool, kind: str) -> None:
    gain = Change("gain", "elbow", np.array([0]), np.array([0.5]))
    verdict = Verdict(gain, np.array([0.5]), 20.0, clear=True, named=named)
    found = describe(verdict, lasting=lasting)
    assert found.kind == kind
    assert found.subject == ("elbow" if lasting else "")


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_a_collision_is_no_load(panda: Arm, calm: OnlineIdentifier, direction: float) -> None:
    samples = panda.samples(10.0, 13.0, noise=0.05)
    pulse = np.exp(-(((samples.time - 11.0) / 0.07) ** 2))
    push = direction * np.array([8.0, -25.0, 6.0, 12.0, -3.0, 4.0, 1.0])
    samples = replace(samples, effort=samples.effort + pulse[:, None] * push)
    updates, _ = changed(calm, samples)
    assert not any(u.payload_attached for u in updates)
    assert updates[-1].identified


def test_payloads_can_be_left_alone(panda: Arm, load: FloatArray) -> None:
    settings = OnlineConfig(payload=PayloadConfig(enabled=False))
    identifier = OnlineIdentifier(panda.robot, settings)
    run(identifier, panda.samples(0.0, 5.0))
    updates = run(identifier, panda.samples(5.0, 10.0, load=load))
    assert all(u.payload is None for u in updates)


def test_a_load_on_a_load_is_the_sum_of_both(panda: Arm, load: FloatArray) -> None:
    more = load + from_mass_com_inertia(1.0, np.array([0.0, 0.0, 0.1]), 4e-3 * np.eye(3))
    identifier = OnlineIdentifier(panda.robot)
    run(identifier, panda.samples(0.0, 8.0, noise=0.02))
    run(identifier, panda.samples(8.0, 15.0, noise=0.02, load=load))
    *_, last = run(identifier, panda.samples(15.0, 22.0, noise=0.02, load=more))
    assert last.payload is not None
    assert last.payload_attached
    assert abs(last.payload.mass - 3.0) < max(0.1, 4.0 * last.payload.mass_std)


def test_a_load_is_certain_before_all_of_it_is_known(panda: Arm) -> None:
    bench = Bench(panda)
    load = from_mass_com_inertia(4.0, np.array([0.05, -0.03, 0.1]), 0.01 * np.eye(3))
    # a moment's motion of a robot whose base parameters are known to a quarter
    samples = panda.samples(3.0, 3.2, load=load, noise=0.3)
    unknown = np.diag((0.22 * np.abs(bench.base)) ** 2 + 1e-7)
    found = bench.estimate(samples, white(bench.groups, 0.3), unknown)
    assert found.odds > CERTAIN
    assert (
        bench.estimate(panda.samples(3.0, 3.2, noise=0.3), white(bench.groups, 0.3), unknown).odds
        < 0.0
    )


def test_a_load_that_is_known_is_soon_missed(panda: Arm) -> None:
    bench, noise = Bench(panda), 3.0
    load = from_mass_com_inertia(1.0, np.array([0.05, -0.03, 0.1]), 0.01 * np.eye(3))
    known = 1e-4 * np.diag(bench.base**2)
    robot = bench.base, known, white(bench.groups, noise)
    held = bench.estimate(panda.samples(0.0, 10.0, load=load, noise=noise), robot[2], known)
    carried = bench.statistics(panda.samples(10.0, 10.4, load=load, noise=noise))
    empty = bench.statistics(panda.samples(10.0, 10.4, noise=noise))
    rubbing = bench.statistics(
        panda.altered(coulomb=4.0).samples(10.0, 10.4, load=load, noise=noise)
    )
    assert not bench.loads.is_gone(carried, *robot, held)
    assert bench.loads.is_gone(empty, *robot, held)
    assert not bench.loads.is_gone(rubbing, *robot, held)


def test_a_load_is_missed_while_the_nominal_model_is_in_use(
    panda: Arm, calm: OnlineIdentifier, load: FloatArray
) -> None:
    loaded = deepcopy(calm)
    run(loaded, panda.samples(10.0, 16.0, noise=0.05, load=load))
    loaded._use(loaded._nominal)  # as where the gate falls back on it
    told = {}
    for carried in (load, None):
        start = loaded._learner.time + 0.01
        loaded.ingest(panda.samples(start, start + 1.0, noise=0.05, load=carried))
        update = loaded.apply(None)
        assert not update.identified
        loaded.look(None, {})
        told[carried is None] = loaded.apply(None).payload_attached
    assert told == {False: True, True: False}


def test_a_load_that_rounding_defeats_is_told_as_such(
    panda: Arm, calm: OnlineIdentifier, load: FloatArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = deepcopy(calm)
    followed = run(loaded, panda.samples(10.0, 11.5, noise=0.05, load=load))[-1]
    assert followed.causes[0].kind == "payload"

    def defeated(*_: object) -> None:
        raise np.linalg.LinAlgError("singular matrix")

    monkeypatch.setattr(Evidence, "explained_each", defeated)
    update = run(loaded, panda.samples(11.5, 11.7, noise=0.05, load=load))[-1]
    assert [note.kind for note in update.notes][:1] == ["payload_unsolved"]
    assert np.isfinite(update.parameters).all()


def test_a_torque_that_goes_dead_is_survived(panda: Arm, calm: OnlineIdentifier) -> None:
    dead = panda.samples(10.0, 20.0, noise=0.05)
    dead.effort[:, 6] = 0.0
    updates, _ = changed(calm, dead)
    assert updates[-1].state is GateState.REJECTED
    assert updates[-1].causes[0].subject == "panda_joint7"
    assert not any(u.payload_attached for u in updates)


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_settings_out_of_range_are_refused_by_name(value: float) -> None:
    with pytest.raises(ParameterError, match="min_mass"):
        PayloadConfig(min_mass=value)


def test_a_robot_that_is_hardly_known_has_no_load_that_is_certain(
    panda: Arm, calm: OnlineIdentifier, load: FloatArray
) -> None:
    samples = panda.samples(10.0, 10.6, noise=0.05, load=load)
    unsure = deepcopy(calm)
    phase = unsure._tracker.phase
    assert isinstance(phase, Watching)
    models = [(since, m, *m.known.posterior) for since, m in phase.calm]
    unsure._tracker.phase = Watching(
        tuple((since, replace(m, known=KnownBase(mean, 1e4 * C))) for since, m, mean, C in models)
    )
    assert run(deepcopy(calm), samples)[-1].payload_attached
    assert run(unsure, samples)[-1].payload is None
    assert not unsure._tracker.changed  # for certain
    known = unsure._model.known
    unknown = replace(known, covariance=np.full_like(known.covariance, np.nan))
    unsure._model = replace(unsure._model, known=unknown)
    assert run(unsure, panda.samples(10.6, 11.2, noise=0.05, load=load))[-1].payload is None


def test_torques_that_a_motion_did_not_show_are_no_load(panda: Arm) -> None:
    """A model that was learned from one joint meets the motion of all."""
    wide = panda.samples(0.0, 5.0)
    others = np.arange(7) != 6
    position = np.where(others, wide.position[0], wide.position)
    velocity = np.where(others, 0.0, wide.velocity)
    acceleration = np.where(others, 0.0, wide.acceleration)
    effort = panda.torque(panda.truth, position, velocity, acceleration)
    effort += 0.05 * np.random.default_rng(3).normal(size=effort.shape)
    identifier = OnlineIdentifier(panda.robot)
    updates = run(identifier, Samples(wide.time, position, velocity, acceleration, effort))
    assert updates[-1].identified
    assert updates[-1].determined < 0.6
    updates += run(identifier, panda.samples(5.0, 10.0, noise=0.05))
    assert all(u.payload is None for u in updates)


def test_errors_count_as_lasting_until_seen_to_end(panda: Arm) -> None:
    """A span that a young model met too seldom has one error through it, for all it knows."""
    bench, colour = Bench(panda), ResidualColour(7, 100.0)
    rng = np.random.default_rng(2)
    rows = [RowBlock(np.zeros((160, 1)), e, np.arange(160)) for e in rng.normal(size=(7, 160))]
    colour.push(Rows(tuple(rows)), np.zeros(1), 160)
    recent = bench.statistics(panda.samples(0.0, 1.0))
    noise = colour.noise(recent)
    assert (noise.factor(np.full(7, 16.0)) < 4.0).all()
    assert (noise.factor(np.full(7, 128.0)) > 6.0).all()


def test_a_load_that_is_carried_is_noticed_again_only_where_it_changed(
    panda: Arm, load: FloatArray
) -> None:
    bench, noise = Bench(panda), white(7, 0.1)
    carried = bench.estimate(panda.samples(0.0, 3.0, noise=0.1, load=load), noise)
    for stretch in range(3, 12):
        same = panda.samples(stretch, stretch + 1.0, noise=0.1, load=load)
        assert bench.estimate(same, noise, before=carried).change_odds < CERTAIN
        for factor in (0.0, 0.8, 1.2):
            other = panda.samples(stretch, stretch + 1.0, noise=0.1, load=factor * load)
            assert bench.estimate(other, noise, before=carried).change_odds > CERTAIN


def test_what_is_not_known_of_the_robot_widens_a_load_that_is_followed(
    panda: Arm, calm: OnlineIdentifier, load: FloatArray
) -> None:
    identifier = deepcopy(calm)
    run(identifier, panda.samples(10.0, 10.6, noise=0.05, load=load))
    unsure, stds = deepcopy(identifier), []
    phase = unsure._tracker.phase
    assert isinstance(phase, Following)
    doubtful = phase.empty._replace(covariance=1e4 * phase.empty.covariance)
    unsure._tracker.phase = replace(phase, empty=doubtful)
    for one in (identifier, unsure):
        found = run(one, panda.samples(10.6, 10.7, noise=0.05, load=load))[-1].payload
        assert found is not None
        stds.append(found.mass_std)
    assert stds[1] > 5.0 * stds[0]


def test_what_looks_like_a_load_by_chance_is_what_is_expected() -> None:
    rng = np.random.default_rng(4)
    root, std = rng.normal(size=(10, 10)), rng.uniform(0.1, 10.0, 10)
    moments = rng.normal(size=(4000, 10)) @ root.T
    found = [Evidence(root @ root.T, moment).likeness(std) for moment in moments]
    explained, expected = np.mean(found, axis=0)
    np.testing.assert_allclose(explained, expected, rtol=0.05)


def test_the_likeness_to_a_load_is_that_of_the_time_before_it() -> None:
    seen = LoadLikeness()
    for time in np.arange(12) * 1.6:
        assert seen.due(time)
        seen.note(time, 400.0 if time > 16.0 else 2.0, 8.0)
        assert not seen.due(time + 0.8)
    assert seen.ratio > 4.0
    seen.forget_since(18.0)
    np.testing.assert_allclose(seen.ratio, (5.0 + 10 * 2.0) / (5.0 + 10 * 8.0))


def test_gains_that_are_too_high_are_seen_against_trusted_masses(
    arm_of: Callable[[str], Arm], load: FloatArray
) -> None:
    usual = arm_of("ur10e")
    truth, layout = usual.truth.copy(), usual.robot.layout
    layout.inertias(truth)[:] = layout.inertias(usual.robot.consistent_nominal)
    arm = replace(usual, truth=truth)
    bench = Bench(arm)
    samples = arm.samples(0.0, 5.0, load=load)
    bench.base = 1.08 * bench.base
    found = bench.estimate(replace(samples, effort=1.08 * samples.effort), white(6, 0.1))
    assert abs(found.mass - 2.0) < 0.07  # 0.16 without
    assert 0.02 < found.mass_std < 0.15


@pytest.mark.parametrize(
    ("robot", "seed"), [pytest.param("panda", 2, marks=pytest.mark.heavy), ("valkyrie_arm", 3)]
)
def test_a_load_that_the_first_model_was_learned_with_can_be_put_down(
    arm_of: Callable[[str], Arm], load: FloatArray, robot: str, seed: int
) -> None:
    arm = replace(arm_of(robot), seed=seed)
    identifier = OnlineIdentifier(arm.robot)
    run(identifier, arm.samples(0.0, 20.0, noise=0.05, load=load))
    last = run(identifier, arm.samples(20.0, 40.0, noise=0.05))[-1]
    nominal = replace(last, parameters=arm.robot.nominal)
    assert last.state is GateState.IDENTIFIED
    assert not last.payload_attached
    assert wide_error(arm, last) < 0.15 * wide_error(arm, nominal)


def led_by_hand(
    arm: Arm, start: float, stop: float, compensated: float, borne: float = 1.0
) -> Samples:
    """Return samples of drives that bear the arm's weight and a share of its friction alone.

    They may bear only a share of the weight.
    """
    samples = arm.samples(start, stop)
    q, v, still = samples.position, samples.velocity, np.zeros_like(samples.velocity)
    bare = arm.altered(viscous=0.0, coulomb=0.0).truth
    weight = arm.torque(bare, q, still, still)
    friction = arm.torque(arm.truth, q, v, still) - arm.torque(bare, q, v, still)
    rng = np.random.default_rng(3)
    effort = borne * weight + compensated * friction + 0.05 * rng.normal(size=v.shape)
    return replace(samples, effort=effort)


def wide_error(arm: Arm, update: Update) -> float:
    """Return the error of the torques that an update's parameters predict elsewhere [N·m]."""
    samples = arm.samples(200.0, 220.0, rate=10.0)
    states = samples.position, samples.velocity, samples.acceleration
    predicted = arm.torque(update.parameters, *states)
    return float(np.sqrt(np.mean((predicted - samples.effort) ** 2)))


@pytest.mark.parametrize(
    ("robot", "compensated", "borne"),
    [("ur10", 0.6, 1.0), pytest.param("panda", 0.3, 0.9, marks=pytest.mark.heavy)],
)
def test_nothing_is_learned_while_a_hand_leads_the_robot(
    arm_of: Callable[[str], Arm], robot: str, compensated: float, borne: float
) -> None:
    arm = arm_of(robot)
    identifier = OnlineIdentifier(arm.robot)
    before = wide_error(arm, run(identifier, arm.samples(0.0, 20.0, noise=0.05))[-1])
    led = run(identifier, led_by_hand(arm, 20.0, 40.0, compensated, borne))
    told = ["led_by_hand" in {cause.kind for cause in update.causes} for update in led]
    assert np.mean(told[20:]) > 0.9  # from 2 s on
    after = run(identifier, arm.samples(40.0, 50.0, noise=0.05))
    assert after[-1].state is GateState.IDENTIFIED
    assert not any("led_by_hand" in {c.kind for c in u.causes} for u in after[40:])
    assert all(update.identified for update in [*led, *after])
    assert max(wide_error(arm, update) for update in [*led[20:], *after]) < 3.0 * before


@pytest.mark.parametrize(("spread", "told"), [(0.02, True), (1.0, False)])
def test_inertia_that_is_not_known_is_not_missed(panda: Arm, spread: float, told: bool) -> None:
    regression = make_regression(panda.robot)
    base = regression.base.project(panda.truth)
    known = KnownBase(base, np.diag((spread * base) ** 2))
    model = ModelInUse(panda.truth, np.zeros_like(panda.truth), base, known, True)
    guiding = HandGuiding(regression, np.zeros((len(base), 0)), 100.0)
    guiding.push(led_by_hand(panda, 0.0, 3.0, 0.0))
    assert (guiding.look(model, 3.0, None, rose=False) is not None) is told
    guiding.push(panda.samples(3.0, 6.0, noise=0.05))
    assert guiding.look(model, 6.0, None, rose=True) is None


@pytest.mark.heavy
def test_a_robot_whose_friction_all_changed_is_not_led_by_hand(panda: Arm) -> None:
    identifier = OnlineIdentifier(panda.robot)
    run(identifier, panda.samples(0.0, 20.0, noise=0.05))
    oiled = panda.altered(viscous=0.4, coulomb=0.4)
    for update in run(identifier, oiled.samples(20.0, 40.0, noise=0.05)):
        assert "led_by_hand" not in {cause.kind for cause in update.causes}
    assert wide_error(oiled, update) < wide_error(panda, update)


def test_a_load_soon_after_the_first_model_blames_no_joint(panda: Arm, load: FloatArray) -> None:
    identifier = OnlineIdentifier(panda.robot)
    before = run(identifier, panda.samples(0.0, 3.5, noise=0.05))
    assert before[-1].identified
    assert not any(update.payload_attached for update in before)
    after = run(identifier, panda.samples(3.5, 6.0, load=load, noise=0.05))
    assert not {d.kind for u in after for d in u.causes if d.kind.startswith("torque_")}
    assert after[-1].payload_attached
    assert after[-1].payload is not None
    np.testing.assert_allclose(after[-1].payload.mass, 2.0, rtol=0.1)


@pytest.fixture(scope="module")
def confirmed(panda: Arm, load: FloatArray) -> list[Update]:
    """Return the updates of an arm that is what its description says, with a load after 8 s."""
    right = replace(panda, truth=panda.robot.consistent_nominal)
    identifier = OnlineIdentifier(right.robot)
    return run(identifier, right.samples(0.0, 8.0, noise=0.02)) + run(
        identifier, right.samples(8.0, 14.0, noise=0.02, load=load)
    )


def test_a_description_that_is_right_is_confirmed_and_stays_in_use(
    panda: Arm, confirmed: list[Update]
) -> None:
    before = [u for u in confirmed if 4.0 < u.time < 8.0]
    assert all(u.identified for u in before)
    assert len({u.revision for u in before}) == 1
    assert before[-1].parameters.tolist() == panda.robot.nominal.tolist()
    assert any(cause.kind == "confirmed" for u in before for cause in u.causes)
    assert np.isfinite(before[-1].std).all()


def test_a_description_that_is_right_finds_loads(confirmed: list[Update]) -> None:
    first = next(u for u in confirmed if u.payload_attached)
    assert 8.0 < first.time < 9.0
    last = confirmed[-1].payload
    assert last is not None
    assert abs(last.mass - 2.0) < 0.03 * 2.0
    assert abs(last.mass - 2.0) < 3.0 * last.mass_std


def test_loads_are_weighed_against_what_the_motion_tells_of_the_robot(
    calm: OnlineIdentifier,
) -> None:
    """What is known of the robot is what was likely and what its motion tells."""
    learner, model = calm._learner, calm._model
    estimate, learned = learner.estimate, learner.window.learned
    assert estimate is not None
    mean, _ = model.known.posterior
    assert learned.residual_square(mean).sum() < learned.residual_square(model.base).sum()
    mean, covariance = learner.known(estimate).posterior
    usual = learner.colours.used
    lasting = usual.variance * np.maximum(usual.factor, LEAST_CORRELATION)
    expected = 1.0 / (estimate.noise_std**2 * learner._correlation)
    weight = np.maximum(1.0 / lasting, expected)
    prior = learner.regression.base.project(learner._prior.mean)
    step = covariance @ (weight @ learned.shifted(-prior).moment)
    np.testing.assert_allclose(mean, prior + step, rtol=1e-6, atol=1e-9)
    before, told = learner._unanchored.likely, np.tensordot(weight, learned.gram, axes=1)
    scale = np.sqrt(np.outer(np.diagonal(before), np.diagonal(before))) + 1e-300
    left = covariance - (before - before @ told @ covariance)
    assert np.abs(left / scale).max() < 1e-6


@pytest.mark.parametrize("name", ["panda", "ur10"])
def test_what_only_a_quick_motion_shows_is_no_change(
    name: str, arm_of: Callable[[str], Arm]
) -> None:
    """A slow motion tells dry from viscous friction as little as a nominal model does."""
    arm = arm_of(name).altered(viscous=5.0)
    slow, later = 0.2, 12.0
    time = np.arange(0.0, later + 8.0, 0.01)
    speed = np.where(time < later, slow, 1.0)
    q, v, a = arm.states(np.where(time < later, slow * time, time - (1.0 - slow) * later))
    v, a = v * speed[:, None], a * speed[:, None] ** 2
    effort = arm.torque(arm.truth, q, v, a)
    effort += 0.05 * np.random.default_rng(0).normal(size=effort.shape)
    samples = Samples(time, q, v, a, effort)
    updates = run(OnlineIdentifier(arm.robot), samples)
    assert updates[int(10.0 * later) - 1].identified
    told = {note.kind for u in updates for note in u.notes}
    assert not {k for k in told if k.endswith("changed") or k == "torque_errors_rose"}
    assert all(u.payload is None for u in updates)


@pytest.fixture(scope="module")
def learned(panda: Arm) -> OnlineIdentifier:
    """Return an identifier after 12 s without disturbances; to be copied."""
    identifier = OnlineIdentifier(panda.robot)
    run(identifier, panda.samples(0.0, 12.0, noise=0.05))
    return identifier


def error(panda: Arm, update: Update) -> float:
    """Return a model's error on a motion that was not seen, relative to the nominal model's."""
    s = panda.samples(40.0, 60.0)
    left = [
        np.linalg.norm(s.effort - panda.torque(x, s.position, s.velocity, s.acceleration))
        for x in (update.parameters, panda.robot.nominal)
    ]
    return float(left[0] / left[1]) if update.identified else 1.0


def pushed(samples: Samples, start: float, stop: float) -> Samples:
    """Push at all joints, as a person does who leans on the arm."""
    on = (samples.time >= start) & (samples.time < stop)
    return replace(samples, effort=samples.effort + on[:, None] * PUSH)


@pytest.mark.parametrize("lasts", [0.6, pytest.param(1.5, marks=pytest.mark.heavy)])
def test_a_push_leaves_the_model_as_it_was(
    panda: Arm, learned: OnlineIdentifier, lasts: float
) -> None:
    identifier = deepcopy(learned)
    before = error(panda, identifier.update())
    updates = run(identifier, pushed(panda.samples(12.0, 24.0, noise=0.05), 13.0, 13.0 + lasts))
    assert all(update.identified for update in updates)
    errors = [error(panda, update) for update in updates if update.time > 17.0]
    assert max(errors) < 1.5 * before


def test_a_push_costs_the_choice_of_friction_no_samples_but_its_own(
    panda: Arm, learned: OnlineIdentifier
) -> None:
    identifier = deepcopy(learned)
    identifier.configure(replace(identifier.config, cutoff=30.0))
    run(identifier, pushed(panda.samples(12.0, 24.0, noise=0.05), 16.0, 17.0))
    time = np.concatenate([part.samples.time for part in identifier._past.parts])
    assert ((time < 14.0).sum(), (time > 21.995).sum()) == (200, 200)
    assert not ((time > 15.9) & (time < 17.0)).any()


def test_a_push_that_stays_is_learned(panda: Arm, learned: OnlineIdentifier) -> None:
    updates = run(deepcopy(learned), pushed(panda.samples(12.0, 24.0, noise=0.05), 13.0, 24.0))
    truth = panda.truth.copy()
    truth[panda.robot.layout.term("offset")] += PUSH
    leant_on = replace(panda, truth=truth)
    assert updates[-1].identified
    assert error(leant_on, updates[-1]) < 0.2


@pytest.fixture(scope="module")
def light() -> FloatArray:
    return np.array([1.5, 0.03, -0.03, 0.12, 0.012, 0.0, 0.012, 0.0, 0.0, 0.003])


def test_a_load_that_is_put_down_at_once_is_no_part_of_the_model(
    panda: Arm, learned: OnlineIdentifier, light: FloatArray
) -> None:
    identifier = deepcopy(learned)
    before = error(panda, identifier.update())
    lifted = run(identifier, panda.samples(12.0, 13.5, noise=0.05, load=light))
    assert lifted[-1].payload_attached
    updates = run(identifier, panda.samples(13.5, 22.0, noise=0.05))
    late = [update for update in updates if update.time > 14.5]
    assert not any(update.payload_attached for update in late)
    assert max(error(panda, update) for update in late) < 1.5 * before
