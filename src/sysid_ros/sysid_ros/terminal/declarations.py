# SPDX-License-Identifier: Apache-2.0
"""The subcommands of a terminal: help and arguments, in the form of ros2cli's."""

import argparse
import math

from sysid_core.cli.arguments import add_number
from sysid_core.cli.subcommand import Subcommand

__all__ = ["call", "echo", "param", "pub", "watch"]

_RUNS = "sysid_ros.terminal"
_VALUES = "fields as YAML, e.g. '{data: true}'; what is left out keeps its default"


def seconds(text: str) -> float:
    value = float(text)
    if math.isnan(value):  # no time would ever be beyond it
        raise ValueError
    return value


def _add_wait(parser: argparse.ArgumentParser, what: str) -> None:
    add_number(parser, "--timeout", "S", f"how long {what} is waited for", 5.0, seconds)


def _call(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("service", metavar="SERVICE", help="e.g. /controller/enable")
    parser.add_argument(
        "words",
        metavar="[TYPE] [VALUES]",
        nargs="*",
        help=f"e.g. std_srvs/srv/SetBool (default: what the service has); {_VALUES}",
    )
    _add_wait(parser, "the service, and then its answer,")


call = Subcommand("call a service; exit status 1 if it answers no", _call, f"{_RUNS}.verbs:call")


def _echo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="e.g. /status")
    parser.add_argument("type", metavar="TYPE", nargs="?", help="default: its publishers'")
    parser.add_argument("--once", action="store_true", help="end after the first message")
    parser.add_argument("--field", metavar="NAME", help="this field only, e.g. header.stamp")
    _add_wait(parser, "a publisher")


echo = Subcommand("print the messages of a topic", _echo, f"{_RUNS}.verbs:echo")


def _pub(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC", help="e.g. /reference")
    parser.add_argument("type", metavar="TYPE", help="e.g. trajectory_msgs/msg/JointTrajectory")
    parser.add_argument("values", metavar="VALUES", nargs="?", default="{}", help=_VALUES)
    parser.add_argument("-r", "--rate", metavar="HZ", type=float, default=1.0)
    parser.add_argument("-1", "--once", action="store_true", help="publish once and end")
    parser.add_argument("-t", "--times", metavar="N", type=int, help="publish N times and end")
    _add_wait(parser, "a subscriber with --once or --times")


pub = Subcommand("publish a message", _pub, f"{_RUNS}.verbs:pub")


def _param(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, words, what in (
        ("list", ("[node]",), "names of the parameters, of a node or of all"),
        ("get", ("node", "name"), "a parameter's value"),
        ("set", ("node", "name", "value"), "change a parameter; exit status 1 if it is refused"),
        ("describe", ("node", "name"), "what a parameter is for and its range"),
        ("dump", ("node",), "all parameters of a node as a parameter file"),
    ):
        sub = verbs.add_parser(verb, help=what, description=what)
        for word in words:
            name = word.strip("[]")
            sub.add_argument(name, metavar=name.upper(), nargs="?" if name != word else None)
        _add_wait(sub, "the node")


param = Subcommand("read and set parameters of running nodes", _param, f"{_RUNS}.verbs:param")


def _watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--namespace", metavar="NS", default="", help="of the nodes; default: none"
    )
    parser.add_argument(
        "--for",
        dest="duration",
        metavar="S",
        type=seconds,
        default=float("inf"),
        help="end after this time; default: at q or Ctrl-C",
    )


watch = Subcommand(
    "a live view of identification and control, with keys for enable, freeze, export and reset; "
    "lines where stdout is not a terminal",
    _watch,
    f"{_RUNS}.watch",
)
