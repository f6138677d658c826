# SPDX-License-Identifier: Apache-2.0
"""Activates a controller of ros2_control once there are commands for it."""

from time import monotonic
from typing import Any

from rclpy.node import Node

from sysid_ros.plain import installed_type

__all__ = ["EffortSwitch"]

_REPEAT = 0.1  # [s] of the wall after which it is asked again what the controller does
_LOST = 5.0  # [s] of the wall after which an answer no longer comes


class EffortSwitch:
    """Whether a controller drives: until then gz_ros2_control holds the joints it would command.

    Active without commands it commands nothing, and the robot falls until its own controller has
    started; so it is loaded inactive, and activated at the first command.

    Raises
    ------
    ParameterError
        If controller_manager_msgs is not installed.
    """

    def __init__(self, node: Node, controller: str) -> None:
        self._name, self._logger = controller, node.get_logger()
        listing, switching = (
            installed_type(f"controller_manager_msgs/srv/{kind}", "controller-manager")
            for kind in ("ListControllers", "SwitchController")
        )
        self._list = node.create_client(listing, "controller_manager/list_controllers")
        self._switch = node.create_client(switching, "controller_manager/switch_controller")
        self._listed = listing.Request()
        self._wanted = switching.Request(activate_controllers=[controller])
        self._wanted.strictness = switching.Request.STRICT
        self._asked: Any = None
        self._last = -float("inf")
        self.drives = False

    def ask(self) -> None:
        """Ask for what is missing, unless an answer is still to come; for every command."""
        since = monotonic() - self._last
        waits = self._asked is not None and not self._asked.done()
        if self.drives or since < (_LOST if waits else _REPEAT):
            return
        if self._list.service_is_ready() and self._switch.service_is_ready():
            self._last = monotonic()
            self._asked = self._list.call_async(self._listed)
            self._asked.add_done_callback(self._on_listed)

    def _on_listed(self, answer: Any) -> None:
        states = {c.name: c.state for c in answer.result().controller}
        if states.get(self._name) == "active":
            self.drives = True
        elif states.get(self._name) == "inactive":
            self._asked = self._switch.call_async(self._wanted)
            self._asked.add_done_callback(self._on_switched)

    def _on_switched(self, answer: Any) -> None:
        if answer.result().ok:
            self.drives = True
            self._logger.info(f"'{self._name}' is activated: there are commands for it")
