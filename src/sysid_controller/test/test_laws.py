# SPDX-License-Identifier: Apache-2.0
"""The control laws are what their papers say."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from sysid_controller.laws import LAWS, ComputedTorque, FeedForward, Gains, check_gains, find_gains
from sysid_controller.settings import MODES, ControllerConfig
from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.select import make_dynamics
from sysid_core.dynamics.tree import TreeDynamics, TreeRegression
from sysid_core.errors import ParameterError
from sysid_core.excitation.fourier import States
from sysid_core.robot import Robot, load_robot

WIDTH = 0.05
KP, KD = np.linspace(50.0, 200.0, 7), np.linspace(5.0, 20.0, 7)


@pytest.fixture(scope="module")
def robot() -> Robot:
    return load_robot(replace(load_robot("panda").description, coulomb_velocity=WIDTH))


@pytest.fixture
def states(robot: Robot) -> tuple[States, States]:
    q, v, a = random_states(robot, 2, seed=7)
    return States(q[0], v[0], a[0]), States(q[1], v[1], a[1])


def test_every_mode_has_a_law() -> None:
    assert tuple(LAWS) == MODES


def test_computed_torque_is_the_regressor_at_the_commanded_acceleration(
    robot: Robot, states: tuple[States, States]
) -> None:
    desired, measured = states
    law, dynamics = ComputedTorque(Gains(KP, KD)), TreeDynamics(robot, WIDTH)
    smooth = robot.consistent_nominal.copy()
    for term in ("coulomb", "viscous"):
        smooth[robot.layout.term(term)] = 0.0  # they see the desired velocity
    dynamics.set_parameters(smooth)
    output = law(dynamics, desired, measured.position, measured.velocity)
    commanded = (
        desired.acceleration
        + KD * (desired.velocity - measured.velocity)
        + KP * (desired.position - measured.position)
    )
    A = TreeRegression(robot).full(
        measured.position[None], measured.velocity[None], commanded[None]
    )
    np.testing.assert_allclose(output.effort, A[0] @ smooth, atol=1e-9)
    np.testing.assert_array_equal(output.model, output.effort)


def test_friction_before_sliding_is_that_of_the_desired_motion() -> None:
    """A joint whose friction is such is tracked as without friction; the plant is our own."""
    distance, size, inertia, step = 0.01, 3.0, 0.5, 2e-4
    names = load_robot("panda").joint_names
    robot = load_robot("panda").with_friction({names[6]: {"presliding": distance}})
    dynamics, x = TreeDynamics(robot, 0.0), robot.consistent_nominal.copy()
    x[robot.layout.friction] = 0.0
    x[robot.layout.term("armature")] = inertia
    weights = pin.rnea(robot.model, robot.model.createData(), *np.zeros((3, 7)))
    errors = {}
    for friction in ("coulomb", "presliding"):
        x[robot.layout.term(friction).start + 6] = size
        dynamics.set_parameters(x)
        law, still = ComputedTorque(Gains(np.full(7, 100.0), np.full(7, 20.0))), np.zeros(7)
        q, v, z, missed = 0.0, 0.0, 0.0, []
        moved = dynamics.inertia(still)[6, 6]
        for k in range(20_000):
            t = k * step
            desired = States(*(still.copy() for _ in range(3)))
            for values, value in zip(
                desired,
                (0.3 * np.sin(3 * t), 0.9 * np.cos(3 * t), -2.7 * np.sin(3 * t)),
                strict=True,
            ):
                values[6] = value
            if k % 10 == 0:
                measured = np.r_[still[:6], q], np.r_[still[:6], v]
                torque = law(dynamics, desired, *measured).effort[6] - weights[6]
            v += step * (torque - size * z) / moved
            z += abs(step * v) / distance * (np.sign(v) - z)  # Dahl's equation as it stands
            q += step * v
            missed.append(desired.position[6] - q)
        errors[friction] = float(np.sqrt(np.mean(np.square(missed[5000:]))))
        x[robot.layout.term(friction)] = 0.0
    assert errors["presliding"] < 0.05 * errors["coulomb"]


@pytest.mark.parametrize("mode", ["computed_torque", "feed_forward"])
def test_friction_is_compensated_for_the_desired_velocity(
    robot: Robot, states: tuple[States, States], mode: str
) -> None:
    # or else too much of it would take damping from the robot until it runs away
    desired, measured = states
    law, dynamics = LAWS[mode](ControllerConfig(), 7), TreeDynamics(robot, WIDTH)
    sticky = robot.consistent_nominal.copy()
    for term in ("coulomb", "viscous"):
        sticky[robot.layout.term(term)] += 1.0
    given = []
    for velocity in (measured.velocity, -measured.velocity):
        efforts = []
        for vector in (robot.consistent_nominal, sticky):
            dynamics.set_parameters(vector)
            efforts.append(law(dynamics, desired, desired.position, velocity).effort)
        given.append(efforts[1] - efforts[0])
    np.testing.assert_allclose(given[0], given[1], atol=1e-9)
    assert np.abs(given[0]).min() > 0.01


def test_feed_forward_is_the_desired_motions_torque_plus_pd(
    robot: Robot, states: tuple[States, States]
) -> None:
    desired, measured = states
    law = FeedForward(Gains(KP, KD))
    output = law(TreeDynamics(robot, WIDTH), desired, measured.position, measured.velocity)
    A = TreeRegression(robot).full(*(part[None] for part in desired))
    model = A[0] @ robot.consistent_nominal
    feedback = KP * (desired.position - measured.position)
    feedback += KD * (desired.velocity - measured.velocity)
    np.testing.assert_allclose(output.model, model, atol=1e-9)
    np.testing.assert_allclose(output.effort, model + feedback, atol=1e-9)


@pytest.mark.parametrize("mode", ["computed_torque", "feed_forward"])
def test_without_error_both_laws_give_the_motions_torque(
    robot: Robot, states: tuple[States, States], mode: str
) -> None:
    desired, _ = states
    dynamics = TreeDynamics(robot, WIDTH)
    law = LAWS[mode](ControllerConfig(), 7)
    output = law(dynamics, desired, desired.position, desired.velocity)
    expected = dynamics.torque(*desired, desired.velocity)
    np.testing.assert_allclose(output.effort, expected, atol=1e-10)


@pytest.mark.parametrize("mode", ["computed_torque", "feed_forward"])
def test_noise_around_standstill_does_not_chatter_with_the_desired_sign(
    robot: Robot, mode: str
) -> None:
    """Coulomb friction of a robot that is to stand still is zero, whatever encoders say."""
    dynamics = TreeDynamics(robot, WIDTH)
    x = robot.consistent_nominal.copy()
    x[robot.layout.term("coulomb")] = 10.0
    law = LAWS[mode](ControllerConfig(kd=(1e-9,)), 7)
    q = np.zeros(7)
    still = States(q, np.zeros(7), np.zeros(7))
    outputs = []
    for coulomb in (10.0, 0.0):
        x[robot.layout.term("coulomb")] = coulomb
        dynamics.set_parameters(x)
        outputs.append(law(dynamics, still, q, np.full(7, 0.01)).effort)
    np.testing.assert_array_equal(outputs[0], outputs[1])


def test_smooth_sign_changes_continuously_through_zero(robot: Robot) -> None:
    dynamics = TreeDynamics(robot, WIDTH)
    zero = np.zeros(7)
    steps = [dynamics.torque(zero, zero, zero, np.full(7, v)) for v in np.linspace(-0.2, 0.2, 401)]
    coulomb = robot.consistent_nominal[robot.layout.term("coulomb")]
    # tanh has slope 1/width at most
    assert (np.abs(np.diff(steps, axis=0)).max(axis=0) <= coulomb * 0.001 / WIDTH + 1e-12).all()


def test_open_gains_follow_from_bandwidth_and_damping() -> None:
    config = ControllerConfig(bandwidth=10.0, damping_ratio=0.7, kp=(0.0, 30.0))
    given, open_gains = find_gains(config, 2)
    np.testing.assert_allclose(given.proportional, [0.0, 30.0])
    np.testing.assert_allclose(given.derivative, 0.0)
    np.testing.assert_allclose(open_gains.proportional, [100.0, 0.0])
    np.testing.assert_allclose(open_gains.derivative, 14.0)


@pytest.mark.parametrize("name", ["panda", "digit_left_leg"])
def test_open_gains_have_the_bandwidth_asked_for_however_joints_are_coupled(name: str) -> None:
    """In feed forward, too, an error's acceleration is the gain times it."""
    dynamics = make_dynamics(load_robot(name), WIDTH)
    law = LAWS["feed_forward"](ControllerConfig(), len(dynamics.home))
    rest = States(dynamics.home, 0.0 * dynamics.home, 0.0 * dynamics.home)
    error, rate = np.random.default_rng(3).normal(scale=0.01, size=(2, len(dynamics.home)))
    output = law(dynamics, rest, rest.position - error, rest.velocity - rate)
    pushed = np.linalg.solve(
        dynamics.inertia(dynamics.home), output.effort - dynamics.gravity(dynamics.home)
    )
    np.testing.assert_allclose(pushed, 400.0 * error + 40.0 * rate, atol=1e-8)


def test_gains_of_another_number_of_joints_are_refused() -> None:
    with pytest.raises(ParameterError, match="kp must have 1 or 2 numbers"):
        find_gains(ControllerConfig(kp=(1.0, 2.0, 3.0)), 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"bandwidth": 200.0},
        {"bandwidth": 100.0, "damping_ratio": 10.0},
        {"rate": 50.0, "bandwidth": 20.0},
        {"kp": (1e308,)},
        {"kd": (1e4,)},
        {"mode": "feed_forward", "kd": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 300.0)},
        {"mode": "feed_forward", "kp": (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 300.0)},
    ],
)
def test_gains_beyond_what_rate_and_inertia_bear_are_refused_by_name(
    robot: Robot, changes: dict[str, Any]
) -> None:
    inertia = make_dynamics(robot).inertia(robot.consistent_nominal[:7] * 0.0)
    check_gains(ControllerConfig(), robot.joint_names, inertia, robot.limits)
    # kp and kd have a range of their own, which 1e308 is out of
    config: Any = SimpleNamespace(**{**vars(ControllerConfig()), **changes})
    with pytest.raises(ParameterError, match=r"k[pd] of .* for joint 'panda_joint\d' is more"):
        check_gains(config, robot.joint_names, inertia, robot.limits)
