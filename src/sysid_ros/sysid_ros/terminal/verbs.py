# SPDX-License-Identifier: Apache-2.0
"""What ``sysid call``, ``echo``, ``pub`` and ``param`` do, in the form of ros2cli's verbs."""

import argparse
import math
import re
import sys
from functools import reduce
from typing import Any

from sysid_core.errors import DataError, ParameterError, UnreadableError
from sysid_core.untrusted import parse_yaml
from sysid_ros.plain import fill, import_type, message_text, plain, read_values
from sysid_ros.terminal.session import Session, open_session

__all__ = ["call", "echo", "param", "pub"]

_TYPE = re.compile(r"\w+(/srv)?/\w+")
_DEPTH = 100  # Messages that wait to be printed at most
_LINGER = 0.2  # [s] that a publisher stays after its last message, which is on its way


def call(args: argparse.Namespace) -> int:
    """Call a service; return 1 if it answers no."""
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


def pub(args: argparse.Namespace) -> int:
    """Publish a message once, some times, or until told to end."""
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


def echo(args: argparse.Namespace) -> int:
    """Print the messages of a topic."""
    with open_session("sysid_echo") as session:
        topic = session.full_name(args.topic)
        kind = import_type(args.type or session.topic_type(topic, args.timeout), "msg")
        path = args.field.split(".") if args.field else []
        _check_field(kind(), path)
        seen = 0

        def show(message: Any) -> None:
            nonlocal seen
            seen += 1
            if seen == 1 or not args.once:
                value = plain(reduce(getattr, path, message))
                print(f"{message_text(value)}---", flush=True)

        session.node.create_subscription(kind, topic, show, _offered(session, topic))
        while session.context.ok() and not (args.once and seen):
            session.spin(0.1)
    return 0


def _check_field(message: Any, path: list[str]) -> None:
    """Refuse a field that a message does not have."""
    for name in path:
        known: dict[str, str] = getattr(message, "get_fields_and_field_types", dict)()
        if name not in known:
            names = ", ".join(known) or "none"
            raise ParameterError(f"there is no field '{name}'; there are: {names}")
        message = getattr(message, name)


def _offered(session: Session, topic: str) -> Any:
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


def param(args: argparse.Namespace) -> int:
    """Read or set parameters of running nodes; return 1 if one is refused."""
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
        ends = [name.rpartition("/") for name, _ in known]
        found[:] = [node for node, _, service in ends if service == "list_parameters"]
        return False

    session.until(look, min(args.timeout, 1.0))
    own = session.node.get_fully_qualified_name()
    nodes = sorted(set(found) - {own})
    made = import_type("rcl_interfaces/srv/ListParameters", "srv")
    services = [f"{node}/list_parameters" for node in nodes]
    answers = session.ask_all(made, services, made.Request(), args.timeout)
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, DataError):  # it may have ended meanwhile
            print(f"{node}: {answer}", file=sys.stderr)
        else:
            print("\n  ".join([f"{node}:", *sorted(answer.result.names)]))
    return 0


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
