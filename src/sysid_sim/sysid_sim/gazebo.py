# SPDX-License-Identifier: Apache-2.0
"""Prepares a robot for Gazebo: a world with true parameters, the bridge, ros2_control's files."""

import argparse
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from sysid_core.arrays import FloatArray
from sysid_core.errors import SysidError
from sysid_core.estimate_json import identity_json
from sysid_core.files import json_text, results_folder, write_text
from sysid_core.priors import default_prior
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.export import identified_description, identified_urdf
from sysid_core.robot.strength import torque_scale
from sysid_core.untrusted import parse_xml, read_bytes
from sysid_sim.gazebo_world import (
    TRAJECTORIES,
    WORLD,
    contact_topic,
    force_topic,
    load_sdf,
    require_possible,
    world_sdf,
)
from sysid_sim.mjcf import joint_axis
from sysid_sim.simulator_config import start_configuration
from sysid_sim.truth import TruthSpread, draw_truth

__all__ = ["ROBOT", "gazebo_model", "gazebo_truth", "main", "write_gazebo_files"]

ROBOT = "robot.yaml"  # The description that the nodes go by

_RATE = 500  # [Hz] of ros2_control's updates
_STIFFNESS = 5.0  # Of the trajectory controller, in a joint's usual torque per radian [1/rad]
_INTEGRAL = 1.0  # [1/s] of it
_DAMPING = 0.7  # Damping ratio that it gives each joint [-]
_QUICKEST = 0.5
"""Share of a joint's velocity that damping takes in one period at most [-], of the little inertia
that a joint shows whose neighbour turns about the same line: more would shake the arm."""
_STATES = 64  # Configurations in which that is looked for
_TO_ROS, _TO_GAZEBO = "GZ_TO_ROS", "ROS_TO_GZ"


