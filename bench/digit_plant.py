# SPDX-License-Identifier: Apache-2.0
"""A Digit leg in MuJoCo that differs from its description, and what Zhang et al. do with it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate

from sysid_controller.laws import FeedForward, Gains
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainDynamics
from sysid_core.dynamics.select import make_dynamics
from sysid_core.errors import EstimationError
from sysid_core.excitation.fourier import FadedMotion, FourierMotion, States
from sysid_core.inertia import transform_matrix
from sysid_core.recording import Recording
from sysid_core.robot import Robot
from sysid_core.robot.loops import LoopClosure
from sysid_sim.sensors import SensorConfig
from sysid_sim.simulation import Simulation, SimulationConfig, Stribeck

__all__ = [
    "CENTRE",
    "EFFECTS",
    "SIGN_WIDTH",
    "Log",
    "Tracking",
    "draw_parameters",
    "follow",
    "multi_sine",
    "simulate",
    "simulate_segments",
    "track",
]

STEP = 1e-3  # [s] period of controller and sensors: Digit's low-level interface runs at 1 kHz


EFFECTS = SimulationConfig(
    period=STEP,
    latency=1,
    sensors=SensorConfig(position_noise=1e-4, velocity_noise=5e-3, effort_noise=2e-3),
    stribeck=Stribeck(level=0.2, velocity=0.1),
)
"""What the plant has and no model knows: noise, a period's latency, a Stribeck effect, and dry
friction that jumps where the models' sign is smooth."""


Policy = Callable[[int, FloatArray, FloatArray], FloatArray]
"""A controller: from a period and measured positions and velocities to torques (na,) [N·m]."""


@dataclass(frozen=True)
class Log:
    """A run, sampled at every period."""

    time: FloatArray  # (n,) [s]
    # position, velocity, effort: (n, na) [rad, rad/s, N·m] as measured.
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    true_position: FloatArray  # (n, na) [rad]

    def recording(self, robot: Robot) -> Recording:
        """Return what a bag of the run would hold."""
        return Recording(
            self.time, robot.actuated_names, self.position, self.velocity, self.effort
        )


def draw_parameters(robot: Robot, seed: int) -> tuple[FloatArray, dict[str, Any]]:
    """Draw the parameters (p,) of one copy of the robot, and report the draw.

    Motors' viscous and Coulomb friction differ by factors of 0.4 to 2.5, rotor inertias by 0.7 to
    1.4, sensor offsets by 0.3 N·m; passive joints rub 0.5 to 2 times as much; links are 0.9 to
    1.1 times as heavy, with centres of mass shifted by 3 mm.
    """
    rng = np.random.default_rng(seed)
    layout, x = robot.layout, robot.consistent_nominal.copy()
    motors, passive = np.flatnonzero(robot.actuated), np.flatnonzero(robot.passive)

    def factors(low: float, high: float, count: int) -> FloatArray:
        return np.exp(rng.uniform(np.log(low), np.log(high), count))

    drawn: dict[str, Any] = {"seed": seed, "motors": {}, "bodies": {}}
    changes = {
        "viscous": factors(0.4, 2.5, len(motors)),
        "coulomb": factors(0.4, 2.5, len(motors)),
        "armature": factors(0.7, 1.4, len(motors)),
    }
    for term, change in changes.items():
        x[layout.term(term).start + motors] *= change
    x[layout.term("offset").start + motors] = rng.normal(0.0, 0.3, len(motors))
    x[layout.term("viscous").start + passive] *= factors(0.5, 2.0, len(passive))
    for j, name in zip(motors, robot.actuated_names, strict=True):
        drawn["motors"][name] = {
            term: float(x[layout.term(term).start + j])
            for term in ("viscous", "coulomb", "armature", "offset")
        }
    phi = layout.inertias(x)
    for index, body in enumerate(layout.bodies):
        shift = np.zeros(3) if body.endswith("cross_link") else rng.normal(0.0, 3e-3, 3)
        scale = rng.uniform(0.9, 1.1)
        phi[index] = scale * transform_matrix(np.eye(3), shift) @ phi[index]
        drawn["bodies"][body] = {"mass_factor": scale, "com_shift": shift.tolist()}
    return x, drawn


def simulate(
    robot: Robot,
    parameters: FloatArray,
    policy: Policy,
    start: FloatArray,
    seconds: float,
    seed: int,
) -> Log:
    """Run a controller from rest at `start` (na,) [rad] on a leg that MuJoCo simulates."""
    closed = LoopClosure(robot).solve(start).configuration
    plant = Simulation(robot, parameters, EFFECTS, seed=seed, start=closed)
    n, moved = round(seconds / STEP), robot.actuated
    rows = np.empty((n, 4, int(moved.sum())))
    for tick in range(n):
        position, velocity = (values[moved] for values in plant.sense())
        reading = plant.step(policy(tick, position, velocity))
        rows[tick] = position, velocity, reading.effort[moved], plant.state.q[moved]
    return Log(STEP * np.linspace(0.0, n - 1.0, n), *np.moveaxis(rows, 1, 0))


CENTRE = np.array([0.0, 0.0, 0.3, -0.1, 0.0, 0.0])
"""Middle of all motions [rad]: hip roll, yaw, pitch, knee, toe motors A and B."""
SIGN_WIDTH = 0.05  # Width of the models' smooth sign of Coulomb friction [rad/s]


