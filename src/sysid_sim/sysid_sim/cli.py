# SPDX-License-Identifier: Apache-2.0
"""The verb `sysid simulate`."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from sysid_core.errors import OutputError
from sysid_sim.run import run_scenario, write_run
from sysid_sim.scenarios import find_scenario, known_scenarios

__all__ = ["SimulateVerb", "verb"]


def _positive(text: str) -> float:
    value = float(text)
    if not (math.isfinite(value) and value > 0.0):
        raise argparse.ArgumentTypeError(f"must be above zero, got {text}")
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must be at least zero, got {text}")
    return value


class SimulateVerb:
    """Simulates a scenario into a bag."""

    name = "simulate"
    help = "a bag from the simulator, with its ground truth beside it"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's arguments."""
        scenarios = known_scenarios().values()
        width = max(len(scenario.name) for scenario in scenarios)
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = "scenarios:\n" + "\n".join(
            f"  {scenario.name:{width}}  {scenario.summary}" for scenario in scenarios
        )
        parser.add_argument("scenario", help="name of the scenario, one of those below")
        parser.add_argument(
            "--out", required=True, type=Path, metavar="BAG", help="bag folder to write"
        )
        parser.add_argument(
            "--seed", type=_seed, help="of truth, motion and noise [default: the scenario's]"
        )
        parser.add_argument(
            "--duration", type=_positive, metavar="S", help="in seconds [default: the scenario's]"
        )

    def run(self, arguments: argparse.Namespace) -> int:
        """Simulate and write.

        Raises
        ------
        SysidError
            If the scenario is unknown or the bag cannot be written.
        """
        scenario = find_scenario(arguments.scenario)
        target = Path(arguments.out).expanduser()
        if target.exists():  # said now, not after the simulation
            raise OutputError(f"{target}: exists already; choose another name or delete it")
        duration = arguments.duration or scenario.duration
        with Progress(console=Console(stderr=True), transient=True) as bar:
            bar.disable = not bar.console.is_terminal
            task = bar.add_task(scenario.name, total=duration)
            run = run_scenario(
                scenario,
                seed=arguments.seed,
                duration=duration,
                progress=lambda time: bar.update(task, completed=time),
            )
            write_run(run, target)
        recording = run.recording
        print(
            f"{target}: {len(recording)} samples of {len(recording.joint_names)} joints in "
            f"{duration:g} s, robot {run.robot.name}, seed {run.seed}"
        )
        return 0


verb = SimulateVerb()
