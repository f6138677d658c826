# SPDX-License-Identifier: Apache-2.0
"""``sysid echo TOPIC``: prints the messages of a topic."""

from __future__ import annotations

import argparse
from functools import reduce
from typing import Any

from sysid_core.errors import ParameterError
from sysid_ros.plain import message_text, plain
from sysid_ros.terminal.session import Session, import_type, open_session

__all__ = ["run"]

_DEPTH = 100


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    with open_session("sysid_echo") as session:
        topic = session.full_name(args.topic)
        kind = import_type(args.type or session.topic_type(topic, args.timeout), "msg")
        path = args.field.split(".") if args.field else []
        _check(kind(), path)
        seen = 0

        def show(message: Any) -> None:
            nonlocal seen
            seen += 1
            if seen == 1 or not args.once:
                value = plain(reduce(getattr, path, message))
                print(f"{message_text(value)}---", flush=True)

        session.node.create_subscription(kind, topic, show, _profile(session, topic))
        while session.context.ok() and not (args.once and seen):
            session.spin(0.1)
    return 0


def _check(message: Any, path: list[str]) -> None:
    """Refuse a field that a message does not have."""
    for name in path:
        known: dict[str, str] = getattr(message, "get_fields_and_field_types", dict)()
        if name not in known:
            names = ", ".join(known) or "none"
            raise ParameterError(f"there is no field '{name}'; there are: {names}")
        message = getattr(message, name)


def _profile(session: Session, topic: str) -> Any:
    """Return what takes all that the publishers offer, and earlier messages where they keep them.

    A subscription that asks for more than one of them offers would hear nothing of that one.
    """
    from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

    offers = [info.qos_profile for info in session.node.get_publishers_info_by_topic(topic)]
    keeps = all(offer.durability == DurabilityPolicy.TRANSIENT_LOCAL for offer in offers)
    sure = all(offer.reliability == ReliabilityPolicy.RELIABLE for offer in offers)
    return QoSProfile(
        depth=_DEPTH,
        durability=DurabilityPolicy.TRANSIENT_LOCAL
        if offers and keeps
        else DurabilityPolicy.VOLATILE,
        reliability=ReliabilityPolicy.RELIABLE
        if offers and sure
        else ReliabilityPolicy.BEST_EFFORT,
    )
