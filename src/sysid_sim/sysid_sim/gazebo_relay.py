# SPDX-License-Identifier: Apache-2.0
"""The Gazebo relay: joint states with the torques that caused them, commands joint by joint.

Gazebo's joint states carry no torque, and gz_ros2_control's the wrench that a joint transmits, in
which its friction does not show. What was commanded stands in for both.
"""

from collections import deque
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any

import numpy as np
import pinocchio as pin
from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.clock import Clock as SteadyClock
from rclpy.clock import ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.robot.conversion import JointConversion
from sysid_core.settings import parameter
from sysid_msgs.msg import Contacts
from sysid_ros.control import command_array
from sysid_ros.fields import nanoseconds
from sysid_ros.node_main import run_node
from sysid_ros.parameters import NodeParameters
from sysid_ros.plain import installed_type
from sysid_ros.robot_config import RobotConfig
from sysid_ros.sensors import (
    contacts_message,
    joint_arrays,
    joint_state_message,
    odometry_arrays,
    odometry_message,
)
from sysid_sim.effort_switch import EffortSwitch
from sysid_sim.gazebo_world import PERIOD, TRAJECTORIES, WORLD, steps_of
from sysid_sim.simulator_config import start_configuration
from sysid_sim.trajectory_relay import WAITING, TrajectoryRelay

__all__ = ["GazeboRelay", "main"]

_DEPTH = 100
_WAITING = 5  # Joint states that may wait: a paused world tells the same at a great rate
_TOUCH = 10_000_000
"""Time [ns] since a foot's last touch was reported, within which it counts as on the ground."""
_PERIOD = round(PERIOD * 1e9)
"""Time [ns] from joint state to joint state, for which a command lets the world run."""
_REPEAT = 0.05  # [s] of the wall after which a state is told again, or a step asked for again
_CONTROLLER = "effort_controller"
_SETTLED = 0.2  # [s] of the wall without joint states after which a world has come to a stop
_STANDS = 1.0  # [s] of the wall after which a world whose clock stands, and tells no state, waits
_HELD = 200_000_000
"""Time [ns] for which joints stay held in a world that waits: feet must tell that they stand."""


@dataclass(frozen=True)
class GazeboRelayConfig(RobotConfig):
    """Parameters of the relay."""

    ros2_control: bool = parameter(
        False,
        "Whether gz_ros2_control drives the robot: the world waits from the first command on, and "
        f"'{_CONTROLLER}' is activated {1e-9 * _HELD:g} s later, until which efforts are unknown",
        read_only=True,
    )
    trajectories: bool = parameter(
        False,
        f"Whether '{TRAJECTORIES}' of gz_ros2_control drives the robot instead: it gets what "
        "comes for joint_trajectory_controller, and efforts are what it says it commands",
        read_only=True,
    )


