# SPDX-License-Identifier: Apache-2.0
"""A controller of a closed-chain leg: its law, and what it does where the loops cannot be."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_controller.command import Command, ControlState
from sysid_controller.controller import Controller
from sysid_controller.laws import ComputedTorque, FeedForward, Gains
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainRegression
from sysid_core.dynamics.select import make_dynamics
from sysid_core.exchange import TrajectoryPoints
from sysid_core.excitation.fourier import States
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot
from sysid_core.robot.loop_check import random_closed_configurations
from sysid_core.robot.loops import ClosedConfiguration, LoopClosure

ROBOTS = Path(__file__).resolve().parents[3] / "config" / "robots"
WIDTH = 0.02  # [rad/s]
PERIOD = 0.002  # [s]
HOME = np.array([0.1, 0.0, 0.3, -0.2, 0.1, -0.1])
BEYOND = np.array([0.1, 0.0, 0.3, -0.2, 0.75, 0.75])  # the toes' rods are too short for this


@pytest.fixture(scope="module")
def leg() -> Robot:
    return load_robot(ROBOTS / "digit_left_leg.yaml")


def _regressed(leg: Robot, motion: States, x: FloatArray) -> FloatArray:
    """Return Gᵀ W θ (na,) by the regression, whose Coulomb sign is exact."""
    arrays = [np.full((1, len(leg.joint_names)), np.nan) for _ in range(4)]
    for array, values in zip(arrays, (*motion, np.zeros(6)), strict=True):
        array[0, leg.actuated] = values
    regression = ClosedChainRegression(leg)
    rows = regression.rows(Samples(np.zeros(1), *arrays))
    return np.array([block.matrix[0] @ regression.base.project(x) for block in rows.blocks])


def test_feed_forward_is_the_papers_law(leg: Robot) -> None:
    """Zhang et al. eq. (34), at speeds far above the smoothed sign's width."""
    dynamics = make_dynamics(leg, WIDTH)
    x = leg.consistent_nominal * np.random.default_rng(0).uniform(0.9, 1.1, leg.layout.size)
    dynamics.set_parameters(x)
    desired = States(
        np.array([0.1, -0.1, 0.3, 0.2, 0.15, -0.2]),
        np.array([1.0, -0.8, 1.5, -1.2, 0.9, -1.1]),
        np.array([3.0, 2.0, -4.0, 5.0, -6.0, 4.0]),
    )
    gains = Gains(np.full(6, 50.0), np.full(6, 2.0))
    position, velocity = desired.position - 0.01, desired.velocity + 0.1
    out = FeedForward(gains)(dynamics, desired, position, velocity)
    np.testing.assert_allclose(out.model, _regressed(leg, desired, x), atol=1e-9)
    np.testing.assert_allclose(out.effort - out.model, 50.0 * 0.01 - 2.0 * 0.1, atol=1e-12)


def test_computed_torque_needs_no_feedback_on_the_reference(leg: Robot) -> None:
    dynamics = make_dynamics(leg, WIDTH)
    law = ComputedTorque(Gains(np.full(6, 400.0), np.full(6, 40.0)))
    rest = States(np.zeros(6), np.zeros(6), np.zeros(6))
    out = law(dynamics, rest, rest.position, rest.velocity)
    np.testing.assert_allclose(out.effort, dynamics.gravity(rest.position), atol=1e-12)


def test_an_unreachable_reference_gives_no_torque_but_nan(leg: Robot) -> None:
    """A wrong torque nobody could tell from a right one."""
    dynamics = make_dynamics(leg, WIDTH)
    out = FeedForward(Gains(np.ones(6), np.ones(6)))(
        dynamics, States(BEYOND, np.zeros(6), np.zeros(6)), np.zeros(6), np.zeros(6)
    )
    assert np.isnan(out.model).all()


class Stand:
    """Ticks a controller of the leg, which stands wherever it is told to."""

    def __init__(self, leg: Robot, mode: str) -> None:
        self.leg = leg
        self.controller = Controller(leg, ControllerConfig(mode=mode))
        self.now = 0.0
        self.position, self.velocity = HOME.copy(), np.zeros(6)

    def tick(self, count: int = 1) -> Command:
        for _ in range(count):
            self.now += PERIOD
            self.controller.take_joint_states(
                self.leg.actuated_names, self.position.copy(), self.velocity, self.now, self.now
            )
            command = self.controller.tick(self.now, self.now)
            assert np.isfinite(command.effort).all()
        return command

    def go(self, *positions: FloatArray, duration: float = 1.0) -> str:
        time = duration * np.arange(1.0, len(positions) + 1.0)
        points = TrajectoryPoints(self.leg.actuated_names, None, time, np.array(positions))
        refusal = self.controller.take_reference(points, self.now)
        return "" if refusal is None else str(refusal)

    @property
    def gravity(self) -> FloatArray:
        return make_dynamics(self.leg, WIDTH).gravity(HOME)


