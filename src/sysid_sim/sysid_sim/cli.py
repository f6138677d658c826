# SPDX-License-Identifier: Apache-2.0
"""The subcommand ``sysid simulate``, as the ``sysid`` command finds it."""

import argparse
from functools import cache
from pathlib import Path
from typing import Any

from sysid_core.cli.arguments import add_number
from sysid_core.cli.subcommand import Subcommand
from sysid_core.untrusted import read_yaml

__all__ = ["read_scenarios", "simulate"]

_SCENARIOS = Path(__file__).with_name("scenarios.yaml")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario", nargs="?", metavar="SCENARIO", help="name of the scenario, one of those below"
    )
    parser.add_argument(
        "--robot",
        metavar="ROBOT",
        help="name of a known robot or path of its description, instead of a scenario: an arm or "
        "linkage moves through its range, a quadruped trots",
    )
    parser.add_argument(
        "--out", required=True, type=Path, metavar="BAG", help="bag folder to write"
    )
    add_number(parser, "--seed", "SEED", "of truth, motion and noise", 1)
    add_number(parser, "--duration", "S", "default: the scenario's")


@cache
def read_scenarios() -> dict[str, Any]:
    """Return what ``scenarios.yaml`` says: families and scenarios by name."""
    told: dict[str, Any] = read_yaml(_SCENARIOS)
    return told


def _epilog() -> str:
    scenarios = read_scenarios()["scenarios"]
    width = max(map(len, scenarios))
    lines = (f"  {name:{width}}  {told['summary']}" for name, told in scenarios.items())
    return "\n".join(["scenarios:", *lines])


simulate = Subcommand(
    "a bag from the simulator, with its ground truth beside it",
    _add_arguments,
    "sysid_sim.run",
    _epilog,
)
