# SPDX-License-Identifier: Apache-2.0
"""A motion is checked, approached, played and watched; a robot that is blocked is let go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from player_world import HOME, PERIOD, World, sway

from sysid_controller.motion_plan import MotionPlanner
from sysid_controller.motion_watch import ContactWatch, MotionWatch
from sysid_controller.player import Phase, Player
from sysid_controller.player_config import PlayerConfig
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.errors import ParameterError
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_sim.truth import draw_truth


@pytest.mark.parametrize("asks", [True, pytest.param(False, marks=pytest.mark.heavy)])
def test_a_motion_is_approached_played_and_ends_at_rest(
    asks: bool, panda: Robot, perturbed: Callable[[Robot, int], FloatArray]
) -> None:
    world = World(panda, 0.5 * (panda.consistent_nominal + perturbed(panda, 3)), asks=asks)
    world.run(lambda: world.player.phase in (Phase.DONE, Phase.STOPPED))
    assert world.player.phase is Phase.DONE, world.player.reason
    np.testing.assert_allclose(world.q, HOME, atol=0.1)
    assert np.abs(world.v).max() < 0.05


def test_joint_states_that_wait_do_not_make_an_ended_motion_a_stopped_one(
    panda: Robot, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(panda, panda.consistent_nominal)
    world.run(lambda: world.player.phase is Phase.PLAYING)
    take, begin, waiting = world.player.take_joint_states, world.time, list[Any]()

    def wait(*row: Any) -> None:
        """Hand over the rows that have waited; more and more do, as on a busy computer."""
        waiting.append(row)
        while world.time - waiting[0][-1] >= min(2.0, 0.5 * (world.time - begin)):
            take(*waiting.pop(0))
            if not waiting:
                break

    monkeypatch.setattr(world.player, "take_joint_states", wait)
    world.run(lambda: world.player.phase in (Phase.DONE, Phase.STOPPED))
    assert world.player.phase is Phase.DONE, world.player.reason


@pytest.mark.parametrize(
    ("joint", "speed"), [*((joint, 0.3) for joint in (0, 2, 3, 5)), (1, 0.5), (4, 0.5), (6, 0.5)]
)
def test_a_blocked_joint_stops_the_robot_within_a_fifth_of_a_second(
    joint: int, speed: float, panda: Robot, perturbed: Callable[[Robot, int], FloatArray]
) -> None:
    world = World(panda, 0.5 * (panda.consistent_nominal + perturbed(panda, 3)))
    world.run(lambda: world.player.phase is Phase.PLAYING)
    world.run(lambda: abs(world.v[joint]) > speed)
    world.block(joint)
    begin = world.time
    world.run(lambda: world.player.phase is Phase.STOPPED, begin + 0.2)
    assert "is it blocked" in world.player.reason
    world.brake()
    torque = world.controller.tick(world.time, world.time).effort
    world.run(lambda: world.time > begin + 0.5)
    assert np.abs(world.v).max() < 0.1
    # what presses on whoever holds the joint is gone, but for the model's error
    after = world.controller.tick(world.time, world.time).effort
    assert abs(after[joint]) < max(abs(torque[joint]), 0.3 * panda.limits.effort[joint])


STEP, LAG, PACE = 0.02, 0.1, 0.4
"""Time [s] between a controller's messages, and by which a drive is late; top speed [rad/s]."""


def watched(held_from: float) -> float:
    """Return when a watch finds a joint that is held from a time on, and sticks where it turns."""
    watch, position = MotionWatch(("j",), 0.2), 0.0
    for t in np.arange(0.0, 12.0, STEP):
        asked, late = (PACE * np.sin(s) for s in (t, max(t - LAG, 0.0)))
        sticks = abs(late) < 0.15 * PACE and np.cos(t - LAG) * np.sin(t - LAG) > 0.0
        velocity = 0.0 if sticks or t >= held_from else late
        position += STEP * velocity
        error = PACE * (1.0 - np.cos(t)) - position
        if watch.judge(t, *(np.array([value]) for value in (asked, velocity, error))):
            return float(t)
    return np.inf


def test_a_joint_that_follows_late_and_sticks_where_it_turns_is_not_held() -> None:
    assert watched(np.inf) == np.inf


@pytest.mark.parametrize(("behind", "held"), [(-0.02, False), (0.0, False), (0.1, True)])
def test_a_joint_that_was_ahead_may_wait(behind: float, held: bool) -> None:
    watch, pace = MotionWatch(("j",), 0.2), np.array([PACE])
    for t in np.arange(0.0, 1.0, STEP):
        assert not watch.judge(t, pace, pace, np.array([behind]))
    reasons = [watch.judge(t, pace, 0.0 * pace, np.array([behind])) for t in (1.0, 1.08, 1.16)]
    assert bool(reasons[-1]) == held


