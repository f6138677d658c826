# SPDX-License-Identifier: Apache-2.0
"""Nodes."""

from collections.abc import Callable
from typing import Any

from sysid_embedded.messages import message_class
from sysid_embedded.qos_policies import to_dds

from ._endpoints import Client, Publisher, Service, Subscription
from ._node_base import NodeBase, _check_interface
from ._node_parameters import ParameterService
from .callback_groups import MutuallyExclusiveCallbackGroup
from .clock import NANO, Clock, Timer, TimeSource
from .context import Context, get_default_context
from .exceptions import NotInitializedException
from .logging import Record, _system
from .parameter import Parameter
from .qos import (
    DurabilityPolicy,
    QoSProfile,
    qos_profile_parameter_events,
    qos_profile_services_default,
)

__all__ = ["Node"]

_ROSOUT = QoSProfile(
    depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL, lifespan_ns=10 * NANO
)


class Node(NodeBase):
    """A named participant with parameters, publishers, subscriptions, services and timers."""

    def __init__(
        self,
        node_name: str,
        *,
        context: Context | None = None,
        cli_args: list[str] | None = None,
        namespace: str | None = None,
        parameter_overrides: list[Parameter] | None = None,
    ) -> None:
        context = get_default_context() if context is None else context
        if not context.ok():
            raise NotInitializedException("rclpy.init() has not been called: cannot create node")
        super().__init__(node_name, context, cli_args, namespace or "")
        context.graph.add_node(self._namespace, self._name)
        self._start_rosout()
        self._parameter_event_publisher = self.create_publisher(
            message_class("rcl_interfaces/msg/ParameterEvent"),
            "/parameter_events",
            qos_profile_parameter_events,
        )
        for arguments in reversed(self._arguments):
            self._parameter_overrides |= arguments.overrides(self._full_name)
        self._parameter_overrides |= {p.name: p.value for p in parameter_overrides or ()}
        self._time_source = TimeSource(self, self._clock)
        self._parameter_service = ParameterService(self)

    def _start_rosout(self) -> None:
        cls: Any = message_class("rcl_interfaces/msg/Log")
        publisher = self._make_publisher(cls, "/rosout", _ROSOUT)

        def outlet(record: Record) -> None:
            message = cls(level=record.severity, name=record.name, msg=record.message)
            message.stamp.sec, message.stamp.nanosec = divmod(record.time_ns, NANO)
            if self._context.ok() and not self._destroyed:
                publisher.publish(message)

        self._rosout_publisher = publisher
        _system.add_outlet(self._logger.name, outlet)

    def _publish_parameter_event(self, event: Any) -> None:
        event.node = self._full_name
        event.stamp = self._clock.now().to_msg()
        self._parameter_event_publisher.publish(event)

    def _changed(self, entity: Any = None) -> None:
        """Tell the others and the executor of a new entity, or that one is gone."""
        servers: list[Any] = [*self._services, *self._clients]
        self._context.graph.update(
            self._namespace,
            self._name,
            [entry.reader.gid for entry in self._reading()],
            [p.handle.gid for p in self._publishing()] + [entry._writer.gid for entry in servers],
        )
        executor = self.executor
        if executor is not None:
            if entity is not None:
                executor._attach(entity)
            executor.wake()

    def create_publisher(
        self, msg_type: Any, topic: str, qos_profile: QoSProfile | int
    ) -> Publisher:
        publisher = self._make_publisher(msg_type, topic, _profile(qos_profile))
        self._publishers.append(publisher)
        self._changed()
        return publisher

    def _make_publisher(self, msg_type: Any, topic: str, profile: QoSProfile) -> Publisher:
        _check_interface(msg_type, service=False)
        name = self._resolve(topic, "topic")
        writer = self._context.participant.writer(
            f"rt{name}", msg_type.definition, to_dds(profile)
        )
        return Publisher(writer, msg_type, name, self._logger.name)

    def create_subscription(
        self,
        msg_type: Any,
        topic: str,
        callback: Callable[[Any], Any],
        qos_profile: QoSProfile | int,
    ) -> Subscription:
        _check_interface(msg_type, service=False)
        name = self._resolve(topic, "topic")
        reader = self._context.participant.reader(
            f"rt{name}", msg_type.definition, to_dds(_profile(qos_profile))
        )
        subscription = Subscription(reader, name, callback)
        self._subscriptions.append(subscription)
        self._changed(subscription)
        return subscription

    def _service_ends(
        self, srv_type: Any, name: str, profile: QoSProfile, *, server: bool
    ) -> tuple[Any, Any]:
        """Return the reader and the writer of one side of a service."""
        _check_interface(srv_type, service=True)
        participant = self._context.participant
        identity = f"{'serviceid' if server else 'clientid'}={participant.identity()}"
        qos = to_dds(profile)
        request = (f"rq{name}Request", srv_type.Request.definition)
        reply = (f"rr{name}Reply", srv_type.Response.definition)
        inward, outward = (request, reply) if server else (reply, request)
        reader = participant.reader(*inward, qos, identity=identity)
        return reader, participant.writer(*outward, qos, identity=identity)

    def create_service(
        self,
        srv_type: Any,
        srv_name: str,
        callback: Callable[[Any, Any], Any],
        *,
        qos_profile: QoSProfile = qos_profile_services_default,
        callback_group: MutuallyExclusiveCallbackGroup | None = None,
    ) -> Service:
        name = self._resolve(srv_name, "service")
        ends = self._service_ends(srv_type, name, qos_profile, server=True)
        service = Service(*ends, srv_type, name, callback)
        self._services.append(service)
        self._changed(service)
        return service

    def create_client(self, srv_type: Any, srv_name: str) -> Client:
        name = self._resolve(srv_name, "service")
        ends = self._service_ends(srv_type, name, qos_profile_services_default, server=False)
        client = Client(self._context, *ends, srv_type, name)
        self._clients.append(client)
        self._changed(client)
        return client

    def create_timer(
        self, timer_period_sec: float, callback: Callable[[], Any], *, clock: Clock | None = None
    ) -> Timer:
        timer = Timer(
            callback,
            int(float(timer_period_sec) * NANO),
            clock or self._clock,
            self._wake_executor,
        )
        self._timers.append(timer)
        self._wake_executor()
        return timer

    def destroy_subscription(self, subscription: Subscription) -> bool:
        return self._destroy_reading(self._subscriptions, subscription)

    def destroy_client(self, client: Client) -> bool:
        return self._destroy_reading(self._clients, client)

    def _destroy_reading(self, entities: list[Any], entity: Any) -> bool:
        if entity not in entities:
            return False
        executor = self.executor
        if executor is not None:
            executor._detach(entity)
        entities.remove(entity)
        entity.destroy()
        self._changed()
        return True

    def destroy_timer(self, timer: Timer) -> bool:
        if timer not in self._timers:
            return False
        self._timers.remove(timer)
        timer.cancel()
        return True

    def destroy_node(self) -> None:
        if self._destroyed:
            return
        self._destroyed = True
        executor = self.executor
        if executor is not None:
            executor.remove_node(self)
        _system.remove_outlet(self._logger.name)
        for entity in (*self._reading(), *self._publishing()):
            entity.destroy()
        lists: list[list[Any]] = [self._timers, self._publishers, self._subscriptions]
        for entities in (*lists, self._services, self._clients):
            entities.clear()
        self._context.graph.remove_node(self._namespace, self._name)


def _profile(qos_profile: QoSProfile | int) -> QoSProfile:
    if isinstance(qos_profile, QoSProfile):
        return qos_profile
    if not isinstance(qos_profile, int):
        raise TypeError(f"Expected QoSProfile or int, but received {type(qos_profile)!r}")
    return QoSProfile(depth=qos_profile)
