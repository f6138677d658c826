# SPDX-License-Identifier: Apache-2.0
"""Messages to and from CDR."""

from __future__ import annotations

from typing import Any

from sysid_embedded.cdr import HEADER, codec

__all__ = ["deserialize_message", "serialize_message"]


def serialize_message(message: Any) -> bytes:
    """Return a message in CDR, with its encapsulation header."""
    data = bytearray(HEADER)
    codec(message.definition).encode(message, data)
    return bytes(data)


def deserialize_message(serialized_message: bytes, message_type: Any) -> Any:
    """Return the message that CDR data hold."""
    return codec(message_type.definition).decode(serialized_message, len(HEADER))[0]
