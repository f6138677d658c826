# SPDX-License-Identifier: Apache-2.0
"""Groups of arguments of subcommands, many of them shared."""

import argparse
from collections.abc import Callable
from pathlib import Path

__all__ = [
    "add_data",
    "add_estimator_settings",
    "add_json",
    "add_motion_limits",
    "add_number",
    "add_robot",
    "add_signals",
    "add_without",
    "add_workers",
]


def add_data(
    parser: argparse.ArgumentParser, *, required: bool = True, several: bool = False
) -> None:
    """Declare the recording, or several."""
    more = (
        "; or a .yaml with a list 'recordings' of entries 'data', 'weight', 'load: {body, mass, "
        "com}', 'contacts', 'topic'"
    )
    parser.add_argument(
        "data",
        metavar="DATA",
        type=Path,
        nargs="+" if several else None if required else "?",
        help="bag folder, .mcap, .db3 (with or without metadata.yaml), or .csv with the header "
        "time,<joint>/position,<joint>/velocity,<joint>/effort,…" + (more if several else ""),
    )
    parser.add_argument(
        "--topic",
        metavar="NAME[,NAME]",
        help="topic of the joint states, if a bag has several; or several, each of other joints",
    )


def add_robot(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Declare the robot."""
    parser.add_argument(
        "--robot",
        metavar="ROBOT",
        required=required,
        help="name of a known robot, or the path of its description (see 'sysid init')",
    )


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare JSON output."""
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON on stdout")


def add_number(
    parser: argparse.ArgumentParser,
    flag: str,
    unit: str,
    what: str,
    default: float | None = None,
    kind: Callable[[str], float] | None = None,
) -> None:
    """Declare a number, of the default's kind if not another, whose help tells the default."""
    told = "" if default is None else "; default: %(default)g"
    number = kind or (float if default is None else type(default))
    parser.add_argument(flag, metavar=unit, type=number, default=default, help=what + told)


def add_signals(parser: argparse.ArgumentParser) -> None:
    """Declare how recordings are filtered and how strict their reading is."""
    add_number(parser, "--cutoff", "HZ", "of the low-pass; default: chosen from the data")
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="use what is usable of a faulty recording: leave out rows with NaN or inf, and take "
        "a clock that goes back as the start of another stretch",
    )


def _span(text: str) -> tuple[float, float]:
    first, _, last = text.partition(":")
    try:
        span = float(first), float(last)
    except ValueError:
        span = -1.0, -1.0
    if not 0.0 <= span[0] < span[1]:
        raise argparse.ArgumentTypeError(f"'{text}' is not a start and a later end, as 12:15.5")
    return span


def add_without(parser: argparse.ArgumentParser) -> None:
    """Declare parts of a recording that are left out."""
    parser.add_argument(
        "--without",
        metavar="START:END",
        type=_span,
        action="append",
        default=[],
        help="leave out what lies between these times [s] after the recording's start, as where "
        "the robot was touched; can be repeated",
    )


def add_workers(parser: argparse.ArgumentParser) -> None:
    """Declare who reads and filters recordings."""
    add_number(parser, "--workers", "N", "processes that read and filter the recordings", 1)
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="of a Dask cluster that reads and filters them instead",
    )


def add_estimator_settings(parser: argparse.ArgumentParser) -> None:
    """Declare what single methods can be told."""
    huber = "with --method wls: residuals beyond K standard deviations count linearly"
    add_number(parser, "--huber", "K", huber)
    parser.add_argument(
        "--regulariser",
        metavar="KIND",
        help="with --method sdp: geodesic, euclidean, entropic or none; default: geodesic",
    )


def add_motion_limits(parser: argparse.ArgumentParser) -> None:
    """Declare what a motion must keep to."""
    share = "of every joint's range and effort limit that may be used"
    add_number(parser, "--share", "SHARE", share, 0.9)
    add_number(parser, "--speed", "SHARE", "of every velocity limit that may be used", 0.9)
    acceleration = "limit of all joints; default: top speed within 0.25 s"
    add_number(parser, "--acceleration", "RAD/S²", acceleration)
    floor = "least height of the tool and of every joint's frame in the world"
    add_number(parser, "--floor", "M", floor)
    parser.add_argument(
        "--box",
        metavar=("X", "Y", "Z", "DX", "DY", "DZ"),
        nargs=6,
        type=float,
        action="append",
        default=[],
        help="centre and size [m] of a box in the world that bodies stay out of; can be repeated",
    )
    parser.add_argument(
        "--apart",
        action="store_true",
        help="keep bodies out of each other: the URDF's boxes, cylinders and spheres; of bodies "
        "that have none, capsules with their inertias, which are larger than slim links",
    )