def gazebo_model(robot: Robot, folder: Path) -> Robot:
    """Write the robot that Gazebo can simulate to a folder, as `ROBOT` and a URDF, and return it.

    Gazebo knows no rotors. Their likely inertia becomes that of thin discs about the joints' axes,
    fixed to the links that the joints move: without any, light links would be a tenth of what
    their motors are tuned for, and with discs that only the truth has, links that no description
    allows. It states no less doubt than the truth gives reason for.
    """
    model, layout = robot.consistent_nominal.copy(), robot.layout
    neutral, rotors = pin.neutral(robot.model), layout.term("armature")
    likely = default_prior(robot).mean[rotors]
    for name, armature in zip(robot.joint_names, likely, strict=True):
        index = robot.model.getJointId(name)
        kind, axis = joint_axis(robot.model.joints[index], neutral)
        if kind == "hinge":
            disc = 0.5 * armature * (np.eye(3) + np.outer(axis, axis))
            model[layout.body(index - 1)][4:] += disc[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    model[rotors] = 0.0
    description = yaml.safe_load(identified_description(robot, model))
    terms = [term for term in robot.description.friction_terms if term != "armature"]
    description["friction"]["terms"] = terms
    description["prior"] = {**description.get("prior", {}), **_accuracy(robot)}
    write_text(folder / description["urdf"], identified_urdf(robot, model))
    write_text(folder / ROBOT, _yaml(description) + "\n")
    return load_robot(folder / ROBOT)


def _accuracy(robot: Robot) -> dict[str, Any]:
    """Return the prior of a description whose truth is drawn around it: as wrong as that, or more.

    What a maker publishes may be right within 5 %, but not what is drawn ± 20 % around it.
    """
    stated, spread = robot.description.prior, TruthSpread()
    bodies = {name: max(std, spread.body_std) for name, std in stated.confidence.items()}
    return {
        "relative_std": max(stated.relative_std, spread.body_std),
        "friction_relative_std": max(stated.friction_relative_std, spread.friction_std),
        **({"confidence": bodies} if bodies else {}),
    }


def gazebo_truth(robot: Robot, seed: int) -> FloatArray:
    """Draw true parameters (p,) of a `gazebo_model`: Gazebo has no torque offsets."""
    truth = draw_truth(robot, seed)
    truth[robot.layout.term("offset")] = 0.0
    return truth


def _bridge(robot: Robot) -> list[dict[str, str]]:
    """Return ros_gz_bridge's topics: forces to Gazebo, states and sensors to ROS."""
    force = "std_msgs/msg/Float64", "Double", _TO_GAZEBO
    topics = [(f"gazebo/force/{j}", force_topic(robot, j), *force) for j in robot.actuated_names]
    if robot.floating:
        topics += [
            ("gazebo/odom", f"/{WORLD}/odom", "nav_msgs/msg/Odometry", "Odometry", _TO_ROS),
            ("imu/data", f"/{WORLD}/imu", "sensor_msgs/msg/Imu", "IMU", _TO_ROS),
        ]
        kind = "ros_gz_interfaces/msg/Contacts"
        topics += [
            (f"gazebo/contacts/{c.name}", contact_topic(c.name), kind, "Contacts", _TO_ROS)
            for c in robot.description.contacts
        ]
    states = "sensor_msgs/msg/JointState"
    topics.append(("gazebo/joint_states", f"/{WORLD}/joint_states", states, "Model", _TO_ROS))
    return [
        {
            "ros_topic_name": ros,
            "gz_topic_name": gazebo,
            "ros_type_name": ros_type,
            "gz_type_name": f"gz.msgs.{gazebo_type}",
            "direction": direction,
        }
        for ros, gazebo, ros_type, gazebo_type, direction in topics
    ]


def _controllers(robot: Robot) -> dict[str, Any]:
    """Return the parameters of ros2_control's manager and of the controllers sysid talks to."""
    manager = {
        "update_rate": _RATE,
        # by the URDF's limits, which are not those of joints that show zero at rest
        "enforce_command_limits": False,
        "joint_state_broadcaster": {"type": "joint_state_broadcaster/JointStateBroadcaster"},
        "effort_controller": {"type": "forward_command_controller/ForwardCommandController"},
        TRAJECTORIES: {"type": "joint_trajectory_controller/JointTrajectoryController"},
    }
    names = robot.actuated_names
    trajectories = {
        "joints": [*names],  # a list of its own: ROS 2 reads no file with aliases
        "command_interfaces": ["effort"],
        "state_interfaces": ["position", "velocity"],
        "gains": _gains(robot),
    }
    told = {
        "controller_manager": manager,
        "joint_state_broadcaster": {"use_local_topics": True},
        "effort_controller": {"joints": [*names], "interface_name": "effort"},
        TRAJECTORIES: trajectories,
    }
    return {name: {"ros__parameters": parameters} for name, parameters in told.items()}


def _gains(robot: Robot) -> dict[str, dict[str, float]]:
    """Return a PID per joint that turns errors of position into efforts, for the nominal robot."""
    model, joints = robot.with_parameters(robot.consistent_nominal), robot.actuated
    data, first = model.createData(), model.nv - len(robot.joint_names)
    inertia, least = np.zeros(model.nv), np.full(model.nv, np.inf)
    start, rng = start_configuration(robot), np.random.default_rng(0)
    for _ in range(_STATES):
        q = pin.integrate(model, start, np.r_[np.zeros(first), rng.uniform(*robot.sampling_range)])
        upper = np.triu(pin.crba(model, data, q))
        mass = upper + np.triu(upper, 1).T
        inertia += np.diag(mass) / _STATES
        least = np.minimum(least, 1.0 / np.diag(np.linalg.inv(mass)))
    torque = torque_scale(robot)[joints]
    p = _STIFFNESS * torque
    d = 2.0 * _DAMPING * np.sqrt(p * inertia[first:][joints])
    d = np.minimum(d, _QUICKEST * least[first:][joints] * _RATE)
    gains = {"p": p, "i": _INTEGRAL * p, "d": d, "i_clamp": torque}
    return {
        name: {kind: float(values[j]) for kind, values in gains.items()}
        for j, name in enumerate(robot.actuated_names)
    }


def _controlled_urdf(robot: Robot) -> str:
    """Return the robot's nominal URDF with effort interfaces for gz_ros2_control."""
    root = parse_xml(read_bytes(robot.urdf.path))
    control = ET.SubElement(root, "ros2_control", name="gazebo", type="system")
    hardware = ET.SubElement(control, "hardware")
    ET.SubElement(hardware, "plugin").text = "gz_ros2_control/GazeboSimSystem"
    for name in robot.actuated_names:
        joint = ET.SubElement(control, "joint", name=name)
        ET.SubElement(joint, "command_interface", name="effort")
        for state in ("position", "velocity", "effort"):
            ET.SubElement(joint, "state_interface", name=state)
    return ET.tostring(root, encoding="unicode")


def write_gazebo_files(robot: Robot, folder: Path, seed: int, load: float) -> None:
    """Write the robot, its worlds, bridge, load [kg], ros2_control's files and ground truth.

    True parameters are drawn by the seed.

    Raises
    ------
    SimulationError
        If Gazebo cannot simulate the robot.
    OutputError
        If the folder cannot be written.
    """
    require_possible(robot)
    folder = folder.expanduser().absolute()
    with results_folder(folder) as made:
        robot = gazebo_model(robot, made)
        truth = gazebo_truth(robot, seed)
        publisher = {"robot_description": _controlled_urdf(robot), "use_sim_time": True}
        files = {
            "world.sdf": world_sdf(robot, truth),
            "world_ros2_control.sdf": world_sdf(robot, truth, str(folder / "controllers.yaml")),
            "load.sdf": load_sdf(robot, load),
            "bridge.yaml": _yaml(_bridge(robot)),
            "controllers.yaml": _yaml(_controllers(robot)),
            "robot_state_publisher.yaml": _yaml({"/**": {"ros__parameters": publisher}}),
            "ground_truth.json": json_text(identity_json(robot, truth), 2),
        }
        for name, text in files.items():
            write_text(made / name, text.rstrip() + "\n")


def _yaml(content: object) -> str:
    return str(yaml.safe_dump(content, sort_keys=False))


def main(arguments: list[str] | None = None) -> int:
    """Run ``gazebo_robot ROBOT --out FOLDER``."""
    parser = argparse.ArgumentParser(prog="gazebo_robot", description=__doc__)
    parser.add_argument("robot", help="name of a robot in config/robots, or path of its YAML")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--truth-seed", type=int, default=1, help="of the true parameters; default: %(default)s"
    )
    parser.add_argument(
        "--load", type=float, default=1.0, help="mass of load.sdf [kg]; default: %(default)s"
    )
    given = parser.parse_args(arguments)
    if not (np.isfinite(given.load) and given.load > 0.0):
        parser.error(f"--load must be a mass above zero, got {given.load:g}")
    if given.truth_seed < 0:
        parser.error(f"--truth-seed must not be negative, got {given.truth_seed}")
    try:
        write_gazebo_files(load_robot(given.robot), given.out, given.truth_seed, given.load)
    except SysidError as error:
        print(f"gazebo_robot: {error}", file=sys.stderr)
        return 2
    print(f"{given.out}: start it with launch/gazebo.launch.yaml, folder:={given.out}")
    return 0
