# SPDX-License-Identifier: Apache-2.0
"""The replay node: publishes a bag or table as the robot's driver would, with or without ROS 2."""

from dataclasses import dataclass

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage
from sensor_msgs.msg import Imu, JointState

from sysid_core.data import read_recording, recorded_messages
from sysid_core.errors import DataError
from sysid_core.settings import check_config, parameter
from sysid_msgs.msg import Contacts
from sysid_ros.fields import stamp
from sysid_ros.node_main import run_node
from sysid_ros.parameters import NodeParameters

__all__ = ["ReplayConfig", "ReplayNode", "main"]

_TICK = 0.005  # [s] between two looks at what is due

_TOPICS = {"joint_states": JointState, "odom": Odometry, "contacts": Contacts, "imu/data": Imu}


@dataclass(frozen=True)
class ReplayConfig:
    """Parameters of the replay."""

    data: str = parameter("", "Bag folder, .mcap, .db3 or .csv to publish", read_only=True)
    speed: float = parameter(
        1.0, "Speed of the replay over real time [-]", range=(0.01, 100.0), read_only=True
    )
    loop: bool = parameter(False, "Start again at the end", read_only=True)
    start_delay: float = parameter(
        1.0,
        "Wait before the first message, in which subscribers find the replay [s]",
        range=(0.0, 600.0),
        read_only=True,
    )

    def __post_init__(self) -> None:
        check_config(self)


class ReplayNode(Node):
    """Publishes the messages of a recording at their own pace, and the clock with them."""

    def __init__(self) -> None:
        super().__init__("replay")
        self._config = NodeParameters(self, ReplayConfig()).config
        data = self._config.data
        if not data:
            raise DataError("parameter 'data' is empty: give a bag or table to replay")
        self._recording = read_recording(data)
        self._topics = {
            f"/{name}": self.create_publisher(kind, name, 1000) for name, kind in _TOPICS.items()
        }
        self._time = self.create_publisher(ClockMessage, "clock", 10)
        self._first = float(np.nanmin(self._recording.time))
        self._wall = Clock(clock_type=ClockType.STEADY_TIME)
        self.done = False
        self._rewind(self._config.start_delay)
        self.create_timer(_TICK, self._tick, clock=self._wall)
        self.get_logger().info(f"replaying {len(self._recording)} joint states of {data}")

    def _rewind(self, delay: float) -> None:
        self._messages = recorded_messages(self._recording, self._config.data)
        self._next = next(self._messages, None)
        self._begin = 1e-9 * self._wall.now().nanoseconds + delay

    def _tick(self) -> None:
        elapsed = 1e-9 * self._wall.now().nanoseconds - self._begin
        if elapsed < 0.0:
            return
        now = self._first + elapsed * self._config.speed
        self._time.publish(ClockMessage(clock=stamp(now)))
        while self._next is not None and 1e-9 * self._next[1] <= now:
            topic, _, content = self._next
            self._topics[topic].publish(bytes(content))
            self._next = next(self._messages, None)
        if self._next is None and not self.done:
            if self._config.loop:
                self._rewind(0.0)
                return
            self.done = True
            self.get_logger().info("replay finished")


def main() -> int:
    """Run the replay node until the recording ends."""
    return run_node("replay", ReplayNode, done=lambda node: node.done)
