# SPDX-License-Identifier: Apache-2.0
"""The message types that recordings consist of, and turning them into bytes and back."""

from functools import lru_cache
from importlib.resources import files
from typing import Any

from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from sysid_core.data.storage import StoredMessage, StoredTopic
from sysid_core.errors import DataError
from sysid_core.wording import one_line

__all__ = ["CONTACTS", "IMU", "JOINT_STATE", "ODOMETRY", "decode", "message_types"]

JOINT_STATE = "sensor_msgs/msg/JointState"
ODOMETRY = "nav_msgs/msg/Odometry"
IMU = "sensor_msgs/msg/Imu"
CONTACTS = "sysid_msgs/msg/Contacts"
_LONGEST_DEFINITION = 1 << 16


@lru_cache(maxsize=1)
def message_types() -> Typestore:
    """Return the types of what recordings hold, and of what these are made of.

    The definition of `Contacts` is the file of package `sysid_msgs`, which this package links to.
    The standard ones are a file, too: to import all of ROS 2's takes ten times as long.
    """
    definitions = files("sysid_core.data").joinpath("definitions")
    text = "".join(
        definitions.joinpath(name).read_text("utf-8") for name in ("Contacts.msg", "standard.msg")
    )
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg(text, CONTACTS))
    return store


def decode(topic: StoredTopic, messages: list[StoredMessage]) -> list[Any]:
    """Turn the serialised messages of one topic into message objects.

    Raises
    ------
    DataError
        If a message does not fit its type.
    """
    if topic.encoding != "cdr":
        raise DataError(
            f"{topic.name} is serialised as '{topic.encoding}'; only ROS 2's CDR can be read"
        )
    _check_definition(topic)
    store = message_types()
    decoded: list[Any] = []
    for message in messages:
        # A damaged message makes the generated decoder raise errors of many kinds.
        try:
            decoded.append(store.deserialize_cdr(message.data, topic.type))
        except Exception as err:
            raise DataError(
                f"message {len(decoded) + 1} of {topic.name} is no whole {topic.type} "
                f"({one_line(err)}); the bag is damaged, record or copy it again"
            ) from err
    return decoded


def _check_definition(topic: StoredTopic) -> None:
    """Check that a bag which defines sysid's messages itself does so as sysid does."""
    if topic.type != CONTACTS or not topic.definition:
        return
    try:
        if len(topic.definition) > _LONGEST_DEFINITION:
            raise ValueError("too long")
        stored = get_typestore(Stores.EMPTY)
        stored.register(get_types_from_msg(topic.definition, topic.type))
        same = stored.hash_rihs01(topic.type) == message_types().hash_rihs01(topic.type)
    # The grammar raises errors of many kinds at a malformed definition.
    except Exception as err:
        raise DataError(
            f"the definition of {topic.type} in the bag is malformed; record the bag again"
        ) from err
    if not same:
        raise DataError(
            f"the bag defines {topic.type} otherwise than sysid_msgs; record it with those, or "
            f"leave {topic.name} out"
        )
