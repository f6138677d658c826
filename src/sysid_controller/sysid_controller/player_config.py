# SPDX-License-Identifier: Apache-2.0
"""Parameters of the player, which the command line offers, too."""

from dataclasses import dataclass

from sysid_core.settings import parameter
from sysid_ros.robot_config import RobotConfig

__all__ = ["TARGETS", "PlayerConfig"]

TARGETS = ("controller", "trajectory", "action")


@dataclass(frozen=True)
class PlayerConfig(RobotConfig):
    """Parameters of the player node."""

    motion: str = parameter(
        "", "Folder that 'sysid excite' wrote, or a joint trajectory in YAML", read_only=True
    )
    robot: str = parameter(
        "",
        "Name of a robot in config/robots, or path of its description; empty: the motion's",
        read_only=True,
    )
    target: str = parameter(
        "controller",
        "Who moves the robot: the controller node, by the topic reference, or ros2_control's "
        "joint_trajectory_controller, by its topic (trajectory) or as a goal (action)",
        choices=TARGETS,
        read_only=True,
    )
    trajectory_controller: str = parameter(
        "joint_trajectory_controller",
        "What that controller is called, where its driver has another name for it",
        read_only=True,
    )
    joint_states: str = parameter(
        "joint_states", "Topic of the robot's joint states, efforts included", read_only=True
    )
    speed: float = parameter(
        1.0, "Of the motion [-]. Less for a first try", range=(0.05, 1.0), read_only=True
    )
    approach_speed: float = parameter(
        0.2,
        "Share of the velocity limits at which the start is approached [-]",
        range=(0.01, 1.0),
        read_only=True,
    )
    tolerance: float = parameter(
        0.2,
        "Error of a joint's position [rad], measured or to come within 0.15 s, beyond which the "
        "robot is stopped. More for drives that follow late",
        range=(0.001, 1.0),
        read_only=True,
    )
    wait: float = parameter(
        5.0,
        "How long robot and controller are waited for [s]",
        range=(0.1, 3600.0),
        read_only=True,
    )
    learned: str = parameter(
        "",
        "Bag of an earlier motion of this robot: what it tells of its torques, the watch for "
        "contacts knows from the start; empty: none",
        read_only=True,
    )
    out: str = parameter("", "Bag folder to record to; empty: none", read_only=True)
    dry_run: bool = parameter(
        False, "Check everything and say what would be done; nothing moves", read_only=True
    )
