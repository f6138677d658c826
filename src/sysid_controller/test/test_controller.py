# SPDX-License-Identifier: Apache-2.0
"""The controller as a whole: states, recovery and safety, without ROS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_controller.command import Command, ControlState
from sysid_controller.controller import LARGEST_ERROR, Controller
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.errors import ModelError, ParameterError
from sysid_core.exchange import ParameterSet, TrajectoryPoints
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.conversion import JointConversion

PERIOD = 0.002
SETTINGS = ControllerConfig()
HOME = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4, 0.6])
Perturbed = Callable[[Robot, int], FloatArray]


class Bench:
    """Ticks a controller on a robot that stands wherever it is told to."""

    def __init__(self, robot: Robot, config: ControllerConfig = SETTINGS) -> None:
        self.controller = Controller(robot, config)
        self.robot = robot
        self.now = 100.0
        self.steady = 5.0
        self.position = HOME.copy()
        self.velocity = np.zeros(7)

    def measure(self) -> bool:
        refusal = self.controller.take_joint_states(
            self.robot.joint_names, self.position, self.velocity, self.now, self.steady
        )
        return refusal is None

    def tick(self, count: int = 1, *, measure: bool = True) -> Command:
        for _ in range(count):
            self.now += PERIOD
            self.steady += PERIOD
            if measure:
                self.measure()
            command = self.controller.tick(self.now, self.steady)
        return command

    def go(self, position: FloatArray, duration: float) -> bool:
        points = TrajectoryPoints(
            self.robot.joint_names, None, np.array([duration]), position[None]
        )
        return self.controller.take_reference(points, self.now) is None


@pytest.fixture
def bench(panda: Robot) -> Bench:
    return Bench(panda)


def gravity(robot: Robot, position: FloatArray) -> FloatArray:
    return Controller(robot, SETTINGS).dynamics.gravity(position)


def test_waits_silently_then_holds_against_gravity(bench: Bench, panda: Robot) -> None:
    command = bench.tick(10, measure=False)
    assert command.state is ControlState.WAITING
    assert command.output is None
    command = bench.tick(200)
    assert command.state is ControlState.HOLDING
    assert command.output is not None
    np.testing.assert_allclose(command.output, gravity(panda, HOME), atol=1e-9)
    np.testing.assert_array_equal(command.position_error, 0.0)


def test_what_the_robot_adds_to_commands_is_taken_off(panda: Robot) -> None:
    """Franka's interface adds the gravity of its own model: at rest nothing is commanded."""
    described = load_robot(replace(panda.description, command_excludes=("gravity",)))
    command = Bench(described).tick(200)
    assert command.output is not None
    nominal = JointConversion(described).uncommanded(HOME)
    np.testing.assert_allclose(command.output + nominal, gravity(panda, HOME), atol=1e-9)
    assert np.abs(nominal).max() > 10.0


def test_the_first_command_does_not_jump(bench: Bench, panda: Robot) -> None:
    command = bench.tick()
    rate = SETTINGS.effort_rate * panda.limits.effort
    assert (np.abs(command.effort) <= rate * PERIOD * 1.001).all()


def test_follows_a_trajectory_then_holds_its_end(bench: Bench) -> None:
    bench.tick(10)
    target = HOME + 0.2
    assert bench.go(target, 0.5)
    assert bench.tick().state is ControlState.TRACKING
    command = bench.tick(300)
    assert command.state is ControlState.HOLDING
    np.testing.assert_allclose(command.position_error, 0.2, atol=1e-9)


@pytest.mark.parametrize("action", ["gravity", "zero"])
def test_stale_joint_states_stop_safely_and_fresh_ones_resume(panda: Robot, action: str) -> None:
    bench = Bench(panda, replace(SETTINGS, stale_action=action))
    bench.tick(200)
    bench.go(HOME + 0.3, 6.0)
    bench.tick(100)
    command = bench.tick(1000, measure=False)
    assert command.state is ControlState.STALE
    expected = gravity(panda, HOME) if action == "gravity" else np.zeros(7)
    np.testing.assert_allclose(command.effort, expected, atol=1e-9)
    bench.position += 0.4  # it moved meanwhile
    command = bench.tick()
    assert command.state is ControlState.TRACKING
    # the reference returns from where the robot is; there is no error to jump at
    assert np.abs(command.position_error).max() < 1e-3


