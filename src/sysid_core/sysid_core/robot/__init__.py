# SPDX-License-Identifier: Apache-2.0
"""Robot descriptions and the models built from them."""

from sysid_core.robot.description import RobotDescription
from sysid_core.robot.description_reader import parse_description, read_description
from sysid_core.robot.library import known_robots, load_robot
from sysid_core.robot.model import Robot

__all__ = [
    "Robot",
    "RobotDescription",
    "known_robots",
    "load_robot",
    "parse_description",
    "read_description",
]
