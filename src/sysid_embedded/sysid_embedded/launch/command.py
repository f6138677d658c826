# SPDX-License-Identifier: Apache-2.0
"""The subcommand ``sysid up``, as the ``sysid`` command finds it."""

import argparse

from sysid_core.cli.subcommand import Subcommand

__all__ = ["up"]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("launch", metavar="LAUNCH", help="a launch file, or its name in launch/")
    parser.add_argument(
        "arguments", metavar="name:=value", nargs="*", help="arguments of the launch file"
    )
    parser.add_argument(
        "-s", "--show-args", action="store_true", help="show the arguments and end"
    )


up = Subcommand(
    "start the nodes of a YAML launch file without ROS 2",
    _add_arguments,
    "sysid_embedded.launch.up",
)
