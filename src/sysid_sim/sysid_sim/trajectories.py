# SPDX-License-Identifier: Apache-2.0
"""Trajectories of scenarios, series for joints and sways over feet, and who tracks them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainDynamics
from sysid_core.dynamics.select import make_dynamics
from sysid_core.dynamics.stance import StandingFeet, rest_configuration
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.excitation.fourier import FadedMotion, FourierMotion, States
from sysid_core.excitation.standing import differentiated
from sysid_core.robot import Robot
from sysid_core.robot.strength import working_limits
from sysid_sim.errors import SimulationError
from sysid_sim.legged_motion import SwayConfig, quaternion_of
from sysid_sim.simulation import Simulation

__all__ = [
    "ExcitationConfig",
    "StanceTrajectory",
    "TrajectoryTracker",
    "exciting_trajectory",
    "nominal_dynamics",
]


_BLOCK = 1000
_STRIDE = 5
_ROTOR_TIME = 0.005  # [s] to the velocity limit at the torque limit


_Model = TreeDynamics | ClosedChainDynamics


def nominal_dynamics(robot: Robot) -> _Model:
    """Return the dynamics that a scenario's controller knows.

    Raises
    ------
    SimulationError
        If the robot's base floats.
    """
    if robot.floating:
        raise SimulationError(
            f"robot '{robot.name}' has a floating base: a joint trajectory alone would not "
            "keep it standing"
        )
    return make_dynamics(robot)


class TrajectoryTracker:
    """Follows a trajectory: nominal torques fed forward, feedback through the nominal inertia.

    The trajectory takes times (n,) [s]. The feedback is critically damped and has a bandwidth
    [rad/s] by the inertia at rest.

    Attributes
    ----------
    start : (nq,)
        Where the trajectory rests, loops closed.
    trouble : str
        Empty: a joint trajectory can always go on.
    """

    trouble = ""

    def __init__(
        self,
        robot: Robot,
        trajectory: Callable[[FloatArray], States],
        *,
        bandwidth: float,
        period: float,
    ) -> None:
        self.robot = robot
        self._trajectory = trajectory
        self._model = nominal_dynamics(robot)
        self._period = period
        self._bandwidth = bandwidth
        self._rotors = np.diag(self._rotor_inertia())
        self.start: FloatArray = rest_configuration(robot)
        if not robot.linked:
            self.start = trajectory(np.zeros(1)).position[0]
        self._inertia = self._model.inertia(self.start[robot.actuated]) + self._rotors
        self._block = -1
        self._planned: tuple[FloatArray, ...] = ()

    def _rotor_inertia(self) -> FloatArray:
        """Return the rotor inertias (na,) that the gains assume beyond the nominal ones.

        Whoever tunes a robot knows of its rotors even where nothing is published on them.
        """
        robot = self.robot
        _, _, velocity, effort = (limit[robot.actuated] for limit in robot.limits)
        known = np.isfinite(velocity) & np.isfinite(effort)
        rotor = np.zeros(len(known))
        if "armature" in robot.description.friction_terms:
            rotor[known] = _ROTOR_TIME * effort[known] / velocity[known]
        nominal = robot.nominal[robot.layout.term("armature")][robot.actuated]
        return np.maximum(rotor - nominal, 0.0)

    def command(self, simulation: Simulation) -> FloatArray:
        """Return the torques (na,) [N·m] to apply now, from what `simulation` senses."""
        block, row = divmod(round(simulation.time / self._period), _BLOCK)
        if block != self._block:
            self._block, self._planned = block, self._plan(block)
        desired, speed, torque = (series[row] for series in self._planned)
        position, velocity = (sensed[self.robot.actuated] for sensed in simulation.sense())
        error, error_rate = desired - position, speed - velocity
        acceleration = self._bandwidth**2 * error + 2.0 * self._bandwidth * error_rate
        if not self.robot.linked:
            # With loops the inertia at rest must do: its rotors outweigh the links.
            self._inertia = self._model.inertia(desired) + self._rotors
        return torque + self._inertia @ acceleration

    def _plan(self, block: int) -> tuple[FloatArray, ...]:
        """Return positions, velocities and torques (n, na) of a block of control periods."""
        first = block * _BLOCK
        time = np.arange(first, first + _BLOCK, dtype=np.float64) * self._period
        q, v, _ = self._trajectory(time)
        # Feed-forward changes slowly beside the control period: a coarser grid will do.
        coarse = np.arange(0, _BLOCK + _STRIDE, _STRIDE)
        torque = self._model.torques(*self._trajectory(time[0] + self._period * coarse))
        rows = np.arange(_BLOCK)
        return q, v, np.column_stack([np.interp(rows, coarse, column) for column in torque.T])


_GRID = 120
_SHRINK = 0.8
_SHRINKS = 20
_GROW = 1.25
_POSTURES = 300  # That are tried where a robot cannot hold itself in the middle of its ranges
_POSTURE_MARGIN = 0.15  # Share of a joint's range that they keep from either end
_MARGIN = 0.05  # [rad] of passive joints: who is left without a reference brakes beyond its end
_SWAY_CHECKED = 60.0  # [s] of a sway whose range is looked at
_SWAY_GRID = 600
_SWAY_SHRINKS = 10
_SWAY_MARGIN = 0.1  # [rad] to the position limits


@dataclass(frozen=True)
class ExcitationConfig:
    """What an exciting trajectory may make use of."""

    period: float = 10.0  # [s] after which the trajectory repeats
    harmonics: int = 5
    amplitude: float = 0.7  # [-] share of each joint's way from the start to the nearer limit
    speed: float = 0.5  # [-] share of the velocity limits
    effort: float = 0.7  # [-] share of the torque limits, by the nominal model
    fade: float = 1.0  # [s] in which the motion grows from rest

    def __post_init__(self) -> None:
        shares = (self.amplitude, self.speed, self.effort)
        if not all(0.0 < share <= 1.0 for share in shares):
            raise SimulationError(
                f"amplitude, speed and effort must lie above 0 and at most 1, got {shares}"
            )
        if not (self.period > 0.0 and self.harmonics >= 1 and self.fade > 0.0):
            raise SimulationError(
                "period and fade must be above zero and harmonics at least one, got "
                f"{self.period!r} s, {self.fade!r} s and {self.harmonics!r}"
            )


def exciting_trajectory(
    robot: Robot,
    seed: int,
    excitation: ExcitationConfig | None = None,
    *,
    elsewhere: bool = False,
) -> FadedMotion:
    """Draw an exciting trajectory within a fixed-base robot's limits.

    Coefficients are drawn at random; each joint's series is scaled to its range and speed, and
    all of them together until loops close, passive joints keep their limits, and nominal torques
    are within their share.

    Parameters
    ----------
    elsewhere : bool
        Whether a tree may move around another posture where the middle of its ranges takes too
        much torque.

    Raises
    ------
    SimulationError
        If the robot's base floats, or no motion around these is feasible.
    """
    excitation = excitation or ExcitationConfig()
    model = nominal_dynamics(robot)
    centre = rest_configuration(robot)[robot.actuated]
    try:
        return _around(robot, model, centre, seed, excitation)
    except SimulationError:
        if not elsewhere or robot.linked:
            raise
    return _around(robot, model, _easiest_posture(robot, model), seed, excitation)


def _easiest_posture(robot: Robot, model: _Model) -> FloatArray:
    """Return the posture (nj,) that takes the least share of a torque limit, of some random."""
    lower, upper, _, effort = robot.limits
    lower, upper = np.maximum(lower, -np.pi), np.minimum(upper, np.pi)
    room = _POSTURE_MARGIN * (upper - lower)
    drawn = np.random.default_rng(0).uniform(lower + room, upper - room, (_POSTURES, len(lower)))
    zero = np.clip(0.0, lower + room, upper - room)
    postures = np.vstack([zero, drawn])
    still = np.zeros_like(postures)
    share = np.abs(model.torques(postures, still, still)) / effort
    return np.asarray(postures[np.argmin(share.max(axis=1))])


def _around(
    robot: Robot, model: _Model, centre: FloatArray, seed: int, excitation: ExcitationConfig
) -> FadedMotion:
    """Draw an exciting trajectory around positions (na,)."""
    rng = np.random.default_rng(seed)
    # drawn as velocities, all harmonics have an equal share in them
    sine, cosine = rng.normal(size=(2, excitation.harmonics, len(centre)))
    drawn = FadedMotion(
        FourierMotion(excitation.period, centre, sine.T, -cosine.T), excitation.fade
    )
    time = np.linspace(0.0, excitation.period + excitation.fade, _GRID)
    drawn = drawn.scaled(_joint_scales(robot, drawn, time, excitation))
    limits = excitation.effort * working_limits(robot).effort

    def feasible(scale: FloatArray) -> bool:
        torque = model.torques(*drawn.scaled(scale).at(time), -_MARGIN)
        return bool(np.isfinite(torque).all() and (np.abs(torque) <= limits).all())

    found = _largest(feasible, len(centre))
    if found is None:
        slow = drawn.scaled(np.full(len(centre), _SHRINK**_SHRINKS)).at(time)
        share = np.abs(model.torques(*slow, -_MARGIN)).max(axis=0) / limits
        worst = int(np.argmax(share))
        raise SimulationError(
            f"'{robot.name}' cannot move even a little: joint "
            f"'{robot.actuated_names[worst]}' would take "
            f"{excitation.effort * share[worst]:.0%} of its effort limit, and may take "
            f"{excitation.effort:.0%}; check its mass, friction and limits, or lock it under "
            "'joints.locked' in the description"
        )
    return drawn.scaled(found)


def _largest(feasible: Callable[[FloatArray], bool], count: int) -> FloatArray | None:
    """Shrink all joints together until feasible, then let each grow back as far as it can."""
    scale = np.ones(count)
    for _ in range(_SHRINKS):
        if feasible(scale):
            break
        scale *= _SHRINK
    else:
        return None
    for joint in range(count):
        while scale[joint] < 1.0:
            trial = scale.copy()
            trial[joint] = min(scale[joint] * _GROW, 1.0)
            if not feasible(trial):
                break
            scale = trial
    return scale


def _joint_scales(
    robot: Robot, trajectory: FadedMotion, time: FloatArray, excitation: ExcitationConfig
) -> FloatArray:
    """Return factors (na,) that fit each joint's series into its range and speed."""
    moved = trajectory.at(time)
    lower, upper, velocity, _ = working_limits(robot)
    room = np.minimum(trajectory.series.centre - lower, upper - trajectory.series.centre)
    if (room <= 0.0).any():
        names = np.array(robot.actuated_names)[room <= 0.0]
        raise SimulationError(
            f"joints without a range cannot move: {', '.join(names)}; correct their limits in "
            "the URDF, or give 'limits.position' in the description"
        )
    room = excitation.amplitude * np.minimum(room, np.pi)
    speed = excitation.speed * velocity
    reach = np.abs(moved.position - trajectory.series.centre).max(axis=0)
    return np.minimum(room / reach, speed / np.abs(moved.velocity).max(axis=0))


