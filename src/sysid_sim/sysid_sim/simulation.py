# SPDX-License-Identifier: Apache-2.0
"""A simulated robot as its driver sees it: torque commands in, sensor readings out."""

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.dynamics.stance import standing_configuration
from sysid_core.inertia import transform_matrix
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.robot import Robot
from sysid_sim.errors import SimulationError, TimeStepError
from sysid_sim.mjcf import PhysicsConfig
from sysid_sim.plant import Plant, PlantState
from sysid_sim.sensors import BaseReading, BaseState, Reading, SensorConfig, Sensors
from sysid_sim.truth import payload_parameters

__all__ = ["Simulation", "SimulationConfig", "Stribeck"]

_HALVINGS = 5  # Of a time step that is too long for a robot's damping


@dataclass(frozen=True)
class Stribeck:
    """Friction that falls off with speed, which the layout's friction model lacks.

    Dry friction becomes ``Fc (1 + level·exp(−(q̇/velocity)²))``.
    """

    level: float = 0.0  # [-] how much more it takes to start than to slide, as a share of Fc
    velocity: float = 0.1  # [rad/s]

    def __post_init__(self) -> None:
        if not (self.level >= 0.0 and self.velocity > 0.0):
            raise SimulationError(
                "a Stribeck effect needs a level of at least zero and a velocity above zero, "
                f"got {self.level!r} and {self.velocity!r} rad/s"
            )


@dataclass(frozen=True)
class SimulationConfig:
    """How a robot is simulated."""

    period: float = 0.001
    """[s] between two readings; commands are held for so long. A multiple of the time step."""
    latency: int = 0  # Periods that pass before a command acts
    physics: PhysicsConfig = field(default_factory=PhysicsConfig)
    sensors: SensorConfig = field(default_factory=SensorConfig)
    stribeck: Stribeck = field(default_factory=Stribeck)

    def __post_init__(self) -> None:
        ratio = self.period / self.physics.time_step
        if self.substeps < 1 or abs(ratio - self.substeps) > 1e-6:
            raise SimulationError(
                f"period must be a multiple of the time step ({self.physics.time_step:g} s), "
                f"got {self.period:g} s"
            )
        if self.latency < 0:
            raise SimulationError(f"latency must be at least zero, got {self.latency}")

    @property
    def substeps(self) -> int:
        """Time steps per period."""
        return round(self.period / self.physics.time_step)


def _fitting(
    robot: Robot, truth: FloatArray, config: SimulationConfig
) -> tuple[Plant, SimulationConfig]:
    """Return a plant whose time step suits its damping: the given one, or a half of it, and so on.

    Raises
    ------
    SimulationError
        If even the last half is too long.
    """
    physics = config.physics
    for _ in range(_HALVINGS):
        try:
            return Plant(robot, truth, physics), replace(config, physics=physics)
        except TimeStepError:
            physics = replace(physics, time_step=0.5 * physics.time_step)
    return Plant(robot, truth, physics), replace(config, physics=physics)


