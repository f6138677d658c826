# SPDX-License-Identifier: Apache-2.0
"""A model that is right moves as the robot did, whatever its class; a wrong one does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.contact_dynamics import ContactDynamics
from sysid_core.dynamics.select import make_dynamics
from sysid_core.errors import DataError
from sysid_core.forecast import forecast
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot


def _heavier(robot: Robot) -> FloatArray:
    vector = robot.consistent_nominal.copy()
    robot.layout.inertias(vector)[:] *= 1.3
    return vector


def _moved(robot: Robot, amplitude: float, rate: float) -> Samples:
    """Return exact samples of two seconds of sines around the middle of the range."""
    dynamics, time = make_dynamics(robot), np.arange(round(2.0 * rate)) / rate
    dynamics.set_parameters(robot.consistent_nominal)
    speed = 2.0 * np.pi * np.linspace(0.7, 1.1, len(dynamics.joint_names))
    phase = time[:, None] * speed
    states = (
        dynamics.home + amplitude * np.sin(phase),
        amplitude * speed * np.cos(phase),
        -amplitude * speed**2 * np.sin(phase),
    )
    torque = [dynamics.torque(*state) for state in zip(*states, strict=True)]
    arrays = np.full((4, len(time), len(robot.joint_names)), np.nan)
    arrays[:, :, robot.actuated] = *states, np.array(torque)
    return Samples(time, *arrays)


@pytest.mark.parametrize(
    ("name", "amplitude"),
    [("ur10", 0.5), pytest.param("digit_left_leg", 0.1, marks=pytest.mark.heavy)],
)
def test_the_true_model_moves_as_the_arm_or_the_linkage_did(name: str, amplitude: float) -> None:
    described = load_robot(name).description
    terms = ("viscous", "armature")  # the sign of dry friction has no derivative
    robot = load_robot(replace(described, friction_terms=terms, friction_nominal={}))
    samples = _moved(robot, amplitude, 200.0)
    right = forecast(robot, samples, robot.consistent_nominal)
    wrong = forecast(robot, samples, _heavier(robot))
    assert right.lost == 0
    assert right.seconds == pytest.approx(0.25, abs=1.0 / 200.0)
    assert (right.position < 0.02 * wrong.position.max()).all()
    assert (right.velocity < 0.02 * wrong.velocity.max()).all()


def _sways(robot: Robot) -> Samples:
    """Return exact samples of half a second on four standing feet, by Runge and Kutta's rule."""
    dynamics, model = ContactDynamics(robot), robot.model
    dynamics.set_parameters(robot.consistent_nominal)
    legs = np.tile([0.0, 0.8, -1.6], 4) * np.repeat([1.0, 1.0, -1.0, -1.0], 3)
    q, v = np.concatenate([[0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0], legs]), np.zeros(model.nv)
    standing, step = np.ones(len(robot.description.contacts), dtype=bool), 1e-3
    states = []

    def torque(time: float, q: FloatArray, v: FloatArray) -> FloatArray:
        swing = 0.1 * np.sin(2.0 * np.pi * 3.0 * time + np.arange(12))
        return 20.0 * (legs + swing - q[7:]) - 0.5 * v[6:]

    def rate(q: FloatArray, v: FloatArray, effort: FloatArray) -> FloatArray:
        return dynamics.forward(dynamics.terms(q, v), effort, standing).acceleration

    for k in range(500):
        effort = torque(k * step, q, v)
        states.append(np.concatenate([q, v, effort]))
        later = torque((k + 1) * step, pin.integrate(model, q, step * v), v)
        middle = 0.5 * (effort + later)
        a1 = rate(q, v, effort)
        v2 = v + 0.5 * step * a1
        a2 = rate(pin.integrate(model, q, 0.5 * step * v), v2, middle)
        v3 = v + 0.5 * step * a2
        a3 = rate(pin.integrate(model, q, 0.5 * step * v2), v3, middle)
        v4 = v + step * a3
        a4 = rate(pin.integrate(model, q, step * v3), v4, later)
        q = pin.integrate(model, q, step / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4))
        v = v + step / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    table: FloatArray = np.array(states)
    pose, joints, twist, speed, effort = np.split(table, [7, 19, 25, 37], axis=1)
    return Samples(
        step * np.arange(float(len(table))),
        joints,
        speed,
        np.zeros_like(joints),
        effort,
        base_pose=pose,
        base_twist=twist,
        base_acceleration=np.zeros_like(twist),
        contacts=np.tile(standing, (len(table), 1)),
    )


@pytest.mark.heavy
def test_a_legged_robot_is_followed_while_its_contacts_hold() -> None:
    described = load_robot("solo12").description
    robot = load_robot(replace(described, friction_terms=("viscous",), friction_nominal={}))
    samples = _sways(robot)
    right = forecast(robot, samples, robot.consistent_nominal)
    wrong = forecast(robot, samples, _heavier(robot))
    assert (right.windows, right.lost) == (2, 0)
    assert (right.velocity < 0.05 * wrong.velocity.max()).all()
    stepped = np.asarray(samples.contacts, dtype=bool).copy()
    stepped[150:, 0] = False
    assert forecast(robot, replace(samples, contacts=stepped), robot.nominal).windows == 3


def test_scattered_samples_are_refused() -> None:
    robot = load_robot("ur10")
    samples = _moved(robot, 0.1, 200.0)
    gaps = samples.effort.copy()
    gaps[::5] = np.nan
    with pytest.raises(DataError, match="record for longer"):
        forecast(robot, replace(samples, effort=gaps), robot.consistent_nominal)
