# SPDX-License-Identifier: Apache-2.0
"""References are taken over smoothly, and refused with a reason where they cannot be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_controller.reference import Reference
from sysid_core.arrays import FloatArray
from sysid_core.exchange import TrajectoryPoints
from sysid_core.robot.limits import Limits

JOINTS = ("a", "b")
LIMITS = Limits(
    np.array([-2.0, -1.0]), np.array([2.0, 1.0]), np.array([3.0, 3.0]), np.array([10.0, 10.0])
)
STEP = 0.001


@pytest.fixture
def reference() -> Reference:
    made = Reference(JOINTS, LIMITS, aliases={"A": "a"})
    made.hold(0.0, np.array([0.1, -0.1]))
    return made


def points(
    time: list[float], position: list[list[float]], start: float | None = None, **more: Any
) -> TrajectoryPoints:
    return TrajectoryPoints(JOINTS, start, np.array(time), np.array(position), **more)


def assert_smooth(reference: Reference, begin: float, end: float, acceleration: float) -> None:
    """Check that positions are the integral of velocities and these of bounded accelerations."""
    times = np.arange(begin, end, STEP)
    motions = [reference.sample(t) for t in times]
    p, v, a = (np.array(part) for part in zip(*motions, strict=True))
    assert np.abs(a).max() < acceleration
    np.testing.assert_allclose(np.diff(p, axis=0), STEP * v[:-1], atol=acceleration * STEP**2)
    np.testing.assert_allclose(
        np.diff(v, axis=0), 0.5 * STEP * (a[:-1] + a[1:]), atol=0.02 * acceleration * STEP
    )


def sine(start: float, begin: float, count: int = 40, shift: float = 0.0) -> TrajectoryPoints:
    """Return a piece of an everlasting sine, known with all derivatives."""
    time = begin + 0.05 * np.arange(float(count))
    w = 2.0
    s, c = np.sin(w * (start + time)), np.cos(w * (start + time))
    both = np.array([0.5, 0.3])
    return TrajectoryPoints(
        JOINTS,
        start,
        time,
        shift + s[:, None] * both,
        w * c[:, None] * both,
        -(w**2) * s[:, None] * both,
    )


def test_holds_where_it_was_told(reference: Reference) -> None:
    motion = reference.sample(5.0)
    np.testing.assert_array_equal(motion.position, [0.1, -0.1])
    np.testing.assert_array_equal(motion.velocity, 0.0)
    assert not reference.moving(5.0)


def test_moves_to_points_in_time_and_holds_the_last(reference: Reference) -> None:
    assert reference.offer(points([1.0, 2.0], [[0.5, 0.0], [1.0, 0.5]]), now=10.0) is None
    assert reference.moving(10.0)
    np.testing.assert_allclose(reference.sample(10.0).position, [0.1, -0.1])
    np.testing.assert_allclose(reference.sample(11.0).position, [0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(reference.sample(12.0).position, [1.0, 0.5], atol=1e-12)
    assert not reference.moving(12.0)
    np.testing.assert_array_equal(reference.sample(100.0).position, [1.0, 0.5])


def test_a_whole_motion_from_rest_to_rest_is_smooth(reference: Reference) -> None:
    reference.offer(points([0.5, 1.0, 2.0], [[0.5, 0], [0.3, -0.5], [1, 0.5]]), now=0.0)
    assert_smooth(reference, 0.0, 3.0, 20.0)


def test_joints_come_in_any_order_under_any_known_name_with_others_between(
    reference: Reference,
) -> None:
    position = np.array([[0.4, 99.0, 0.2]])
    velocity = np.array([[0.0, np.nan, 0.0]])
    offer = TrajectoryPoints(("b", "x", "A"), None, np.array([1.0]), position, velocity)
    assert reference.offer(offer, now=0.0) is None
    np.testing.assert_allclose(reference.sample(1.0).position, [0.2, 0.4])


def test_a_stamped_start_is_kept(reference: Reference) -> None:
    assert reference.offer(points([0.0, 1.0], [[0.1, -0.1], [0.5, 0.5]], start=3.0), 1.0) is None
    np.testing.assert_allclose(reference.sample(2.9).position, [0.1, -0.1], atol=1e-12)
    np.testing.assert_allclose(reference.sample(4.0).position, [0.5, 0.5], atol=1e-12)


def test_overlapping_pieces_of_one_motion_leave_no_trace(reference: Reference) -> None:
    """A stream of plans, each made from the same motion, is that motion."""
    first = sine(0.0, 0.0)
    reference.hold(0.0, first.position[0])
    assert reference.offer(first, now=0.0) is None
    sampled = 0.6
    for start in (0.5, 1.0, 1.5):
        assert reference.offer(sine(start, 0.1), now=start) is None
        while sampled < start + 0.5:
            motion = reference.sample(sampled)
            expected = np.sin(2.0 * sampled) * np.array([0.5, 0.3])
            # the quintics' own error, 0.05 s between points
            np.testing.assert_allclose(motion.position, expected, atol=1e-6)
            sampled += STEP


def test_the_old_motion_goes_on_until_the_new_ones_first_point(reference: Reference) -> None:
    reference.hold(0.0, sine(0.0, 0.0).position[0])
    reference.offer(sine(0.0, 0.0), now=0.0)
    reference.sample(0.4)
    assert reference.offer(sine(0.5, 0.2, shift=0.1), now=0.5) is None
    expected = np.sin(2 * 0.69) * np.array([0.5, 0.3])
    np.testing.assert_allclose(reference.sample(0.69).position, expected, atol=1e-6)
    later = np.sin(2 * 1.2) * np.array([0.5, 0.3]) + 0.1
    np.testing.assert_allclose(reference.sample(1.2).position, later, atol=1e-6)


def test_a_shifted_plan_is_joined_smoothly(reference: Reference) -> None:
    reference.hold(0.0, sine(0.0, 0.0).position[0])
    reference.offer(sine(0.0, 0.0), now=0.0)
    reference.sample(0.5)
    assert reference.offer(sine(0.5, 0.2, shift=0.1), now=0.5) is None
    # the gap of 0.1 rad in 0.3 s takes 5.77 · 0.1 / 0.3² = 6.4 rad/s² beside the sine's 2
    assert_smooth(reference, 0.5, 1.5, 10.0)


def test_a_plan_for_later_waits_and_an_earlier_one_replaces_it(reference: Reference) -> None:
    reference.offer(points([0.0, 1.0], [[0.1, -0.1], [0.5, 0.5]], start=5.0), now=0.0)
    reference.offer(points([0.0, 1.0], [[0.1, -0.1], [-0.5, 0.0]], start=2.0), now=0.0)
    np.testing.assert_allclose(reference.sample(3.0).position, [-0.5, 0.0], atol=1e-12)
    np.testing.assert_allclose(reference.sample(10.0).position, [-0.5, 0.0], atol=1e-12)


def test_plans_can_queue(reference: Reference) -> None:
    reference.offer(points([0.0, 1.0], [[0.1, -0.1], [0.5, 0.5]], start=1.0), now=0.0)
    assert reference.offer(points([0.0, 1.0], [[0.5, 0.5], [0.0, 0.0]], start=3.0), 0.0) is None
    np.testing.assert_allclose(reference.sample(2.5).position, [0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(reference.sample(4.0).position, [0.0, 0.0], atol=1e-12)


def test_a_plan_that_ends_in_motion_is_braked_to_rest(reference: Reference) -> None:
    velocity = np.array([[0.0, 0.0], [1.0, 0.0]])
    offer = points([0.0, 1.0], [[0.1, -0.1], [0.5, -0.1]], velocity=velocity)
    assert reference.offer(offer, now=0.0) is None
    np.testing.assert_allclose(reference.sample(1.3).position, [0.65, -0.1], atol=1e-12)
    np.testing.assert_array_equal(reference.sample(2.0).velocity, 0.0)


def test_a_plan_that_has_begun_is_joined_where_it_is(reference: Reference) -> None:
    reference.hold(0.0, np.zeros(2))
    offer = points([0.0, 2.0], [[0.0, 0.0], [0.2, 0.2]], start=9.5)
    assert reference.offer(offer, now=10.0) is None
    np.testing.assert_allclose(reference.sample(10.0).position, 0.0, atol=1e-12)
    np.testing.assert_allclose(reference.sample(11.5).position, [0.2, 0.2], atol=1e-9)


def test_a_stream_is_joined_where_it_can_be_reached(reference: Reference) -> None:
    """The first points are 1 rad away and due soon; the robot meets the motion further on."""
    reference.hold(0.0, np.array([-0.8, 0.2]))
    stream = replace(sine(0.0, 0.05, count=60), start=10.0)
    assert reference.offer(stream, now=10.0) is None
    assert_smooth(reference, 10.0, 13.0, 20.0)
    expected = np.sin(2.0 * 2.7) * np.array([0.5, 0.3])
    np.testing.assert_allclose(reference.sample(12.7).position, expected, atol=1e-6)
    # without a start in time the first point is meant, and refused
    reference.hold(13.0, np.array([-0.8, 0.2]))
    assert "give it more time" in str(reference.offer(replace(stream, start=None), 13.0))


def test_out_of_range_it_goes_back_to_the_limit_and_can_start_again(reference: Reference) -> None:
    outside = np.array([2.05, -1.02])
    reference.hold(0.0, outside)
    np.testing.assert_allclose(reference.sample(0.0).position, outside, atol=1e-12)
    np.testing.assert_allclose(reference.sample(2.0).position, [2.0, -1.0], atol=1e-12)
    assert reference.offer(points([2.0], [[1.5, -0.5]]), now=2.0) is None


def test_rejoins_from_a_measured_motion(reference: Reference) -> None:
    reference.offer(points([5.0], [[1.0, 0.5]]), now=0.0)
    reference.sample(1.0)
    measured, speed = np.array([-0.5, 0.5]), np.array([0.2, 0.0])
    reference.rejoin(1.0, measured, speed)
    motion = reference.sample(1.0)
    np.testing.assert_allclose(motion.position, measured, atol=1e-12)
    np.testing.assert_allclose(motion.velocity, speed, atol=1e-12)
    assert_smooth(reference, 1.0, 5.0, 10.0)
    np.testing.assert_allclose(reference.sample(5.0).position, [1.0, 0.5], atol=1e-9)


NAN = np.array([[np.nan, 0.0]])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"joint_names": ("a", "c")}, "lacks the joints b"),
        ({"time": np.zeros(0), "position": np.zeros((0, 2))}, "has no points"),
        ({"position": np.zeros((1, 1))}, "needs 2 position values"),
        ({"velocity": np.zeros((2, 2))}, "needs 2 velocity values"),
        ({"position": NAN}, "position of joint 'a' that is not finite"),
        ({"velocity": NAN}, "velocity of joint 'a' that is not finite"),
        ({"acceleration": np.inf * np.ones((1, 2))}, "acceleration of joint 'a'"),
        ({"time": np.array([np.nan])}, "time that is not finite"),
        ({"start": np.inf}, "time that is not finite"),
        ({"time": np.array([-0.5])}, "do not ascend"),
        ({"time": np.array([1.0, 1.0]), "position": np.zeros((2, 2))}, "do not ascend"),
        ({"time": np.array([2.0, 1.0]), "position": np.zeros((2, 2))}, "do not ascend"),
        ({"start": 5.0}, "ended 4 s ago"),
        ({"start": 1e9}, "use_sim_time"),
        ({"position": np.array([[0.0, 1.2]])}, "takes joint 'b' to 1.2 rad"),
        ({"position": np.array([[-2.5, 0.0]])}, "takes joint 'a' to -2.5 rad"),
        ({"position": np.array([[2.0, 0.0]])}, "moves joint 'a' at"),
        ({"time": np.zeros(1), "position": np.array([[0.5, 0.0]])}, "more than 0.2"),
        (
            {"velocity": np.array([[0.0, 2.9]]), "position": np.array([[0.0, 0.9]])},
            "takes joint 'b'",
        ),
    ],
)
def test_refuses_what_cannot_be_followed_and_goes_on(
    reference: Reference, change: dict[str, Any], reason: str
) -> None:
    good = points([1.0], [[0.3, 0.3]])
    refusal = reference.offer(replace(good, **change), now=10.0)
    assert refusal is not None
    assert reason in str(refusal)
    np.testing.assert_array_equal(reference.sample(10.5).position, [0.1, -0.1])
    assert not reference.moving(10.0)


def test_without_a_place_to_start_from_it_refuses() -> None:
    reference = Reference(JOINTS, LIMITS)
    assert not reference.known
    assert not reference.moving(0.0)
    assert "nowhere to start" in str(reference.offer(points([1.0], [[0.0, 0.0]]), 0.0))


def test_many_waiting_plans_are_bounded(reference: Reference) -> None:
    refusals = [
        reference.offer(points([0.0], [[0.1, -0.1]], start=1.0 + 0.1 * i), now=0.0)
        for i in range(200)
    ]
    assert refusals[-1] is not None
    assert "waiting" in str(refusals[-1])


def fuzz(rng: np.random.Generator) -> TrajectoryPoints:
    n = int(rng.integers(0, 4))

    def values() -> FloatArray:
        array = rng.normal(scale=10.0 ** rng.integers(-3, 3), size=(n, 2))
        array[rng.random((n, 2)) < 0.05] = rng.choice([np.nan, np.inf, 1e308])
        return array

    def maybe(make: Callable[[], FloatArray]) -> FloatArray | None:
        return make() if rng.random() < 0.5 else None

    time = np.cumsum(rng.uniform(-0.1, 1.0, n))
    start = None if rng.random() < 0.5 else float(rng.normal(scale=3.0))
    return TrajectoryPoints(JOINTS, start, time, values(), maybe(values), maybe(values))


def test_fuzzed_plans_never_take_the_reference_out_of_limits(reference: Reference) -> None:
    rng = np.random.default_rng(8)
    now, accepted = 0.0, 0
    with np.errstate(all="ignore"):
        for _ in range(3000):
            accepted += reference.offer(fuzz(rng), now) is None
            now += 0.05
            motion = reference.sample(now)
            for part in motion:
                assert np.isfinite(part).all()
            # limits are checked on a grid, between whose points a quintic may bulge a little
            assert (motion.position >= LIMITS.lower - 0.02).all()
            assert (motion.position <= LIMITS.upper + 0.02).all()
            assert (np.abs(motion.velocity) <= 1.6 * LIMITS.velocity).all()
    assert accepted > 100


def test_more_points_than_a_controller_has_time_for_are_refused_with_what_to_do(
    reference: Reference,
) -> None:
    count = 50_000
    long = TrajectoryPoints(
        JOINTS, None, 0.02 * np.arange(1.0, count + 1.0), np.tile([0.1, -0.1], (count, 1))
    )
    refusal = str(reference.offer(long, 0.0))
    assert "50000 points, more than 2000; send it in pieces" in refusal
