# SPDX-License-Identifier: Apache-2.0
"""Nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sysid_embedded import log as _log
from sysid_embedded.messages import message_class
from sysid_embedded.qos_policies import to_dds

from ._node_base import NodeBase, _check_interface, _not_supported
from .callback_groups import CallbackGroup
from .client import Client
from .clock import Clock
from .constants import S_TO_NS
from .context import Context
from .duration import Duration
from .exceptions import NotInitializedException
from .logging import _system
from .parameter import Parameter
from .parameter_service import ParameterService
from .publisher import Publisher
from .qos import (
    DurabilityPolicy,
    QoSProfile,
    qos_profile_parameter_events,
    qos_profile_services_default,
)
from .service import Service
from .subscription import Subscription
from .time_source import TimeSource
from .timer import Timer
from .utilities import get_default_context

__all__ = ["Node"]

_ROSOUT_LIFESPAN_S = 10


class Node(NodeBase):
    """A named participant with parameters, publishers, subscriptions, services and timers."""

    def __init__(
        self,
        node_name: str,
        *,
        context: Context | None = None,
        cli_args: list[str] | None = None,
        namespace: str | None = None,
        use_global_arguments: bool = True,
        enable_rosout: bool = True,
        start_parameter_services: bool = True,
        parameter_overrides: list[Parameter] | None = None,
        allow_undeclared_parameters: bool = False,
        automatically_declare_parameters_from_overrides: bool = False,
        enable_logger_service: bool = False,
    ) -> None:
        context = get_default_context() if context is None else context
        if not context.ok():
            raise NotInitializedException("cannot create node")
        if enable_logger_service:
            raise NotImplementedError("the embedded runtime has no logger services")
        super().__init__(
            node_name,
            context,
            cli_args,
            namespace or "",
            use_global_arguments,
            allow_undeclared_parameters,
        )
        context.graph.add_node(self._namespace, self._name)
        if enable_rosout and all(arguments.rosout for arguments in self._arguments):
            self._start_rosout()
        self._parameter_event_publisher = self.create_publisher(
            message_class("rcl_interfaces/msg/ParameterEvent"),
            "/parameter_events",
            qos_profile_parameter_events,
        )
        for arguments in reversed(self._arguments):
            for key, value in arguments.overrides(self._full_name).items():
                self._parameter_overrides[key] = Parameter(key, value=value)
        for parameter in parameter_overrides or ():
            self._parameter_overrides[parameter.name] = parameter
        if automatically_declare_parameters_from_overrides:
            overrides = self._parameter_overrides.items()
            self.declare_parameters("", [(name, p.value) for name, p in overrides], True)
        self._time_source = TimeSource(self, self._clock)
        if start_parameter_services:
            self._parameter_service = ParameterService(self)

    def _start_rosout(self) -> None:
        cls: Any = message_class("rcl_interfaces/msg/Log")
        publisher = self._make_publisher(
            cls,
            "/rosout",
            QoSProfile(
                depth=1000,
                durability=DurabilityPolicy.TRANSIENT_LOCAL,
                lifespan=Duration(seconds=_ROSOUT_LIFESPAN_S),
            ),
        )

        def outlet(record: _log.Record) -> None:
            message = cls(
                level=record.severity,
                name=record.name,
                msg=record.message,
                file=record.file,
                function=record.function,
                line=record.line,
            )
            message.stamp.sec, message.stamp.nanosec = divmod(record.time_ns, 10**9)
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
            [entry.reader.gid for entry in self._reading() if entry.reader is not None],
            [p.handle.gid for p in self._publishing()] + [entry._writer.gid for entry in servers],
        )
        executor = self.executor
        if executor is not None:
            if entity is not None and getattr(entity, "reader", None) is not None:
                executor._attach(entity)
            executor.wake()

    def _profile(self, qos_profile: QoSProfile | int) -> QoSProfile:
        if isinstance(qos_profile, QoSProfile):
            return qos_profile
        if not isinstance(qos_profile, int):
            raise TypeError(f"Expected QoSProfile or int, but received {type(qos_profile)!r}")
        if qos_profile < 0:
            raise ValueError("history depth must be greater than or equal to zero")
        return QoSProfile(depth=qos_profile)

    def create_publisher(
        self,
        msg_type: Any,
        topic: str,
        qos_profile: QoSProfile | int,
        *,
        callback_group: CallbackGroup | None = None,
        event_callbacks: None = None,
        qos_overriding_options: None = None,
        publisher_class: type[Publisher] = Publisher,
    ) -> Publisher:
        """Create a publisher; the quality of service may be just the history's depth."""
        _not_supported(
            event_callbacks=event_callbacks, qos_overriding_options=qos_overriding_options
        )
        publisher = self._make_publisher(
            msg_type, topic, self._profile(qos_profile), publisher_class
        )
        self._publishers.append(publisher)
        self._changed()
        return publisher

    def _make_publisher(
        self,
        msg_type: Any,
        topic: str,
        profile: QoSProfile,
        publisher_class: type[Publisher] = Publisher,
    ) -> Publisher:
        _check_interface(msg_type, service=False)
        name = self._resolve(topic, "topic")
        prefix = "" if profile.avoid_ros_namespace_conventions else "rt"
        writer = self._context.participant.writer(
            f"{prefix}{name}", msg_type.definition, to_dds(profile._to_profile())
        )
        return publisher_class(writer, msg_type, name, profile, self._logger.name)

    def create_subscription(
        self,
        msg_type: Any,
        topic: str,
        callback: Callable[..., Any],
        qos_profile: QoSProfile | int,
        *,
        callback_group: CallbackGroup | None = None,
        event_callbacks: None = None,
        qos_overriding_options: None = None,
    ) -> Subscription:
        """Create a subscription; the quality of service may be just the history's depth."""
        _not_supported(
            event_callbacks=event_callbacks, qos_overriding_options=qos_overriding_options
        )
        profile = self._profile(qos_profile)
        _check_interface(msg_type, service=False)
        name = self._resolve(topic, "topic")
        prefix = "" if profile.avoid_ros_namespace_conventions else "rt"
        reader = self._context.participant.reader(
            f"{prefix}{name}", msg_type.definition, to_dds(profile._to_profile())
        )
        group = callback_group or self._default_callback_group
        subscription = Subscription(reader, msg_type, name, callback, group, profile)
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
        qos = to_dds(profile._to_profile())
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
        callback_group: CallbackGroup | None = None,
    ) -> Service:
        """Create a service; the callback gets the request and a response to fill and return."""
        name = self._resolve(srv_name, "service")
        ends = self._service_ends(srv_type, name, qos_profile, server=True)
        group = callback_group or self._default_callback_group
        service = Service(*ends, srv_type, name, callback, group, qos_profile)
        self._services.append(service)
        self._changed(service)
        return service

    def create_client(
        self,
        srv_type: Any,
        srv_name: str,
        *,
        qos_profile: QoSProfile = qos_profile_services_default,
        callback_group: CallbackGroup | None = None,
    ) -> Client:
        """Create a client of a service."""
        name = self._resolve(srv_name, "service")
        ends = self._service_ends(srv_type, name, qos_profile, server=False)
        group = callback_group or self._default_callback_group
        client = Client(self._context, *ends, srv_type, name, qos_profile, group)
        self._clients.append(client)
        self._changed(client)
        return client

    def create_timer(
        self,
        timer_period_sec: float,
        callback: Callable[..., Any],
        callback_group: CallbackGroup | None = None,
        clock: Clock | None = None,
        autostart: bool = True,
    ) -> Timer:
        """Create a timer; it goes by the node's clock unless another one is given."""
        timer = Timer(
            callback,
            callback_group or self._default_callback_group,
            int(float(timer_period_sec) * S_TO_NS),
            clock or self._clock,
            context=self._context,
            autostart=autostart,
        )
        timer._wake = self._wake_executor
        self._timers.append(timer)
        self._wake_executor()
        return timer

    def _destroy_reading(self, entities: list[Any], entity: Any) -> bool:
        if entity not in entities:
            return False
        entities.remove(entity)
        executor = self.executor
        if executor is not None:
            executor._detach(entity)
        entity.destroy()
        self._changed()
        return True

    def destroy_publisher(self, publisher: Publisher) -> bool:
        """Destroy a publisher."""
        if publisher not in self._publishers:
            return False
        self._publishers.remove(publisher)
        publisher.destroy()
        self._changed()
        return True

    def destroy_subscription(self, subscription: Subscription) -> bool:
        """Destroy a subscription."""
        return self._destroy_reading(self._subscriptions, subscription)

    def destroy_client(self, client: Client) -> bool:
        """Destroy a client."""
        return self._destroy_reading(self._clients, client)

    def destroy_timer(self, timer: Timer) -> bool:
        """Destroy a timer."""
        if timer not in self._timers:
            return False
        self._timers.remove(timer)
        timer.destroy()
        return True

    def destroy_node(self) -> None:
        """Destroy the node and all that it has."""
        if self._destroyed:
            return
        self._destroyed = True
        executor = self.executor
        if executor is not None:
            executor.remove_node(self)
        _system.remove_outlet(self._logger.name)
        for timer in self._timers:
            timer.destroy()
        for entity in (*self._reading(), *self._publishing()):
            entity.destroy()
        for entities in (
            self._timers,
            self._subscriptions,
            self._services,
            self._clients,
            self._publishers,
        ):
            entities.clear()
        self._context.graph.remove_node(self._namespace, self._name)