SWING, DAMPING = 9.0, 0.15  # Natural frequency [rad/s] and damping ratio of a soft drive
PULSE = 7.0  # Frequency [rad/s] at which its path speeds up and slows down


def swinging(held_from: float) -> float:
    """Return when a watch finds a joint held that a soft drive swings about its path.

    What is asked speeds up and slows down: the joint gets ahead, comes back while its path goes
    on, and turns round once that has overtaken it.
    """
    watch, where, v, wanted = MotionWatch(("j",), 0.4), 0.0, 0.0, 0.0
    for t in np.arange(0.0, 4.0, 0.002):
        asked = 0.4 + 0.3 * np.sin(PULSE * t)
        error = wanted - where
        v += 0.002 * (SWING**2 * error + 2.0 * DAMPING * SWING * (asked - v))
        v *= t < held_from
        where, wanted = where + 0.002 * v, wanted + 0.002 * asked
        if watch.judge(t, *(np.array([value]) for value in (asked, v, error))):
            return float(t)
    return np.inf


def test_a_joint_that_swings_back_under_a_soft_drive_is_not_held() -> None:
    assert swinging(np.inf) == np.inf


@pytest.mark.parametrize("when", [1.0, 1.9, 2.4, 3.0])
def test_a_joint_that_a_soft_drive_swings_is_found_where_it_is_held(when: float) -> None:
    assert when <= swinging(when) <= when + 0.5  # it may be ahead, and wait for its path


@pytest.mark.parametrize(("lasts", "stops"), [(1, False), (5, True)])
def test_velocities_of_a_late_cycle_stop_nothing(lasts: int, stops: bool) -> None:
    watch, none = MotionWatch(("j",), 0.2), np.zeros(1)
    velocities = [0.0] * 10 + [2.0] * lasts + [-6.0, 0.0]  # of the cycle that was late, and next
    asked = [watch.judge(0.01 * k, none, none + v, none) for k, v in enumerate(velocities)]
    assert any(asked) is stops


@pytest.mark.parametrize("when", [0.8, 1.5, 2.5, 4.0, 5.5, 8.3])
def test_a_joint_that_stops_midway_is_held_whatever_its_torque(when: float) -> None:
    assert abs(np.sin(when)) * PACE > 0.2
    assert when <= watched(when) <= when + 0.2  # in which a person is to be let go


def states(
    robot: Robot, truth: FloatArray, seconds: float
) -> Iterator[tuple[float, FloatArray, FloatArray, FloatArray]]:
    """Yield times, states and true torques of a slow motion, with noise as of good sensors."""
    rng = np.random.default_rng(0)
    plant = TreeDynamics(robot, 0.01)
    plant.set_parameters(truth)
    n = len(robot.joint_names)
    rate = rng.uniform(0.5, 1.0, n)
    middle = np.clip(np.mean(robot.sampling_range, axis=0), -1.0, 1.0)
    for t in np.arange(0.0, seconds, PERIOD):
        phase = rate * t
        q, v, a = 0.5 * np.sin(phase), 0.5 * rate * np.cos(phase), -0.5 * rate**2 * np.sin(phase)
        torque = plant.torque(middle + q, v, a, v) + 1e-3 * robot.limits.effort * rng.normal(
            size=n
        )
        yield float(t), middle + q, v + 1e-3 * rng.normal(size=n), torque


@pytest.mark.parametrize("name", ["panda", "ur10e", "tx40"])
def test_a_wrong_model_is_no_contact_and_a_small_push_is_one(name: str) -> None:
    robot = load_robot(name)
    truth = draw_truth(robot, 4)
    watch, pushed = ContactWatch(robot), ContactWatch(robot)
    push = np.zeros(len(robot.joint_names))
    for t, q, v, torque in states(robot, truth, 8.0):
        assert not watch.push(t, q, v, torque)
        if t >= 6.0:  # less than a tenth of what the joints can
            push[1] = 0.1 * robot.limits.effort[1]
        if pushed.push(t, q, v, torque + push):
            assert 6.0 < t < 6.1
            return
    raise AssertionError("the push was not found")


def test_what_an_earlier_motion_told_narrows_the_watch(panda: Robot) -> None:
    truth = draw_truth(panda, 4)
    time, q, v, torque = (np.array(part) for part in zip(*states(panda, truth, 4.0), strict=True))
    names = panda.joint_names
    player, fresh = World(panda, truth).player, World(panda, truth).player
    player.learn(Recording(time, names, q, v, torque))
    assert player._contact is not None
    assert fresh._contact is not None
    row = player._contact._rows(0.0, q[-1], v[-1], np.zeros(7))
    assert row is not None
    known, unknown = (w._explained(row)[1] for w in (player._contact, fresh._contact))
    assert (known < unknown).all()
    assert not player.position.any() or player.phase is Phase.WAITING
    for t in time[:200].tolist():  # a new clock may begin earlier
        player.take_joint_states(names, q[0], np.zeros(7), torque[0], t)
    assert not player.reason


