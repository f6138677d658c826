# SPDX-License-Identifier: Apache-2.0
"""Wrong, missing and slipping contacts are found, and don't reach the regression."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts import feet
from sysid_core.contacts.condition import condition_contacts
from sysid_core.contacts.feet import (
    LOAD_OFF,
    ContactConfig,
    check_feet,
    contact_loads,
    foot_motion,
    hysteresis,
)
from sysid_core.contacts.stream import ContactStream
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_kinematics import ContactKinematics, configuration
from sysid_core.errors import DataError, ParameterError
from sysid_core.recording import Samples
from sysid_core.robot.library import load_robot
from sysid_core.robot.model import Robot
from sysid_core.signals.switching import switching, widened

WALKING = np.array([[1, 1, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1], [0, 1, 1, 0]], dtype=bool)


def flags(samples: Samples) -> BoolArray:
    return np.asarray(samples.contacts, dtype=bool)


@pytest.fixture(scope="module")
def samples(legged: Any) -> Samples:
    """Return states in which every stance foot clearly carries load."""
    return replace(loaded(legged.samples(300, 31, WALKING, period=15, vigour=0.2)), wrenches=None)


def loaded(samples: Samples, least: float = 2.5) -> Samples:
    """Leave out random states that need a stance foot to pull, or nearly so.

    By default what is kept is 0.4 of the mean load [N].
    """
    kinematics = ContactRegression(load_robot("solo12")).kinematics
    pose = np.hstack([np.asarray(samples.base_pose), samples.position])
    force = np.asarray(samples.wrenches)[:, :, :3]
    up = np.einsum("ncj,ncj->nc", kinematics.evaluate(pose).rotation[:, :, 2], force)
    light = flags(samples) & (up < least)
    kept = samples.select(~light.any(axis=1))
    return replace(kept, time=0.01 * np.arange(len(kept), dtype=np.float64))


def test_forces_of_known_parameters_are_exact(legged: Any) -> None:
    samples = loaded(legged.samples(60, 32, vigour=0.2))
    motion = foot_motion(legged.robot, samples, legged.truth)
    rotations = ContactRegression(legged.robot).kinematics.evaluate(
        np.hstack([np.asarray(samples.base_pose), samples.position])
    )
    expected = np.einsum(
        "ncij,ncj->nci", rotations.rotation, np.asarray(samples.wrenches)[:, :, :3]
    )
    # the damping of stretched legs leaves a few thousandths
    np.testing.assert_allclose(motion.force, expected, atol=0.02 * np.abs(expected).max())
    np.testing.assert_array_equal(motion.loaded, flags(samples))


def test_stance_feet_do_not_move(legged: Any, samples: Samples) -> None:
    motion = foot_motion(legged.robot, samples)
    assert motion.speed[samples.contacts].max() < 1e-9
    assert np.median(motion.speed[~flags(samples)]) > 0.05


def test_contacts_are_estimated_with_a_wrong_model(
    legged: Any, samples: Samples, make_wrong_prior: Callable[..., FloatArray]
) -> None:
    """Masses and inertias off by 30 %, centres by 2 cm: legs still tell stance from swing."""
    prior = make_wrong_prior(legged.robot, legged.truth, 33)
    found = foot_motion(legged.robot, samples, prior).loaded
    assert np.mean(found == flags(samples)) > 0.97


def test_flipped_flags_are_found_and_mended(
    legged: Any, samples: Samples, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One flag in ten is wrong; no force may leak into the rows."""
    rng = np.random.default_rng(34)
    flips = rng.random(flags(samples).shape) < 0.1
    wrong = replace(samples, contacts=flags(samples) ^ flips)
    regression = ContactRegression(legged.robot)
    truth = regression.base.project(legged.truth)
    assert np.abs(regression.rows(wrong).residuals(truth)[0]).max() > 0.5
    motion = foot_motion(legged.robot, wrong, legged.truth)
    monkeypatch.setattr(feet, "SLIP_SPEED", 0.02)
    findings = check_feet(legged.robot, wrong, motion, ContactConfig(switch_margin=0.0))
    missed = np.zeros_like(flips)
    for finding in findings:
        if finding.kind == "contact_missed":
            name = finding.diagnostic.subject.split()[1]
            missed[:, ["FL", "FR", "HL", "HR"].index(name)] = finding.samples
    np.testing.assert_array_equal(missed, flags(samples) & flips)
    assert "contact_false" in {finding.kind for finding in findings}


