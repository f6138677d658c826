# SPDX-License-Identifier: Apache-2.0
"""Lost, late, reordered and broken inputs: no NaN, no torque above its limit, recovery alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from sysid_controller.command import Command, ControlState
from sysid_controller.controller import Controller
from sysid_controller.health import Health
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Severity
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.exchange import ParameterSet, TrajectoryPoints
from sysid_core.robot import Robot

PERIOD = 0.002
HOME = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4, 0.6])
SETTINGS = ControllerConfig()
Arrival = Callable[[float], list[float]]
"""Returns the times [s] at which joint states with a stamp [s] arrive; none: they are lost."""


class Loop:
    """The controller closes the loop over a plant whose joint states arrive as they may."""

    def __init__(self, robot: Robot, arrival: Arrival) -> None:
        self.robot, self.arrival = robot, arrival
        self.controller = Controller(robot, SETTINGS)
        self.health = Health()
        self.plant = TreeDynamics(robot, 0.05)
        self.q, self.v = HOME.copy(), np.zeros(7)
        self.k = 0
        self.under_way: list[tuple[float, float, FloatArray, FloatArray]] = []
        self.refused: set[str] = set()

    @property
    def time(self) -> float:
        return PERIOD * self.k

    def tick(self, count: int) -> list[Command]:
        commands = []
        for _ in range(count):
            self.under_way += [
                (arrives, self.time, self.q.copy(), self.v.copy())
                for arrives in self.arrival(self.time)
            ]
            self._deliver()
            command = self.controller.tick(self.time, self.time)
            self.health.ticked(command, 1e-4, self.time)
            assert np.isfinite(command.effort).all()
            assert (np.abs(command.effort) <= self.robot.limits.effort).all()
            self._move(command.effort)
            commands.append(command)
            self.k += 1
        return commands

    def _deliver(self) -> None:
        due = sorted((m for m in self.under_way if m[0] <= self.time), key=lambda m: m[0])
        self.under_way = [m for m in self.under_way if m[0] > self.time]
        for arrives, stamp, q, v in due:
            self.health.measured(stamp, arrives)
            refusal = self.controller.take_joint_states(
                self.robot.joint_names, q, v, stamp, self.time
            )
            if refusal is None:
                self.health.accept("joint states")
            else:
                self.health.refuse("joint states", str(refusal), self.time)
                self.refused.add(str(refusal))

    def _move(self, effort: FloatArray) -> None:
        for _ in range(2):
            bias = self.plant.torque(self.q, self.v, np.zeros(7), self.v)
            acceleration = np.linalg.solve(self.plant.inertia(self.q), effort - bias)
            self.v = self.v + 0.5 * PERIOD * acceleration
            self.q = self.q + 0.5 * PERIOD * self.v

    def roughen(self) -> None:
        """Give the robot friction, which the controller is told of."""
        vector = self.robot.consistent_nominal.copy()
        vector[self.robot.layout.term("viscous")] += 0.25 * self.robot.limits.effort
        vector[self.robot.layout.term("coulomb")] += 2.0
        vector[self.robot.layout.term("armature")] += 0.1  # which keeps the integration stable
        self.plant.set_parameters(vector)
        offered = ParameterSet(self.robot.name, self.robot.model_hash, 1, 1.0, True, vector)
        assert self.controller.take_parameters(offered) is None

    def follow_sines(self) -> None:
        knots = np.arange(0.0, 8.0, 0.05)[:, None]
        path = TrajectoryPoints(
            self.robot.joint_names, self.time, knots[:, 0], HOME + 0.15 * (1 - np.cos(2.0 * knots))
        )
        refusal = self.controller.take_reference(path, self.time)
        assert refusal is None, str(refusal)

    def finding(self, name: str) -> tuple[Severity, str]:
        found = {f.kind: f for f in self.health.report(self.controller, self.time)}
        return found[name].severity, found[name].message


def errors(commands: list[Command]) -> float:
    return float(np.sqrt(np.mean(np.square([c.position_error for c in commands]))))


def at_once(stamp: float) -> list[float]:
    return [stamp]


@pytest.mark.parametrize(
    ("lost", "jitter", "text"),
    [(0.1, 0.0, "never arrive"), (0.0, 0.02, "jitter|out of order"), (0.1, 0.02, "out of order")],
)
def test_a_tenth_lost_and_20_ms_of_jitter_are_borne_named_and_got_over(
    panda: Robot, lost: float, jitter: float, text: str
) -> None:
    rng = np.random.default_rng(3)
    faulty = True

    def arrival(stamp: float) -> list[float]:
        if not faulty:
            return [stamp]
        return [] if rng.random() < lost else [stamp + float(rng.uniform(0.0, jitter))]

    loop = Loop(panda, arrival)
    loop.tick(200)
    loop.follow_sines()
    commands = loop.tick(1200)
    assert {c.state for c in commands} == {ControlState.TRACKING}
    # a state that is up to 20 ms old costs accuracy, not stability
    assert errors(commands[500:]) < 0.02
    level, message = loop.finding("joint states")
    assert level is Severity.WARNING
    assert any(word in message for word in text.split("|"))
    faulty = False
    commands = loop.tick(1000)
    assert np.isfinite(loop.q).all()
    assert errors(commands[500:]) < 0.002
    loop.health = Health()
    loop.tick(100)
    assert loop.finding("joint states")[0] is Severity.OK


def test_messages_that_were_overtaken_are_refused_by_name(panda: Robot) -> None:
    loop = Loop(panda, at_once)
    loop.tick(100)
    newest = loop.controller.joint_states.position
    refusal = loop.controller.take_joint_states(
        panda.joint_names, HOME + 0.3, np.zeros(7), loop.time - 0.02, loop.time
    )
    assert "out of order" in str(refusal)
    np.testing.assert_array_equal(loop.controller.joint_states.position, newest)


def test_two_seconds_of_silence_stop_it_and_it_resumes_without_help(panda: Robot) -> None:
    silent = False
    loop = Loop(panda, lambda stamp: [] if silent else [stamp])
    loop.roughen()  # gravity compensation alone does not brake: friction must
    loop.tick(700)
    loop.follow_sines()
    loop.tick(300)
    silent = True
    commands = loop.tick(1000)
    assert commands[-1].state is ControlState.STALE
    level, message = loop.finding("state")
    assert level is Severity.ERROR
    assert "no valid joint states for" in message
    silent = False
    commands = loop.tick(1000)
    assert commands[0].state is ControlState.TRACKING
    assert np.abs(commands[0].position_error).max() < 1e-3  # it returns from where it is
    assert np.isfinite(loop.q).all()
    assert errors(commands[-300:]) < 0.005
    level, message = loop.finding("state")
    assert level is Severity.OK, message


def test_broken_numbers_now_and_then_do_no_harm(panda: Robot) -> None:
    rng = np.random.default_rng(4)
    loop = Loop(panda, at_once)
    take = loop.controller.take_joint_states

    def broken(
        names: tuple[str, ...], q: FloatArray, v: FloatArray, stamp: float, steady: float
    ) -> object:
        for array in (q, v):
            if rng.random() < 0.05:
                array[rng.integers(7)] = rng.choice([np.nan, np.inf, -np.inf])
        return take(names, q, v, stamp, steady)

    loop.controller.take_joint_states = broken  # type: ignore[assignment]
    loop.tick(200)
    loop.follow_sines()
    commands = loop.tick(1200)
    assert {c.state for c in commands} == {ControlState.TRACKING}
    assert errors(commands[500:]) < 0.01
    assert any("not finite" in reason for reason in loop.refused)


def test_a_clock_that_jumps_back_under_way_is_got_over(panda: Robot) -> None:
    loop = Loop(panda, at_once)
    loop.tick(200)
    loop.follow_sines()
    loop.tick(300)
    steady = loop.time
    for k in range(500):  # the robot's clock begins anew
        now = PERIOD * k
        refusal = loop.controller.take_joint_states(
            panda.joint_names, loop.q, loop.v, now, steady + now
        )
        assert refusal is None
        command = loop.controller.tick(now, steady + now)
        assert np.isfinite(command.effort).all()
        assert (np.abs(command.effort) <= panda.limits.effort).all()
        loop._move(command.effort)
    assert command.state is ControlState.HOLDING
    assert np.abs(command.position_error).max() < 2e-3