def test_a_contact_that_lasts_is_not_learned_before_it_is_found(panda: Robot) -> None:
    watch = ContactWatch(panda)
    size = panda.limits.effort[3]
    for t, q, v, torque in states(panda, panda.consistent_nominal, 8.0):
        grown = 0.1 * size * np.clip(5.0 * (t - 6.0), 0.0, 1.0) * np.eye(7)[3]
        if watch.push(t, q, v, torque + grown):
            assert 6.0 < t < 6.2
            return
    raise AssertionError("the push was not found")


def test_efforts_that_nobody_measures_stop_nothing(panda: Robot) -> None:
    watch = ContactWatch(panda)
    for t, q, v, _ in states(panda, panda.consistent_nominal, 0.5):
        assert not watch.push(t, q, v, np.full(7, np.nan))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"robot": "ur10e"}, "for robot 'ur10e'"),
        ({"model_hash": "0" * 8}, "another model of 'panda'"),
        ({"joint_names": tuple("abcdefg")}, "lacks the joints panda_joint1"),
    ],
)
def test_another_robots_motion_is_refused(panda: Robot, change: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        MotionPlanner(panda, replace(sway(panda), **change))


def test_motions_beyond_limits_are_refused_before_anything_moves(panda: Robot) -> None:
    with pytest.raises(ParameterError, match="outside its limits"):
        MotionPlanner(panda, sway(panda, reach=1.5, period=20.0))
    with pytest.raises(ParameterError, match="its limit is"):
        MotionPlanner(panda, sway(panda, reach=0.8, period=1.0))


def test_a_slower_motion_takes_the_same_way(panda: Robot) -> None:
    whole, half = (MotionPlanner(panda, sway(panda), speed=s).plan(HOME) for s in (1.0, 0.5))
    assert half.duration == pytest.approx(2.0 * 4.0 + 1.0 + half.approach)
    assert np.abs(half.points.velocity).max() < 0.6 * np.abs(whole.points.velocity).max()
    for plan in (whole, half):
        assert not plan.points.velocity[[0, -1]].any()
        q = np.array([plan.path.at(t).position for t in np.arange(0.0, plan.duration, 1e-3)])
        v = np.array([plan.path.at(t).velocity for t in np.arange(0.0, plan.duration, 1e-3)])
        np.testing.assert_allclose(np.gradient(q, 1e-3, axis=0)[1:-1], v[1:-1], atol=2e-3)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("silent", "no joint states"),
        ("unheard", "nobody listens"),
        ("stands still", "stamps stand still"),
        ("untold", "is it running"),
        ("disabled", "disabled: sysid call"),
        ("another clock", "use_sim_time"),
        ("moving", "moves already"),
        ("effortless", "no efforts"),
    ],
)
def test_what_is_missing_is_said_and_nothing_moves(broken: str, says: str, panda: Robot) -> None:
    player = Player(
        panda,
        sway(panda),
        PlayerConfig(out="bag"),
    )
    effort = np.zeros(0 if broken == "effortless" else 7)
    for k in range(400):
        t = 0.02 * k
        if broken != "silent":
            still = 0.0 if broken == "stands still" else t
            speed = np.full(7, 1.0 if broken == "moving" else 0.0)
            player.take_joint_states(panda.joint_names, HOME, speed, effort, still)
        if broken != "untold":
            state = 0 if broken == "disabled" else 2
            apart = 60.0 if broken == "another clock" else 0.0
            player.take_tracking(state, [], t + apart, np.zeros(7), np.zeros(7))
        player.look(t, answered=broken != "unheard")
        if player.phase is Phase.STOPPED:
            break
    assert player.phase is Phase.STOPPED
    assert says in player.reason
    assert "\n" not in player.reason
    assert not player.moved


def test_joints_are_published_by_the_names_that_their_driver_uses(panda: Robot) -> None:
    names = tuple(name.replace("panda", "fer") for name in panda.joint_names)
    for used in (names, panda.joint_names):
        player = Player(
            panda,
            sway(panda),
            PlayerConfig(target="trajectory"),
        )
        player.take_joint_states(used, HOME, 0.0 * HOME, np.zeros(7), 1.0)
        rows = np.zeros((1, 7))
        assert player.published(rows, rows, rows)[0] == used


@pytest.mark.parametrize("late", [True, False])
def test_a_player_that_was_held_up_takes_no_robot_for_silent(late: bool, panda: Robot) -> None:
    world = World(panda, panda.consistent_nominal)
    world.run(lambda: world.player.phase is Phase.PLAYING)
    for t in world.time + (np.array([3.0]) if late else np.arange(0.05, 3.0, 0.05)):
        world.player.look(float(t), answered=True)
    assert (world.player.phase is Phase.PLAYING) is late
    if not late:
        assert "silent for 1 s" in world.player.reason
