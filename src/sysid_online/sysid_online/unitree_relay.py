# SPDX-License-Identifier: Apache-2.0
"""The Unitree relay: what a Go2 or G1 tells of itself in, the recorder's topics out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import Imu

from sysid_core.diagnostics import Severity
from sysid_core.errors import DataError
from sysid_core.settings import parameter
from sysid_online.relay import DEPTH, Relay, RelayConfig, built_type
from sysid_online.unitree import (
    ROBOTS,
    FootLoads,
    RobotClock,
    base_state,
    inertial,
    motor_rows,
    orientation,
)
from sysid_ros.fields import NANO, nanoseconds, stamp
from sysid_ros.node_main import run_node
from sysid_ros.sensors import contacts_message, imu_message, joint_state_message

__all__ = ["UnitreeRelay", "UnitreeRelayConfig", "main"]

_TICK = 1_000_000  # [ns]
_SOURCE = "github.com/unitreerobotics/unitree_ros2"


@dataclass(frozen=True)
class UnitreeRelayConfig(RelayConfig):
    """Parameters of the Unitree relay."""

    model: str = parameter(
        "go2",
        "Which robot it is, Go2 (B2 sends the same) or G1 with 29 joints: that decides message "
        "types, topics, the joints' order and names",
        choices=tuple(ROBOTS),
        read_only=True,
    )
    contact_share: float = parameter(
        0.5,
        "Share of what a foot shows while all stand, above which it counts as in contact [-]. "
        "More where feet in the air show much",
        range=(0.05, 1.0),
    )


class UnitreeRelay(Relay[UnitreeRelayConfig]):
    """Passes on joint states, inertial readings, contacts and odometry, all on this node's clock.

    LowState tells the time in milliseconds (`tick`), SportModeState in a stamp of the robot's; how
    far these are from this computer's clock shows in the messages that come.

    Raises
    ------
    ParameterError
        If a parameter cannot be used, or Unitree's message packages are missing.
    """

    def __init__(self) -> None:
        super().__init__("unitree_relay", UnitreeRelayConfig())
        self._robot = ROBOTS[self.config.model]
        self._unit: Any = None  # The newest inertial readings
        self._tick = 0
        self._clocks = RobotClock(), RobotClock()  # Of LowState and of SportModeState
        self._feet = FootLoads()
        self._imu = self.create_publisher(Imu, "imu/data", DEPTH)
        low_state = built_type(f"{self._robot.package}/msg/LowState", _SOURCE)
        odometry = built_type("unitree_go/msg/SportModeState", _SOURCE)
        self.hear(low_state, "lowstate", self._on_low_state, Severity.ERROR)
        self.hear(odometry, self._robot.odometry, self._on_odometry, Severity.WARNING)

    def _on_low_state(self, state: Any) -> None:
        before, self._tick = self._tick, int(state.tick)
        if before == self._tick != 0:  # which stays at zero where nothing counts it
            raise DataError("states that repeat the tick of the one before")
        self._unit = state.imu_state
        when = self._sent(self._clocks[0], self._tick * _TICK)
        if when is not None:
            for tell in (self._tell_joints, self._tell_inertial, self._tell_contacts):
                self.attempt(tell, when, state)

    def _sent(self, clock: RobotClock, told: int) -> Time | None:
        sent = clock.sent(told, self.get_clock().now().nanoseconds)
        return None if sent is None else stamp(sent / NANO)

    def _tell_joints(self, when: Time, state: Any) -> None:
        names = self._robot.joints
        self._joints.publish(joint_state_message(names, when, *motor_rows(state, len(names))))

    def _tell_inertial(self, when: Time, state: Any) -> None:
        turn = orientation(state.imu_state)
        self._imu.publish(imu_message(when, *inertial(state.imu_state), turn, frame="imu"))

    def _tell_contacts(self, when: Time, state: Any) -> None:
        if not self._robot.feet:
            return
        forces = np.array(state.foot_force, dtype=float)
        standing = self._feet.standing(forces, self.config.contact_share)
        if standing is not None:
            self._contacts.publish(contacts_message(when, self._robot.feet, standing, None))

    def _on_odometry(self, state: Any) -> None:
        when = self._sent(self._clocks[1], nanoseconds(state.stamp))
        if when is None or self._unit is None:
            return
        pose, twist = base_state(state, self._unit, self.config.velocity_frame)
        self.tell_base(when, pose, twist, "odom", self._robot.base)


def main() -> int:
    """Run the Unitree relay."""
    return run_node("unitree_relay", UnitreeRelay)
