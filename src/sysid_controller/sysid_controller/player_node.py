# SPDX-License-Identifier: Apache-2.0
"""The player node: plays a motion through a controller, watches it, and records a bag."""

import shlex
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from sysid_controller.motion_target import make_target
from sysid_controller.player import Phase, Player
from sysid_controller.player_config import PlayerConfig
from sysid_core.arrays import FloatArray
from sysid_core.data.reading import read_recording
from sysid_core.data.ring_buffer import RingBuffer
from sysid_core.data.write import write_recording
from sysid_core.errors import DataError, ParameterError, SysidError
from sysid_core.excitation.motion_file import read_motion
from sysid_core.files import output_folder
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.senders import Senders
from sysid_msgs.msg import Contacts, TrackingStatus
from sysid_ros.control import trajectory_message
from sysid_ros.fields import seconds, stamp
from sysid_ros.node_main import run_node
from sysid_ros.parameters import NodeParameters
from sysid_ros.qos import readings
from sysid_ros.sensors import (
    SENSOR_TOPICS,
    SensorTopic,
    joint_arrays,
    joint_batches,
    odometry_arrays,
)

__all__ = ["PlayerNode", "main"]

_LOOK = 0.05  # [s] between two looks at whether all goes well
_HOLD_TIME = 0.15  # [s] in which a controller of another make is to come to rest
_LINGER = 0.3  # [s] that the node stays after its last message, which is on its way
_FEWEST = 2  # Joint states that make a bag
_LONGEST = 1e6  # [s] that the bag holds at most: nothing of a motion is dropped


class PlayerNode(Node):
    """Approaches a motion's start, plays it, stops where something is wrong, writes the bag.

    It goes by the stamps of the joint states, so that it needs no clock of its own. Its
    configuration is by default that of its parameters.
    """

    def __init__(self, config: PlayerConfig | None = None) -> None:
        super().__init__("player")
        if config is None:
            config = NodeParameters(self, PlayerConfig()).config
        if not config.motion:
            raise ParameterError("parameter 'motion' is empty: give what 'sysid excite' wrote")
        # status: 0: played; 1: stopped midway; 2: refused before anything moved.
        self._config, self.finished, self.status = config, False, 0
        motion = read_motion(Path(config.motion).expanduser())
        self.robot = self._load_robot(motion.description, motion.robot)
        if config.out and output_folder(config.out).exists():
            raise DataError("exists already; choose another bag or delete it", source=config.out)
        self.player = Player(self.robot, motion, config)
        if config.learned:
            self.player.learn(read_recording(Path(config.learned).expanduser()))
        self._messages: list[JointState] = []
        self._sensed: dict[SensorTopic, list[Any]] = {}
        if self.robot.floating:
            if config.target != "controller":
                raise ParameterError("a robot on its feet is moved by the controller node alone")
            for topic in SENSOR_TOPICS:
                take = partial(self._on_sensor, self._sensed.setdefault(topic, []))
                self.create_subscription(topic.message, topic.name, take, readings())
        self._ends: float | None = None
        self._target = make_target(self, config, self.robot, self._on_end)
        states = config.joint_states
        self.create_subscription(JointState, states, self._on_joint_state, readings())
        self.create_subscription(Bool, "stop", self._on_stop, 10)
        self.create_service(Trigger, "~/stop", self._on_stop_call)
        if config.target == "controller":
            self.create_subscription(TrackingStatus, "tracking", self._on_tracking, 10)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(_LOOK, self._look, clock=steady)
        self.get_logger().info(f"{self.player.planner.summary}; waiting for the robot")

    def _load_robot(self, description: str, name: str) -> Robot:
        """Load the robot that is given, else the motion's."""
        if self._config.robot or self._config.urdf_topic:
            return self._config.load_robot(self)
        if description and Path(description).is_file():
            return load_robot(description)
        if not name:
            raise ParameterError("the motion does not say whose it is; give the robot")
        return load_robot(name)

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
        when = seconds(message.header.stamp)
        self.player.take_joint_states(message.name, *joint_arrays(message), when)
        self._act()

    def _on_sensor(self, kept: list[Any], message: Any) -> None:
        if self.player.phase is Phase.PLAYING:
            kept.append(message)
        standing = self.player.standing
        if standing is not None and isinstance(message, Odometry):
            standing.take_base(odometry_arrays(message)[0])
        if standing is not None and isinstance(message, Contacts):
            when = seconds(message.header.stamp)
            standing.take_contacts(message.names, message.active, when)

    def _on_tracking(self, message: TrackingStatus) -> None:
        stamped = seconds(message.header.stamp)
        errors = (np.array(e) for e in (message.position_error, message.velocity_error))
        self.player.take_tracking(int(message.state), list(message.warnings), stamped, *errors)
        self._act()

    def _on_end(self, reason: str, moved: bool) -> None:
        self.player.moved = moved
        self.player.stop(reason)
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
        fault = self._target.fault()
        if fault and not self.player.moved:
            self.player.stop(fault)
        self.player.look(time.monotonic(), answered=self._target.is_there())
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
                self._target.follow(self._message(plan.points.time, plan.points[1:]))
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

    def _message(self, times: FloatArray, motion: Sequence[FloatArray]) -> JointTrajectory:
        names = self.robot.actuated_names
        if self._config.target != "controller":
            names, motion = self.player.published(*motion)
        return trajectory_message(names, stamp(0.0), times, motion)

    def _brake(self) -> None:
        """Have the robot come to rest, at once or where it can."""
        there = (self.player.position + 0.5 * _HOLD_TIME * self.player.velocity)[None]
        rest = np.zeros_like(there)
        self._target.brake(self._message(np.array([_HOLD_TIME]), (there, rest, rest)))

    def _write(self) -> None:
        """Write the bag and say what to do with it."""
        senders = Senders(self.robot.actuated_names, self.robot.description.names)
        batches, _ = joint_batches(self._messages, senders)
        if not self._config.out or not batches or not self.player.moved:
            return
        buffer = RingBuffer(_LONGEST)
        for topic, messages in self._sensed.items():
            batches += topic.recordings(messages)[0]
        for batch in batches:
            buffer.add(batch)
        recording = buffer.snapshot()
        if len(recording) < _FEWEST:
            return
        try:
            write_recording(recording, output_folder(self._config.out))
        except SysidError as error:
            self.get_logger().error(str(error))
            self.status = self.status or 1
            return
        robot = self.robot.description.source
        words = ["sysid", "identify", self._config.out, "--robot", str(robot or self.robot.name)]
        self.get_logger().info(
            f"wrote {len(recording)} joint states to {self._config.out}; next: "
            + shlex.join([*words, "--out", f"{self._config.out}_result"])
        )


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
