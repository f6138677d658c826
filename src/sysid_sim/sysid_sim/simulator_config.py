# SPDX-License-Identifier: Apache-2.0
"""The parameters of the simulator node, and what they choose."""

from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.stance import stance_of, standing_configuration
from sysid_core.errors import ParameterError, SysidError
from sysid_core.robot import Robot
from sysid_core.settings import parameter
from sysid_ros.robot_config import RobotConfig
from sysid_sim.sensors import SENSORS
from sysid_sim.simulation import SimulationConfig, Stribeck
from sysid_sim.truth import draw_truth, read_truth
from sysid_sim.walker import MOTIONS, Walker

__all__ = ["SimulatorConfig", "start_configuration"]

_SEEDS = (0, 2**31 - 1)

_STRIBECK_VELOCITY = 0.05
"""Speed [rad/s] at which breakaway friction has fallen to 37 %, as of geared motors."""

_BEHAVIOURS = ", ".join(sorted(MOTIONS))

_NONE = ("", "none")  # Texts that choose nothing: a launch file's arguments cannot be empty


@dataclass(frozen=True)
class SimulatorConfig(RobotConfig):
    """Parameters of the simulator node."""

    truth: str = parameter(
        "drawn",
        "True parameters: 'drawn' around the nominal ones, 'nominal', or the path of a ground "
        "truth's or estimate's JSON",
        read_only=True,
    )
    truth_seed: int = parameter(
        1, "Seed of the drawn true parameters [-]", range=_SEEDS, read_only=True
    )
    ground_truth_file: str = parameter(
        "", "File to write the true parameters to; empty or none: none", read_only=True
    )
    behaviour: str = parameter(
        "",
        "What a quadruped does by itself, as with the walking controller of a real one: "
        + _BEHAVIOURS
        + "; empty or none: it obeys effort_controller/commands",
        read_only=True,
    )
    behaviour_seed: int = parameter(
        1, "Seed of the behaviour's variation [-]", range=_SEEDS, read_only=True
    )
    rate: float = parameter(
        500.0, "Rate of joint states and commands [Hz]", range=(10.0, 2000.0), read_only=True
    )
    speed: float = parameter(
        1.0,
        "Simulated seconds per second [-]; other than 1 needs publish_clock",
        range=(0.01, 100.0),
    )
    publish_clock: bool = parameter(
        False, "Publish /clock and stamp messages with simulated time from zero", read_only=True
    )
    clock_rate: float = parameter(
        0.0,
        "Rate of /clock [Hz, simulated], where nodes need it less often than joint states, whose "
        "stamps the controller goes by; 0: with every joint state",
        range=(0.0, 2000.0),
        read_only=True,
    )
    lockstep: float = parameter(
        0.0,
        "Simulated time that a command is applied before the next one is waited for [s], so that "
        "a busy computer slows the robot down instead of its control; 0: never waits; needs "
        "publish_clock",
        range=(0.0, 1.0),
    )
    latency: int = parameter(
        0, "Periods of 1/rate before a command acts [-]", range=(0, 100), read_only=True
    )
    sensors: str = parameter(
        "good",
        "Whose sensors it has: ideal ones without noise, good ones as of an arm, those of "
        "Digit's legs, or those of a quadruped",
        choices=tuple(SENSORS),
        read_only=True,
    )
    wrenches: bool = parameter(
        False,
        "Publish contact wrenches, as robots with force sensors in their feet",
        read_only=True,
    )
    stribeck_level: float = parameter(
        0.0,
        "Breakaway friction beyond Coulomb's, as a share of it [-], which no model here knows",
        range=(0.0, 10.0),
        read_only=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.speed != 1.0 and not self.publish_clock:
            raise ParameterError("a speed other than 1 needs publish_clock, so that nodes follow")
        if self.lockstep > 0.0 and not self.publish_clock:
            raise ParameterError("lockstep needs publish_clock, so that all wait with the robot")
        if self.lockstep > 0.0 and self.behaviour not in _NONE:
            raise ParameterError(
                "lockstep waits for commands, which a robot with a behaviour ignores"
            )

    @property
    def simulation(self) -> SimulationConfig:
        """How the robot is simulated.

        Raises
        ------
        SimulationError
            If the rate does not fit the time step of the physics.
        """
        return SimulationConfig(
            period=1.0 / self.rate,
            latency=self.latency,
            sensors=replace(SENSORS[self.sensors], wrenches=self.wrenches),
            stribeck=Stribeck(self.stribeck_level, _STRIBECK_VELOCITY),
        )

    @property
    def clock_ticks(self) -> int:
        """Periods from one message on /clock to the next."""
        return max(1, round(self.rate / (self.clock_rate or self.rate)))

    @property
    def truth_path(self) -> str:
        """File to write the true parameters to; empty: none."""
        return "" if self.ground_truth_file in _NONE else self.ground_truth_file

    def new_behaviour(self, robot: Robot) -> Walker | None:
        """Return a new behaviour; None: commands drive the robot.

        Raises
        ------
        SysidError
            If there is no such behaviour or the robot cannot do it.
        """
        if self.behaviour in _NONE:
            return None
        if self.behaviour not in MOTIONS:
            raise ParameterError(
                f"behaviour must be empty or one of {_BEHAVIOURS}, got '{self.behaviour}'"
            )
        return Walker(MOTIONS[self.behaviour], robot, self.behaviour_seed, 1.0 / self.rate)

    def true_robot(self, robot: Robot) -> tuple[Robot, FloatArray]:
        """Return the robot with its true friction terms, and its true parameters (p,).

        Raises
        ------
        SysidError
            If a file is named that does not hold this robot's.
        """
        if self.truth == "nominal":
            return robot, robot.consistent_nominal.copy()
        if self.truth == "drawn":
            return robot, draw_truth(robot, self.truth_seed)
        return read_truth(robot, self.truth)


def start_configuration(robot: Robot) -> FloatArray:
    """Return the configuration (nq,) that a robot without a behaviour starts from, at rest.

    A quadruped starts with bent knees, since straight legs cannot be driven.
    """
    if not robot.floating:
        return standing_configuration(robot)
    try:
        stance = stance_of(robot)
    except SysidError:  # not a quadruped, or one whose legs do not have three joints
        return standing_configuration(robot)
    return np.concatenate([stance.pose, stance.joints])
