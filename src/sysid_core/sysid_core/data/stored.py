# SPDX-License-Identifier: Apache-2.0
"""What every bag format stores: topics, and messages as serialised bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["StoredMessage", "StoredTopic"]


@dataclass(frozen=True)
class StoredTopic:
    """One topic of a bag file.

    Attributes
    ----------
    name, type : str
        Topic name and message type, e.g. `sensor_msgs/msg/JointState`.
    count : int
        Number of messages.
    encoding : str
        How messages are serialised; ROS 2 writes `cdr`.
    definition : str
        Text of the message definition, empty where the file has none.
    """

    name: str
    type: str
    count: int
    encoding: str = "cdr"
    definition: str = ""


class StoredMessage(NamedTuple):
    """One message as it lies in a bag.

    Attributes
    ----------
    topic : str
    log_time : int [ns]
        When it was recorded.
    data : bytes
        Serialised, with the CDR encapsulation header.
    """

    topic: str
    log_time: int
    data: bytes
