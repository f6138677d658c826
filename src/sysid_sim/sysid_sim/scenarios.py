# SPDX-License-Identifier: Apache-2.0
"""Named scenarios: a robot, what it does, how noisy its sensors are and what happens to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.robot import Robot, load_robot
from sysid_sim.errors import SimulationError
from sysid_sim.nominal_control import TrajectoryTracker
from sysid_sim.sensors import SENSORS, SensorConfig
from sysid_sim.simulation import Simulation, SimulationConfig, Stribeck
from sysid_sim.trajectories import ExcitationConfig, exciting_trajectory
from sysid_sim.truth import TruthSpread
from sysid_sim.walker import MOTIONS, MotionFactory, Walker

__all__ = [
    "Behaviour",
    "PayloadEvent",
    "Scenario",
    "find_scenario",
    "known_scenarios",
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
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)  # [m] centre of mass in the tool frame
    size: tuple[float, float, float] = (0.1, 0.1, 0.1)
    """[m] edges of the uniform box that has its inertia."""

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


_BANDWIDTH = 20.0
"""Of the PD feedback that scenarios track with, by the nominal inertia [rad/s]."""


def _excite(excitation: ExcitationConfig, robot: Robot, seed: int, period: float) -> Behaviour:
    trajectory = exciting_trajectory(robot, seed, excitation)
    return TrajectoryTracker(robot, trajectory, bandwidth=_BANDWIDTH, period=period)


def exciting(**excitation: Any) -> BehaviourFactory:
    """Return a behaviour that tracks a trajectory made by the fields of `ExcitationConfig`."""
    return partial(_excite, ExcitationConfig(**excitation))


def _digit(name: str, robot: str, summary: str, **excitation: float) -> Scenario:
    return Scenario(
        name,
        robot,
        summary,
        exciting(**excitation),
        config=SimulationConfig(
            latency=1, sensors=SENSORS["digit"], stribeck=Stribeck(level=0.1, velocity=0.05)
        ),
    )


def _arm(name: str, robot: str, summary: str, rate: float = 500.0) -> Scenario:
    return Scenario(
        name,
        robot,
        summary,
        exciting(),
        rate=rate,
        config=SimulationConfig(sensors=SENSORS["good"]),
    )


_LEG = {"period": 5.0, "amplitude": 0.8}

# Encoders behind the gear, motor currents known to a hundredth of the limit, a base state that
# was fused from an inertial unit and leg odometry or motion capture.
_LEGGED_SENSORS = SensorConfig(
    position_resolution=3.5e-5,
    position_noise=1e-4,
    velocity_noise=0.01,
    effort_noise=0.01,
    base_position_noise=1e-3,
    base_orientation_noise=1e-3,
    base_velocity_noise=5e-3,
    gyroscope_noise=3e-3,
    accelerometer_noise=0.05,
)


def _legged(
    name: str,
    summary: str,
    motion: MotionFactory,
    duration: float = 20.0,
    payload: PayloadEvent | None = None,
) -> Scenario:
    robot = name.split("_")[0]
    # as their drivers publish: the master board at 1000 Hz, the SDK at 333 Hz
    period = 0.003 if robot == "spot" else 0.001
    return Scenario(
        name,
        robot,
        summary,
        partial(Walker, motion),
        duration,
        rate=1.0 / period,
        config=SimulationConfig(period=period, latency=1, sensors=_LEGGED_SENSORS),
        payloads=(payload,) if payload else (),
    )


_SCENARIOS = (
    Scenario(
        "panda_payload",
        "panda",
        "Panda on an exciting trajectory; after half the time it carries 2 kg at the flange",
        exciting(effort=0.6),
        duration=30.0,
        config=SimulationConfig(sensors=SENSORS["good"]),
        payloads=(PayloadEvent(15.0, 2.0, com=(0.02, -0.01, 0.08), size=(0.08, 0.08, 0.16)),),
    ),
    _arm("panda_excite", "panda", "Panda on an exciting trajectory"),
    Scenario(
        "valkyrie_arm",
        "valkyrie_arm",
        "Valkyrie's four-joint arm, far from its nominal model",
        exciting(),
        config=SimulationConfig(sensors=SENSORS["good"]),
        spread=TruthSpread(mass=0.4, com=0.6, shape=0.2, friction=0.8),
    ),
    _arm("ur10_excite", "ur10", "UR10 on an exciting trajectory", rate=125.0),
    _arm("ur10e_excite", "ur10e", "UR10e on an exciting trajectory"),
    _arm("tx40_excite", "tx40", "TX40 with its coupled wrist on an exciting trajectory"),
    Scenario(
        "kuka_lwr",
        "kuka_lwr",
        "KUKA LWR on an exciting trajectory, sensors free of noise",
        exciting(),
    ),
    _digit("digit_leg", "digit_left_leg", "Digit's left leg with its three loops, hung", **_LEG),
    _digit("digit_right_leg", "digit_right_leg", "Digit's right leg, hung", **_LEG),
    _digit("digit_arm", "digit_left_arm", "Digit's left arm", period=6.0),
    _digit("digit_right_arm", "digit_right_arm", "Digit's right arm", period=6.0),
    _legged("solo12_trot", "Solo12 trots", MOTIONS["trot"]),
    _legged("solo12_new_trot", "Solo12 trots faster, backward and sideways", MOTIONS["new_trot"]),
    _legged("solo12_crawl", "Solo12 sets one foot after the other", MOTIONS["crawl"]),
    _legged("solo12_wobble", "Solo12 sways over four standing feet", MOTIONS["wobble"]),
    _legged("solo12_jump", "Solo12 jumps again and again", MOTIONS["jump"]),
    _legged("spot_trot", "Spot trots", MOTIONS["trot"]),
    _legged("spot_new_trot", "Spot trots faster, backward and sideways", MOTIONS["new_trot"]),
    _legged("spot_jump", "Spot jumps again and again", MOTIONS["jump"]),
    _legged(
        "solo12_payload",
        "Solo12 trots; after half the time it carries 1 kg on its trunk",
        MOTIONS["trot"],
        30.0,
        PayloadEvent(15.0, 1.0, com=(0.03, -0.01, 0.06), size=(0.15, 0.1, 0.06)),
    ),
    _legged(
        "spot_payload",
        "Spot trots; after half the time it carries 5 kg on its trunk",
        MOTIONS["trot"],
        30.0,
        PayloadEvent(15.0, 5.0, com=(0.08, -0.02, 0.14), size=(0.3, 0.2, 0.12)),
    ),
)


def known_scenarios() -> dict[str, Scenario]:
    """Return all scenarios by name."""
    return {scenario.name: scenario for scenario in _SCENARIOS}


def scenario_of(robot: str) -> Scenario:
    """Return what any robot does: it trots where it has four feet, else it excites its joints.

    Raises
    ------
    SysidError
        If the robot cannot be loaded, or has a floating base and not four feet.
    """
    loaded = load_robot(robot)
    if not loaded.floating:
        return _arm(loaded.name, robot, "")
    feet = len(loaded.description.contacts)
    if feet != 4:
        raise SimulationError(
            f"robot '{loaded.name}' has a floating base and {feet} contacts; only four feet can "
            "walk by themselves: fix its base, or record the real robot"
        )
    walking = _legged(loaded.name, "", MOTIONS["trot"])
    return replace(walking, robot=robot)


def find_scenario(name: str) -> Scenario:
    """Return a scenario by name.

    Raises
    ------
    SimulationError
        If there is none; the message lists those there are.
    """
    known = known_scenarios()
    if name not in known:
        raise SimulationError(f"unknown scenario '{name}'; known scenarios: {', '.join(known)}")
    return known[name]
