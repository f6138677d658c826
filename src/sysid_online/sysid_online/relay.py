# SPDX-License-Identifier: Apache-2.0
"""What relays share: a robot's own messages in, the recorder's topics out, counts of the rest."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from sensor_msgs.msg import JointState

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.errors import DataError, ParameterError
from sysid_core.settings import check_config, parameter
from sysid_msgs.msg import Contacts
from sysid_ros.diagnostics import clock_fault, diagnostics_message, risen
from sysid_ros.parameters import NodeParameters
from sysid_ros.plain import installed_type
from sysid_ros.qos import readings
from sysid_ros.sensors import odometry_message

__all__ = ["DEPTH", "Relay", "RelayConfig", "built_type"]

DEPTH = 100  # Messages that wait for a subscriber that is held up
_STALE = 0.5  # [s] without a topic's messages from which on the diagnostics tell


@dataclass(frozen=True)
class RelayConfig:
    """Parameters that relays share."""

    velocity_frame: str = parameter(
        "world",
        "Frame that the robot tells its base's velocity in; odom gets it in the base frame. The "
        "recorder says so if it is the wrong one",
        choices=("base", "world"),
    )

    def __post_init__(self) -> None:
        check_config(self)


ConfigT = TypeVar("ConfigT", bound=RelayConfig)


def built_type(name: str, source: str) -> Any:
    """Return the class of a message that no distribution brings; `source` is its repository.

    Raises
    ------
    ParameterError
        If it is not installed.
    """
    how = f"build it from {source} and source that workspace, or, without ROS 2, name the folder"
    return installed_type(name, "", f"{how} that its package lies in: SYSID_INTERFACES=FOLDER")


class Relay(Node, Generic[ConfigT]):
    """Publishes what a robot tells in messages of its own; what is no reading is left out.

    Raises
    ------
    ParameterError
        If a parameter cannot be used.
    """

    def __init__(self, name: str, config: ConfigT) -> None:
        super().__init__(name)
        self.node_parameters = NodeParameters(self, config)
        self.left_out: Counter[str] = Counter()
        self._reported: Counter[str] = Counter()
        self._heard: dict[str, tuple[Severity, float]] = {}
        self._messages = 0
        self._joints = self.create_publisher(JointState, "joint_states", DEPTH)
        self._odometry = self.create_publisher(Odometry, "odom", DEPTH)
        self._contacts = self.create_publisher(Contacts, "contacts", DEPTH)
        self._diagnostics = self.create_publisher(DiagnosticArray, "diagnostics", 10)
        # by the wall's clock: who waits for a /clock that never comes is told so
        self.create_timer(1.0, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))

    @property
    def config(self) -> ConfigT:
        """The parameters as they are now."""
        return self.node_parameters.config

    def hear(self, kind: Any, topic: str, take: Callable[[Any], None], missing: Severity) -> None:
        """Take a topic's messages; how bad it is if they are missing, the diagnostics say.

        Raises
        ------
        ParameterError
            If it is the topic that joint states are published on.
        """

        def arrive(message: Any) -> None:
            self._heard[name] = missing, time.monotonic()
            self._messages += 1
            self.attempt(take, message)

        name = self.create_subscription(kind, topic, arrive, readings()).topic_name
        if name == self._joints.topic_name:
            raise ParameterError(
                f"joint states come in and go out on '{name}': start the relay in a namespace of "
                "its own, or remap 'joint_states'"
            )
        self._heard[name] = missing, time.monotonic()

    def attempt(self, take: Callable[..., None], *what: Any) -> None:
        """Call a function; what it refuses with a `DataError` is counted by the error's text."""
        try:
            take(*what)
        except DataError as error:
            self.left_out[str(error)] += 1

    def tell_base(
        self, when: Time, pose: FloatArray, twist: FloatArray, frame: str, child_frame: str
    ) -> None:
        """Publish a base's pose (7,) and twist (6,) in its own frame.

        Raises
        ------
        DataError
            If one of the numbers is not finite.
        """
        if not (np.isfinite(pose).all() and np.isfinite(twist).all()):
            raise DataError("odometry with numbers that are not finite")
        message = odometry_message(when, pose, twist, frame=frame, child_frame=child_frame)
        self._odometry.publish(message)

    def _report(self) -> None:
        troubles = risen(self.left_out, self._reported)
        self._reported = self.left_out.copy()
        troubles += filter(None, [clock_fault(self)])
        severity = Severity.WARNING if troubles else Severity.OK
        for topic, (missing, last) in self._heard.items():
            idle = time.monotonic() - last
            if idle > _STALE:
                troubles.append(f"nothing on '{topic}' for {idle:.1f} s: is the robot there?")
                severity = max(severity, missing)
        values = {"messages": self._messages, **self.left_out}
        diagnostic = Diagnostic(
            "relay",
            "; ".join(troubles) or "relaying",
            severity,
            values={key: str(value) for key, value in values.items()},
        )
        self._diagnostics.publish(diagnostics_message(self, self.get_name(), [diagnostic]))
