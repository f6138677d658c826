# SPDX-License-Identifier: Apache-2.0
"""Sim time: `use_sim_time` makes a node's clock follow /clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sysid_embedded.messages import message_class

from .clock import ROSClock
from .clock_type import ClockType
from .parameter import Parameter
from .qos import QoSProfile, ReliabilityPolicy
from .time import Time

if TYPE_CHECKING:
    from .node import Node

__all__ = ["CLOCK_TOPIC", "USE_SIM_TIME_NAME", "TimeSource"]

CLOCK_TOPIC = "/clock"
USE_SIM_TIME_NAME = "use_sim_time"


class TimeSource:
    """Drives the clock of a node."""

    def __init__(self, node: Node, clock: ROSClock) -> None:
        self._node = node
        self._clock = clock
        self._subscription: Any = None
        if not node.has_parameter(USE_SIM_TIME_NAME):
            node.declare_parameter(USE_SIM_TIME_NAME, False)
        self._follow(bool(node.get_parameter(USE_SIM_TIME_NAME).value))
        node.add_on_set_parameters_callback(self._refuse_other_types)
        node.add_post_set_parameters_callback(self._changed)

    def _refuse_other_types(self, parameters: list[Parameter]) -> Any:
        result = message_class("rcl_interfaces/msg/SetParametersResult")(successful=True)
        for parameter in parameters:
            if parameter.name == USE_SIM_TIME_NAME and parameter.type_ is not Parameter.Type.BOOL:
                result.successful = False
                result.reason = f"{USE_SIM_TIME_NAME} parameter set to something besides a bool"
        return result

    def _changed(self, parameters: list[Parameter]) -> None:
        for parameter in parameters:
            if parameter.name == USE_SIM_TIME_NAME:
                self._follow(bool(parameter.value))

    def _follow(self, enabled: bool) -> None:
        if enabled and self._subscription is None:
            self._subscription = self._node.create_subscription(
                message_class("rosgraph_msgs/msg/Clock"),
                CLOCK_TOPIC,
                self._on_clock,
                QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
            )
        elif not enabled and self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
        self._clock._set_ros_time_is_active(enabled)

    def _on_clock(self, message: Any) -> None:
        if message.clock.sec < 0:
            return  # no clock of a simulation; a node must not end because of it
        self._clock.set_ros_time_override(
            Time.from_msg(message.clock, clock_type=ClockType.ROS_TIME)
        )
