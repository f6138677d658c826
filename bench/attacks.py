# SPDX-License-Identifier: Apache-2.0
"""Sends random parameters, references and settings to a controller: no robot may run away.

Each attack is a controller in the loop with a robot that MuJoCo simulates, one period of delay
between them. While it follows a slow motion, it is sent one to four hostile things: consistent
parameters of any size, references to anywhere, settings of any gain; then its true parameters.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bench.digit_plant import draw_parameters
from bench.runner import Given, Result, run_benchmark, say, show_table
from sysid_controller.controller import Controller
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import ParameterError
from sysid_core.exchange import ParameterSet, TrajectoryPoints
from sysid_core.robot import Robot, load_robot
from sysid_sim.sensors import SENSORS
from sysid_sim.simulation import Simulation, SimulationConfig

__all__ = ["PERIOD", "Attack", "Loop", "attack", "run"]

PERIOD = 0.002
_SECONDS = 4.0
_BEGIN = 0.4  # [s] before the first hostile thing arrives
_END = 2.0  # [s] after which none arrives any more
_FAST = 1.5  # [-] of the velocity limit
_REST = 0.2  # [rad/s] below which a joint rests
_TRIES = 8  # of parameters, until some are taken

ROBOTS = ("panda", "digit_left_leg", "solo12")


class Attack(NamedTuple):
    """What one attack did."""

    robot: str
    seed: int
    kinds: tuple[str, ...]  # What arrived
    refused: int  # Of these
    fastest: float  # [-] largest speed of a joint, in velocity limits
    overspeed: float  # [s] longest time that a joint was beyond 1.5 times its limit
    stops: int  # Times that the controller stopped the robot
    to_rest: float  # [s] longest time from a stop to rest; 0 without stops
    unnamed: int  # Stops without a reason


class Loop:
    """A controller that drives a simulated robot."""

    def __init__(self, name: str, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.robot = load_robot(name)
        self.truth = _truth(self.robot, seed)
        config = SimulationConfig(period=PERIOD, latency=1, sensors=SENSORS["good"])
        self.plant = Simulation(self.robot, self.truth, config, seed=seed)
        self.controller = Controller(self.robot, ControllerConfig())
        self.active = self.robot.actuated
        self.revision = 0
        self.time = 0.0
        self.refused = 0
        self.effort = np.zeros(len(self.robot.actuated_names))
        self.feet = tuple(contact.name for contact in self.robot.description.contacts)

    def tick(self) -> FloatArray:
        """Let one period pass; return the true velocities (na,) [rad/s]."""
        controller, t = self.controller, self.time
        position, velocity = self.plant.sense()
        if controller.base is not None:
            base = self.plant.sense_base()
            controller.base.take_odometry(base.pose, base.twist, t)
            controller.base.take_contacts(self.feet, base.contacts.tolist(), t, t)
        controller.take_joint_states(self.robot.joint_names, position, velocity, t, t)
        command = controller.tick(t, t)
        self.effort = command.effort
        self.plant.step(self.effort)
        self.time += PERIOD
        return self.plant.plant.velocity()[-len(self.active) :][self.active]

    def follow(self) -> None:
        """Follow a slow motion about where the robot is."""
        here = self.controller.joint_states.position
        knots = np.linspace(0.0, _SECONDS, 50)
        sway = 0.05 * (1.0 - np.cos(3.0 * knots))[:, None]
        self._refer(knots, here + sway * np.ones(len(here)))

    def _refer(self, time: FloatArray, position: FloatArray) -> None:
        points = TrajectoryPoints(self.controller.joint_names, None, time, position)
        self.refused += self.controller.take_reference(points, self.time) is not None

    def offer(self, vector: FloatArray) -> bool:
        """Publish parameters (p,); return whether they are taken."""
        self.revision += 1
        offered = ParameterSet(
            self.robot.name, self.robot.model_hash, self.revision, self.time, True, vector
        )
        refusal = self.controller.take_parameters(offered)
        self.refused += refusal is not None
        return refusal is None

    # -- what is sent -----------------------------------------------------------------------

    def parameters(self) -> None:
        """Publish bodies, friction and offsets of any size, all of them consistent.

        What is refused is tried again half as far from the nominal: most harm is done by what is
        just taken.
        """
        rng, layout = self.rng, self.robot.layout
        vector = self.robot.consistent_nominal.copy()
        spread = rng.uniform(0.1, 2.0)
        count = len(layout.bodies)
        layout.inertias(vector)[:] *= 10.0 ** rng.uniform(-spread, spread, (count, 1))
        limit = np.where(np.isfinite(self.robot.limits.effort), self.robot.limits.effort, 1.0)
        size = 10.0 ** rng.uniform(-2.0, 0.7)
        for term in ("viscous", "coulomb", "armature"):
            vector[layout.term(term)] += rng.random() * size * limit * rng.random(len(limit))
        vector[layout.term("offset")] += size * limit * rng.uniform(-1.0, 1.0, len(limit))
        nominal = self.robot.consistent_nominal
        for share in 0.5 ** np.arange(_TRIES):
            if self.offer(nominal + share * (vector - nominal)):
                break

    def offsets(self) -> None:
        """Publish the truth with an offset on one joint beyond its torque limit."""
        vector = self.truth.copy()
        offset = vector[self.robot.layout.term("offset")]
        j = int(self.rng.choice(np.flatnonzero(self.active)))
        offset[j] += (
            self.rng.choice([-1.0, 1.0])
            * self.rng.uniform(0.1, 2.0)
            * (self.robot.limits.effort[j])
        )
        vector[self.robot.layout.term("offset")] = offset
        self.offer(vector)

    def reference(self) -> None:
        """Send a trajectory to anywhere, in any time."""
        limits = self.controller.limits
        count = int(self.rng.integers(1, 6))
        time = np.cumsum(10.0 ** self.rng.uniform(-2.0, 0.5, count))
        low, high = np.clip(limits.lower, -3.0, 3.0), np.clip(limits.upper, -3.0, 3.0)
        here = self.controller.joint_states.position
        share = self.rng.choice([0.1, 0.5, 1.2])
        self._refer(time, here + share * (self.rng.uniform(low, high, (count, len(low))) - here))

    def settings(self) -> None:
        """Set gains, widths, rates and times anywhere in their ranges."""
        rng = self.rng
        changes: dict[str, Any] = {
            "bandwidth": 10.0 ** rng.uniform(0.0, 2.7),
            "damping_ratio": 10.0 ** rng.uniform(-1.3, 1.0),
            "blend_time": float(rng.choice([0.0, 1.0])),
            "effort_rate": 10.0 ** rng.uniform(-1.0, 4.0),
            "mode": str(rng.choice(["computed_torque", "feed_forward"])),
            "kp": (float(rng.choice([0.0, 10.0 ** rng.uniform(0.0, 6.0)])),),
            "kd": (float(rng.choice([0.0, 10.0 ** rng.uniform(0.0, 4.0)])),),
        }
        chosen = rng.choice(sorted(changes), int(rng.integers(1, 5)), replace=False)
        try:
            settings = replace(self.controller.config, **{name: changes[name] for name in chosen})
            self.controller.configure(settings)
        except ParameterError:
            self.refused += 1


_KINDS: tuple[Callable[[Loop], None], ...] = (
    Loop.parameters,
    Loop.offsets,
    Loop.reference,
    Loop.settings,
)


def _truth(robot: Robot, seed: int) -> FloatArray:
    """Return parameters (p,) of a copy of the robot, which has friction and rotors."""
    if robot.description.loops:
        return draw_parameters(robot, seed)[0]
    rng, layout = np.random.default_rng(seed), robot.layout
    vector = robot.consistent_nominal.copy()
    layout.inertias(vector)[:] *= rng.uniform(0.9, 1.1, (len(layout.bodies), 1))
    limit, speed = robot.limits.effort, robot.limits.velocity
    vector[layout.term("viscous")] += 0.02 * limit / speed
    vector[layout.term("coulomb")] += 0.02 * limit
    vector[layout.term("armature")] += 1e-3 * limit
    return vector


def attack(name: str, seed: int) -> Attack:
    """Attack the controller of one robot at random times."""
    loop = Loop(name, seed)
    count = int(loop.rng.integers(1, 5))
    kinds = loop.rng.integers(0, len(_KINDS), count)
    due = [
        *zip(
            np.sort(loop.rng.uniform(_BEGIN, _END, count)), (_KINDS[k] for k in kinds), strict=True
        ),
        (_END + 0.5, lambda loop: loop.offer(loop.truth)),
    ]
    limit = _FAST * loop.controller.limits.velocity
    beyond = np.zeros(len(limit))
    fastest = overspeed = to_rest = 0.0
    stops = unnamed = 0
    stopped_at: float | None = None
    stopped_for: Diagnostic | None = None
    for k in range(round(_SECONDS / PERIOD)):
        if k == round(0.3 / PERIOD):
            loop.follow()
        while due and due[0][0] <= loop.time:
            due.pop(0)[1](loop)
        speed = np.abs(loop.tick())
        reason = loop.controller.stop.reason
        if reason is None:
            stopped_at = None
        elif reason is not stopped_for:
            stops += 1
            unnamed += not str(reason)
            stopped_at = loop.time
        stopped_for = reason
        if stopped_at is not None and (speed > _REST).any():
            to_rest = max(to_rest, loop.time - stopped_at)
        fastest = max(fastest, float((_FAST * speed / limit).max()))
        beyond = np.where(speed > limit, beyond + PERIOD, 0.0)
        overspeed = max(overspeed, float(beyond.max()))
    return Attack(
        name,
        seed,
        tuple(_KINDS[k].__name__ for k in kinds),
        loop.refused,
        fastest,
        overspeed,
        stops,
        to_rest,
        unnamed,
    )


def _row(name: str, attacks: Sequence[Attack]) -> tuple[object, ...]:
    return (
        name,
        len(attacks),
        sum(a.refused for a in attacks),
        sum(a.stops for a in attacks),
        max(a.fastest for a in attacks),
        1e3 * max(a.overspeed for a in attacks),
        max(a.to_rest for a in attacks),
    )


def run(given: Given) -> Result:
    """Attack every robot in turn."""
    attacks: list[Attack] = []
    for k in range(given.count):
        attacks.append(attack(ROBOTS[k % len(ROBOTS)], given.seed + k // len(ROBOTS)))
        if (k + 1) % 50 == 0:
            say(f"{k + 1} of {given.count} attacks")
    table = show_table(
        "attacks",
        ("robot", "attacks", "refused", "stops", "fastest [-]", "overspeed [ms]", "to rest [s]"),
        (
            *(
                _row(name, own)
                for name in ROBOTS
                if (own := [a for a in attacks if a.robot == name])
            ),
            _row("all", attacks),
        ),
    )
    figures = {
        "longest overspeed [ms]": 1e3 * max(a.overspeed for a in attacks),
        "longest way to rest [s]": max(a.to_rest for a in attacks),
        "stops without a reason": sum(a.unnamed for a in attacks),
    }
    return Result(figures, {"attacks": [a._asdict() for a in attacks]}, {"attacks": table})


if __name__ == "__main__":
    run_benchmark(run, count=(1000, "number of attacks"))
