# SPDX-License-Identifier: Apache-2.0
"""What a node is before it has publishers and the like: names, lists, its executor."""

import weakref
from typing import Any, NamedTuple

from cyclonedds.qos import Policy

from sysid_embedded import arguments as _names
from sysid_embedded.arguments import Arguments
from sysid_embedded.arguments import parse as _parse
from sysid_embedded.messages import Message
from sysid_embedded.qos_policies import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from ._endpoints import Client, Publisher, Service, Subscription
from ._node_parameters import NodeParameters
from .clock import ROSClock, Timer
from .context import Context
from .exceptions import NameValidationException
from .logging import RcutilsLogger, get_logger

__all__ = ["NodeBase"]


class _EndpointInfo(NamedTuple):
    """What discovery knows of a publisher."""

    topic_type: str
    qos_profile: QoSProfile


class NodeBase(NodeParameters):
    """Base of nodes."""

    def __init__(
        self, node_name: str, context: Context, cli_args: list[str] | None, namespace: str
    ) -> None:
        super().__init__()
        self._context = context
        self._publishers: list[Publisher] = []
        self._subscriptions: list[Subscription] = []
        self._clients: list[Client] = []
        self._services: list[Service] = []
        self._timers: list[Timer] = []
        self._rosout_publisher: Publisher | None = None
        self._executor: weakref.ref[Any] | None = None
        self._destroyed = False
        # Arguments of the node itself come before those of the process.
        own = [] if cli_args is None else [_parse(cli_args)]
        self._arguments: list[Arguments] = [*own, context.arguments]
        self._name, self._namespace = self._resolve_identity(node_name, namespace)
        self._full_name = _names.join(self._namespace, self._name)
        self._logger = get_logger(self._full_name.strip("/").replace("/", "."))
        self._clock = ROSClock()

    def _resolve_identity(self, name: str, namespace: str) -> tuple[str, str]:
        """Return the name and namespace after remapping, checked."""
        if not namespace.startswith("/"):
            namespace = f"/{namespace}"
        for arguments in reversed(self._arguments):
            namespace = arguments.namespace(namespace)
            name = arguments.node_name(name)
        self._check_name("node name", name)
        self._check_name("namespace", namespace)
        return name, namespace

    @staticmethod
    def _check_name(kind: str, name: str) -> None:
        if not _names.is_valid(kind, name):
            raise NameValidationException(kind, name)

    @property
    def context(self) -> Context:
        return self._context

    @property
    def executor(self) -> Any:
        return self._executor() if self._executor is not None else None

    def _set_executor(self, executor: Any) -> None:
        current = self.executor
        if executor is not None and current is not None and current is not executor:
            current.remove_node(self)
        self._executor = None if executor is None else weakref.ref(executor)

    def _wake_executor(self) -> None:
        executor = self.executor
        if executor is not None:
            executor.wake()

    def _reading(self) -> list[Any]:
        """Return everything that has a DDS reader."""
        return [*self._subscriptions, *self._services, *self._clients]

    def _warn(self) -> None:
        """Tell of dropped samples, and of others whose quality of service doesn't fit."""
        for entity in self._reading():
            count = entity.reader.newly_dropped()
            if count:
                self._logger.warning(
                    f"dropped {count} messages on '{entity.name}' that cannot be decoded: "
                    "does the publisher use another definition of the type?"
                )
        for publisher in self._publishers:
            self._warn_of_policy(
                publisher.topic_name, publisher.handle, "subscription", "requesting", "sent to"
            )
        for subscription in self._subscriptions:
            self._warn_of_policy(
                subscription.name, subscription.reader, "publisher", "offering", "received from"
            )

    def _warn_of_policy(self, topic: str, end: Any, peer: str, does: str, way: str) -> None:
        policy = end.newly_incompatible()
        if policy:
            self._logger.warning(
                f"New {peer} discovered on topic '{topic}', {does} incompatible QoS. No messages "
                f"will be {way} it. Last incompatible policy: {policy}"
            )

    def _publishing(self) -> list[Publisher]:
        """Return all publishers, that of the log too."""
        rosout = [] if self._rosout_publisher is None else [self._rosout_publisher]
        return [*self._publishers, *rosout]

    def get_name(self) -> str:
        return self._name

    def get_namespace(self) -> str:
        return self._namespace

    def get_fully_qualified_name(self) -> str:
        return self._full_name

    def get_logger(self) -> RcutilsLogger:
        return self._logger

    def get_clock(self) -> ROSClock:
        return self._clock

    def _resolve(self, name: str, kind: str) -> str:
        """Return the full name of a topic or a service, remapped."""
        self._check_name(f"{kind} name", name)
        full = _names.expand(name, self._name, self._namespace)
        for arguments in self._arguments:
            remapped = arguments.remap(full, self._name, self._namespace)
            if remapped is not None:
                return remapped
        return full

    def _endpoints(self, topic_name: str, *, writers: bool) -> int:
        name = f"rt{_names.expand(topic_name, self._name, self._namespace)}"
        endpoints = self._context.participant.endpoints(writers=writers)
        return sum(endpoint.topic_name == name for endpoint in endpoints)

    def count_publishers(self, topic_name: str) -> int:
        return self._endpoints(topic_name, writers=True)

    def count_subscribers(self, topic_name: str) -> int:
        return self._endpoints(topic_name, writers=False)

    def get_topic_names_and_types(self) -> list[tuple[str, list[str]]]:
        return self._discovered("rt", "")

    def get_service_names_and_types(self) -> list[tuple[str, list[str]]]:
        return self._discovered("rr", "Reply")

    def _discovered(self, prefix: str, suffix: str) -> list[tuple[str, list[str]]]:
        """Return what has DDS topics of a form; of services, only those that are answered."""
        found: dict[str, set[str]] = {}
        for writers in (True, False) if prefix == "rt" else (True,):
            for endpoint in self._context.participant.endpoints(writers=writers):
                name = endpoint.topic_name
                if name.startswith(f"{prefix}/") and name.endswith(suffix):
                    kind = _ros_type(endpoint.type_name)
                    found.setdefault(name[2 : len(name) - len(suffix)], set()).add(kind)
        return [(name, sorted(kinds)) for name, kinds in sorted(found.items())]

    def get_publishers_info_by_topic(self, topic_name: str) -> list[_EndpointInfo]:
        name = f"rt{_names.expand(topic_name, self._name, self._namespace)}"
        infos = []
        for endpoint in self._context.participant.endpoints(writers=True):
            if endpoint.topic_name == name:
                qos = endpoint.qos
                best_effort = Policy.Reliability.BestEffort in qos
                late = Policy.Durability.TransientLocal in qos
                profile = QoSProfile(
                    depth=0,
                    reliability=ReliabilityPolicy(1 + best_effort),
                    durability=DurabilityPolicy(2 - late),
                )
                infos.append(_EndpointInfo(_ros_type(endpoint.type_name), profile))
        return infos


def _ros_type(dds_name: str) -> str:
    """Return ``std_srvs/srv/Trigger`` for ``std_srvs::srv::dds_::Trigger_Response_``."""
    package, folder, _, stem = dds_name.split("::") if "::dds_::" in dds_name else ("", "", "", "")
    if not package:
        return dds_name
    name = stem.removesuffix("_")
    return f"{package}/{folder}/{name.removesuffix('_Response') if folder == 'srv' else name}"


def _check_interface(kind: Any, *, service: bool) -> None:
    """Raise what rclpy raises where a type is no message, or no service."""
    is_message = isinstance(kind, type) and issubclass(kind, Message)
    if not is_message and not hasattr(kind, "Request"):
        raise AttributeError(f"{kind!r} is no interface of the embedded runtime.")
    if service and is_message:
        raise RuntimeError(
            f"The service type provided is not valid ({kind}), this might be a message or action"
        )
    if not service and not is_message:
        raise RuntimeError(
            f"The message type provided is not valid ({kind}), this might be a service or action"
        )