def conditioned_contacts(robot: Robot, samples: Samples, truth: FloatArray) -> Samples:
    """Return conditioned samples; their random base is told to stand, so that frames pass."""
    slow = replace(samples, time=1e3 * samples.time)
    settings = ContactConfig(contact_margin=20.0, switch_margin=5.0)
    kept = condition_contacts(robot, slow, settings, truth).kept
    return replace(kept, time=1e-3 * kept.time)


def test_conditioned_samples_obey_the_equations(legged: Any, samples: Samples) -> None:
    rng = np.random.default_rng(35)
    flips = rng.random(flags(samples).shape) < 0.1
    regression = ContactRegression(legged.robot)
    truth = regression.base.project(legged.truth)
    for contacts in (flags(samples) ^ flips, np.zeros_like(flips), None):
        given = replace(samples, contacts=contacts)
        kept = conditioned_contacts(legged.robot, given, legged.truth)
        assert len(kept) > 0.8 * len(samples)
        assert np.abs(regression.rows(kept).residuals(truth)[0]).max() < 1e-8


def test_samples_with_a_lightly_loaded_foot_are_left_out_and_counted(legged: Any) -> None:
    """What is kept without flags misses no foot that carries its share, but for a little."""
    given = loaded(legged.samples(300, 31, WALKING, period=15, vigour=0.2), least=0.0)
    slow = replace(given, time=1e3 * given.time, wrenches=None)
    settings = ContactConfig(contact_margin=0.0, switch_margin=0.0)
    untold = condition_contacts(legged.robot, replace(slow, contacts=None), settings, legged.truth)
    (said,) = (one for one in untold.noticed if one.kind == "stance_doubtful")
    assert 0.0 < np.mean(said.samples) < 0.5
    assert not untold.keep[said.samples].any()
    assert "contact flags" in said.diagnostic.hint
    told = condition_contacts(legged.robot, slow, settings, legged.truth)
    assert told.keep[said.samples].all()
    load = contact_loads(legged.robot, foot_motion(legged.robot, untold.kept, legged.truth).force)
    assert load[~flags(untold.kept)].max() <= LOAD_OFF


def world_axes(wrenches: FloatArray, rotation: FloatArray) -> FloatArray:
    parts = wrenches.reshape(*wrenches.shape[:2], 2, 3)
    return np.einsum("ncij,nckj->ncki", rotation, parts).reshape(wrenches.shape)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (world_axes, "in the world's axes"),
        (lambda wrenches, rotation: -wrenches, "on the ground instead of on the robot"),
        (
            lambda wrenches, rotation: -world_axes(wrenches, rotation),
            "on the ground, in the world's axes",
        ),
    ],
)
def test_wrenches_in_another_convention_are_named_within_half_a_second_and_not_used(
    legged: Any, mistake: Any, words: str
) -> None:
    samples = legged.samples(60, 31, WALKING, period=15, vigour=0.2)
    rotation = ContactKinematics(legged.robot).evaluate(configuration(legged.robot, samples).q)
    right = ContactStream(legged.robot)
    wrong = replace(samples, wrenches=mistake(samples.wrenches, rotation.rotation))
    stream, told = ContactStream(legged.robot), None
    for first in range(0, len(samples), 5):
        part = slice(first, first + 5)
        _, found = right.push(samples.select(part))
        assert not [one for one in found if one.kind == "wrench_convention"]
        kept, found = stream.push(wrong.select(part))
        named = [one.diagnostic for one in found if one.kind == "wrench_convention"]
        if named:
            told = samples.time[first + 4] if told is None else told
            assert words in str(named[0])
            assert kept.wrenches is None
    assert told is not None
    assert told - samples.time[0] < 0.5