def test_stops_safely_even_where_the_robots_clock_stands_still(bench: Bench) -> None:
    bench.tick(200)
    bench.controller.configure(replace(SETTINGS, stale_action="zero"))
    for _ in range(500):
        bench.steady += PERIOD
        command = bench.controller.tick(bench.now, bench.steady)
    assert command.state is ControlState.STALE
    np.testing.assert_array_equal(command.effort, 0.0)


def test_disabling_ramps_down_and_falls_silent_enabling_holds_here(bench: Bench) -> None:
    bench.tick(200)
    before = bench.tick().effort
    bench.controller.set_enabled(False)
    command = bench.tick()
    assert command.state is ControlState.DISABLED
    assert np.abs(command.effort).max() > 0.5 * np.abs(before).max()
    command = bench.tick(100)
    np.testing.assert_array_equal(command.effort, 0.0)
    assert command.output is not None
    assert bench.tick(400).output is None
    assert not bench.go(HOME, 1.0)
    bench.position = HOME + 0.3
    bench.controller.set_enabled(True)
    command = bench.tick()
    assert command.state is ControlState.HOLDING
    np.testing.assert_array_equal(command.position_error, 0.0)


def test_can_start_disabled(panda: Robot) -> None:
    bench = Bench(panda, replace(SETTINGS, start_enabled=False))
    command = bench.tick(10)
    assert command.state is ControlState.DISABLED
    assert command.output is None


def test_a_robot_that_was_blocked_is_not_jerked_free(bench: Bench) -> None:
    bench.tick(200)
    bench.go(HOME + 1.3, 3.0)
    errors = []
    rejoined = 0
    for _ in range(2000):
        command = bench.tick()
        rejoined += command.rejoined
        errors.append(np.abs(command.position_error).max())
    assert rejoined >= 1
    assert max(errors) <= LARGEST_ERROR


def test_a_clock_set_back_drops_the_reference_and_holds_here(bench: Bench) -> None:
    bench.tick(200)
    bench.go(HOME + 0.3, 2.0)
    before = bench.tick(300)
    assert before.state is ControlState.TRACKING
    bench.now = 0.0
    bench.position = HOME + 0.1
    command = bench.tick()
    assert command.clock_jumped
    assert command.state is ControlState.HOLDING
    np.testing.assert_array_equal(command.position_error, 0.0)
    assert np.isfinite(command.effort).all()
    assert not bench.tick().clock_jumped
    assert bench.go(HOME + 0.2, 1.0)
    assert bench.tick().state is ControlState.TRACKING


def test_a_clock_set_forward_rejoins_the_reference(bench: Bench) -> None:
    bench.tick(200)
    bench.go(HOME + 0.3, 10.0)
    bench.tick(100)
    bench.now += 5.0
    command = bench.tick()
    assert np.abs(command.position_error).max() < 1e-6


def test_a_single_bad_joint_state_is_passed_over(bench: Bench) -> None:
    bench.tick(200)
    bench.position[2] = np.nan
    assert not bench.measure()
    command = bench.tick(20)
    assert command.state is ControlState.HOLDING
    assert np.isfinite(command.effort).all()
    command = bench.tick(100)
    assert command.state is ControlState.STALE
    bench.position = HOME.copy()
    assert bench.tick().state is ControlState.HOLDING


def test_new_parameters_change_the_torque_within_the_rate_limit(
    bench: Bench, panda: Robot, perturbed: Perturbed
) -> None:
    bench.tick(500)
    vector = perturbed(panda, 3)
    offered = ParameterSet("panda", panda.model_hash, 1, 1.0, True, vector)
    assert bench.controller.take_parameters(offered) is None
    last = bench.tick(0 + 1)
    for _ in range(1500):
        command = bench.tick()
        assert not command.limited.any()
        step = np.abs(command.effort - last.effort)
        assert (step < 0.25 * SETTINGS.effort_rate * panda.limits.effort * PERIOD).all()
        last = command
    assert bench.controller.blend.share == 1.0
    dynamics = Controller(panda, SETTINGS).dynamics
    dynamics.set_parameters(vector)
    np.testing.assert_allclose(last.effort, dynamics.gravity(HOME), atol=1e-9)


