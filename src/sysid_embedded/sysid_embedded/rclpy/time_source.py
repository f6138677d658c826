# SPDX-License-Identifier: Apache-2.0
"""Sim time: `use_sim_time` makes a node's clock follow /clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sysid_embedded.messages import message_class

from .clock import NANO, ROSClock
from .parameter import Parameter
from .qos import QoSProfile, ReliabilityPolicy

if TYPE_CHECKING:
    from .node import Node

__all__ = ["TimeSource"]

_NAME = "use_sim_time"


class TimeSource:
    """Drives the clock of a node."""

    def __init__(self, node: Node, clock: ROSClock) -> None:
        self._node = node
        self._clock = clock
        self._subscription: Any = None
        self._follow(node.declare_parameter(_NAME, False).value)
        node.add_post_set_parameters_callback(self._changed)

    def _changed(self, parameters: list[Parameter]) -> None:
        for parameter in parameters:
            if parameter.name == _NAME:
                self._follow(parameter.value)

    def _follow(self, enabled: bool) -> None:
        if enabled and self._subscription is None:
            self._subscription = self._node.create_subscription(
                message_class("rosgraph_msgs/msg/Clock"),
                "/clock",
                self._on_clock,
                QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT),
            )
        elif not enabled and self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
        self._clock.ros_time_is_active = enabled

    def _on_clock(self, message: Any) -> None:
        time = message.clock
        if time.sec >= 0:  # whatever others send must not end the node
            self._clock.override_ns = time.sec * NANO + time.nanosec