class StanceTrajectory:
    """The base sways and turns; the joints follow so that all feet stay where they stand.

    `amplitude` is a share of the usual sway, `speed` one of the velocity limits; the motion grows
    from rest within `fade` [s].

    Raises
    ------
    SysidError
        If the robot does not stand on legs of three joints each, or cannot sway at all.
    """

    def __init__(
        self, robot: Robot, seed: int, *, amplitude: float, speed: float, fade: float
    ) -> None:
        self._feet = StandingFeet(robot)
        self.stance = self._feet.stance
        self._share = amplitude
        self._sway = SwayConfig().wander(self.stance, np.random.default_rng(seed), fade)
        self._fit(robot, speed)

    def _fit(self, robot: Robot, speed: float) -> None:
        """Shrink the sway until the joints stay within their limits."""
        lower, upper, fastest, _ = robot.limits
        time = np.linspace(0.0, _SWAY_CHECKED, _SWAY_GRID)
        for _ in range(_SWAY_SHRINKS):
            moved = self.at(time)
            inside = (moved.position > lower + _SWAY_MARGIN) & (
                moved.position < upper - _SWAY_MARGIN
            )
            if (inside & (np.abs(moved.velocity) < speed * fastest)).all():
                return
            self._share *= _SHRINK
        raise SimulationError(
            f"robot '{robot.name}' cannot sway over its feet within its joints' limits; "
            "allow more speed"
        )

    def base(self, time: FloatArray) -> FloatArray:
        """Return the base's poses (n, 7) at times (n,) [s]; before time zero it rests."""
        pose = np.tile(self.stance.pose, (len(time), 1))
        for row, t in zip(pose, np.maximum(time, 0.0), strict=True):
            x = self._share * self._sway.at(t)[0]
            row[:3] += x[:3]
            row[3:] = quaternion_of(x[5], x[3], x[4])
        return pose

    def at(self, time: FloatArray) -> States:
        """Return the joints' motion at times (n,) [s]; before time zero they rest."""
        feet = self._feet
        model, joints = feet.kinematics.robot.model, len(self.stance.joints)
        whole = differentiated(model, lambda t: feet.configurations(self.base(t)), time)
        return States(*(part[:, -joints:] for part in whole))