FADE = 2.0  # Time in which all motions grow from rest [s]
_BASE_FREQUENCY, _HARMONICS = 0.13, 8  # [Hz, -]


def multi_sine(seed: int) -> FadedMotion:
    """Return a random sum of sines about `CENTRE` that stays within the linkage's reach.

    The toe motors move against each other (pitch of the foot) and together (its roll), the
    latter less: the rods' reach is a band about the first.
    """
    rng = np.random.default_rng(seed)
    omega = 2.0 * np.pi * _BASE_FREQUENCY * np.arange(1, _HARMONICS + 1)
    share = rng.uniform(0.3, 1.0, (6, _HARMONICS)) / np.sqrt(omega)
    amplitude = np.array([0.45, 0.4, 0.6, 0.6, 0.45, 0.12])[:, None]
    modes = amplitude * share / share.sum(axis=1, keepdims=True) * 1.6
    phase = rng.uniform(0.0, 2.0 * np.pi, (6, _HARMONICS))
    mix = np.eye(6)
    mix[4:, 4:] = [[1.0, 1.0], [-1.0, 1.0]]
    sine, cosine = mix @ (modes * np.cos(phase)), mix @ (modes * np.sin(phase))
    series = FourierMotion(1.0 / _BASE_FREQUENCY, CENTRE, omega * sine, -omega * cosine)
    return FadedMotion(series, FADE)


def sines(omega: float) -> FadedMotion:
    """Return the motion of all joints in sines of one angular frequency [rad/s]."""
    size = omega * np.array([0.25, 0.25, 0.4, 0.4, 0.25, -0.25])[:, None]
    phase = np.array([0.0, 0.7, 1.4, 2.1, 2.8, 2.8])[:, None]
    series = FourierMotion(
        2.0 * np.pi / omega, CENTRE, size * np.cos(phase), -size * np.sin(phase)
    )
    return FadedMotion(series, FADE)


def follow(
    robot: Robot, motion: FadedMotion, parameters: FloatArray, gains: Gains, seconds: float
) -> Policy:
    """Return the controller of Zhang et al. (34) with the parameters (p,) on a path."""
    dynamics = make_dynamics(robot, SIGN_WIDTH)
    dynamics.set_parameters(parameters)
    law = FeedForward(gains)
    desired = motion.at(np.linspace(0.0, seconds, round(seconds / STEP), endpoint=False))

    def policy(tick: int, position: FloatArray, velocity: FloatArray) -> FloatArray:
        return law(dynamics, States(*(x[tick] for x in desired)), position, velocity).effort

    return policy


class Tracking(NamedTuple):
    """Errors of the true positions after a run's fade-in, mean and largest, each (na,) [deg]."""

    mean: FloatArray
    maximum: FloatArray


def track(
    robot: Robot, truth: FloatArray, parameters: FloatArray, omega: float, gains: Gains, seed: int
) -> Tracking:
    """Track sines of `omega` [rad/s] for three periods beyond the fade-in."""
    motion = sines(omega)
    seconds = 2.5 + 3.0 * 2.0 * np.pi / omega
    policy = follow(robot, motion, parameters, gains, seconds)
    log = simulate(robot, truth, policy, CENTRE, seconds, seed)
    error = np.degrees(motion.at(log.time).position - log.true_position)
    steady = np.abs(error[log.time >= 2.5])
    return Tracking(steady.mean(axis=0), steady.max(axis=0))


def _advance(
    model: ClosedChainDynamics, state: FloatArray, effort: FloatArray, seconds: float
) -> FloatArray:
    """Return the state (2 na,) after a time under constant torques (na,)."""
    na = len(effort)

    def rates(_: float, y: FloatArray) -> FloatArray:
        return np.concatenate([y[na:], model.acceleration(y[:na], y[na:], effort)])

    solved = scipy.integrate.solve_ivp(
        rates, (0.0, seconds), state, method="BDF", rtol=1e-5, atol=1e-7
    )
    if not solved.success:
        raise EstimationError(f"forward simulation failed: {solved.message}")
    return np.asarray(solved.y[:, -1], dtype=float)


def simulate_segments(
    robot: Robot, parameters: FloatArray, log: Log, *, count: int, seconds: float, hold: float
) -> FloatArray:
    """Return √∫ (q_simulated − q_measured)² dt of segments of a run, (count, na) [rad·√s].

    A run is simulated with parameters (p,) in segments of some `seconds` from its measured states
    under its measured torques. These are averaged over `hold` [s] and held; a stiff integrator
    (BDF) runs from one change to the next, as friction's sign needs.

    Raises
    ------
    EstimationError
        If the integrator fails.
    """
    model = ClosedChainDynamics(robot, SIGN_WIDTH)
    model.set_parameters(parameters)
    length, stride = round(seconds / STEP), round(hold / STEP)
    na = len(robot.actuated_names)
    l2 = []
    for begin in range(0, count * length, length):
        state = np.concatenate([log.position[begin], log.velocity[begin]])
        path = [state[:na]]
        for at in range(begin, begin + length, stride):
            state = _advance(model, state, log.effort[at : at + stride].mean(axis=0), hold)
            path.append(state[:na])
        q = np.array(path)
        index = begin + stride * np.arange(len(q))
        error = q - log.position[np.minimum(index, len(log.position) - 1)]
        l2.append(np.sqrt(scipy.integrate.trapezoid(error**2, dx=hold, axis=0)))
    return np.array(l2)
