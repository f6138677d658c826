# SPDX-License-Identifier: Apache-2.0
"""``sysid simulate``: a scenario in, a bag out."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from sysid_core.errors import OutputError
from sysid_sim.errors import SimulationError
from sysid_sim.run import run_scenario, write_run
from sysid_sim.scenarios import find_scenario, scenario_of

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Simulate and write.

    Raises
    ------
    SysidError
        If the scenario is unknown or the bag cannot be written.
    """
    if (args.scenario is None) == (args.robot is None):
        raise SimulationError("give a scenario, or a robot with --robot")
    scenario = scenario_of(args.robot) if args.robot else find_scenario(args.scenario)
    target = Path(args.out).expanduser()
    if target.exists():  # said now, not after the simulation
        raise OutputError(f"{target}: exists already; choose another name or delete it")
    duration = args.duration or scenario.duration
    with Progress(console=Console(stderr=True), transient=True) as bar:
        bar.disable = not bar.console.is_terminal
        task = bar.add_task(scenario.name, total=duration)
        done = run_scenario(
            scenario,
            seed=args.seed,
            duration=duration,
            progress=lambda time: bar.update(task, completed=time),
        )
        write_run(done, target)
    recording = done.recording
    print(
        f"{target}: {len(recording)} samples of {len(recording.joint_names)} joints in "
        f"{duration:g} s, robot {done.robot.name}, seed {done.seed}"
    )
    return 0