@pytest.fixture(params=["computed_torque", "feed_forward"])
def stand(leg: Robot, request: pytest.FixtureRequest) -> Stand:
    found = Stand(leg, request.param)
    found.tick(200)
    return found


def test_references_within_reach_are_followed(stand: Stand) -> None:
    for closed in random_closed_configurations(LoopClosure(stand.leg), 5, seed=4, reach=0.3):
        stand.controller.reference.hold(stand.now, HOME)
        assert stand.go(closed[stand.leg.actuated]) == ""
        command = stand.tick(3)
        assert command.state is ControlState.TRACKING
        assert command.failure is None


def test_a_reference_that_opens_a_loop_is_refused(stand: Stand) -> None:
    assert "within the linkage's reach" in stand.go(BEYOND)
    assert stand.tick().state is ControlState.HOLDING
    # between ends that can be reached, too
    assert "within the linkage's reach" in stand.go(HOME, BEYOND, HOME)


def test_a_reference_that_drives_passive_joints_beyond_their_limits_is_refused(
    stand: Stand,
) -> None:
    toes = HOME + [0.0, 0.0, 0.0, 0.0, 0.2, 0.2]  # both up: the foot rolls
    reason = stand.go(toes)
    assert re.search(r"drive passive joint 'left_toe_roll' \S+ rad beyond its limits", reason)


def _steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list that every solve of the loops adds its number of steps to."""
    steps, newton = [], LoopClosure.newton

    def counted(*given: Any) -> ClosedConfiguration:
        found = newton(*given)
        steps.append(found.iterations)
        return found

    monkeypatch.setattr(LoopClosure, "newton", counted)
    return steps


def test_checking_reach_takes_a_few_steps_for_each_point(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = HOME + 0.1 * np.sin(np.linspace(0.0, 6.0, 101))[:, None]
    steps = _steps(monkeypatch)
    assert stand.go(*path, duration=0.1) == ""
    assert sum(steps) <= 4 * len(path)


def test_where_the_linkage_cannot_be_the_leg_is_held(stand: Stand) -> None:
    """Encoders may say so, by an offset: gravity stays compensated, springs pull back."""
    before = stand.tick()
    np.testing.assert_allclose(before.effort, stand.gravity, atol=1e-6)
    stand.controller.reference.hold(stand.now, BEYOND)  # what no trajectory can do
    stand.position = BEYOND.copy()
    command = stand.tick(100)
    assert command.state is ControlState.HOLDING
    assert "leave a gap" in str(command.failure)
    np.testing.assert_allclose(command.effort_model, stand.gravity, atol=1e-6)
    pull = command.effort - command.effort_model
    assert pull @ (HOME - BEYOND) > 0.0
    assert (pull[4:] < 0.0).all()
    limit = stand.leg.limits.effort[stand.leg.actuated]
    assert (np.abs(command.effort) <= limit).all()


def test_when_the_linkage_is_back_in_reach_the_reference_is_rejoined(stand: Stand) -> None:
    stand.tick()
    stand.controller.reference.hold(stand.now, BEYOND)
    stand.position = BEYOND.copy()
    assert stand.tick(20).failure is not None
    stand.now += 0.1  # in which the joints can have come back
    stand.position = HOME.copy()
    stand.controller.reference.hold(stand.now, HOME + [0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
    command = stand.tick()
    assert command.failure is None
    assert np.abs(command.position_error).max() < 1e-9  # the model alone moves the leg now


def test_without_joint_states_gravity_is_that_of_where_the_linkage_was(stand: Stand) -> None:
    stand.tick()
    stand.position = BEYOND.copy()
    stand.tick()
    for _ in range(200):
        stand.now += PERIOD
        command = stand.controller.tick(stand.now, stand.now)
    assert command.state is ControlState.STALE
    np.testing.assert_allclose(command.effort, stand.gravity, atol=1e-6)


def test_a_tick_out_of_reach_takes_a_few_steps(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the rate is kept: `bench.speed` gives the time of a step."""
    stand.tick()
    stand.position = BEYOND.copy()
    stand.controller.reference.hold(stand.now, BEYOND)
    for _ in range(50):
        with monkeypatch.context() as patched:
            steps = _steps(patched)
            stand.tick()
        assert sum(steps) <= 50


def test_a_controller_that_wakes_up_out_of_reach_only_damps(leg: Robot) -> None:
    stand = Stand(leg, "computed_torque")
    stand.position, stand.velocity = BEYOND.copy(), np.full(6, 0.1)
    command = stand.tick(100)
    assert command.failure is not None
    assert command.effort @ stand.velocity < 0.0
