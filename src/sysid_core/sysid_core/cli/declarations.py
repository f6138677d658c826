# SPDX-License-Identifier: Apache-2.0
"""The core's subcommands: help and arguments, light enough for ``sysid --help``."""

import argparse
from pathlib import Path

from sysid_core.cli.arguments import (
    add_data,
    add_estimator_settings,
    add_json,
    add_motion_limits,
    add_number,
    add_robot,
    add_signals,
    add_without,
    add_workers,
)
from sysid_core.cli.subcommand import LateChoices, Subcommand

__all__ = ["SUBCOMMANDS"]


def _add_out(parser: argparse.ArgumentParser, holds: str) -> None:
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help=f"folder for {holds}"
    )


def _add_method(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method",
        metavar="METHOD",
        choices=LateChoices("sysid_core.estimation", "METHODS"),
        default="entropic",
        help="one of %(choices)s; default: %(default)s",
    )


def _init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "urdf",
        metavar="URDF",
        type=Path,
        nargs="?",
        help="meshes are not needed; default: the /robot_description of --data",
    )
    parser.add_argument(
        "--data",
        metavar="DATA",
        type=Path,
        help="a recording: joints whose effort it lacks are locked",
    )
    parser.add_argument(
        "--topic",
        metavar="NAME[,NAME]",
        help="topic of the joint states, if a bag has several; or several, each of other joints",
    )
    parser.add_argument(
        "-o", "--out", metavar="YAML", type=Path, help="default: <name>.yaml in this folder"
    )
    parser.add_argument("--name", help="of the robot; default: the file's")
    base = parser.add_mutually_exclusive_group()
    base.add_argument(
        "--floating", dest="floating", action="store_true", default=None, help="free base"
    )
    base.add_argument("--fixed", dest="floating", action="store_false", help="base bolted down")
    parser.add_argument("--force", action="store_true", help="replace an existing file")


def _info(parser: argparse.ArgumentParser) -> None:
    add_data(parser, required=False)
    add_robot(parser, required=False)
    add_json(parser, "everything")


def _identify(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_data(parser, several=True)
    add_robot(parser, required=True)
    _add_out(parser, "estimate.json, <robot>.urdf, identified.yaml, report.html")
    _add_method(parser)
    train = "of each recording's motion, from its start, that is learned from; the rest validates"
    add_number(parser, "--train", "SHARE", train, 0.7)
    add_workers(parser)
    add(
        "--from",
        dest="start",
        metavar="ESTIMATE",
        type=Path,
        help="estimate.json whose parameters take the place of the nominal ones",
    )
    add(
        "--only",
        metavar="BODY",
        nargs="+",
        help="identify the inertias of these bodies and hold all else: what they gain is "
        "their load",
    )
    add(
        "--load",
        metavar="BODY=MASS[,X,Y,Z]",
        help="known load [kg] and its centre of mass in the body's joint frame [m] in the last "
        "recording; the ones before it are without it: reports the gain of each joint's drive",
    )
    add(
        "--any-mass",
        action="store_true",
        help="export models whose total mass or torques are far from the description's, that "
        "explain no torques, or whose joints are in another order or sense, too",
    )
    add(
        "--friction",
        choices=("chosen", "described"),
        default="chosen",
        help="give each joint the friction terms that predict better, or those of the "
        "description alone; default: %(default)s",
    )
    add(
        "--disturbed",
        choices=("left_out", "kept"),
        default="left_out",
        help="leave out parts whose torques the rest does not explain, as where the robot is "
        "touched or slips, or learn from them, too; default: %(default)s",
    )
    add_estimator_settings(parser)
    add_without(parser)
    add_signals(parser)
    add("--no-report", action="store_true", help="leave out the report")
    add_json(parser, "the estimate")


def _validate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "estimate", metavar="ESTIMATE", type=Path, help="estimate.json of 'sysid identify'"
    )
    add_data(parser)
    add_robot(parser, required=False)
    add_without(parser)
    add_signals(parser)
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="integrate both models forward from measured states under measured torques, too",
    )
    add_json(parser, "joints, rmse and r2")


