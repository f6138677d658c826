# SPDX-License-Identifier: Apache-2.0
"""Loads are found for what they are, soon, and only where there are any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import ParameterError
from sysid_core.inertia import from_mass_com_inertia, pseudo_inertia
from sysid_core.online.gate import GateState
from sysid_core.online.payload import PayloadConfig, PayloadEstimator
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.update import Update
from sysid_core.recording import Samples

Arm = Any


@pytest.fixture(scope="module")
def panda(arm_of: Callable[[str], Arm]) -> Arm:
    return arm_of("panda")


def run(identifier: OnlineIdentifier, samples: Samples) -> list[Update]:
    updates = []
    for start in range(0, len(samples), 10):
        identifier.ingest(samples.select(slice(start, start + 10)))
        updates.append(identifier.update())
    return updates


def estimator(arm: Arm, **settings: float) -> tuple[PayloadEstimator, Any]:
    regression = make_regression(arm.robot)
    payload = PayloadConfig(**settings)  # type: ignore[arg-type]
    groups = len(regression.groups)
    return PayloadEstimator(arm.robot, regression.base, groups, payload), regression


def test_without_noise_all_ten_parameters_come_out(panda: Arm, load: FloatArray) -> None:
    loads, regression = estimator(panda)
    samples = panda.samples(0.0, 5.0, load=load)
    statistics = Statistics.of(regression.rows(samples))
    noise = np.full(len(regression.groups), 1e-6)
    found = loads.estimate(statistics, regression.base.project(panda.truth), noise)
    # the prior's weight at this noise is below one part in a million
    np.testing.assert_allclose(found.parameters, load, atol=1e-6)
    np.testing.assert_allclose(found.mass, 2.0, rtol=1e-6)
    np.testing.assert_allclose(found.com, [0.03, -0.02, 0.08], atol=1e-6)
    np.testing.assert_allclose(found.inertia, [0.02, 0.002, 0.015, 0, 0.001, 0.01], atol=1e-6)
    assert found.explained > 1.0 - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_any_estimate_is_a_possible_body(panda: Arm, load: FloatArray, seed: int) -> None:
    loads, regression = estimator(panda)
    rng = np.random.default_rng(seed)
    samples = panda.samples(seed, seed + 0.2, load=load, noise=5.0)
    statistics = Statistics.of(regression.rows(samples))
    wrong = regression.base.project(panda.truth * rng.uniform(0.8, 1.2, panda.truth.shape))
    found = loads.estimate(statistics, wrong, np.full(len(regression.groups), 5.0))
    assert np.linalg.eigvalsh(pseudo_inertia(found.parameters))[0] > 0.0
    assert found.mass > 0.0


def test_the_standard_deviations_cover_the_truth(panda: Arm, load: FloatArray) -> None:
    loads, regression = estimator(panda)
    base, noise = regression.base.project(panda.truth), 1.0
    true = np.array([2.0, 0.03, -0.02, 0.08])
    scores = []
    for start in range(20):
        samples = panda.samples(start, start + 2.0, load=load, noise=noise)
        found = loads.estimate(
            Statistics.of(regression.rows(samples)), base, np.full(len(regression.groups), noise)
        )
        seen = np.array([found.mass, *found.com])
        scores.append((seen - true) / np.array([found.mass_std, *found.com_std]))
    # 80 standard normal numbers: their root mean square is within 0.75 … 1.25 with 99.8 %, and
    # the prior only makes it smaller
    assert 0.4 < np.sqrt(np.mean(np.square(scores))) < 1.25
    assert np.max(np.abs(scores)) < 4.0


def test_what_is_not_known_of_the_robot_is_not_known_of_its_load(
    panda: Arm, load: FloatArray
) -> None:
    loads, regression = estimator(panda)
    statistics = Statistics.of(regression.rows(panda.samples(0.0, 2.0, load=load)))
    base = regression.base.project(panda.truth)
    noise = np.full(len(regression.groups), 0.1)
    sure = loads.estimate(statistics, base, noise)
    unsure = loads.estimate(statistics, base, noise, 1e-2 * np.eye(len(base)))
    assert unsure.mass_std > 2.0 * sure.mass_std


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


@pytest.mark.parametrize("noise", [0.0, 0.1, 1.0])
def test_a_calm_robot_raises_no_alarm(panda: Arm, noise: float) -> None:
    identifier = OnlineIdentifier(panda.robot)
    updates = run(identifier, panda.samples(0.0, 15.0, noise=noise))
    assert not any(u.payload_attached for u in updates)
    assert updates[-1].identified


def test_friction_that_doubles_is_no_load(panda: Arm) -> None:
    identifier = OnlineIdentifier(panda.robot)
    run(identifier, panda.samples(0.0, 8.0, noise=0.05))
    rubbing = panda.altered(viscous=2.0, coulomb=2.0)
    updates = run(identifier, rubbing.samples(8.0, 16.0, noise=0.05))
    assert not any(u.payload_attached for u in updates)
    warned = [w for u in updates for w in u.warnings if "no payload explains" in w]
    assert warned


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


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_settings_out_of_range_are_refused_by_name(value: float) -> None:
    with pytest.raises(ParameterError, match="min_mass"):
        PayloadConfig(min_mass=value)
