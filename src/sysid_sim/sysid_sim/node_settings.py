# SPDX-License-Identifier: Apache-2.0
"""The parameters of the nodes, with defaults and ranges, and the plain data made from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError, SysidError
from sysid_core.excitation import FadedMotion
from sysid_core.robot import Robot
from sysid_core.settings import Setting
from sysid_ros.parameters import ROBOT
from sysid_sim.mjcf import PhysicsConfig
from sysid_sim.sensors import SensorConfig
from sysid_sim.simulation import SimulationConfig, Stribeck
from sysid_sim.stance_trajectory import StanceTrajectory
from sysid_sim.trajectories import ExcitationConfig, exciting_trajectory
from sysid_sim.truth import TruthSpread, draw_truth, read_truth
from sysid_sim.walker import MOTIONS, Walker, stance_of

__all__ = [
    "REFERENCE",
    "SIMULATOR",
    "ReferencePlan",
    "SimulatorPlan",
    "chosen_behaviour",
    "chosen_start",
    "true_parameters",
]

STALE_ACTIONS = ("hold", "zero")


_Fixed = partial(Setting, read_only=True)

SIMULATOR: Sequence[Setting] = (
    ROBOT,
    _Fixed(
        "truth",
        "drawn",
        "True parameters: 'drawn' around the nominal ones, 'nominal', or the path of a "
        "ground truth's or estimate's JSON",
    ),
    _Fixed("truth_seed", 1, "Seed of the drawn true parameters [-]", (0, 2**31 - 1)),
    _Fixed("mass_spread", 0.2, "Drawn masses differ by up to this share [-]", (0.0, 0.9)),
    _Fixed(
        "com_spread",
        0.3,
        "Drawn centres of mass differ by up to this share of the standard deviation of the "
        "body's mass distribution [-]",
        (0.0, 0.9),
    ),
    _Fixed("shape_spread", 0.15, "Drawn bodies are stretched by up to this [-]", (0.0, 0.9)),
    _Fixed(
        "friction_spread",
        0.5,
        "Drawn friction and armature differ by up to this share [-]",
        (0.0, 0.9),
    ),
    _Fixed(
        "behaviour",
        "",
        "What a quadruped does by itself, as with the walking controller of a real one: 'trot', "
        "'new_trot', 'crawl', 'wobble' or 'jump'; empty or none: it obeys "
        "effort_controller/commands",
    ),
    _Fixed("behaviour_seed", 1, "Seed of the behaviour's variation [-]", (0, 2**31 - 1)),
    _Fixed("ground_truth_file", "", "File to write the true parameters to; empty or none: none"),
    _Fixed("rate", 500.0, "Rate of joint states and commands [Hz]", (10.0, 2000.0)),
    _Fixed("time_step", 0.0005, "Time step of the physics [s]; divides 1/rate", (1e-5, 0.01)),
    Setting(
        "speed",
        1.0,
        "Simulated seconds per second [-]; other than 1 needs publish_clock",
        (0.01, 100.0),
    ),
    _Fixed(
        "publish_clock", False, "Publish /clock and stamp messages with simulated time from zero"
    ),
    _Fixed(
        "clock_rate",
        0.0,
        "Rate of /clock [Hz, simulated], where nodes need it less often than joint states, whose "
        "stamps the controller goes by; 0: with every joint state",
        (0.0, 2000.0),
    ),
    Setting(
        "lockstep",
        0.0,
        "Simulated time that a command is applied before the next one is waited for [s], so that "
        "a busy computer slows the robot down instead of its control; 0: never waits; needs "
        "publish_clock",
        (0.0, 1.0),
    ),
    _Fixed("latency", 0, "Periods of 1/rate before a command acts [-]", (0, 100)),
    _Fixed("seed", 1, "Seed of the sensor noise [-]", (0, 2**31 - 1)),
    _Fixed("position_resolution", 1e-5, "Step of the encoders [rad]; 0: none", (0.0, 0.1)),
    _Fixed("position_noise", 1e-5, "Noise of positions [rad]", (0.0, 0.1)),
    _Fixed("velocity_noise", 1e-3, "Noise of velocities [rad/s]", (0.0, 10.0)),
    _Fixed(
        "effort_noise", 1e-3, "Noise of torques as a share of the torque limit [-]", (0.0, 1.0)
    ),
    _Fixed("base_position_noise", 1e-4, "Noise of the odometry's position [m]", (0.0, 1.0)),
    _Fixed(
        "base_orientation_noise", 1e-4, "Noise of the odometry's orientation [rad]", (0.0, 1.0)
    ),
    _Fixed("base_velocity_noise", 1e-3, "Noise of the odometry's velocity [m/s]", (0.0, 10.0)),
    _Fixed("gyroscope_noise", 2e-3, "Noise of angular velocities [rad/s]", (0.0, 10.0)),
    _Fixed("accelerometer_noise", 0.02, "Noise of the specific force [m/s²]", (0.0, 100.0)),
    _Fixed(
        "wrenches", False, "Publish contact wrenches, as robots with force sensors in their feet"
    ),
    _Fixed(
        "stribeck_level",
        0.0,
        "Breakaway friction beyond Coulomb's, as a share of it [-]",
        (0.0, 10.0),
    ),
    _Fixed(
        "stribeck_velocity", 0.1, "Speed at which that has fallen to 37 % [rad/s]", (1e-4, 10.0)
    ),
    Setting(
        "stale_timeout",
        0.1,
        "Without a command for so long the robot is made safe [s, simulated]",
        (0.001, 10.0),
    ),
    Setting(
        "stale_action",
        "hold",
        "Then: 'hold' the joints with their brakes, or 'zero' torque",
        choices=STALE_ACTIONS,
    ),
)

REFERENCE: Sequence[Setting] = (
    ROBOT,
    _Fixed("seed", 1, "Seed of the trajectory [-]", (0, 2**31 - 1)),
    _Fixed("duration", 10.0, "After which the trajectory repeats [s]", (0.5, 1000.0)),
    _Fixed("harmonics", 5, "Harmonics of the Fourier series [-]", (1, 50)),
    _Fixed(
        "amplitude",
        0.7,
        "Share of each joint's way from the middle to its limit; of a quadruped's usual sway [-]",
        (0.01, 1.0),
    ),
    _Fixed("speed", 0.5, "Share of the velocity limits [-]", (0.01, 1.0)),
    _Fixed("effort", 0.7, "Share of the torque limits, by the nominal model [-]", (0.01, 1.0)),
    _Fixed("fade", 2.0, "In which the motion grows from rest [s]", (0.1, 60.0)),
    _Fixed("start_delay", 0.0, "Before the first message [s]", (0.0, 3600.0)),
    _Fixed(
        "lead",
        2.0,
        "Each message begins so far in the future that a robot elsewhere can get there [s]",
        (0.05, 60.0),
    ),
    _Fixed("publish_period", 1.0, "Between messages [s]", (0.05, 60.0)),
    _Fixed("point_rate", 50.0, "Trajectory points per second [Hz]", (5.0, 1000.0)),
)


@dataclass(frozen=True)
class SimulatorPlan:
    """How the simulator node runs.

    Attributes
    ----------
    simulation : SimulationConfig
    speed : float [-]
        Simulated seconds per second.
    publish_clock : bool
    clock_ticks : int
        Periods from one message on /clock to the next.
    lockstep : float [s]
        Simulated time that a command is applied before the next is waited for; 0: no waiting.
    stale_timeout : float [s]
    stale_action : str
    """

    simulation: SimulationConfig
    speed: float
    publish_clock: bool
    clock_ticks: int
    lockstep: float
    stale_timeout: float
    stale_action: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SimulatorPlan:
        """Build the plan from parameter values.

        Raises
        ------
        SysidError
            If values contradict each other; the message says which.
        """
        if values["stale_action"] not in STALE_ACTIONS:
            raise ParameterError(
                f"stale_action must be one of {STALE_ACTIONS}, got '{values['stale_action']}'"
            )
        if values["speed"] != 1.0 and not values["publish_clock"]:
            raise ParameterError("a speed other than 1 needs publish_clock, so that nodes follow")
        if values["lockstep"] > 0.0 and not values["publish_clock"]:
            raise ParameterError("lockstep needs publish_clock, so that all wait with the robot")
        names = SensorConfig.__dataclass_fields__
        return cls(
            SimulationConfig(
                period=1.0 / values["rate"],
                latency=values["latency"],
                physics=PhysicsConfig(time_step=values["time_step"]),
                sensors=SensorConfig(**{name: values[name] for name in names}),
                stribeck=Stribeck(values["stribeck_level"], values["stribeck_velocity"]),
            ),
            values["speed"],
            values["publish_clock"],
            max(1, round(values["rate"] / (values["clock_rate"] or values["rate"]))),
            values["lockstep"],
            values["stale_timeout"],
            values["stale_action"],
        )


def chosen_behaviour(robot: Robot, values: Mapping[str, Any], period: float) -> Walker | None:
    """Return a new behaviour that the parameters ask for; None: commands drive the robot.

    Raises
    ------
    SysidError
        If there is no such behaviour or the robot cannot do it.
    """
    name = values["behaviour"]
    if name in ("", "none"):
        return None
    if name not in MOTIONS:
        raise ParameterError(f"behaviour must be empty or one of {tuple(MOTIONS)}, got '{name}'")
    if values["lockstep"] > 0.0:
        raise ParameterError("lockstep waits for commands, which a robot with a behaviour ignores")
    return Walker(robot, MOTIONS[name], values["behaviour_seed"], period)


def chosen_start(robot: Robot, behaviour: Walker | None) -> FloatArray | None:
    """Return the configuration (nq,) to start from; None: at rest.

    A quadruped starts with bent knees, for straight legs cannot be driven.
    """
    if behaviour is not None:
        return behaviour.start
    if not robot.floating:
        return None
    try:
        stance = stance_of(robot)
    except SysidError:  # no quadruped, or none with legs of three joints
        return None
    return np.concatenate([stance.pose, stance.joints])


def true_parameters(robot: Robot, values: Mapping[str, Any]) -> FloatArray:
    """Return the true parameters (p,) that the simulator's parameters ask for.

    Raises
    ------
    SysidError
        If a file is named that does not hold this robot's parameters.
    """
    choice = values["truth"]
    if choice == "nominal":
        return robot.consistent_nominal.copy()
    if choice != "drawn":
        return read_truth(robot, choice)
    spread = TruthSpread(
        mass=values["mass_spread"],
        com=values["com_spread"],
        shape=values["shape_spread"],
        friction=values["friction_spread"],
    )
    return draw_truth(robot, values["truth_seed"], spread)


@dataclass(frozen=True)
class ReferencePlan:
    """How the reference node runs.

    Attributes
    ----------
    excitation : ExcitationConfig
    seed : int
    start_delay, lead, publish_period : float [s]
    spacing : float [s]
        Between trajectory points.
    """

    excitation: ExcitationConfig
    seed: int
    start_delay: float
    lead: float
    publish_period: float
    spacing: float

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> ReferencePlan:
        """Build the plan from parameter values."""
        excitation = ExcitationConfig(
            period=values["duration"],
            harmonics=values["harmonics"],
            amplitude=values["amplitude"],
            speed=values["speed"],
            effort=values["effort"],
            fade=values["fade"],
        )
        return cls(
            excitation,
            values["seed"],
            values["start_delay"],
            values["lead"],
            values["publish_period"],
            1.0 / values["point_rate"],
        )

    def trajectory(self, robot: Robot) -> FadedMotion | StanceTrajectory:
        """Return the motion of a robot's joints: exciting, or over standing feet.

        Raises
        ------
        SysidError
            If the robot cannot move like this within its limits.
        """
        if not robot.floating:
            return exciting_trajectory(robot, self.seed, self.excitation)
        return StanceTrajectory(
            robot,
            self.seed,
            amplitude=self.excitation.amplitude,
            speed=self.excitation.speed,
            fade=self.excitation.fade,
        )