def _compare(parser: argparse.ArgumentParser) -> None:
    for name in ("first", "second"):
        parser.add_argument(
            name, metavar="ESTIMATE", type=Path, help="estimate.json of 'sysid identify'"
        )
    add_data(parser, required=False)
    add_robot(parser, required=False)
    add_without(parser)
    add_signals(parser)
    add_json(parser, "the comparison")


def _replay(parser: argparse.ArgumentParser) -> None:
    add_data(parser)
    add_robot(parser, required=True)
    add_number(parser, "--rate", "HZ", "updates per second of recorded time", 20.0)
    add_number(parser, "--window", "S", "span of the sliding window", 2.0)
    _add_method(parser)
    add_signals(parser)
    add_json(parser, "an object per update, then a summary,")


def _excite(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("robot", metavar="ROBOT", help="name of a known robot, or the path of its description")
    _add_out(parser, "trajectory.csv, trajectory.yaml, trajectory.png")
    duration = "from rest to rest; the end meets the start, so it can be repeated"
    add_number(parser, "--duration", "S", duration, 10.0)
    add(
        "--joints",
        metavar="JOINT",
        nargs="+",
        help="that are to move; default: all actuated ones but wheels and fingers",
    )
    add(
        "--after",
        metavar="MOTION|ESTIMATE",
        nargs="+",
        type=Path,
        default=[],
        help="motions that were recorded already, or what 'sysid identify' found out: design what "
        "tells what they did not",
    )
    add(
        "--focus",
        metavar="WHAT",
        choices=LateChoices("sysid_core.excitation.information", "FOCUSES"),
        default="all",
        help="what is to be told best, one of %(choices)s; payload: of a robot that is identified "
        "already; default: %(default)s",
    )
    starts = "default: 2, of linkages and of more than 10 joints 1"
    add_number(parser, "--seed", "SEED", "of the random starts", 0)
    add_number(parser, "--starts", "STARTS", starts, kind=int)
    harmonics = "default: up to half a hertz, or to 10"
    add_number(parser, "--harmonics", "HARMONICS", harmonics, kind=int)
    add_motion_limits(parser)
    rate = "of the table; default: the robot's sensors', at most 100 Hz"
    add_number(parser, "--rate", "HZ", rate)
    add_json(parser, "the summary")


def _compliance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data",
        metavar="DATA",
        type=Path,
        help="CSV with the header time,<link>/x,<link>/y,<link>/z,<link>/qx,<link>/qy,"
        "<link>/qz,<link>/qw,… [s, m, -]: poses of the link frames in the world",
    )
    add_robot(parser, required=True)
    _add_out(parser, "compliance.json, wrenches.png")
    parser.add_argument(
        "--coupled",
        action="store_true",
        help="full symmetric matrices instead of one coefficient per direction",
    )
    add_json(parser, "the result")


def _doctor(parser: argparse.ArgumentParser) -> None:
    add_json(parser, "the checks")


_DECLARED = {
    "init": (_init, "write a robot description for a URDF"),
    "info": (
        _info,
        "show topics, joints, rates and gaps of a recording, and what is missing; or, with "
        "--robot alone, a robot and whether its loops close",
    ),
    "identify": (
        _identify,
        "identify a robot from recordings, and validate it on the parts held out",
    ),
    "validate": (_validate, "torque errors of nominal and identified model on other data"),
    "compare": (
        _compare,
        "two estimates side by side, and with DATA the torques that they predict; exit status 0: "
        "they agree, 1: they differ by more than their uncertainty, or torques by more than their "
        "error",
    ),
    "replay": (_replay, "run the online pipeline over a recording, as fast as it goes"),
    "excite": (_excite, "design an exciting trajectory within a robot's limits"),
    "compliance": (
        _compliance,
        "identify joints' stiffness and damping in six directions from link poses",
    ),
    "doctor": (_doctor, "show what is installed, what is missing, and what to do"),
}
SUBCOMMANDS = {
    name: Subcommand(text, add_arguments, f"sysid_core.cli.subcommands.{name}")
    for name, (add_arguments, text) in _DECLARED.items()
}
