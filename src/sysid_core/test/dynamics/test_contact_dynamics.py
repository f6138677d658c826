# SPDX-License-Identifier: Apache-2.0
"""Dynamics in contact obey the equations of motion that the regression rests on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import BoolArray
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_dynamics import ContactDynamics
from sysid_core.dynamics.contact_kinematics import configuration
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.errors import ModelError
from sysid_core.recording import Samples
from sysid_core.robot.library import load_robot
from sysid_core.robot.model import Robot


def flags(samples: Samples) -> BoolArray:
    return np.asarray(samples.contacts, dtype=bool)


@pytest.fixture(scope="module")
def samples(legged: Any) -> Samples:
    return replace(legged.samples(60, seed=21), wrenches=None)


@pytest.fixture(scope="module")
def dynamics(legged: Any) -> ContactDynamics:
    made = ContactDynamics(legged.robot)
    made.set_parameters(legged.truth)
    return made


def test_terms_are_the_generalised_forces(
    dynamics: ContactDynamics, samples: Samples, legged: Any
) -> None:
    state = configuration(legged.robot, samples)
    expected = OpenTree(legged.robot, parameters=legged.truth).torques(*state)
    for i, (q, v, a) in enumerate(zip(*state, strict=True)):
        terms = dynamics.terms(q, v)
        np.testing.assert_allclose(terms.inertia @ a + terms.bias, expected[i], atol=1e-10)


def test_forward_dynamics_return_the_motion_of_the_samples(
    dynamics: ContactDynamics, samples: Samples
) -> None:
    state = configuration(dynamics.robot, samples)
    for i, (q, v, a) in enumerate(zip(*state, strict=True)):
        active = flags(samples)[i]
        terms = dynamics.terms(q, v)
        found = dynamics.forward(terms, samples.effort[i], active)
        np.testing.assert_allclose(found.acceleration, a, atol=1e-6)
        J, drift = dynamics.constraint(terms, active)
        np.testing.assert_allclose(J @ found.acceleration + drift, 0.0, atol=1e-8)
        force = terms.inertia @ a + terms.bias
        force[6:] -= samples.effort[i]
        carried = np.einsum("ckv,ck->v", terms.jacobian, found.wrenches)
        np.testing.assert_allclose(carried, force, atol=1e-6)


def test_drift_is_the_derivative_of_the_foot_velocity(
    dynamics: ContactDynamics, samples: Samples
) -> None:
    """At v̇ = 0, by central differences along the motion."""
    state = configuration(dynamics.robot, samples)
    model, step = dynamics.robot.model, 1e-6
    for q, v in zip(state.q[:5], state.v[:5], strict=True):
        after, before = (
            dynamics.terms(pin.integrate(model, q, s * step * v), v).velocity for s in (1, -1)
        )
        slope = (after - before) / (2.0 * step)
        np.testing.assert_allclose(dynamics.terms(q, v).drift[:, :3], slope, atol=1e-6)


def test_a_ball_rolls_without_slipping(ball_footed: Any) -> None:
    """Forward dynamics keep the velocity of the ground points at zero, to first order in time."""
    samples = replace(ball_footed.samples(12, seed=23), wrenches=None)
    dynamics = ContactDynamics(ball_footed.robot)
    dynamics.set_parameters(ball_footed.truth)
    state = configuration(ball_footed.robot, samples)
    step, model = 1e-5, ball_footed.robot.model
    for i, (q, v, a) in enumerate(zip(*state, strict=True)):
        active = flags(samples)[i]
        found = dynamics.forward(dynamics.terms(q, v), samples.effort[i], active)
        np.testing.assert_allclose(found.acceleration, a, atol=1e-6)
        later = dynamics.terms(pin.integrate(model, q, step * v + 0.5 * step**2 * a), v + step * a)
        J, _ = dynamics.constraint(later, active)
        np.testing.assert_allclose(J @ (v + step * a), 0.0, atol=1e-7)


def test_residuals_are_those_of_the_projector(solo12: Robot, samples: Samples) -> None:
    regression = ContactRegression(solo12)
    found = regression.residuals(samples, solo12.nominal)
    state = configuration(solo12, samples)
    force = np.hstack([np.zeros((len(samples), 6)), samples.effort])
    error = force - OpenTree(solo12, parameters=solo12.nominal).torques(*state)
    geometry = regression.kinematics.evaluate(state.q)
    for i in range(len(samples)):
        J = regression.kinematics.constraint_rows(geometry.jacobian[i : i + 1], flags(samples)[i])[
            0
        ]
        P = np.eye(18) - np.linalg.pinv(J) @ J
        np.testing.assert_allclose(found.residual[i], P @ error[i], atol=1e-9)
        np.testing.assert_allclose(found.target[i], P @ force[i], atol=1e-9)
    rows = regression.rows(samples).residuals(regression.base.project(solo12.nominal))[0]
    assert np.sum(rows**2) == pytest.approx(np.sum(found.residual**2), rel=1e-9)


def test_residuals_of_the_truth_vanish(legged: Any, samples: Samples) -> None:
    found = ContactRegression(legged.robot).residuals(samples, legged.truth)
    np.testing.assert_allclose(found.residual, 0.0, atol=1e-9)
    np.testing.assert_array_equal(found.sample, np.arange(len(samples)))


def test_correlation_sees_through_the_basis(legged: Any) -> None:
    """White torque noise counts in full, noise held over 5 samples about a fifth."""
    rng = np.random.default_rng(8)
    standing = np.ones((1, 4), dtype=bool)
    samples = replace(legged.samples(600, seed=22, stances=standing), wrenches=None)
    state = samples.select(np.zeros(600, dtype=int))  # at one posture nothing else varies
    regression = ContactRegression(legged.robot)
    for held, low, high in ((1, 1.0, 1.5), (5, 3.5, 7.0)):
        noise = np.repeat(rng.normal(size=(600 // held, 12)), held, axis=0)
        noisy = replace(state, effort=state.effort + noise)
        rows = regression.rows(noisy)
        assert low <= regression.correlation(rows, noisy, legged.truth)[0] <= high


def test_passive_joints_are_refused(solo12: Robot) -> None:
    description = replace(solo12.description, actuated=None, passive=("FL_KFE",))
    with pytest.raises(ModelError, match="passive"):
        ContactDynamics(load_robot(description))
