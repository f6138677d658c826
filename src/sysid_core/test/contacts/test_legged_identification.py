# SPDX-License-Identifier: Apache-2.0
"""Legged robots are identified from joint torques alone, and know their weight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.condition import condition_contacts
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation import Estimate, Problem, estimator
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Samples
from sysid_core.robot.library import load_robot
from sysid_core.robot.model import Robot

Maker = Callable[..., FloatArray]

CORRELATION = 4.0
"""Samples per independent one: what `contact_correlation` finds on the Solo12 data (3.3)."""


def flags(samples: Samples) -> BoolArray:
    return np.asarray(samples.contacts, dtype=bool)


def identified(
    robot: Robot, samples: Samples, prior_mean: FloatArray, method: str = "entropic"
) -> Estimate:
    """Identify with default settings, but for the prior's mean and an unknown total mass."""
    regression = ContactRegression(robot)
    problem = Problem(
        layout=robot.layout,
        base=regression.base,
        groups=regression.groups,
        statistics=Statistics.of(regression.rows(samples)),
        prior=replace(default_prior(robot), mean=prior_mean),
        constraints=replace(default_constraints(robot), total_mass=None),
        correlation=np.array([CORRELATION]),
    )
    return estimator(method).solve(problem)


def total_rmse(robot: Robot, samples: Samples, parameters: FloatArray) -> float:
    residual = ContactRegression(robot).residuals(samples, parameters).residual
    return float(np.sqrt(np.mean(residual[:, 6:] ** 2, axis=0).sum()))


@pytest.fixture(scope="module")
def halves(solo12_data: Samples) -> tuple[Samples, Samples]:
    """Return the first 70 % and the last 30 %."""
    split = int(0.7 * len(solo12_data))
    return solo12_data.select(slice(0, split)), solo12_data.select(slice(split, None))


@pytest.mark.parametrize("method", ["entropic", "sdp"])
@pytest.mark.parametrize("seed", [0, 1])
def test_solo12_is_identified_from_a_wrong_prior(
    solo12: Robot,
    halves: tuple[Samples, Samples],
    make_wrong_prior: Maker,
    method: str,
    seed: int,
) -> None:
    train, validation = halves
    mean = make_wrong_prior(solo12, default_prior(solo12).mean, seed)
    estimate = identified(solo12, train, mean, method)
    limit = 1.1 * total_rmse(solo12, validation, solo12.nominal)
    assert total_rmse(solo12, validation, mean) > 5.0 * limit
    assert total_rmse(solo12, validation, estimate.parameters) <= limit
    assert (estimate.consistency > 0.0).all()
    masses = solo12.layout.masses
    true_mass = solo12.nominal[masses].sum()
    assert estimate.parameters[masses].sum() == pytest.approx(true_mass, rel=0.02)


def test_balls_under_the_feet_explain_most_of_what_the_true_model_leaves(
    solo12: Robot, solo12_data: Samples
) -> None:
    """The recorded feet ride 1.8 cm above the ground: there their friction has an arm."""
    contacts = tuple(replace(contact, radius=0.0) for contact in solo12.description.contacts)
    points = load_robot(replace(solo12.description, contacts=contacts))
    at_ground = total_rmse(solo12, solo12_data, solo12.nominal)
    at_frame = total_rmse(points, solo12_data, points.nominal)
    assert at_ground < 0.7 * at_frame


def test_solo12_with_wrong_or_missing_flags_is_identified_as_well(
    solo12: Robot, halves: tuple[Samples, Samples], make_wrong_prior: Maker
) -> None:
    """One flag in ten flipped, or none recorded: conditioning restores what is needed."""
    train, validation = halves
    mean = make_wrong_prior(solo12, default_prior(solo12).mean, 2)
    limit = 1.1 * total_rmse(solo12, validation, solo12.nominal)
    flips = np.random.default_rng(3).random(flags(train).shape) < 0.1
    wrong = replace(train, contacts=flags(train) ^ flips)
    damaged = identified(solo12, wrong, mean)
    assert total_rmse(solo12, validation, damaged.parameters) > 3.0 * limit
    for given in (wrong, replace(train, contacts=None)):
        kept = condition_contacts(solo12, given, parameters=mean).kept
        estimate = identified(solo12, kept, mean)
        assert total_rmse(solo12, validation, estimate.parameters) <= limit


@pytest.mark.parametrize("gait", [pytest.param("standing", marks=pytest.mark.heavy), "trotting"])
def test_total_mass_comes_with_honest_confidence(
    legged: Any, make_wrong_prior: Maker, gait: str
) -> None:
    """Torque noise of 0.05 N·m, prior masses off by 30 %: 2 %, and within three deviations."""
    stances = {
        "standing": np.ones((1, 4), dtype=bool),
        "trotting": np.array([[1, 0, 0, 1], [0, 1, 1, 0]], dtype=bool),
    }[gait]
    robot = legged.robot
    truth = legged.truth.copy()
    for term in ("armature", "offset"):  # which Solo12's description does not identify
        truth[robot.layout.term(term)] = 0.0
    legged = replace(legged, truth=truth)
    true_mass = truth[robot.layout.masses].sum()
    for seed in (1, 2, 3):
        samples = legged.samples(800, 40 + seed, stances, noise=0.05, vigour=0.3)
        samples = replace(samples, wrenches=None)
        mean = make_wrong_prior(robot, default_prior(robot).mean, seed)
        estimate = identified(robot, samples, mean)
        masses = robot.layout.masses
        found = float(estimate.parameters[masses].sum())
        noise = float(np.sqrt(estimate.covariance[np.ix_(masses, masses)].sum()))
        # torque sensors share an error of scale of 1 %, which no residual shows
        std = float(np.hypot(noise, 0.01 * found))
        assert found == pytest.approx(true_mass, rel=0.02)
        assert abs(found - true_mass) < 3.0 * std
        assert std < 0.02 * true_mass
