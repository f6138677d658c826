# SPDX-License-Identifier: Apache-2.0
"""Torques in contact make the motion that was wanted, with forces that feet can carry."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin
import pytest

from sysid_controller.contact_qp import ContactForceQp
from sysid_controller.contact_torque import ContactTorque, projected_torque
from sysid_controller.laws import ComputedTorque, Gains
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.contact_dynamics import ContactDynamics
from sysid_core.dynamics.select import Dynamics
from sysid_core.errors import ModelError
from sysid_core.excitation.fourier import States
from sysid_core.robot import Robot, load_robot
from sysid_sim.legged_motion import ContactReference
from sysid_sim.truth import draw_truth
from sysid_sim.walker import ContactLaw, base_acceleration

STANDING = np.array([0.0, 0.7, -1.4] * 2 + [0.0, -0.7, 1.4] * 2)
FOUR = np.ones(4, dtype=bool)
TROT = np.array([True, False, False, True])


@pytest.fixture(scope="module")
def solo12() -> Robot:
    return load_robot("solo12")


class State(NamedTuple):
    """Measured state of a legged robot."""

    q: FloatArray
    v: FloatArray
    contacts: BoolArray


def standing_state(robot: Robot, seed: int, contacts: BoolArray = FOUR) -> State:
    """Return a state near standing, its stance feet at rest."""
    rng = np.random.default_rng(seed)
    position = STANDING + rng.uniform(-0.1, 0.1, 12)
    turn = pin.Quaternion(pin.rpy.rpyToMatrix(*rng.uniform(-0.1, 0.1, 3))).coeffs()
    pose = np.concatenate([[0.1, -0.2, 0.25], turn])
    twist = 0.1 * rng.normal(size=6)
    q = np.concatenate([pose, position])
    kinematics = ContactDynamics(robot).kinematics
    jacobian = kinematics.at_ground(kinematics.evaluate(q[None]).jacobian[0])
    J = jacobian[:, :3].reshape(12, 18)  # of where the feet touch the ground: they roll
    velocity = -np.linalg.solve(J[:, 6:], J[:, :6] @ twist)
    velocity = velocity + np.where(np.repeat(contacts, 3), 0.0, rng.normal(size=12))
    return State(q, np.concatenate([twist, velocity]), contacts)


def reference_at(robot: Robot, state: State) -> ContactReference:
    """Return a reference that asks for some acceleration at the present state."""
    terms = ContactDynamics(robot).terms(state.q, state.v)
    R = pin.Quaternion(state.q[3:7]).toRotationMatrix()
    return ContactReference(
        state.q[:7] + np.array([0.005, -0.003, 0.004, 0, 0, 0, 0]),
        np.concatenate([R @ state.v[:3], state.v[3:6]]),
        np.array([0.3, -0.2, 0.5, 0.5, -0.4, 0.3]),
        terms.position + 0.001,
        terms.velocity,
        np.full((4, 3), 0.4),
    )


@pytest.mark.parametrize("seed", range(3))
def test_projected_torque_is_that_of_mistry_and_righetti(solo12: Robot, seed: int) -> None:
    dynamics = ContactDynamics(solo12)
    state = standing_state(solo12, seed)
    terms = dynamics.terms(state.q, state.v)
    a = np.random.default_rng(seed).normal(size=18)
    for active in (FOUR, TROT, np.zeros(4, dtype=bool)):
        J, _ = dynamics.constraint(terms, active)
        P = np.eye(18) - np.linalg.pinv(J) @ J if len(J) else np.eye(18)
        S = np.hstack([np.zeros((12, 6)), np.eye(12)])
        expected = np.linalg.pinv(P @ S.T, rcond=1e-9) @ P @ (terms.inertia @ a + terms.bias)
        found = projected_torque(terms, J, a, np.zeros(12))
        np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_torques_make_the_wanted_motion(solo12: Robot, seed: int) -> None:
    """On four feet, after forward dynamics with the feet held fast."""
    state = standing_state(solo12, seed)
    law = ContactLaw(solo12)
    reference = reference_at(solo12, state)
    output = law(reference, *state)
    assert output.failure is None
    moved = law.dynamics.forward(law.dynamics.terms(state.q, state.v), output.effort, FOUR)
    # OSQP stops at residuals of 1e-5, which light legs turn into 1e-2 rad/s²
    np.testing.assert_allclose(moved.acceleration, output.acceleration, atol=0.05)
    wanted = base_acceleration(reference, state.q, state.v)
    np.testing.assert_allclose(output.acceleration[:3], wanted[:3], atol=0.02)


def test_forces_and_torques_obey_the_equations_of_motion(solo12: Robot) -> None:
    for active in (FOUR, TROT):
        state = standing_state(solo12, 5, active)
        law = ContactLaw(solo12)
        output = law(reference_at(solo12, state), *state)
        terms = law.dynamics.terms(state.q, state.v)
        left = terms.inertia @ output.acceleration + terms.bias
        left[6:] -= output.effort
        left -= np.einsum("ckv,ck->v", terms.jacobian, output.wrenches)
        np.testing.assert_allclose(left, 0.0, atol=1e-3)
        np.testing.assert_allclose(output.wrenches[~active], 0.0, atol=1e-3)


def test_standing_carries_the_weight(solo12: Robot) -> None:
    pose = np.array([0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0])
    state = State(np.concatenate([pose, STANDING]), np.zeros(18), FOUR)
    zero = np.zeros((4, 3))
    reference = ContactReference(pose, np.zeros(6), np.zeros(6), zero, zero, zero)
    weight = 9.81 * solo12.nominal[solo12.layout.masses].sum()
    output = ContactLaw(solo12)(reference, *state)
    assert output.wrenches[:, 2].sum() == pytest.approx(weight, rel=1e-3)
    np.testing.assert_allclose(output.acceleration, 0.0, atol=2e-2)


def test_forces_stay_inside_friction_cones(solo12: Robot) -> None:
    """A hard push sideways asks for more than the ground gives."""
    state = standing_state(solo12, 6)
    wanted = reference_at(solo12, state)
    wanted = wanted._replace(acceleration=np.array([0.0, 15.0, 0.0, 0.0, 0.0, 0.0]))
    for friction in (0.3, 0.8):
        output = ContactLaw(solo12, friction)(wanted, *state)
        assert output.failure is None
        tangential = np.linalg.norm(output.wrenches[:, :2], axis=1)
        assert (tangential <= friction * output.wrenches[:, 2] + 0.01).all()
        assert tangential.sum() > 0.5 * friction * output.wrenches[:, 2].sum()


def test_torques_stay_within_limits(solo12: Robot) -> None:
    weak = load_robot(
        replace(solo12.description, limits={"effort": dict.fromkeys(solo12.joint_names, 0.9)})
    )
    state = standing_state(weak, 7)
    wanted = reference_at(weak, state)
    wanted = wanted._replace(acceleration=np.array([0.0, 0.0, 20.0, 0.0, 0.0, 0.0]))
    output = ContactLaw(weak)(wanted, *state)
    assert 0.85 < np.abs(output.effort).max() <= 0.9


def test_without_a_solution_the_least_torque_stands_in(
    solo12: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, law = standing_state(solo12, 7), ContactLaw(solo12)
    wanted = reference_at(solo12, state)
    before = law(wanted, *state)
    failed = before._replace(effort=np.full(12, np.nan), failure=Diagnostic("qp", "none"))
    monkeypatch.setattr(ContactForceQp, "solve", lambda *_: failed)
    moved = law.dynamics.forward(
        law.dynamics.terms(state.q, state.v), law(wanted, *state).effort, FOUR
    )
    np.testing.assert_allclose(moved.acceleration, before.acceleration, atol=0.05)


def test_parameters_take_effect(solo12: Robot) -> None:
    truth = draw_truth(solo12, 3)
    state = standing_state(solo12, 8)
    law = ContactLaw(solo12)
    reference = reference_at(solo12, state)
    plant = ContactDynamics(solo12, 0.05)
    plant.set_parameters(truth)
    terms = plant.terms(state.q, state.v)
    before = law(reference, *state)
    law.dynamics.set_parameters(truth)
    after = law(reference, *state)
    errors = [
        np.abs(plant.forward(terms, output.effort, FOUR).acceleration - output.acceleration).max()
        for output in (before, after)
    ]
    assert errors[1] < 0.05
    assert errors[0] > 0.1


def test_a_swaying_base_is_tracked_on_fixed_feet(solo12: Robot) -> None:
    """One second at 500 Hz with exact parameters, against a plant that differs from nominal."""
    truth = draw_truth(solo12, 9)
    law = ContactLaw(solo12)
    law.dynamics.set_parameters(truth)
    plant = ContactDynamics(solo12, 0.05)
    plant.set_parameters(truth)
    q = np.concatenate([[0.0, 0.0, 0.24, 0.0, 0.0, 0.0, 1.0], STANDING])
    v, dt, start, zero = np.zeros(18), 0.002, np.array(q[:3]), np.zeros((4, 3))
    worst = 0.0
    for tick in range(500):
        t = tick * dt
        phase, rate = np.array([4.0, 5.0, 6.0]) * t, np.array([4.0, 5.0, 6.0])
        shift = start + 0.015 * (1.0 - np.cos(phase))  # starts at rest
        pose = np.concatenate([shift, [0.0, 0.0, 0.0, 1.0]])
        velocity = np.concatenate([0.015 * rate * np.sin(phase), np.zeros(3)])
        acceleration = np.concatenate([0.015 * rate**2 * np.cos(phase), np.zeros(3)])
        reference = ContactReference(pose, velocity, acceleration, zero, zero, zero)
        output = law(reference, q, v, FOUR)
        terms = plant.terms(q, v)
        J, _ = plant.constraint(terms, FOUR)
        moved = plant.forward(terms, output.effort, FOUR, -20.0 * J @ v)
        worst = max(worst, float(np.abs(q[:3] - pose[:3]).max()))
        v = v + dt * moved.acceleration
        q = pin.integrate(solo12.model, q, dt * v)
    assert worst < 5e-4  # what Euler's method leaves at this step


def test_joint_laws_drive_a_robot_in_contact(solo12: Robot) -> None:
    """The dynamics serve computed torque: joint accelerations that the feet allow come true."""
    dynamics = ContactTorque(solo12, 0.05)
    checked: Dynamics = dynamics
    assert np.isnan(dynamics.gravity(STANDING)).all()
    assert "give odometry" in str(dynamics.failure)
    state = standing_state(solo12, 10)
    dynamics.set_base(state.q[:7], state.v[:6], FOUR)
    assert dynamics.failure is None
    plant = ContactDynamics(solo12, 0.05)
    terms = plant.terms(state.q, state.v)
    J, drift = plant.constraint(terms, FOUR)
    base = np.array([0.5, -0.3, 0.4, 1.0, -1.0, 0.5])
    wanted = np.linalg.solve(J[:, 6:], -drift - J[:, :6] @ base)
    law = ComputedTorque(Gains(np.zeros(12), np.zeros(12)))
    desired = States(state.q[7:], state.v[6:], wanted)
    effort = law(checked, desired, state.q[7:], state.v[6:]).effort
    moved = plant.forward(terms, effort, FOUR).acceleration
    np.testing.assert_allclose(moved[6:], wanted, atol=1e-6)
    np.testing.assert_allclose(moved[:6], base, atol=1e-6)
    inertia = dynamics.inertia(state.q[7:])
    np.testing.assert_allclose(inertia, inertia.T)
    assert (np.linalg.eigvalsh(inertia) > 0.0).all()


def test_gravity_holds_the_stance(solo12: Robot) -> None:
    dynamics = ContactTorque(solo12, 0.05)
    pose = np.array([0.0, 0.0, 0.24, 0.0, 0.0, 0.0, 1.0])
    dynamics.set_base(pose, np.zeros(6), FOUR)
    plant = ContactDynamics(solo12)
    terms = plant.terms(np.concatenate([pose, STANDING]), np.zeros(18))
    moved = plant.forward(terms, dynamics.gravity(STANDING), FOUR)
    np.testing.assert_allclose(moved.acceleration, 0.0, atol=1e-9)


def test_settings_are_checked(solo12: Robot) -> None:
    with pytest.raises(ModelError, match="floating base"):
        ContactLaw(load_robot("panda"))


def test_flat_feet_bound_their_centre_of_pressure(solo12: Robot) -> None:
    contacts = tuple(replace(c, type="flat") for c in solo12.description.contacts)
    robot = load_robot(replace(solo12.description, contacts=contacts))
    pose = np.array([0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0])
    state = State(np.concatenate([pose, STANDING]), np.zeros(18), FOUR)
    zero = np.zeros((4, 3))
    reference = ContactReference(pose, np.zeros(6), np.zeros(6), zero, zero, zero)
    output = ContactLaw(robot)(reference, *state)
    assert output.failure is None
    vertical = output.wrenches[:, 2]
    assert (np.abs(output.wrenches[:, 3]) <= 0.03 * vertical + 1e-3).all()
    assert (np.abs(output.wrenches[:, 4]) <= 0.05 * vertical + 1e-3).all()
