# SPDX-License-Identifier: Apache-2.0
"""Raw access to Cyclone DDS: participants, writers, readers and wait sets that carry CDR bytes."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from uuid import UUID

from cyclonedds._clayer import ddspy_take, ddspy_write
from cyclonedds.builtin import (
    BuiltinDataReader,
    BuiltinTopicDcpsPublication,
    BuiltinTopicDcpsSubscription,
)
from cyclonedds.core import DDSException, Entity, GuardCondition
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.internal import DDS
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic

from .cdr import DECODE_ERRORS, HEADER, codec
from .discovery import domain_config, keep_to_loopback, only_loopback
from .idl import dds_type
from .interfaces import Definition, type_hash

__all__ = ["SERVICE_BODY", "DDSException", "Participant", "Reader", "WaitSet", "Writer"]

# A request or a reply starts behind the encapsulation and the client's identity and number.
SERVICE_BODY = 20
_LITTLE_ENDIAN = HEADER[:2]
# Least time between two tellings of dropped samples.
_TELLING_S = 5.0

_LIBRARY = DDS._dll_handle
_ANY_STATE = 0x7F
_DATA_AVAILABLE = 1 << 8
_TIMEOUT = -10
_POLICIES = {2: "DURABILITY", 4: "DEADLINE", 8: "LIVELINESS", 11: "RELIABILITY", 12: "LIFESPAN"}


def _function(name: str, *arguments: Any) -> Any:
    """Return a function of the library that the Python package does not offer."""
    found = getattr(_LIBRARY, name)
    found.argtypes, found.restype = arguments, ctypes.c_int32
    return found


_wait = _function(
    "dds_waitset_wait", ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
)
_attach = _function("dds_waitset_attach", ctypes.c_int32, ctypes.c_int32, ctypes.c_ssize_t)
_detach = _function("dds_waitset_detach", ctypes.c_int32, ctypes.c_int32)
_create_waitset = _function("dds_create_waitset", ctypes.c_int32)
_delete = _function("dds_delete", ctypes.c_int32)

# The Python package reads the policies of all endpoints through the same few variables.
_POLICY_LOCK = threading.Lock()

Gid = bytes


def _check(code: int, what: str) -> int:
    if code < 0:
        raise DDSException(code, f"Occurred while {what}")
    return code


class _Endpoint:
    """A reader or a writer, and the peers that it is matched with; none once it is closed."""

    def __init__(
        self,
        entity: Any,
        handles: Callable[[], Sequence[int]],
        peer: Callable[[int], Any],
        incompatible: Callable[[], Any],
    ) -> None:
        self._entity = entity
        self._handles, self._peer, self._incompatible = handles, peer, incompatible
        self.closed = False
        self.ref: int = entity._ref
        self.gid: Gid = entity.get_guid().bytes

    def matched(self) -> list[dict[str, str]]:
        """Return the user data of each peer."""
        with _POLICY_LOCK:
            return [] if self.closed else [_user_data(self._peer(h)) for h in self._handles()]

    def matched_count(self) -> int:
        """Return the number of peers."""
        return 0 if self.closed else len(self._handles())

    def newly_incompatible(self) -> str:
        """Return the policy by which a peer that came since the last call is refused, if any."""
        if self.closed or not (status := self._incompatible()).total_count_change:
            return ""
        return _POLICIES.get(status.last_policy_id, "OTHER")

    def close(self) -> None:
        """Leave the topic."""
        if not self.closed:
            self.closed = True
            _close(self._entity)


class Writer(_Endpoint):
    """Publishes encoded samples."""

    def __init__(self, entity: DataWriter[Any]) -> None:
        super().__init__(
            entity,
            entity.get_matched_subscriptions,
            entity.get_matched_subscription_data,
            entity.get_offered_incompatible_qos_status,
        )
        self.handle: int = entity.get_instance_handle() & 0xFFFFFFFFFFFFFFFF

    def write(self, data: bytes | bytearray) -> bool:
        """Publish a header and CDR of whole words; False if a slow reader left no room in time."""
        code = ddspy_write(self.ref, data)
        if code == _TIMEOUT:
            return False
        _check(code, "publishing")
        return True


class Reader(_Endpoint):
    """Takes samples and decodes them.

    Those that cannot be decoded are dropped and counted: what others send must not end a node.
    """

    def __init__(self, entity: DataReader[Any], definition: Definition, body: int) -> None:
        super().__init__(
            entity,
            entity.get_matched_publications,
            entity.get_matched_publication_data,
            entity.get_requested_incompatible_qos_status,
        )
        self._decode = codec(definition).decode
        self._body = body
        self.dropped = 0
        self._told = 0
        self._next_telling = 0.0
        entity.set_status_mask(_DATA_AVAILABLE)

    def take(self) -> tuple[Any, bytes, Any] | None:
        """Take the oldest valid sample: the message, its bytes and its sample information."""
        while not self.closed:
            samples = ddspy_take(self.ref, _ANY_STATE, 1)
            if isinstance(samples, int):
                _check(samples, "taking a sample")
            if not samples:
                return None
            data, info = samples[0]
            if not info.valid_data:
                continue
            if data.startswith(_LITTLE_ENDIAN):
                try:
                    return self._decode(data, self._body)[0], data, info
                except DECODE_ERRORS:
                    pass
            self.dropped += 1
        return None

    def newly_dropped(self) -> int:
        """Return the number of samples dropped since it was last told; 0 if that was just now."""
        count = self.dropped - self._told
        if not count or time.monotonic() < self._next_telling:
            return 0
        self._told = self.dropped
        self._next_telling = time.monotonic() + _TELLING_S
        return count

    def writer_data(self, handle: int) -> dict[str, str] | None:
        """Return the user data of one matched writer, or None if it is gone."""
        with _POLICY_LOCK:
            endpoint = None if self.closed else self._peer(handle)
        return None if endpoint is None else _user_data(endpoint)


def _close(entity: Entity) -> None:
    # What Entity does when it is collected, but now.
    entity.__del__()


def _user_data(endpoint: Any) -> dict[str, str]:
    """Return the ``key=value;`` pairs that an endpoint carries."""
    if endpoint is None or Policy.Userdata not in endpoint.qos:
        return {}
    text = bytes(endpoint.qos[Policy.Userdata].data).decode("utf-8", "replace")
    pairs = (item.partition("=") for item in text.split(";") if "=" in item)
    return {key: value for key, _, value in pairs}


class WaitSet:
    """Waits for readers to have data, or to be woken from another thread."""

    def __init__(self, participant: Participant) -> None:
        self._ref = _check(_create_waitset(participant.ref), "creating a wait set")
        self._guard = GuardCondition(participant.entity)
        self._triggered = (ctypes.c_ssize_t * 256)()
        _check(_attach(self._ref, self._guard._ref, 0), "attaching a guard condition")

    def attach(self, reader: Reader, key: int) -> None:
        """Wait for a reader too; `key` (not 0) tells of it."""
        _check(_attach(self._ref, reader.ref, key), "attaching a reader")

    def detach(self, reader: Reader) -> None:
        """Wait for a reader no more."""
        _detach(self._ref, reader.ref)

    def wake(self) -> None:
        """Make the current or the next wait return."""
        self._guard.set(True)

    def wait(self, timeout_ns: int) -> list[int]:
        """Return the keys of the readers that have data, at the latest after `timeout_ns`."""
        count = _wait(self._ref, self._triggered, len(self._triggered), timeout_ns)
        if count <= 0:
            _check(count, "waiting for data")
            return []
        keys = self._triggered[: min(count, len(self._triggered))]
        if 0 in keys:
            self._guard.take()
            keys = [key for key in keys if key]
        return keys

    def close(self) -> None:
        """Delete the wait set."""
        _delete(self._ref)
        _close(self._guard)


class Participant:
    """One process' presence in a domain."""

    _domains: ClassVar[dict[int, tuple[Domain, int]]] = {}
    _lock = threading.Lock()

    def __init__(self, domain_id: int) -> None:
        self.domain_id = domain_id
        with Participant._lock:
            domain, users = Participant._domains.get(domain_id, (None, 0))
            if domain is None:
                config = domain_config(os.environ, loopback_only=only_loopback())
                with keep_to_loopback(os.environ):
                    domain = Domain(domain_id, config)
            Participant._domains[domain_id] = (domain, users + 1)
        self.entity = DomainParticipant(domain_id, Qos(Policy.Userdata(data=b"enclave=/;")))
        self.ref: int = self.entity._ref
        guid: UUID = self.entity.get_guid()
        self.gid: Gid = guid.bytes
        self._topics: dict[tuple[str, str, bool], Topic[Any]] = {}
        self._builtin: dict[bool, BuiltinDataReader] = {}
        self._endpoints: dict[bool, dict[int, Any]] = {True: {}, False: {}}
        self._identities = 0

    def topic(self, name: str, definition: Definition, service: bool) -> Topic[Any]:
        """Return the topic of a DDS name and a type, creating it at first use."""
        key = (name, definition.name, service)
        if key not in self._topics:
            self._topics[key] = Topic(self.entity, name, dds_type(definition, service=service))
        return self._topics[key]

    def writer(self, name: str, definition: Definition, qos: Qos, *, identity: str = "") -> Writer:
        """Create a writer on a DDS topic; an `identity` marks an end of a service."""
        topic = self.topic(name, definition, bool(identity))
        return Writer(DataWriter(self.entity, topic, qos + _marks(definition, identity)))

    def reader(self, name: str, definition: Definition, qos: Qos, *, identity: str = "") -> Reader:
        """Create a reader on a DDS topic; an `identity` marks an end of a service."""
        topic = self.topic(name, definition, bool(identity))
        entity = DataReader(self.entity, topic, qos + _marks(definition, identity))
        return Reader(entity, definition, SERVICE_BODY if identity else len(HEADER))

    def identity(self) -> str:
        """Return a new identity for a client or a server, as rmw_cyclonedds forms it."""
        self._identities += 1
        data = self.gid[:12] + self._identities.to_bytes(4, "big")
        return f"{data[0]:02x}" + "".join(f".{byte:x}" for byte in data[1:])

    def endpoints(self, *, writers: bool) -> list[Any]:
        """Return what discovery knows of writers, or readers, everywhere in the domain."""
        if writers not in self._builtin:
            topic = BuiltinTopicDcpsPublication if writers else BuiltinTopicDcpsSubscription
            self._builtin[writers] = BuiltinDataReader(self.entity, topic)
        known, alive = self._endpoints[writers], 16
        # cyclonedds leaks some 100 bytes of each sample that it reads, so take each once
        with _POLICY_LOCK:
            samples = self._builtin[writers].take(N=10_000)
        for sample in samples:
            info = sample.sample_info
            if info.valid_data and info.instance_state == alive:
                known[info.instance_handle] = sample
            else:
                known.pop(info.instance_handle, None)
        return list(known.values())

    def close(self) -> None:
        """Delete the participant with all that it holds."""
        self._builtin.clear()
        self._topics.clear()
        _close(self.entity)
        with Participant._lock:
            domain, users = Participant._domains.pop(self.domain_id)
            if users > 1:
                Participant._domains[self.domain_id] = (domain, users - 1)
            else:
                _close(domain)


def _marks(definition: Definition, identity: str) -> Qos:
    """Return the policies that tell a ROS 2 peer the type's hash and the service's identity."""
    prefix = f"{identity};" if identity else ""
    return Qos(
        Policy.Userdata(data=f"{prefix}typehash={type_hash(definition)};".encode()),
        Policy.DataRepresentation(use_cdrv0_representation=True),
    )
