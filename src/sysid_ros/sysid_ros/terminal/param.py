# SPDX-License-Identifier: Apache-2.0
"""``sysid param VERB``: reads and sets parameters of running nodes."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from sysid_core.errors import DataError, ParameterError, UnreadableError
from sysid_core.untrusted import parse_yaml
from sysid_ros.plain import message_text, plain
from sysid_ros.terminal.session import Session, import_type, open_session

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status."""
    with open_session("sysid_param") as session:
        if args.verb == "list":
            return _list(session, args)
        node = session.full_name(args.node)
        if args.verb == "get":
            print(message_text(_values(session, node, [args.name], args.timeout)[0]), end="")
        elif args.verb == "dump":
            names = _names(session, node, args.timeout)
            values = dict(zip(names, _values(session, node, names, args.timeout), strict=True))
            print(message_text({node: {"ros__parameters": values}}), end="")
        elif args.verb == "describe":
            answer = _ask(session, node, "DescribeParameters", args.timeout, names=[args.name])
            if not answer.descriptors:
                raise ParameterError(_unknown(node, args.name))
            print(message_text(plain(answer.descriptors[0])), end="")
        else:
            return _set(session, node, args)
    return 0


def _ask(session: Session, node: str, kind: str, timeout: float, **values: Any) -> Any:
    """Return the answer of a node's parameter service."""
    service = "".join(f"_{c.lower()}" if c.isupper() else c for c in kind).strip("_")
    made = import_type(f"rcl_interfaces/srv/{kind}", "srv")
    return session.ask(made, f"{node}/{service}", made.Request(**values), timeout)


def _list(session: Session, args: argparse.Namespace) -> int:
    if args.node:
        print("\n".join(_names(session, session.full_name(args.node), args.timeout)))
        return 0
    found: list[str] = []

    def look() -> bool:
        known = session.node.get_service_names_and_types()
        found[:] = [name.removesuffix("/list_parameters") for name, _ in known if _lists(name)]
        return False

    session.until(look, min(args.timeout, 1.0))
    own = session.node.get_fully_qualified_name()
    for node in sorted(set(found) - {own}):
        try:
            names = _names(session, node, args.timeout)
        except DataError as error:  # it may have ended meanwhile
            print(f"{node}: {error}", file=sys.stderr)
            continue
        print("\n  ".join([f"{node}:", *names]))
    return 0


def _lists(service: str) -> bool:
    return service.endswith("/list_parameters")


def _names(session: Session, node: str, timeout: float) -> list[str]:
    answer = _ask(session, node, "ListParameters", timeout)
    return sorted(answer.result.names)


def _values(session: Session, node: str, names: list[str], timeout: float) -> list[Any]:
    """Return parameters' values as plain data."""
    answer = _ask(session, node, "GetParameters", timeout, names=names)
    values = list(answer.values)
    if len(values) != len(names) or (len(names) == 1 and values[0].type == 0):
        raise ParameterError(_unknown(node, ", ".join(names)))
    return [
        plain(_parameter(name, value).value) for name, value in zip(names, values, strict=True)
    ]


def _parameter(name: str, value: Any) -> Any:
    """Return what a ``ParameterValue`` holds as rclpy has it."""
    from rclpy.parameter import Parameter

    message = import_type("rcl_interfaces/msg/Parameter", "msg")
    return Parameter.from_parameter_msg(message(name=name, value=value))


def _unknown(node: str, name: str) -> str:
    return f"node '{node}' has no parameter '{name}'; see 'sysid param list {node}'"


def _set(session: Session, node: str, args: argparse.Namespace) -> int:
    now = _ask(session, node, "GetParameters", args.timeout, names=[args.name]).values
    if not now or not now[0].type:
        raise ParameterError(_unknown(node, args.name))
    parameter = _parameter(args.name, now[0])
    kind = parameter.type_
    try:
        parameter = type(parameter)(args.name, kind, _converted(args.value, kind.name))
        message = parameter.to_parameter_msg()
    except (AssertionError, TypeError, ValueError, OverflowError, UnreadableError) as error:
        what = kind.name.lower().replace("_", " ")
        raise ParameterError(f"'{args.value}' is not what '{args.name}' is: {what}") from error
    answer = _ask(session, node, "SetParameters", args.timeout, parameters=[message])
    result = answer.results[0]
    print("done" if result.successful else f"refused: {result.reason}")
    return int(not result.successful)


def _converted(text: str, kind: str) -> Any:
    """Return what a text means as a parameter of its present type."""
    if kind == "STRING":
        return text
    value = parse_yaml(text)
    if kind.endswith("_ARRAY") and not isinstance(value, list):
        value = [value]
    if kind == "DOUBLE":
        return float(value)
    return [float(each) for each in value] if kind == "DOUBLE_ARRAY" else value
