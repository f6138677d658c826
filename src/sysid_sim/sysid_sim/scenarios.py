# SPDX-License-Identifier: Apache-2.0
"""Named scenarios, as ``scenarios.yaml`` describes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.robot import Robot, load_robot
from sysid_sim.cli import read_scenarios
from sysid_sim.errors import SimulationError
from sysid_sim.sensors import SENSORS, SensorConfig
from sysid_sim.simulation import Simulation, SimulationConfig, Stribeck
from sysid_sim.trajectories import ExcitationConfig, TrajectoryTracker, exciting_trajectory
from sysid_sim.truth import TruthSpread
from sysid_sim.walker import MOTIONS, Walker

__all__ = [
    "Behaviour",
    "PayloadEvent",
    "Scenario",
    "find_scenario",
    "scenario_of",
]


class Behaviour(Protocol):
    """What drives the robot of a scenario: one class per kind of motion.

    Attributes
    ----------
    start : (nq,) or None
        Configuration at time zero; None: the simulation's own.
    trouble : str
        Why the motion could not go on, else empty.
    """

    @property
    def start(self) -> FloatArray | None: ...  # noqa: D102

    @property
    def trouble(self) -> str: ...  # noqa: D102

    def command(self, simulation: Simulation) -> FloatArray:
        """Return the torques (na,) [N·m] to apply now, from what `simulation` senses."""
        ...


@dataclass(frozen=True)
class PayloadEvent:
    """A payload that is attached (or, with a mass of 0, taken off) during a scenario."""

    time: float  # [s]
    mass: float  # [kg]
    com: Sequence[float] = (0.0, 0.0, 0.0)  # (3,) [m] centre of mass in the tool frame
    size: Sequence[float] = (0.1, 0.1, 0.1)  # (3,) [m] edges of the box that has its inertia

    @property
    def inertia(self) -> FloatArray:
        """Rotational inertia (3, 3) [kg·m²] about the centre of mass."""
        squares = np.square(self.size)
        return np.diag(self.mass / 12.0 * (squares.sum() - squares))


BehaviourFactory = Callable[[Robot, int, float], Behaviour]
"""Makes a behaviour from the robot, the seed and the control period [s]."""


@dataclass(frozen=True)
class Scenario:
    """Everything that makes a run reproducible, but for the seed."""

    name: str
    robot: str
    summary: str
    behaviour: BehaviourFactory
    duration: float = 20.0  # [s]
    rate: float = 500.0  # [Hz] at which the bag holds readings; divides the simulation's
    config: SimulationConfig = field(default_factory=SimulationConfig)
    spread: TruthSpread = field(default_factory=TruthSpread)
    payloads: tuple[PayloadEvent, ...] = ()


_BANDWIDTH = 20.0  # Of the PD feedback that scenarios track with, by the nominal inertia [rad/s]


def _excite(excitation: ExcitationConfig, robot: Robot, seed: int, period: float) -> Behaviour:
    trajectory = exciting_trajectory(robot, seed, excitation, elsewhere=True)
    return TrajectoryTracker(robot, trajectory.at, bandwidth=_BANDWIDTH, period=period)


def _scenario(name: str, **given: Any) -> Scenario:
    """Return a scenario from what ``scenarios.yaml`` says of it and of its family."""
    told = {**read_scenarios()["families"][given["family"]], **given}
    sensors, period = told["sensors"], told.get("period", SimulationConfig.period)
    return Scenario(
        name,
        told["robot"],
        told["summary"],
        partial(Walker, MOTIONS[told["motion"]])
        if "motion" in told
        else partial(_excite, ExcitationConfig(**told["excite"])),
        told.get("duration", Scenario.duration),
        rate=told.get("rate", 1.0 / period),
        config=SimulationConfig(
            period=period,
            latency=told.get("latency", 0),
            sensors=SENSORS[sensors] if isinstance(sensors, str) else SensorConfig(**sensors),
            stribeck=Stribeck(**told.get("stribeck", {})),
        ),
        spread=TruthSpread(**told.get("spread", {})),
        payloads=tuple(PayloadEvent(**each) for each in told.get("payloads", ())),
    )


def scenario_of(robot: str) -> Scenario:
    """Return what any robot does: it trots where it has four feet, else it excites its joints.

    Raises
    ------
    SysidError
        If the robot cannot be loaded, or has a floating base and not four feet.
    """
    loaded = load_robot(robot)
    told = {"robot": robot, "summary": ""}
    if not loaded.floating:
        return _scenario(loaded.name, family="arm", **told)
    feet = len(loaded.description.contacts)
    if feet != 4:
        raise SimulationError(
            f"robot '{loaded.name}' has a floating base and {feet} contacts; only four feet can "
            "walk by themselves: fix its base, or record the real robot"
        )
    usual = read_scenarios()["scenarios"].get(f"{loaded.name}_trot", {"family": "legged"})
    return _scenario(loaded.name, **{**usual, "motion": "trot", **told})


def find_scenario(name: str) -> Scenario:
    """Return a scenario by name.

    Raises
    ------
    SimulationError
        If there is none; the message lists those there are.
    """
    known = read_scenarios()["scenarios"]
    if name not in known:
        raise SimulationError(f"unknown scenario '{name}'; known scenarios: {', '.join(known)}")
    return _scenario(name, **known[name])
