# SPDX-License-Identifier: Apache-2.0
"""``sysid call SERVICE [TYPE] [VALUES]``: calls a service."""

from __future__ import annotations

import argparse
import re

from sysid_core.errors import ParameterError
from sysid_ros.plain import fill, message_text, plain, read_values
from sysid_ros.terminal.session import import_type, open_session

__all__ = ["run"]

_TYPE = re.compile(r"\w+(/srv)?/\w+")


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    words = list(args.words)
    given = words.pop(0) if words and _TYPE.fullmatch(words[0]) else None
    if len(words) > 1:
        raise ParameterError(f"'{words[1]}' is one word too many; quote the values")
    values = read_values(words[0] if words else "{}")
    with open_session("sysid_call") as session:
        service = session.full_name(args.service)
        kind = import_type(given or session.service_type(service, args.timeout), "srv")
        request = fill(kind.Request(), values)
        answer = plain(session.ask(kind, service, request, args.timeout))
    answer.pop("structure_needs_at_least_one_member", None)
    print(message_text(answer), end="")
    return int(answer.get("success") is False)