class GazeboRelay(Node):
    """Stands between Gazebo, bridged to ROS, and the nodes of one robot.

    A world that starts paused waits for each command, which lets it run until the next joint
    state: a robot that no controller holds would fall, and torques that come late by the wall's
    clock would not be those that its states call for. A world that somebody lets run is left
    alone. Until the first step Gazebo tells nothing of a floating base: it stands at rest.
    With gz_ros2_control the world runs, and joints are held, until the first command; then it
    waits, too, and after a while torques drive the joints. States carry no efforts until then:
    nobody tells what holds them.

    Raises
    ------
    SysidError
        If the robot cannot be loaded, or ros_gz_interfaces or controller_manager_msgs is needed
        and not installed.
    """

    def __init__(self) -> None:
        super().__init__("gazebo_relay")
        config = NodeParameters(self, GazeboRelayConfig()).config
        self.robot = config.load_robot(self)
        names, feet = self.robot.actuated_names, self.robot.description.contacts
        self._start = start_configuration(self.robot)
        joints = self._start[len(self._start) - len(self.robot.joint_names) :]
        self._rest = joints[self.robot.actuated]
        self._driver = JointConversion.described(self.robot)
        self._effort = np.zeros(len(names))
        self._waits, self._steps = True, False
        self._allowed, self._asked, self._told = 0, -np.inf, -np.inf
        self._newest, self._order, self._index = -1, [""], np.zeros(0, dtype=int)
        self._touched = {contact.name: -_TOUCH - 1 for contact in feet}
        self._states = self.create_publisher(JointState, "joint_states", _DEPTH)
        self._ticks = self.create_publisher(Clock, "gazebo/clock", 1)
        self._forces = [self.create_publisher(Float64, f"gazebo/force/{n}", 1) for n in names]
        contacts, control = (
            installed_type(f"ros_gz_interfaces/{kind}", "ros-gz-bridge")
            for kind in ("msg/Contacts", "srv/ControlWorld")
        )
        if self.robot.floating:
            self._odometry = self.create_publisher(Odometry, "odom", _DEPTH)
            self._contacts = self.create_publisher(Contacts, "contacts", _DEPTH)
            self.create_subscription(Odometry, "gazebo/odom", self._on_odometry, _WAITING)
        for contact in feet:
            take = partial(self._on_touch, contact.name)
            # the newest: those of every step would wait in line behind the joint states
            self.create_subscription(contacts, f"gazebo/contacts/{contact.name}", take, 1)
        self._request, self._stop = control.Request(), control.Request()
        for request in (self._request, self._stop):
            request.world_control.pause = True
        self._request.world_control.multi_step = steps_of(self.robot)
        self._control = self.create_client(control, f"/world/{WORLD}/control")
        depth = WAITING if config.trajectories else _WAITING
        self.create_subscription(JointState, "gazebo/joint_states", self._on_states, depth)
        waits = config.ros2_control and not config.trajectories
        self._switch = EffortSwitch(self, _CONTROLLER) if waits else None
        self._early: deque[JointState] = deque(maxlen=WAITING)
        self._motions = self._trajectory_relay() if config.trajectories else None
        self._pause: Any = None
        self._commanded, self._began = False, -1
        self._last: JointState | None = None
        self._world_time, self._moved, self._world_clock = -1, monotonic(), None
        if self._switch is not None:  # whose joint states stop while the world waits
            clock, heard = f"/world/{WORLD}/clock", self._on_world_clock
            self._world_clock = self.create_subscription(Clock, clock, heard, 1)
            steady = SteadyClock(clock_type=ClockType.STEADY_TIME)
            self.create_timer(_REPEAT, self._keep_going, clock=steady)
        topic = f"{_CONTROLLER}/commands"
        self.create_subscription(Float64MultiArray, topic, self._on_command, 1)

    def _trajectory_relay(self) -> TrajectoryRelay:
        if self._driver.motor_side:
            raise ParameterError(
                f"robot '{self.robot.name}' has its motors' positions published, which no "
                "trajectory controller in Gazebo knows"
            )
        rest = self._driver.published_position(self._rest)
        return TrajectoryRelay(self, self.robot.actuated_names, rest, self._take_early)

    def _on_command(self, message: Float64MultiArray) -> None:
        effort = command_array(message)
        if len(effort) != len(self._forces) or not np.isfinite(effort).all():
            return
        self._effort = effort
        if self._switch is not None:
            self._commanded = True
            if 0 <= self._began <= self._newest - _HELD:
                self._switch.ask()
            self._step()
            return
        for publisher, value in zip(self._forces, effort.tolist(), strict=True):
            publisher.publish(Float64(data=value))
        self._step()

    def _step(self) -> None:
        """Let a world that waits run for one period, unless it is asked to already."""
        now, asked = monotonic(), self._allowed > self._newest
        if not self._steps or (asked and now - self._asked < _REPEAT):
            return
        if self._control.service_is_ready():
            self._asked, self._allowed = now, max(self._allowed, self._newest) + _PERIOD
            self._control.call_async(self._request)

    def _keep_going(self) -> None:
        """Have a world wait once there are commands; say again what was lost while it waits."""
        if self._last is None:
            self._wake()
            return
        if self._world_clock is not None:  # it has told what it was for, at a great rate
            self.destroy_subscription(self._world_clock)
            self._world_clock = None
        if not self._commanded:
            return
        if self._pause is None and self._control.service_is_ready():
            self._pause = self._control.call_async(self._stop)
        elif self._pause is not None and self._pause.done():
            quiet = monotonic() - self._told
            if self._began < 0 and quiet > _SETTLED:
                self._steps = True
                self._began = self._allowed = self._newest
                self._step()
            elif self._steps and quiet > _REPEAT:
                self._on_states(self._last)

    def _on_world_clock(self, message: Clock) -> None:
        told = nanoseconds(message.clock)
        if told != self._world_time:
            self._world_time, self._moved = told, monotonic()

    def _wake(self) -> None:
        """Let a world run for one period that waits already, as one does for a relay that ended.

        It would tell no joint state otherwise, without which no command comes.
        """
        now = monotonic()
        stands = self._world_time >= 0 and now - self._moved > _STANDS
        if stands and now - self._asked > _STANDS and self._control.service_is_ready():
            self._asked, self._commanded, self._waits = now, True, False
            self._pause = self._control.call_async(self._request)
            self.get_logger().info("the world waits already: it is let run for one period")

    def _on_odometry(self, message: Odometry) -> None:
        """Publish how the base moves; Gazebo tells it of the model, which begins at the origin."""
        pose, twist = odometry_arrays(message)
        base = pin.XYZQUATToSE3(self._start[:7])
        moved = pin.SE3ToXYZQUAT(pin.XYZQUATToSE3(pose) * base)
        twist = base.actInv(pin.Motion(twist)).vector
        self._tell_base(message.header.stamp, moved, twist)

    def _tell_base(self, when: Time, pose: FloatArray, twist: FloatArray) -> None:
        frame = self.robot.layout.bodies[0]
        told = odometry_message(when, pose, twist, frame="odom", child_frame=frame)
        self._odometry.publish(told)

    def _on_touch(self, name: str, message: Any) -> None:
        self._touched[name] = nanoseconds(message.header.stamp)

    def _on_states(self, message: JointState) -> None:
        """Take a joint state, or have it wait until what drove the joints is told."""
        if self._motions is None:
            self._take_states(message)
            return
        self._early.append(message)
        self._take_early()

    def _take_early(self) -> None:
        """Take those that waited; one whose effort was lost tells nothing, and is left out."""
        while self._early and self._motions is not None:
            when = nanoseconds(self._early[0].header.stamp)
            if self._motions.lags(when):
                if not self._motions.passed(when):
                    return
                self._early.popleft()
            else:
                self._take_states(self._early.popleft())

    def _take_states(self, message: JointState) -> None:
        newest = nanoseconds(message.header.stamp)
        if newest == self._newest:
            self._steps |= self._waits
            if not self._steps or monotonic() - self._told < _REPEAT:
                return
        elif self._newest >= 0:
            self._waits = False
            self._note_jump(newest)
        self._newest, self._told, self._last = newest, monotonic(), message
        if list(message.name) != self._order:
            known = {name: at for at, name in enumerate(message.name)}
            if not set(self.robot.actuated_names) <= set(known):
                return
            self._index = np.array([known[name] for name in self.robot.actuated_names])
            self._order = list(message.name)
        if self.robot.floating:
            self._publish_base(message.header.stamp, newest)
        self._ticks.publish(Clock(clock=message.header.stamp))
        position, velocity, _ = joint_arrays(message)
        position, velocity = self._rest + position[self._index], velocity[self._index]
        told = self._effort_until(newest)
        acted = self._effort if told is None else told
        position, velocity, effort = self._driver.published(position, velocity, acted)
        names, stamp = self.robot.actuated_names, message.header.stamp
        told = None if told is None else effort
        self._states.publish(joint_state_message(names, stamp, position, velocity, told))

    def _effort_until(self, newest: int) -> FloatArray | None:
        """Return the efforts (na,) that led to a joint state; None while nobody tells them."""
        if self._motions is not None:
            return self._motions.effort(newest)
        return self._effort if self._switch is None or self._switch.drives else None

    def _note_jump(self, newest: int) -> None:
        """Notice a world that was reset, or that runs without being asked."""
        if newest < self._newest:
            self._touched = dict.fromkeys(self._touched, -_TOUCH - 1)
            self._allowed = newest
        elif self._steps and newest > max(self._allowed, self._newest) + _PERIOD // 2:
            self._steps = False
            self.get_logger().info("the world runs by itself: it waits for no commands")

    def _publish_base(self, when: Time, newest: int) -> None:
        """Publish the feet's contacts, and the base's rest while the world waits."""
        if self._waits:
            self._touched = dict.fromkeys(self._touched, newest)
            self._tell_base(when, self._start[:7], np.zeros(6))
        active = np.array([newest - touched <= _TOUCH for touched in self._touched.values()])
        self._contacts.publish(contacts_message(when, list(self._touched), active, None))


def main() -> int:
    """Run the relay."""
    return run_node("gazebo_relay", GazeboRelay)
