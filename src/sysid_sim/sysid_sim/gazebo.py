# SPDX-License-Identifier: Apache-2.0
"""Prepares a robot description for Gazebo: a URDF with ros2_control, and its controllers."""

from __future__ import annotations

import argparse
import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import yaml

from sysid_core.arrays import FloatArray
from sysid_core.errors import OutputError, SysidError
from sysid_core.estimate_json import identity_json
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.export import identified_urdf
from sysid_core.untrusted import parse_xml
from sysid_sim.errors import SimulationError
from sysid_sim.rest import rest_configuration
from sysid_sim.truth import TruthSpread, draw_truth

__all__ = ["controller_parameters", "gazebo_urdf", "main", "write_gazebo_files"]


def gazebo_urdf(robot: Robot, controllers: Path, truth: FloatArray | None = None) -> str:
    """Return the robot's URDF, fixed to the world, with effort interfaces for gz_ros2_control.

    It starts in the middle of its ranges: at zero some joints would be out of theirs.

    Parameters
    ----------
    robot : Robot
        On a fixed base and without loops, which a URDF cannot close.
    controllers : Path
        Parameter file that the plugin gives to the controller manager.
    truth : (p,), optional
        Parameters that the simulated robot has; default: the nominal ones.

    Raises
    ------
    SimulationError
        If the robot's base floats or it has loops.
    """
    if robot.floating or robot.description.loops:
        raise SimulationError(
            f"robot '{robot.name}' has a floating base or loops; only open arms are prepared for "
            "Gazebo, the MuJoCo simulator takes the others"
        )
    parameters = robot.consistent_nominal if truth is None else truth
    root = parse_xml(identified_urdf(robot, parameters).encode())
    if robot.urdf.root != "world":
        ET.SubElement(root, "link", name="world")
        fixed = ET.SubElement(root, "joint", name="world_joint", type="fixed")
        ET.SubElement(fixed, "parent", link="world")
        ET.SubElement(fixed, "child", link=robot.urdf.root)
    control = ET.SubElement(root, "ros2_control", name="gazebo", type="system")
    hardware = ET.SubElement(control, "hardware")
    ET.SubElement(hardware, "plugin").text = "gz_ros2_control/GazeboSimSystem"
    start = rest_configuration(robot)[robot.actuated]
    for name, position in zip(robot.actuated_names, start.tolist(), strict=True):
        joint = ET.SubElement(control, "joint", name=name)
        ET.SubElement(joint, "command_interface", name="effort")
        for state in ("position", "velocity", "effort"):
            interface = ET.SubElement(joint, "state_interface", name=state)
            if state == "position":
                ET.SubElement(interface, "param", name="initial_value").text = f"{position:.6g}"
    plugin = ET.SubElement(
        ET.SubElement(root, "gazebo"),
        "plugin",
        filename="gz_ros2_control-system",
        name="gz_ros2_control::GazeboSimROS2ControlPlugin",
    )
    ET.SubElement(plugin, "parameters").text = str(controllers)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode")


def controller_parameters(robot: Robot, rate: int = 500) -> str:
    """Return the YAML of a controller manager with the controllers that sysid talks to.

    Parameters
    ----------
    robot : Robot
    rate : int [Hz]
    """
    parameters = {
        "controller_manager": {
            "ros__parameters": {
                "update_rate": rate,
                "joint_state_broadcaster": {
                    "type": "joint_state_broadcaster/JointStateBroadcaster"
                },
                "effort_controller": {
                    "type": "forward_command_controller/ForwardCommandController"
                },
            }
        },
        "effort_controller": {
            "ros__parameters": {"joints": list(robot.actuated_names), "interface_name": "effort"}
        },
    }
    return yaml.safe_dump(parameters, sort_keys=False)


def write_gazebo_files(robot: Robot, folder: Path, seed: int) -> None:
    """Write ``robot.urdf``, ``controllers.yaml`` and ``ground_truth.json`` into a folder.

    The robot's true parameters are drawn with a seed around the nominal ones; of friction, a URDF
    takes the viscous and the Coulomb part.

    Raises
    ------
    SimulationError
        If the robot cannot be prepared.
    OutputError
        If the folder cannot be written.
    """
    folder = folder.expanduser().absolute()
    truth = draw_truth(robot, seed, TruthSpread())
    urdf = gazebo_urdf(robot, folder / "controllers.yaml", truth)
    document = json.dumps(identity_json(robot, truth), indent=2)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "robot.urdf").write_text(urdf + "\n", encoding="utf-8")
        (folder / "controllers.yaml").write_text(controller_parameters(robot), encoding="utf-8")
        (folder / "ground_truth.json").write_text(document + "\n", encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror})") from error


def main(arguments: list[str] | None = None) -> int:
    """Run ``gazebo_robot ROBOT --out FOLDER``."""
    parser = argparse.ArgumentParser(prog="gazebo_robot", description=__doc__)
    parser.add_argument("robot", help="name of a robot in config/robots, or path of its YAML")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--truth-seed", type=int, default=1, help="of the true parameters; default: %(default)s"
    )
    given = parser.parse_args(arguments)
    try:
        write_gazebo_files(load_robot(given.robot), given.out, given.truth_seed)
    except SysidError as error:
        print(f"gazebo_robot: {error}", file=sys.stderr)
        return 2
    print(f"{given.out}: robot.urdf, controllers.yaml and ground_truth.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
