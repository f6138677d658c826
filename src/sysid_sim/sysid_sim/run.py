# SPDX-License-Identifier: Apache-2.0
"""``sysid simulate``: runs a scenario and writes its bag with the ground truth in it."""

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.cli.console import progress_bar
from sysid_core.data import write_recording
from sysid_core.errors import OutputError
from sysid_core.estimate_json import identity_json
from sysid_core.files import appearing, json_text
from sysid_core.recording import BaseRecording, ContactRecording, ImuRecording, Recording
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.conversion import JointConversion
from sysid_sim.errors import SimulationError
from sysid_sim.scenarios import PayloadEvent, Scenario, find_scenario, scenario_of
from sysid_sim.sensors import BaseReading, Reading
from sysid_sim.simulation import Simulation
from sysid_sim.truth import draw_truth

__all__ = ["Run", "run", "run_scenario", "write_run"]

GROUND_TRUTH = "ground_truth.json"
_SHORTEST, _LONGEST = 0.1, 3600.0  # [s]


@dataclass(frozen=True)
class Run:
    """What came of a scenario."""

    scenario: Scenario
    robot: Robot
    seed: int
    recording: Recording
    truth: FloatArray  # (p,) true parameters without payload
    payloads: tuple[PayloadEvent, ...]  # Those that happened within the duration

    def ground_truth(self) -> dict[str, Any]:
        """Return the ground truth as JSON-ready data."""
        config = asdict(self.scenario.config)
        return {
            **identity_json(self.robot, self.truth),
            "scenario": self.scenario.name,
            "seed": self.seed,
            "payloads": [
                {
                    "time": event.time,
                    "frame": self.robot.tool_frame,
                    "mass": event.mass,
                    "com": list(event.com),
                    "inertia": event.inertia[np.triu_indices(3)].tolist(),
                }
                for event in self.payloads
            ],
            "simulation": config,
            "spread": asdict(self.scenario.spread),
        }


def run_scenario(
    scenario: Scenario,
    *,
    seed: int = 1,
    duration: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Run:
    """Simulate a scenario, some seconds if not its own; `progress` gets the simulated time [s].

    Its true parameters, motion and noise are drawn by the seed.

    Raises
    ------
    SimulationError
        If the duration is less than 0.1 s or more than an hour, or the robot fell or moved in
        impossible ways.
    """
    duration = scenario.duration if duration is None else duration
    if not _SHORTEST <= duration <= _LONGEST or seed < 0:
        raise SimulationError(
            f"the duration must lie between {_SHORTEST:g} and {_LONGEST:g} s, and the seed be at "
            f"least zero, got {duration:g} s and {seed}"
        )
    robot = load_robot(scenario.robot)
    # Three streams of one seed: the truth stays the same if only the motion changes.
    truth = draw_truth(robot, seed, scenario.spread)
    period = scenario.config.period
    behaviour = scenario.behaviour(robot, seed, period)
    simulation = Simulation(robot, truth, scenario.config, seed=seed, start=behaviour.start)
    stride = max(1, round(1.0 / (scenario.rate * period)))
    pending = sorted(scenario.payloads, key=lambda event: event.time)
    happened: list[PayloadEvent] = []
    readings: list[Reading] = []
    for tick in range(round(duration / period)):
        while pending and pending[0].time <= simulation.time:
            event = pending.pop(0)
            simulation.attach_payload("", event.mass, event.com, event.inertia)
            happened.append(event)
        reading = simulation.step(behaviour.command(simulation))
        if tick % stride == 0:
            readings.append(reading)
        if behaviour.trouble:
            raise SimulationError(
                f"scenario '{scenario.name}' with seed {seed}: {behaviour.trouble}; choose another"
                " seed"
            )
        if progress is not None and tick % 100 == 0:
            progress(simulation.time)
    if not np.isfinite(readings[-1].position).all():
        raise SimulationError(f"scenario '{scenario.name}' became unstable")
    recording = _recording(robot, readings, scenario.name)
    return Run(scenario, robot, seed, recording, truth, tuple(happened))


def _recording(robot: Robot, readings: list[Reading], source: str) -> Recording:
    """Return what the robot's driver publishes; real robots rarely measure passive joints."""
    time = np.array([reading.time for reading in readings])
    joints = np.array([(r.position, r.velocity, r.effort) for r in readings])
    states = np.moveaxis(joints[:, :, robot.actuated], 1, 0)
    shown = JointConversion.described(robot).published(*states)
    bases = [reading.base for reading in readings if reading.base is not None]
    parts = _base_parts(robot, time, bases) if bases else {}
    return Recording(time, robot.actuated_names, *shown, source=source, **parts)


def _base_parts(robot: Robot, time: FloatArray, bases: list[BaseReading]) -> dict[str, Any]:
    pose = np.array([base.pose for base in bases])
    wrenches = [base.wrenches for base in bases if base.wrenches is not None]
    frame = robot.layout.bodies[0]
    return {
        "base": BaseRecording(
            time,
            pose[:, :3],
            pose[:, 3:],
            np.array([base.twist for base in bases]),
            frame="odom",
            child_frame=frame,
        ),
        "imu": ImuRecording(
            time,
            np.array([base.angular_velocity for base in bases]),
            np.array([base.specific_force for base in bases]),
            pose[:, 3:],
            frame=frame,
        ),
        "contacts": ContactRecording(
            time,
            tuple(contact.name for contact in robot.description.contacts),
            np.array([base.contacts for base in bases]),
            None if not wrenches else np.array(wrenches),
        ),
    }


def write_run(run: Run, folder: str | Path) -> None:
    """Write a run as a bag folder that also holds ``ground_truth.json``; whole or not at all.

    Raises
    ------
    OutputError
        If the folder exists already or cannot be written.
    """
    with appearing(Path(folder)) as unfinished:
        write_recording(run.recording, unfinished)
        (unfinished / GROUND_TRUTH).write_text(json_text(run.ground_truth(), 2), encoding="utf-8")


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
    duration = scenario.duration if args.duration is None else args.duration
    with progress_bar() as show:
        done = run_scenario(
            scenario,
            seed=args.seed,
            duration=duration,
            progress=lambda time: show(scenario.name, time / duration),
        )
        write_run(done, target)
    recording = done.recording
    print(
        f"{target}: {len(recording)} samples of {len(recording.joint_names)} joints in "
        f"{duration:g} s, robot {done.robot.name}, seed {done.seed}"
    )
    return 0
