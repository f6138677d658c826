# SPDX-License-Identifier: Apache-2.0
"""Quality-of-service profiles."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from sysid_embedded.qos_policies import Profile

from .duration import Duration

__all__ = [
    "DurabilityPolicy",
    "HistoryPolicy",
    "InvalidQoSProfileException",
    "LivelinessPolicy",
    "QoSDurabilityPolicy",
    "QoSHistoryPolicy",
    "QoSLivelinessPolicy",
    "QoSProfile",
    "QoSReliabilityPolicy",
    "ReliabilityPolicy",
    "qos_profile_action_status_default",
    "qos_profile_default",
    "qos_profile_parameter_events",
    "qos_profile_parameters",
    "qos_profile_sensor_data",
    "qos_profile_services_default",
    "qos_profile_system_default",
]

_INFINITE_NS = 2**63 - 1


class InvalidQoSProfileException(Exception):  # noqa: N818 - rclpy's name
    """A profile's arguments don't make a profile."""

    def __init__(self, *args: Any) -> None:
        super().__init__("Invalid QoSProfile", *args)


class HistoryPolicy(IntEnum):
    """How many samples to keep."""

    SYSTEM_DEFAULT = 0
    KEEP_LAST = 1
    KEEP_ALL = 2
    UNKNOWN = 3


class ReliabilityPolicy(IntEnum):
    """Whether lost samples are sent again."""

    SYSTEM_DEFAULT = 0
    RELIABLE = 1
    BEST_EFFORT = 2
    UNKNOWN = 3


class DurabilityPolicy(IntEnum):
    """Whether late subscribers get earlier samples."""

    SYSTEM_DEFAULT = 0
    TRANSIENT_LOCAL = 1
    VOLATILE = 2
    UNKNOWN = 3


class LivelinessPolicy(IntEnum):
    """How a publisher shows that it is alive."""

    SYSTEM_DEFAULT = 0
    AUTOMATIC = 1
    MANUAL_BY_TOPIC = 3
    UNKNOWN = 4


QoSHistoryPolicy = HistoryPolicy
QoSReliabilityPolicy = ReliabilityPolicy
QoSDurabilityPolicy = DurabilityPolicy
QoSLivelinessPolicy = LivelinessPolicy

_DEFAULTS: dict[str, Any] = {
    "depth": 10,
    "reliability": ReliabilityPolicy.RELIABLE,
    "durability": DurabilityPolicy.VOLATILE,
    "lifespan": Duration(),
    "deadline": Duration(),
    "liveliness": LivelinessPolicy.SYSTEM_DEFAULT,
    "liveliness_lease_duration": Duration(),
    "avoid_ros_namespace_conventions": False,
}
_ENUMS: dict[str, type[IntEnum]] = {
    "history": HistoryPolicy,
    "reliability": ReliabilityPolicy,
    "durability": DurabilityPolicy,
    "liveliness": LivelinessPolicy,
}


class QoSProfile:
    """A set of policies; history or depth must be given, the others have defaults."""

    history: HistoryPolicy
    depth: int
    reliability: ReliabilityPolicy
    durability: DurabilityPolicy
    lifespan: Duration
    deadline: Duration
    liveliness: LivelinessPolicy
    liveliness_lease_duration: Duration
    avoid_ros_namespace_conventions: bool

    def __init__(self, **policies: Any) -> None:
        unknown = set(policies) - set(_DEFAULTS) - {"history"}
        if unknown:
            raise AssertionError(f"Invalid arguments passed to constructor: {sorted(unknown)!r}")
        if "history" not in policies:
            if "depth" not in policies:
                raise InvalidQoSProfileException("History and/or depth settings are required.")
            policies["history"] = HistoryPolicy.KEEP_LAST
        if policies["history"] == HistoryPolicy.KEEP_LAST and "depth" not in policies:
            raise InvalidQoSProfileException("History set to KEEP_LAST without a depth setting.")
        for name, value in {**_DEFAULTS, **policies}.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _ENUMS:
            if not isinstance(value, int):
                raise AssertionError(f"'{name}' must be a {_ENUMS[name].__name__}")
            value = _ENUMS[name](value)
        elif name not in _DEFAULTS:
            raise AttributeError(f"'QoSProfile' object has no attribute '{name}'")
        elif not isinstance(value, type(_DEFAULTS[name])):
            raise AssertionError(f"'{name}' must be a {type(_DEFAULTS[name]).__name__}")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, QoSProfile) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"QoSProfile({', '.join(f'{key}={value}' for key, value in vars(self).items())})"

    def _to_profile(self) -> Profile:
        """Return the form that the DDS layer takes."""

        def span(duration: Duration) -> int:
            return 0 if duration.nanoseconds >= _INFINITE_NS else duration.nanoseconds

        keep_all = self.history == HistoryPolicy.KEEP_ALL
        return Profile(
            depth=0 if keep_all else max(self.depth, 1),
            reliable=self.reliability != ReliabilityPolicy.BEST_EFFORT,
            transient_local=self.durability == DurabilityPolicy.TRANSIENT_LOCAL,
            manual_liveliness=self.liveliness == LivelinessPolicy.MANUAL_BY_TOPIC,
            lifespan=span(self.lifespan),
            deadline=span(self.deadline),
            lease=span(self.liveliness_lease_duration),
        )


qos_profile_default = QoSProfile(depth=10)
qos_profile_system_default = QoSProfile(
    history=HistoryPolicy.SYSTEM_DEFAULT,
    depth=0,
    reliability=ReliabilityPolicy.SYSTEM_DEFAULT,
    durability=DurabilityPolicy.SYSTEM_DEFAULT,
)
qos_profile_sensor_data = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
qos_profile_services_default = QoSProfile(depth=10)
qos_profile_parameters = QoSProfile(depth=1000)
qos_profile_parameter_events = QoSProfile(depth=1000)
qos_profile_action_status_default = QoSProfile(
    depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL
)