def test_bad_settings_are_refused_and_the_old_ones_stay(bench: Bench) -> None:
    bench.tick(200)
    before = bench.tick().effort
    with pytest.raises(ParameterError):
        bench.controller.configure(replace(SETTINGS, kp=(1.0, 2.0)))
    assert bench.controller.config is SETTINGS
    np.testing.assert_array_equal(bench.tick().effort, before)


def test_the_law_can_be_exchanged_while_running(bench: Bench, panda: Robot) -> None:
    bench.tick(200)
    bench.controller.configure(replace(SETTINGS, mode="feed_forward"))
    command = bench.tick(200)
    assert not command.limited.any()
    bench.position = HOME - 0.05
    command = bench.tick(50)
    assert (command.effort - gravity(panda, HOME)) @ command.position_error > 0.0


def test_robots_that_it_cannot_drive_are_refused() -> None:
    footless = replace(load_robot("solo12").description, contacts=())
    with pytest.raises(ModelError, match="contact frames"):
        Controller(load_robot(footless), SETTINGS)


def test_whatever_arrives_no_torque_leaves_its_limits(panda: Robot, perturbed: Perturbed) -> None:
    """All inputs fuzzed at once: states, clocks, references, parameters, settings, enabling."""
    rng = np.random.default_rng(21)
    bench = Bench(panda)
    limit = panda.limits.effort
    last = np.zeros(7)
    vectors = [perturbed(panda, seed) for seed in range(5)]
    for vector in vectors[:2]:
        vector[rng.integers(vector.size)] = np.nan
    seen = set()
    with np.errstate(all="ignore"):
        for i in range(6000):
            step = float(
                rng.choice([PERIOD, 0.0, 0.02, 0.3, -1.0], p=[0.96, 0.02, 0.01, 0.005, 0.005])
            )
            bench.now += step
            bench.steady += max(step, 0.0)
            wild = rng.random() < 0.03 or i % 1500 > 1470  # outliers, and a real runaway at times
            bench.position = HOME + rng.normal(scale=0.3, size=7) * wild
            bench.velocity = rng.normal(size=7) * (10.0 ** rng.integers(-2, 3) if wild else 0.3)
            for array in (bench.position, bench.velocity):
                bad = rng.random(7) < 0.005
                array[bad] = rng.choice([np.nan, np.inf, -1e300], int(bad.sum()))
            if rng.random() < 0.9 and i % 1000 < 900:
                bench.measure()
            if rng.random() < 0.02:
                bench.go(HOME + rng.normal(scale=0.5, size=7), float(rng.uniform(0.0, 3.0)))
            if rng.random() < 0.02:
                revision, stamp = int(rng.integers(0, 9)), float(rng.random())
                vector = vectors[int(rng.integers(5))]
                bench.controller.take_parameters(
                    ParameterSet(
                        "panda", panda.model_hash, revision, stamp, rng.random() < 0.8, vector
                    )
                )
            if rng.random() < 0.003:
                bench.controller.set_enabled(bool(rng.random() < 0.7))
            if rng.random() < 0.003:
                mode = str(rng.choice(["computed_torque", "feed_forward"]))
                bench.controller.configure(replace(SETTINGS, mode=mode))
            command = bench.controller.tick(bench.now, bench.steady)
            seen.add(command.state)
            assert np.isfinite(command.effort).all()
            assert (np.abs(command.effort) <= limit).all()
            rate = 200.0 if command.state is ControlState.STOPPED else SETTINGS.effort_rate
            assert (np.abs(command.effort - last) <= rate * limit * 5 * PERIOD * 1.001).all()
            last = command.effort
    assert seen >= {
        ControlState.DISABLED,
        ControlState.HOLDING,
        ControlState.TRACKING,
        ControlState.STALE,
        ControlState.STOPPED,
    }
