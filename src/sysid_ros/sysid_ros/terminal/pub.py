# SPDX-License-Identifier: Apache-2.0
"""``sysid pub TOPIC TYPE [VALUES]``: publishes a message."""

from __future__ import annotations

import argparse
import math

from sysid_core.errors import DataError, ParameterError
from sysid_ros.plain import fill, read_values
from sysid_ros.terminal.session import import_type, open_session

__all__ = ["run"]

_LINGER = 0.2
"""Time [s] that a publisher stays after its last message, which is on its way."""


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    if not (math.isfinite(args.rate) and args.rate > 0.0):
        raise ParameterError(f"--rate must be above zero, got {args.rate:g}")
    values = read_values(args.values)
    count = 1 if args.once else args.times
    with open_session("sysid_pub") as session:
        topic = session.full_name(args.topic)
        message = fill(import_type(args.type, "msg")(), values)
        publisher = session.node.create_publisher(type(message), topic, 10)
        if count is not None and not session.until(publisher.get_subscription_count, args.timeout):
            raise DataError(f"nobody listens to '{topic}' with type {args.type}")
        done = 0
        while session.context.ok():
            publisher.publish(message)
            done += 1
            if done == count:
                break
            session.until(lambda: False, 1.0 / args.rate)
        session.until(lambda: False, _LINGER)
    return 0
