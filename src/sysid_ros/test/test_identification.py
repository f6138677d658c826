# SPDX-License-Identifier: Apache-2.0
"""Parameters become messages and find their places again."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from builtin_interfaces.msg import Time

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.friction import FRICTION
from sysid_core.errors import ParameterError
from sysid_core.parameters import COUPLING_TERMS, FRICTION_TERMS
from sysid_core.robot import Robot, load_robot
from sysid_msgs.msg import DynamicParameters
from sysid_ros.identification import parameters_from_message


def perturbed(robot: Robot) -> FloatArray:
    return robot.consistent_nominal + np.random.default_rng(4).uniform(0.1, 0.2, robot.layout.size)


def permuted_message(robot: Robot, vector: FloatArray) -> DynamicParameters:
    layout = robot.layout
    message = DynamicParameters(robot=robot.name, model_hash=robot.model_hash, revision=7)
    message.header.stamp = Time(sec=12, nanosec=500_000_000)
    message.identified = True
    order = np.random.default_rng(1).permutation(len(layout.bodies))
    message.bodies = [layout.bodies[i] for i in order]
    message.inertial = layout.inertias(vector)[order].ravel().tolist()
    order = order[::-1]
    message.joints = [layout.joints[i] for i in order]
    for term in FRICTION_TERMS:
        setattr(message, term, vector[layout.term(term)][order].tolist())
    message.couplings = list(layout.couplings)
    for term in COUPLING_TERMS:
        setattr(message, f"coupling_{term}", vector[layout.coupling_term(term)].tolist())
    return message


@pytest.mark.parametrize("name", ["panda", "tx40"])
def test_parameters_in_any_order_find_their_places(name: str) -> None:
    robot = load_robot(name)
    vector = perturbed(robot)
    offered = parameters_from_message(permuted_message(robot, vector), robot)
    np.testing.assert_array_equal(offered.vector, vector)
    assert (offered.revision, offered.stamp, offered.identified) == (7, 12.5, True)


def bent_message(bent: Robot) -> DynamicParameters:
    message = permuted_message(bent, perturbed(bent))
    (scales,) = bent.friction_scales[[term.name == "sigmoid" for term in FRICTION]]
    by_name = dict(zip(bent.joint_names, scales.tolist(), strict=True))
    message.sigmoid_scale = [by_name[joint] for joint in message.joints]
    return message


def test_friction_comes_with_the_scales_that_it_bends_at() -> None:
    panda = load_robot("panda")
    bent = panda.with_friction({"panda_joint2": {"sigmoid": 0.2}})
    offered = parameters_from_message(bent_message(bent), panda)
    np.testing.assert_array_equal(offered.vector, perturbed(bent))
    np.testing.assert_array_equal(offered.scales, bent.friction_scales)


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.1])
def test_friction_that_bends_nowhere_is_refused(value: float) -> None:
    panda = load_robot("panda")
    message = bent_message(panda.with_friction({"panda_joint2": {"sigmoid": 0.2}}))
    message.sigmoid_scale[3] = value
    with pytest.raises(ParameterError, match="sigmoid_scale"):
        parameters_from_message(message, panda)


def test_a_spring_that_is_half_there_is_refused() -> None:
    panda = load_robot("panda")
    message = permuted_message(panda, perturbed(panda))
    message.spring_scale = [0.5] * len(message.joints)
    with pytest.raises(ParameterError, match="spring_scale"):
        parameters_from_message(message, panda)


def test_friction_that_a_closed_chain_cannot_have_is_refused() -> None:
    leg = load_robot("digit_left_leg")
    message = permuted_message(leg, leg.consistent_nominal)
    message.load_scale = [1.0] * len(message.joints)
    with pytest.raises(ParameterError, match="load_scale is given, but 'digit_left_leg'"):
        parameters_from_message(message, leg)


def test_parameters_that_do_not_fit_are_refused() -> None:
    panda = load_robot("panda")
    vector = perturbed(panda)
    message = permuted_message(panda, vector)
    message.inertial = message.inertial[:-1]
    with pytest.raises(ParameterError, match="inertial has 69 numbers instead of 7 × 10"):
        parameters_from_message(message, panda)
    message = permuted_message(panda, vector)
    message.joints = ["other", *message.joints[1:]]
    with pytest.raises(ParameterError, match="joints do not match"):
        parameters_from_message(message, panda)
    message = permuted_message(panda, vector)
    message.viscous = [float("nan"), *message.viscous[1:]]
    with pytest.raises(ParameterError, match="viscous is not finite"):
        parameters_from_message(message, panda)


def test_another_robots_parameters_are_passed_on_to_be_refused_as_such() -> None:
    panda, tx40 = load_robot("panda"), load_robot("tx40")
    offered = parameters_from_message(permuted_message(tx40, perturbed(tx40)), panda)
    assert offered.robot == "tx40"
    assert offered.vector.size == 0
