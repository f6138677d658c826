# SPDX-License-Identifier: Apache-2.0
"""Messages become the controller's arrays and back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sysid_core.arrays import FloatArray

pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from builtin_interfaces.msg import Duration, Time
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from sysid_controller.controller import Controller
from sysid_controller.conversions import (
    command_message,
    parameter_set,
    status_message,
    trajectory_points,
)
from sysid_controller.settings import ControllerConfig
from sysid_core.errors import ParameterError
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.robot import Robot
from sysid_msgs.msg import DynamicParameters
from sysid_ros.fields import nanoseconds


def parameters_message(robot: Robot, vector: FloatArray) -> DynamicParameters:
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
    for term in ("viscous", "coulomb", "armature"):
        setattr(message, f"coupling_{term}", vector[layout.coupling_term(term)].tolist())
    return message


@pytest.mark.parametrize("name", ["panda", "tx40"])
def test_parameters_in_any_order_find_their_places(
    name: str, request: pytest.FixtureRequest, perturbed: Callable[[Robot, int], FloatArray]
) -> None:
    robot: Robot = request.getfixturevalue(name)
    vector = perturbed(robot, 4)
    offered = parameter_set(parameters_message(robot, vector), robot)
    np.testing.assert_array_equal(offered.vector, vector)
    assert (offered.revision, offered.stamp, offered.identified) == (7, 12.5, True)


def test_parameters_that_do_not_fit_are_refused(
    panda: Robot, perturbed: Callable[[Robot, int], FloatArray]
) -> None:
    vector = perturbed(panda, 4)
    message = parameters_message(panda, vector)
    message.inertial = message.inertial[:-1]
    with pytest.raises(ParameterError, match="69 inertial parameters for 7 names"):
        parameter_set(message, panda)
    message = parameters_message(panda, vector)
    message.joints = ["other", *message.joints[1:]]
    with pytest.raises(ParameterError, match="joints do not match"):
        parameter_set(message, panda)
    message = parameters_message(panda, vector)
    message.viscous = [float("nan"), *message.viscous[1:]]
    with pytest.raises(ParameterError, match="viscous is not finite"):
        parameter_set(message, panda)


def test_another_robots_parameters_are_passed_on_to_be_refused_as_such(
    panda: Robot, tx40: Robot, perturbed: Callable[[Robot, int], FloatArray]
) -> None:
    offered = parameter_set(parameters_message(tx40, perturbed(tx40, 4)), panda)
    assert offered.robot == "tx40"
    assert offered.vector.size == 0


def trajectory(count: int = 2, velocities: bool = True) -> JointTrajectory:
    message = JointTrajectory(joint_names=["a", "b"])
    for i in range(count):
        point = JointTrajectoryPoint(positions=[0.1 * i, -0.1 * i])
        point.time_from_start = Duration(sec=i, nanosec=250_000_000)
        if velocities:
            point.velocities = [1.0, 2.0]
        message.points.append(point)
    return message


def test_trajectories_start_now_or_when_stamped() -> None:
    points = trajectory_points(trajectory(), 0)
    assert points.start is None
    np.testing.assert_allclose(points.time, [0.25, 1.25])
    np.testing.assert_allclose(points.position, [[0.0, 0.0], [0.1, -0.1]])
    assert points.velocity is not None
    np.testing.assert_allclose(points.velocity, [[1.0, 2.0], [1.0, 2.0]])
    assert points.acceleration is None
    message = trajectory()
    message.header.stamp = Time(sec=1_700_000_003, nanosec=5)
    assert trajectory_points(message, 1_700_000_000 * 10**9).start == pytest.approx(3.000000005)


def test_trajectories_with_holes_are_refused() -> None:
    message = trajectory()
    message.points[0].velocities = []
    with pytest.raises(ParameterError, match="velocities at some points only"):
        trajectory_points(message, 0)
    message = trajectory()
    message.points[1].positions = [0.0]
    with pytest.raises(ParameterError, match="needs 2 positions"):
        trajectory_points(message, 0)
    assert trajectory_points(trajectory(0), 0).position.shape == (0, 2)


def test_a_tick_becomes_messages(panda: Robot) -> None:
    controller = Controller(panda, ControllerConfig())
    controller.take_joint_states(panda.joint_names, np.zeros(7) - 0.1, np.zeros(7), 0.0, 0.0)
    command = controller.tick(0.0, 0.0)
    assert command.output is not None
    np.testing.assert_array_equal(command_message(command.output).data, command.output)
    status = status_message(
        controller, command, Time(sec=3), tick_time=1e-4, rate=500.0, warnings=["careful"]
    )
    assert status.robot == "panda"
    assert status.state == type(status).HOLDING
    assert status.mode == "computed_torque"
    assert list(status.joint_names) == list(panda.joint_names)
    np.testing.assert_array_equal(status.effort, command.effort)
    assert len(status.limited) == 7
    assert list(status.warnings) == ["careful"]
    assert nanoseconds(status.header.stamp) == 3 * 10**9
