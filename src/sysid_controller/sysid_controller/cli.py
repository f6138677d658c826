# SPDX-License-Identifier: Apache-2.0
"""The subcommands ``sysid play`` and ``sysid calibrate``, as the ``sysid`` command finds them."""

from __future__ import annotations

import argparse
from pathlib import Path

from sysid_core.cli.subcommand import Subcommand

__all__ = ["calibrate", "play"]


def _add_playing(parser: argparse.ArgumentParser) -> None:
    """Declare what both subcommands know of playing."""
    parser.add_argument(
        "--to",
        choices=("controller", "trajectory"),
        default="controller",
        help="the controller node, or joint_trajectory_controller by its topic; default: "
        "%(default)s",
    )
    parser.add_argument(
        "--speed", type=float, default=1.0, help="of the motion, at most 1; default: %(default)g"
    )
    parser.add_argument(
        "--tolerance",
        metavar="RAD",
        type=float,
        default=0.2,
        help="error of a joint, measured or to come within 0.15 s, that stops the robot; default: "
        "%(default)g",
    )
    parser.add_argument(
        "--effort-tolerance",
        metavar="SHARE",
        type=float,
        default=0.3,
        help="of a joint's effort limit, beyond what its model asks for, that stops the robot; "
        "default: %(default)g",
    )
    parser.add_argument(
        "--wait",
        metavar="S",
        type=float,
        default=5.0,
        help="how long robot and controller are waited for; default: %(default)g s",
    )
    parser.add_argument("-n", "--namespace", metavar="NS", default="", help="of the nodes")


def _play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("motion", metavar="MOTION", type=Path, help="what 'sysid excite' wrote")
    parser.add_argument(
        "--robot", metavar="ROBOT", default="", help="name or description; default: the motion's"
    )
    parser.add_argument("--out", metavar="BAG", type=Path, help="bag folder to record to")
    parser.add_argument(
        "--dry-run", action="store_true", help="check everything, and move nothing"
    )
    _add_playing(parser)


play = Subcommand(
    "play an exciting motion: slowly to its start, then watched; stop with Ctrl-C, the service "
    "player/stop, or true on the topic stop",
    _play,
    "sysid_controller.play",
)


def _calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "robot", metavar="ROBOT", help="name of a known robot, or the path of its description"
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="folder for motions, bags, result"
    )
    parser.add_argument(
        "--duration",
        metavar="S",
        type=float,
        default=20.0,
        help="of the motion that is learned from; that to validate takes half as long; default: "
        "%(default)g s",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the motions")
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="start a simulated robot with a wrong model, and stop it in the end",
    )
    _add_playing(parser)


calibrate = Subcommand(
    "the whole round: design motions, play and record them, identify, validate",
    _calibrate,
    "sysid_controller.calibrate",
)
