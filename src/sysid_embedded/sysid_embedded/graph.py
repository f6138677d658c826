# SPDX-License-Identifier: Apache-2.0
"""What a participant tells others of its nodes, so that ROS 2's tools can list them."""

import threading
from typing import Any

from .cdr import HEADER, codec
from .dds import Participant
from .messages import message_class
from .qos_policies import DurabilityPolicy, QoSProfile, to_dds

__all__ = ["Graph"]

_TOPIC = "ros_discovery_info"
_TYPE = "rmw_dds_common/msg/ParticipantEntitiesInfo"
_PROFILE = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def _gid(data: bytes) -> Any:
    return message_class("rmw_dds_common/msg/Gid")(data=list(data))


class Graph:
    """The nodes of this participant and the readers and writers of each."""

    def __init__(self, participant: Participant) -> None:
        self._participant = participant
        cls = message_class(_TYPE)
        self._codec = codec(cls.definition)
        self._writer = participant.writer(_TOPIC, cls.definition, to_dds(_PROFILE))
        self._nodes: dict[tuple[str, str], Any] = {}
        self._lock = threading.Lock()

    def add_node(self, namespace: str, name: str) -> None:
        """Tell of a node."""
        info = message_class("rmw_dds_common/msg/NodeEntitiesInfo")
        with self._lock:
            self._nodes[namespace, name] = info(node_namespace=namespace, node_name=name)
            self._publish()

    def remove_node(self, namespace: str, name: str) -> None:
        """Tell that a node is gone."""
        with self._lock:
            if self._nodes.pop((namespace, name), None) is not None:
                self._publish()

    def update(
        self, namespace: str, name: str, readers: list[bytes], writers: list[bytes]
    ) -> None:
        """Tell which readers and writers belong to a node, by their identities."""
        with self._lock:
            node = self._nodes.get((namespace, name))
            if node is None:
                return
            node.reader_gid_seq = [_gid(gid) for gid in readers]
            node.writer_gid_seq = [_gid(gid) for gid in writers]
            self._publish()

    def _publish(self) -> None:
        message = message_class(_TYPE)(
            gid=_gid(self._participant.gid), node_entities_info_seq=list(self._nodes.values())
        )
        data = bytearray(HEADER)
        self._codec.encode(message, data)
        self._writer.write(data)

    def close(self) -> None:
        """Say nothing any more."""
        self._writer.close()
