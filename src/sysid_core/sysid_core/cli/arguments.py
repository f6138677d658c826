# SPDX-License-Identifier: Apache-2.0
"""Arguments that several subcommands share, and how they become settings."""

from __future__ import annotations

import argparse
from pathlib import Path

__all__ = ["add_data", "add_json", "add_robot", "add_signals"]


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
        "--topic", metavar="NAME", help="topic of the joint states, if a bag has several"
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


def add_signals(parser: argparse.ArgumentParser) -> None:
    """Declare how recordings are filtered and how strict their reading is."""
    parser.add_argument(
        "--cutoff", metavar="HZ", type=float, help="of the low-pass; default: chosen from the data"
    )
    parser.add_argument(
        "--lenient",
        action="store_true",
        help="use what is usable of a faulty recording: leave out rows with NaN or inf, and take "
        "a clock that goes back as the start of another stretch",
    )
