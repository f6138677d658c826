# SPDX-License-Identifier: Apache-2.0
"""The player node: plays a motion through a controller, watches it, and records a bag."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from sysid_controller.player import Phase, Player
from sysid_core.arrays import FloatArray
from sysid_core.data.write import write_recording
from sysid_core.errors import DataError, ParameterError, SysidError
from sysid_core.excitation.motion_file import read_motion
from sysid_core.files import output_folder
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_core.settings import check_config, parameter
from sysid_msgs.msg import TrackingStatus
from sysid_ros.control import trajectory_message
from sysid_ros.fields import nanoseconds, stamp
from sysid_ros.node_main import run_node
from sysid_ros.parameters import NodeParameters
from sysid_ros.qos import readings
from sysid_ros.sensors import joint_arrays, joint_batches

__all__ = ["PlayerConfig", "PlayerNode", "main"]

_LOOK = 0.05
"""Time [s] between two looks at whether all goes well."""
_TOPICS = {
    "controller": "reference",
    "trajectory": "joint_trajectory_controller/joint_trajectory",
}
_HOLD_TIME = 0.15
"""Time [s] in which a controller of another make is to come to rest."""
_LINGER = 0.3
"""Time [s] that the node stays after its last message, which is on its way."""
_FEWEST = 2
"""Joint states that make a bag."""


@dataclass(frozen=True)
class PlayerConfig:
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
        "joint_trajectory_controller, by its topic",
        choices=tuple(_TOPICS),
        read_only=True,
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
    effort_tolerance: float = parameter(
        0.3,
        "Share of a joint's effort limit that it may give beyond what its model asks for [-], "
        "before the robot is stopped. More for a model that is far off",
        range=(0.01, 2.0),
        read_only=True,
    )
    wait: float = parameter(
        5.0,
        "How long robot and controller are waited for [s]",
        range=(0.1, 3600.0),
        read_only=True,
    )
    out: str = parameter("", "Bag folder to record to; empty: none", read_only=True)
    dry_run: bool = parameter(
        False, "Check everything and say what would be done; nothing moves", read_only=True
    )

    def __post_init__(self) -> None:
        check_config(self)


class PlayerNode(Node):
    """Approaches a motion's start, plays it, stops where something is wrong, writes the bag.

    It goes by the stamps of the joint states, so that it needs no clock of its own.

    Parameters
    ----------
    config : PlayerConfig, optional
        Default: from the node's parameters.

    Attributes
    ----------
    player : Player
    finished : bool
    status : int
        0: played; 1: stopped midway; 2: refused before anything moved.
    """

    def __init__(self, config: PlayerConfig | None = None) -> None:
        super().__init__("player")
        if config is None:
            config = NodeParameters(self, PlayerConfig()).config
        if not config.motion:
            raise ParameterError("parameter 'motion' is empty: give what 'sysid excite' wrote")
        self._config, self.finished, self.status = config, False, 0
        motion = read_motion(Path(config.motion).expanduser())
        self.robot = _robot(config.robot, motion.description, motion.robot)
        if config.out and output_folder(config.out).exists():
            raise DataError("exists already; choose another bag or delete it", source=config.out)
        self.player = Player(
            self.robot,
            motion,
            speed=config.speed,
            approach_speed=config.approach_speed,
            tolerance=config.tolerance,
            effort_tolerance=config.effort_tolerance,
            patience=config.wait,
            asks_controller=config.target == "controller",
        )
        self._messages: list[JointState] = []
        self._ends: float | None = None
        self._topic = _TOPICS[config.target]
        self._reference = self.create_publisher(JointTrajectory, self._topic, 10)
        self.create_subscription(JointState, "joint_states", self._on_joint_state, readings())
        self.create_subscription(Bool, "stop", self._on_stop, 10)
        self.create_service(Trigger, "~/stop", self._on_stop_call)
        if config.target == "controller":
            self.create_subscription(TrackingStatus, "tracking", self._on_tracking, 10)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(_LOOK, self._look, clock=steady)
        self.get_logger().info(f"{self.player.planner.summary}; waiting for the robot")

    def destroy_node(self) -> None:
        """Stop the robot if it still plays, then the node."""
        if self.player.phase is Phase.PLAYING:
            self.player.stop("the player was told to end")
            self._act()
            time.sleep(_LINGER)
        super().destroy_node()

    # -- in ---------------------------------------------------------------------------------

    def _on_joint_state(self, message: JointState) -> None:
        if self.player.phase is Phase.PLAYING:
            self._messages.append(message)
        position, velocity = joint_arrays(message)
        when = 1e-9 * nanoseconds(message.header.stamp)
        effort = np.array(message.effort, dtype=float)
        self.player.take_joint_states(
            message.name, position, velocity, effort, when, time.monotonic()
        )
        self._act()

    def _on_tracking(self, message: TrackingStatus) -> None:
        stamped = 1e-9 * nanoseconds(message.header.stamp)
        errors = (np.array(e) for e in (message.position_error, message.velocity_error))
        self.player.take_tracking(int(message.state), list(message.warnings), stamped, *errors)
        self._act()

    def _on_stop(self, message: Bool) -> None:
        if message.data:
            self.player.stop("the stop button was pressed")
            self._act()

    def _on_stop_call(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = True, f"was {self.player.phase.name.lower()}"
        self.player.stop("~/stop was called")
        self._act()
        return response

    def _look(self) -> None:
        answered = self._reference.get_subscription_count() > 0
        self.player.look(time.monotonic(), answered=answered)
        self._act()

    # -- out --------------------------------------------------------------------------------

    def _act(self) -> None:
        """Do what the player decided."""
        if self._ends is not None:
            self.finished = time.monotonic() > self._ends
            return
        player, log = self.player, self.get_logger()
        if player.phase is Phase.READY:
            plan = player.begin(dry_run=self._config.dry_run)
            if plan is not None:
                log.info(f"moves to the start in {plan.approach:.1f} s, then plays")
                self._publish(*plan.points)
        if player.phase in (Phase.DONE, Phase.STOPPED):
            if player.moved and player.phase is Phase.STOPPED:
                self._brake()
            self._ends = time.monotonic() + _LINGER
            if player.reason:
                log.error(player.reason)
            elif not player.moved:
                log.info("dry run: all is ready, and nothing moved")
            self.status = 0 if player.phase is Phase.DONE else 1 if player.moved else 2
            self._write()

    def _publish(
        self,
        times: FloatArray,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
    ) -> None:
        names: tuple[str, ...] = self.robot.actuated_names
        states: list[FloatArray] = [position, velocity, acceleration]
        if self._config.target != "controller":
            names, *states = self.player.published(*states)
        self._reference.publish(trajectory_message(names, stamp(0.0), times, *states))

    def _brake(self) -> None:
        """Have the robot come to rest: a trajectory without points, or one to where it stops."""
        where, speed = self.player.position, self.player.velocity
        none = np.zeros((0, len(where)))
        if self._config.target == "controller":
            self._publish(np.zeros(0), none, none, none)
            return
        there = (where + 0.5 * _HOLD_TIME * speed)[None]
        rest = np.zeros_like(there)
        self._publish(np.array([_HOLD_TIME]), there, rest, rest)

    def _write(self) -> None:
        """Write the bag and say what to do with it."""
        batches, _ = joint_batches(self._messages)
        if not self._config.out or not batches or not self.player.moved:
            return
        largest = max(batches, key=lambda batch: len(batch.time))
        if len(largest.time) < _FEWEST:
            return
        none = np.isnan(largest.velocity).all()
        try:
            write_recording(
                Recording(
                    largest.time,
                    largest.names,
                    largest.position,
                    None if none else largest.velocity,
                    largest.effort,
                    source="player",
                ),
                output_folder(self._config.out),
            )
        except SysidError as error:
            self.get_logger().error(str(error))
            self.status = self.status or 1
            return
        robot = self.robot.description.source
        words = ["sysid", "identify", self._config.out, "--robot", str(robot or self.robot.name)]
        self.get_logger().info(
            f"wrote {len(largest.time)} joint states to {self._config.out}; next: "
            + shlex.join([*words, "--out", f"{self._config.out}_result"])
        )


def _robot(given: str, description: str, name: str) -> Robot:
    """Load the robot that is given, else the motion's."""
    if given:
        return load_robot(given)
    if description and Path(description).is_file():
        return load_robot(description)
    if not name:
        raise ParameterError("the motion does not say whose it is; give the robot")
    return load_robot(name)


def main(args: Sequence[str] | None = None, config: PlayerConfig | None = None) -> int:
    """Run the player node until the motion is played or stopped."""
    made: list[PlayerNode] = []

    def make() -> PlayerNode:
        made.append(PlayerNode(config))
        return made[0]

    status = run_node("player", make, args, done=lambda node: node.finished)
    if not made or status:
        return status
    return made[0].status if made[0].finished else 1  # told to end


if __name__ == "__main__":
    sys.exit(main())