class Simulation:
    """A robot with true parameters that only a simulation knows.

    Until the first command, and after `hold`, brakes hold the actuated joints. The reading of
    `step` belongs to the instant at which its command begins to act. Its effort is the mean of the
    torques before and after that instant, weighted so that it is the one that the second
    difference of the positions answers to; brakes count, as they do for a torque sensor behind the
    gear. True parameters (p,) are in the robot's layout, the seed is that of the sensor noise. The
    start (nq,) is by default at rest, loops closed, feet on the ground.
    """

    def __init__(
        self,
        robot: Robot,
        truth: FloatArray,
        config: SimulationConfig | None = None,
        *,
        seed: int = 0,
        start: FloatArray | None = None,
    ) -> None:
        self.robot = robot
        self.truth = np.array(truth, dtype=float)
        self.plant, self.config = _fitting(robot, self.truth, config or SimulationConfig())
        # friction with terms that change with load, speed or position
        self._bends = bool(robot.description.friction_chosen)
        has_spring = robot.friction_scales[FRICTION_TERMS.index("spring")] > 0.0
        self._stiffness = np.where(has_spring, self.truth[robot.layout.term("spring")], 0.0)
        self._tree, self._tree_of = OpenTree(robot, parameters=self.truth), self.truth
        self._seed = seed
        given = standing_configuration(robot) if start is None else start
        self._start = np.array(given, dtype=float)
        self.reset()

    def reset(self) -> None:
        """Go back to the start at time zero, braked and without payload; noise begins anew."""
        self._payloads: dict[str, FloatArray] = {}
        self.plant.change_parameters(self.truth)
        self.plant.reset(self._start)
        self._sensors = Sensors(self.robot, self.config.sensors, self._seed)
        self._ticks = 0
        self._last_torque: FloatArray | None = None
        self._last_velocity: FloatArray | None = None
        self._sensed: tuple[FloatArray, FloatArray] | None = None
        self._sensed_base: BaseState | None = None
        self._feet = self.plant.contacts(wrenches=False)
        self._acceleration = np.zeros(self.robot.model.nv)
        self.state = PlantState(*self._kinematics(), np.zeros(self.robot.model.nv))
        self.hold()

    def hold(self) -> None:
        """Let the brakes hold the joints until the next command."""
        self._queue: deque[FloatArray | None] = deque([None] * self.config.latency)
        self.plant.brake(True)

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._ticks * self.config.period

    @property
    def holding(self) -> bool:
        """Whether brakes hold the joints."""
        return self.plant.braked

    def sense(self) -> tuple[FloatArray, FloatArray]:
        """Return measured joint positions and velocities (nj,), (nj,) at the present instant."""
        if self._sensed is None:
            q, v = self._kinematics()
            nj = len(self.robot.joint_names)
            self._sensed = self._sensors.positions(q[-nj:]), self._sensors.velocities(v[-nj:])
        return self._sensed

    def sense_base(self) -> BaseState:
        """Return measured pose, twist and contacts of a floating base at the present instant.

        Raises
        ------
        SimulationError
            If the base is fixed.
        """
        if not self.robot.floating:
            raise SimulationError(f"the base of robot '{self.robot.name}' is fixed")
        if self._sensed_base is None:
            q, v = self._kinematics()
            pose, twist = self._sensors.odometry(q[:7], v[:6])
            self._sensed_base = BaseState(pose, twist, self._feet.active)
        return self._sensed_base

    def step(self, command: FloatArray | None = None) -> Reading:
        """Let one period pass.

        Parameters
        ----------
        command : (na,) [N·m], optional
            Torques of the actuated joints, in the robot's order; cut off at their limits.
            None: the brakes stay as they are, and the motors give nothing.

        Returns
        -------
        Reading
            Of the beginning of the period. The true state of that instant is in `state`.

        Raises
        ------
        SimulationError
            If the command has the wrong length or is not finite.
        """
        position, velocity = self.sense()
        if self.robot.floating:
            self.sense_base()  # now, as the stamp says, and not after the first physics step
        torque = self._motor_torque(command)
        time = self.time
        self.state, effort, base = self._advance(torque)
        self._ticks += 1
        self._sensed = self._sensed_base = None
        return Reading(time, position, velocity, self._sensors.efforts(effort), base)

    def _motor_torque(self, command: FloatArray | None) -> FloatArray:
        """Return the torques (nj,) that act now; a command that comes due releases the brakes."""
        limits = self.robot.limits.effort[self.robot.actuated]
        if command is not None:
            command = np.asarray(command, dtype=float)
            if command.shape != limits.shape or not np.isfinite(command).all():
                raise SimulationError(
                    f"a command for '{self.robot.name}' must be {len(limits)} finite torques, "
                    f"got {command!r}"
                )
            command = np.clip(command, -limits, limits)
        self._queue.append(command)
        due = self._queue.popleft()
        torque = np.zeros(len(self.robot.joint_names))
        if due is not None:
            torque[self.robot.actuated] = due
            if self.plant.braked:
                self.plant.brake(False)
        return torque

    def _advance(self, torque: FloatArray) -> tuple[PlantState, FloatArray, BaseReading | None]:
        """Move on by one period; return its first state, the effort and the base's reading."""
        n = self.config.substeps
        state = self._step(torque)
        effort = torque + self.plant.brake_torque() if self.plant.braked else torque
        if self.robot.floating:
            self._feet = self.plant.contacts(wrenches=self.config.sensors.wrenches)
        if self.config.stribeck.level > 0.0 or self._bends:
            for _ in range(n - 1):
                self._step(torque)
        elif n > 1:
            self.plant.advance(torque, n - 1)
        # The second difference over ±n steps weighs a torque at step j by (n − |j|)/n².
        before = effort if self._last_torque is None else self._last_torque
        self._last_torque = effort
        mean = ((n + 1) * effort + (n - 1) * before) / (2 * n)
        return state, mean, self._base_reading(state) if self.robot.floating else None

    def _base_reading(self, state: PlantState) -> BaseReading:
        """Return what is measured of the base; accelerometers average over a period, too."""
        pose, twist, _ = self.sense_base()
        after, period = self.plant.velocity(), self.config.period
        before = state.v - period * state.a if self._last_velocity is None else self._last_velocity
        self._last_velocity = state.v
        moved = state._replace(a=(after - before) / (2.0 * period))
        return self._sensors.base(pose, twist, moved, self._feet)

    def _step(self, torque: FloatArray) -> PlantState:
        """Move on by one time step, with the friction of the present speed and load."""
        dry = self.truth[self.robot.layout.term("coulomb")]
        if self._bends:
            q, v = self._kinematics()
            if self._tree_of is not self.plant.parameters:
                self._tree_of = self.plant.parameters
                self._tree.set_parameters(self._tree_of)
            rigid = pin.rnea(self._tree.model, self._tree.data, q, v, self._acceleration)
            dry = self._tree.friction.resistance(v, rigid)
            torque = torque - self._stiffness * q
        stribeck = self.config.stribeck
        if stribeck.level > 0.0:
            speed = self.plant.velocity()[-len(dry) :] / stribeck.velocity
            dry = dry * (1.0 + stribeck.level * np.exp(-(speed**2)))
        if self._bends or stribeck.level > 0.0:
            self.plant.set_friction(dry)
        state = self.plant.advance(torque)
        self._acceleration = state.a
        return state

    def _kinematics(self) -> tuple[FloatArray, FloatArray]:
        return self.plant.configuration(), self.plant.velocity()

    # -- payload ----------------------------------------------------------------------------

    @property
    def parameters(self) -> FloatArray:
        """True parameters (p,) with all payloads."""
        return self.plant.parameters.copy()

    def attach_payload(
        self,
        frame: str,
        mass: float,
        com: npt.ArrayLike = (0.0, 0.0, 0.0),
        inertia: npt.ArrayLike | None = None,
    ) -> None:
        """Attach a rigid payload to a frame; it replaces the one there, a mass of 0 takes it off.

        The frame is a link of the URDF; if empty, the tool frame. The mass is in [kg], the centre
        of mass (3,) [m] in that frame, and the inertia (3, 3) [kg·m²], by default none, about the
        centre of mass in the frame's axes.

        Raises
        ------
        RobotError
            If the robot has no such frame.
        SimulationError
            If the frame does not move, or no body can have this mass and inertia.
        """
        frame = frame or self.robot.tool_frame
        place = self.robot.frame(frame)
        if place.parentJoint == 0:
            raise SimulationError(f"frame '{frame}' does not move: choose one behind a joint")
        com = np.asarray(com, dtype=float)
        carrier = sum(body.mass for body in self.robot.model.inertias)
        phi = payload_parameters(mass, com, inertia, carrier)
        loads = {**self._payloads, frame: phi}
        if mass == 0.0:
            del loads[frame]
        parameters = self.truth.copy()
        for name, load in loads.items():
            where = self.robot.frame(name)
            move = transform_matrix(where.placement.rotation, where.placement.translation)
            parameters[self.robot.layout.body(where.parentJoint - 1)] += move @ load
        self.plant.change_parameters(parameters)
        self._payloads = loads

    @property
    def payloads(self) -> dict[str, FloatArray]:
        """Payload parameters (10,) about their frames, per frame."""
        return dict(self._payloads)