def test_a_slipping_foot_is_found_and_its_rows_stay_true(legged: Any, samples: Samples) -> None:
    """Sliding under load changes no equation: the force at the foot is projected out."""
    velocity = samples.velocity.copy()
    velocity[100:110, 0:3] += 5.0  # the front left leg, whose foot is down then
    given = replace(samples, velocity=velocity)
    state_force = foot_motion(legged.robot, given, legged.truth)
    assert state_force.speed[100:110, 0].min() > 0.4
    down = flags(samples)[100:110, 0]
    findings = [f for f in check_feet(legged.robot, given, state_force) if f.kind == "slip"]
    assert down.any()
    assert len(findings) == 1
    assert "FL" in findings[0].diagnostic.subject
    assert set(np.flatnonzero(findings[0].samples)) <= set(range(100, 110))


def test_flight_is_said_and_doubted(legged: Any) -> None:
    airborne = np.zeros((1, 4), dtype=bool)
    flying = replace(legged.samples(40, 36, airborne), wrenches=None)
    motion = foot_motion(legged.robot, flying, legged.truth)
    assert not motion.loaded.any()
    findings = {f.kind: f for f in check_feet(legged.robot, flying, motion)}
    assert set(findings) <= {"flight", "flight_doubtful"}
    still = replace(flying, base_acceleration=np.zeros((40, 6)), base_twist=np.zeros((40, 6)))
    doubted = check_feet(legged.robot, still, motion)
    assert [f.kind for f in doubted] == ["flight_doubtful"]
    assert doubted[0].samples.all()


def test_hysteresis_holds_between_the_thresholds() -> None:
    values = np.array([[0.25, 0.2], [0.4, 0.2], [0.2, np.nan], [0.1, 0.35], [0.2, 0.2]])
    found = hysteresis(values, 0.3, 0.15)
    expected = [[True, False], [True, False], [True, False], [False, True], [False, True]]
    np.testing.assert_array_equal(found, expected)


def test_switches_and_widened_contacts_keep_their_margins() -> None:
    time = 0.01 * np.arange(10, dtype=np.float64)
    contacts = np.zeros((10, 1), dtype=bool)
    contacts[4:7] = True
    np.testing.assert_array_equal(np.flatnonzero(switching(time, contacts, 0.006)), [3, 4, 6, 7])
    assert not switching(time, contacts, 0.004).any()
    np.testing.assert_array_equal(np.flatnonzero(widened(time, contacts, 0.011)), range(3, 8))
    np.testing.assert_array_equal(widened(time, contacts, 0.0), contacts)


def test_unusable_odometry_stops_the_conditioning(legged: Any, samples: Samples) -> None:
    with pytest.raises(DataError, match="odometry"):
        condition_contacts(legged.robot, replace(samples, base_twist=None))


def test_settings_and_weightless_robots_are_refused(legged: Any, samples: Samples) -> None:
    with pytest.raises(ParameterError, match="switch_margin"):
        ContactConfig(switch_margin=-1.0)
    robot = load_robot(replace(legged.robot.description, gravity=(0.0, 0.0, 0.0)))
    with pytest.raises(ParameterError, match="gravity"):
        foot_motion(robot, samples)


def test_a_stream_gives_what_the_whole_gives(legged: Any, samples: Samples) -> None:
    slow = replace(samples, time=1e3 * samples.time)
    settings = ContactConfig(contact_margin=20.0, switch_margin=6.0)
    stream = ContactStream(legged.robot, settings, history=300.0)
    stream.parameters = legged.truth
    parts = [stream.push(slow.select(slice(k, k + 7)))[0] for k in range(0, len(slow), 7)]
    found = Samples.concatenate(parts)
    whole = condition_contacts(legged.robot, slow, settings, legged.truth).kept
    expected = whole.select(whole.time <= slow.time[-1] - 20.0)
    np.testing.assert_array_equal(found.time, expected.time)
    np.testing.assert_array_equal(found.contacts, expected.contacts)
    back = stream.push(slow.select(slice(0, 5)))[0]
    assert len(back) <= 5
    assert (back.time < slow.time[5]).all()
