# SPDX-License-Identifier: Apache-2.0
"""Standing feet correct noisy odometry, and leave good odometry alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.feet import FootMotion, foot_motion
from sysid_core.contacts.stance import StanceMotion
from sysid_core.recording import Samples

TROT = np.array([[1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0], [1, 1, 1, 1]], dtype=bool)
NOISE = np.repeat([0.05, 0.02], 3)
"""Of the odometry's twist [m/s, rad/s]; its derivative has twenty times as much."""


@pytest.fixture(scope="module")
def samples(legged: Any) -> Samples:
    return replace(legged.samples(600, 41, TROT, period=15, vigour=0.3), wrenches=None)


def noisy(samples: Samples, share: float) -> Samples:
    rng = np.random.default_rng(42)
    shape = (2, len(samples), 6)
    twist, acceleration = share * NOISE * rng.standard_normal(shape)
    return replace(
        samples,
        base_twist=np.asarray(samples.base_twist) + twist,
        base_acceleration=np.asarray(samples.base_acceleration) + 20.0 * acceleration,
    )


def four_feet(samples: Samples) -> BoolArray:
    return np.asarray(np.asarray(samples.contacts).all(axis=1))


def motion_of(legged: Any, samples: Samples) -> FootMotion:
    motion = foot_motion(legged.robot, samples)
    return motion._replace(loaded=np.asarray(samples.contacts))


def correct(
    legged: Any,
    samples: Samples,
    motion: FootMotion | None = None,
    stance: StanceMotion | None = None,
) -> tuple[Samples, BoolArray]:
    """Correct all of the samples."""
    every = np.ones(len(samples), dtype=bool)
    motion = motion or motion_of(legged, samples)
    return (stance or StanceMotion(legged.robot)).correct(samples, motion, every)


def error(samples: Samples, truth: Samples, chosen: BoolArray) -> FloatArray:
    """Return the errors (2,) [-] of twist and acceleration, as shares of the noise."""
    twist = np.asarray(samples.base_twist) - np.asarray(truth.base_twist)
    change = np.asarray(samples.base_acceleration) - np.asarray(truth.base_acceleration)
    parts = [twist[chosen] / NOISE, change[chosen] / NOISE / 20.0]
    return np.array([np.sqrt(np.mean(part**2)) for part in parts])


def test_four_feet_tell_the_motion_and_two_all_but_a_turn_about_their_line(
    legged: Any, samples: Samples
) -> None:
    given = noisy(samples, 1.0)
    corrected, fit = correct(legged, given)
    four = four_feet(samples)
    assert np.all(error(given, samples, four) > 0.9)
    assert np.all(error(corrected, samples, four) < 0.1)
    assert np.all(error(corrected, samples, ~four) < 0.6)
    assert fit[four].all()


def test_feet_in_contact_that_do_not_stand_are_told_by_their_motion(
    legged: Any, samples: Samples
) -> None:
    given = noisy(samples, 1.0)
    rng = np.random.default_rng(43)
    slides = rng.random(len(samples)) < 0.2
    joints, change = given.velocity.copy(), given.acceleration.copy()
    joints[slides, :3] += 2.0
    change[slides, :3] += 60.0
    given = replace(given, velocity=joints, acceleration=change)
    motion = motion_of(legged, given)
    corrected, _ = correct(legged, given, motion)
    four = four_feet(samples)
    assert np.all(error(corrected, samples, four & slides) < 0.2)


@pytest.mark.parametrize("share", [0.0, 1e-6])
def test_odometry_as_good_as_the_feet_stays_as_it_is(
    legged: Any, samples: Samples, share: float
) -> None:
    given = noisy(samples, share)
    corrected, fit = correct(legged, given)
    np.testing.assert_array_equal(corrected.base_acceleration, given.base_acceleration)
    assert fit.all()


def test_feet_that_give_way_do_not_spoil_good_odometry(legged: Any, samples: Samples) -> None:
    """All feet move, as on soft ground, by more than the odometry errs."""
    rng = np.random.default_rng(44)
    given = noisy(samples, 0.01)
    shape = given.velocity.shape
    given = replace(
        given,
        velocity=given.velocity + 0.3 * rng.standard_normal(shape),
        acceleration=given.acceleration + 6.0 * rng.standard_normal(shape),
    )
    corrected, fit = correct(legged, given)
    np.testing.assert_array_equal(corrected.base_acceleration, given.base_acceleration)
    assert fit.all()


def test_samples_whose_base_only_noisy_odometry_tells_are_left_out(
    legged: Any, samples: Samples
) -> None:
    """One sample in ten is in flight."""
    given = noisy(samples, 3.0)
    flight = np.arange(len(samples)) % 10 == 0
    motion = motion_of(legged, given)
    motion = motion._replace(loaded=motion.loaded & ~flight[:, None])
    _, fit = correct(legged, given, motion)
    assert not fit[flight].any()
    assert fit[~flight].mean() > 0.9


def test_what_comes_in_batches_is_corrected_once_enough_is_known(
    legged: Any, samples: Samples
) -> None:
    given = noisy(samples, 1.0)
    stance = StanceMotion(legged.robot)
    parts = []
    for start in range(0, len(given), 30):
        part = given.select(slice(start, start + 30))
        parts.append(correct(legged, part, stance=stance)[0])
    corrected = Samples.concatenate(parts)
    four = four_feet(samples)
    late = np.arange(len(samples)) >= 300
    assert np.all(error(corrected, samples, four & late) < 0.1)
    first = slice(0, 150)
    np.testing.assert_array_equal(
        np.asarray(corrected.base_twist)[first], np.asarray(given.base_twist)[first]
    )


def test_samples_that_are_not_finite_pass_as_they_are(legged: Any, samples: Samples) -> None:
    given = noisy(samples, 1.0)
    twist = np.array(given.base_twist)
    twist[::7] = np.nan
    given = replace(given, base_twist=twist)
    corrected, fit = correct(legged, given)
    assert np.isnan(np.asarray(corrected.base_twist)[::7]).all()
    assert np.isfinite(np.delete(np.asarray(corrected.base_twist), np.s_[::7], axis=0)).all()
    assert fit[::7].all()
