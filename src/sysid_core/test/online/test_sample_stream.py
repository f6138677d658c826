# SPDX-License-Identifier: Apache-2.0
"""A live stream gives what a filter over the whole recording gives, whatever the chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.online.stream import SampleStream
from sysid_core.online.stream_config import StreamConfig, stream_cutoff, stream_rate
from sysid_core.recording import BaseRecording, ContactRecording, Recording, Samples
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.signals.filters import low_pass, smoothed, support

RATE = 500.0
SLOW = StreamConfig(rate=RATE, cutoff=10.0, sample_rate=100.0)


HERTZ = 0.5


def sines(count: int, channels: int, seed: int = 0) -> FloatArray:
    """Return sines (count, channels) of one frequency and random phase."""
    rng = np.random.default_rng(seed)
    time = np.arange(count)[:, None] / RATE
    phase = rng.uniform(0.0, 2.0 * np.pi, channels)
    return np.asarray(0.4 * np.sin(2.0 * np.pi * HERTZ * time + phase))


def gain() -> float:
    """Return what the low-pass makes of such a sine: a symmetric kernel changes its size only."""
    n = np.arange(-200, 201)
    passed = low_pass(np.cos(2.0 * np.pi * HERTZ / RATE * n), RATE, SLOW.cutoff)
    return float(passed[len(passed) // 2])


def push(
    stream: SampleStream,
    names: Sequence[str],
    position: FloatArray,
    effort: FloatArray,
    *,
    chunks: int = 37,
    start: float = 0.0,
) -> Samples:
    time = start + np.arange(len(position)) / RATE
    parts = [
        stream.push_joint_states(
            time[i : i + chunks], names, position[i : i + chunks], effort[i : i + chunks]
        )
        for i in range(0, len(time), chunks)
    ]
    return Samples.concatenate([part for part in parts if len(part)])


@pytest.fixture(scope="module")
def panda() -> Robot:
    return load_robot("panda")


@pytest.mark.parametrize("chunks", [1, 7, 100, 1500])
def test_chunks_do_not_matter(panda: Robot, chunks: int) -> None:
    rng = np.random.default_rng(1)
    position = sines(1500, 7) + 1e-3 * rng.normal(size=(1500, 7))
    effort = rng.normal(size=(1500, 7))
    whole = smoothed(position, RATE, SLOW.cutoff)
    edge = support(RATE, SLOW.cutoff)
    time = np.arange(edge, 1500 - edge) / RATE
    torque = smoothed(effort, RATE, SLOW.cutoff).value
    samples = push(SampleStream(panda, SLOW), panda.joint_names, position, effort, chunks=chunks)
    step = round(RATE / SLOW.output_rate)
    count = len(samples)
    # the last period waits for the sample after the next
    assert len(time[::step]) - count <= 1
    np.testing.assert_allclose(samples.time, time[::step][:count], atol=1e-9)
    for name, expected in (
        ("position", whole.value),
        ("velocity", whole.first),
        ("acceleration", whole.second),
        ("effort", torque),
    ):
        expected = expected[::step][:count]
        scale = np.abs(expected).max()
        np.testing.assert_allclose(getattr(samples, name), expected, atol=1e-9 * scale)


def test_samples_tell_of_efforts_at_an_end_of_their_range(panda: Robot) -> None:
    position, effort = sines(3000, 7), 5.0 * sines(3000, 7, seed=2)
    most = 0.6 * float(np.abs(effort[:, 2]).max())
    effort[:, 2] = np.clip(effort[:, 2], -most, most)
    samples = push(SampleStream(panda, SLOW), panda.joint_names, position, effort)
    assert samples.cut_off is not None
    assert not samples.cut_off[:, np.arange(7) != 2].any()
    at_end = np.abs(effort[:, 2]) == most
    reach = support(RATE, SLOW.cutoff)
    rows = np.rint(samples.time * RATE).astype(int)
    rests = np.array([at_end[r - reach : r + reach + 1].any() for r in rows])
    expected = np.where(rests, 1, 0) + at_end[rows]
    ends = (np.flatnonzero(effort[:, 2] == sign * most)[60] for sign in (-1.0, 1.0))
    late = rows > max(ends) + reach
    assert late.sum() > 200
    np.testing.assert_array_equal(samples.cut_off[late, 2], expected[late])


def test_times_are_those_of_the_motion_not_of_its_arrival(panda: Robot) -> None:
    position = sines(1500, 7)
    stream = SampleStream(panda, SLOW)
    samples = push(stream, panda.joint_names, position, position)
    rows = np.rint(samples.time * RATE).astype(int)
    np.testing.assert_allclose(samples.position, gain() * position[rows], atol=1e-9)
    assert samples.time[-1] <= (1500 - 1) / RATE - stream.delay + 1e-9


def test_joints_in_any_order_and_more_of_them(panda: Robot) -> None:
    position, effort = sines(1000, 7), sines(1000, 7, seed=2)
    straight = push(SampleStream(panda, SLOW), panda.joint_names, position, effort)
    order = np.random.default_rng(3).permutation(7)
    names = ["finger", *(panda.joint_names[i] for i in order)]
    other = np.full((1000, 1), 7.0)
    mixed = push(
        SampleStream(panda, SLOW),
        names,
        np.hstack([other, position[:, order]]),
        np.hstack([other, effort[:, order]]),
    )
    for name in ("position", "velocity", "acceleration", "effort"):
        np.testing.assert_array_equal(getattr(mixed, name), getattr(straight, name))


def test_messages_without_the_robots_joints_are_counted(panda: Robot) -> None:
    stream = SampleStream(panda, SLOW)
    none = stream.push_joint_states(np.arange(3.0), ("a", "b"), np.zeros((3, 2)), np.zeros((3, 2)))
    assert len(none) == 0
    assert stream.counts["without the robot's joints"] == 3


def test_messages_of_a_gripper_between_the_robots_change_nothing(panda: Robot) -> None:
    position, effort = sines(1000, 7), sines(1000, 7, seed=2)
    alone = push(SampleStream(panda, SLOW), panda.joint_names, position, effort)
    stream = SampleStream(panda, SLOW)
    parts = []
    for k in range(1000):
        time = np.array([k / RATE])
        row = slice(k, k + 1)
        parts.append(stream.push_joint_states(time, panda.joint_names, position[row], effort[row]))
        stream.push_joint_states(time + 0.3 / RATE, ("finger",), np.ones((1, 1)), effort[:1, :1])
    taken = np.concatenate([part.position for part in parts])
    np.testing.assert_allclose(taken, alone.position, atol=1e-12)
    assert not stream.counts["without the robot's joints"]


def test_names_that_change_with_every_message_take_no_memory(panda: Robot) -> None:
    stream = SampleStream(panda, SLOW)
    for k in range(200):
        stream.push_joint_states(np.array([0.01 * k]), [f"j{k}"], np.ones((1, 1)), np.ones((1, 1)))
    assert stream.counts["without the robot's joints"] == 200
    assert len(stream._columns) <= 16


def test_gains_turn_published_units_into_torque(panda: Robot) -> None:
    gain = {name: 1.0 + i for i, name in enumerate(panda.joint_names)}
    description = parse_description(
        {"name": "panda", "urdf": str(panda.urdf.path), "effort": {"gain": gain}}
    )
    position, effort = sines(1000, 7), sines(1000, 7, seed=2)
    plain = push(SampleStream(panda, SLOW), panda.joint_names, position, effort)
    robot = load_robot(description)
    wanted = [robot.joint_names.index(name) for name in panda.joint_names]
    scaled = push(SampleStream(robot, SLOW), panda.joint_names, position, effort)
    np.testing.assert_allclose(scaled.effort[:, wanted], plain.effort * (1.0 + np.arange(7)))
    np.testing.assert_array_equal(scaled.position[:, wanted], plain.position)


def test_motors_behind_coupled_gears_become_joints() -> None:
    robot = load_robot("tx40")
    transmission = robot.description.transmission
    assert transmission is not None
    gears = np.array(transmission.matrix)
    offset = np.array(
        [robot.description.position_offset.get(name, 0.0) for name in robot.joint_names]
    )
    joint = sines(1500, 6)
    torque = sines(1500, 6, seed=5)
    samples = push(
        SampleStream(robot, SLOW),
        robot.joint_names,
        (joint - offset) @ gears.T,
        torque @ np.linalg.inv(gears),
    )
    rows = np.rint(samples.time * RATE).astype(int)
    np.testing.assert_allclose(samples.position, gain() * joint[rows], atol=1e-9)
    np.testing.assert_allclose(samples.effort, gain() * torque[rows], atol=1e-9)


def test_spoiled_lost_and_doubled_messages_are_bridged(panda: Robot) -> None:
    rng = np.random.default_rng(6)
    position, effort = sines(2000, 7), sines(2000, 7, seed=2)
    time = np.arange(2000) / RATE
    spoiled = position.copy()
    spoiled[rng.choice(2000, 40, replace=False), 3] = np.nan
    kept = np.sort(np.concatenate([np.flatnonzero(rng.uniform(size=2000) > 0.05), [500, 501]]))
    stream = SampleStream(panda, SLOW)
    parts = [
        stream.push_joint_states(time[i], panda.joint_names, spoiled[i], effort[i])
        for i in np.array_split(kept, 50)
    ]
    samples = Samples.concatenate([part for part in parts if len(part)])
    assert np.isfinite(samples.position).all()
    rows = np.rint(samples.time * RATE).astype(int)
    np.testing.assert_allclose(samples.position, position[rows], atol=1e-3)
    counts = stream.joint_counts
    assert counts.not_finite > 0
    assert counts.lost > 0
    assert counts.duplicate > 0


@pytest.mark.parametrize("far", [1e3, 1e9, 1e200])
def test_one_position_far_away_is_left_out_and_counted(panda: Robot, far: float) -> None:
    position, effort = sines(1000, 7), sines(1000, 7, seed=2)
    spoiled = position.copy()
    spoiled[500, 2] = far
    stream = SampleStream(panda, SLOW)
    samples = push(stream, panda.joint_names, spoiled, effort)
    rows = np.rint(samples.time * RATE).astype(int)
    np.testing.assert_allclose(samples.position, gain() * position[rows], atol=1e-3)
    assert stream.joint_counts.implausible == 1


def test_a_gap_breaks_the_stream_and_leaves_no_sample_across_it(panda: Robot) -> None:
    stream = SampleStream(panda, SLOW)
    position = sines(1000, 7)
    first = push(stream, panda.joint_names, position, position)
    second = push(stream, panda.joint_names, position, position, start=10.0)
    assert stream.joint_counts.gaps == 1
    samples = Samples.concatenate([first, second])
    edge = support(SLOW.rate, SLOW.cutoff) / RATE
    between = (samples.time > 2.0 - edge) & (samples.time < 10.0 + edge - 1e-9)
    assert not between.any()
    whole = samples.time < 5.0
    again = samples.position[~whole]
    np.testing.assert_allclose(again, samples.position[whole][: len(again)], atol=1e-3)


@pytest.mark.parametrize(("each", "held"), [(4, 4.0), (1, 1.0), (10 / 3, 10 / 3)])
def test_the_rate_is_that_of_updates_not_of_messages(each: float, held: float) -> None:
    source = (np.arange(600) / each).astype(int)
    values = np.random.default_rng(3).normal(size=(600, 2))[source]
    values[100:300] = values[100]  # the robot rests
    time = np.arange(600) / RATE
    assert stream_rate(time, values) == pytest.approx(RATE / held, rel=0.01)


def test_states_that_are_repeated_now_and_then_or_nearly_always_have_the_messages_rate() -> None:
    time, values = np.arange(600) / RATE, np.random.default_rng(3).normal(size=(600, 2))
    values[20::20] = values[19:-1:20]
    assert stream_rate(time, values) == pytest.approx(RATE)
    assert stream_rate(time, np.zeros((600, 2))) == pytest.approx(RATE)
    creeping = np.round(np.random.default_rng(4).normal(size=(600, 2)).cumsum(axis=0) / 10.0)
    assert stream_rate(time, creeping) == pytest.approx(RATE)


def test_messages_that_come_in_bursts_give_the_samples_of_even_ones(panda: Robot) -> None:
    rng = np.random.default_rng(4)
    position, effort = sines(6000, 7), rng.normal(size=(6000, 7))
    time = np.arange(6000) / RATE
    stamps = np.maximum.accumulate(time + rng.exponential(3.0 / RATE, 6000)) + 1e-9 * time
    assert stream_rate(stamps, position) == pytest.approx(RATE, rel=1e-3)
    one_more = np.vstack([position[:1], position])
    assert stream_rate(np.append(-1e9, stamps), one_more) == pytest.approx(RATE, rel=1e-3)
    assert stream_rate(np.append(-1e9, time), one_more) == pytest.approx(RATE)
    stream, found = SampleStream(panda, SLOW), []
    for i in range(0, 6000, 25):
        part = slice(i, i + 25)
        found.append(
            stream.push_joint_states(stamps[part], panda.joint_names, position[part], effort[part])
        )
    samples = Samples.concatenate([part for part in found if len(part)])
    assert len(samples) > 0.95 * 6000 / SLOW.step
    assert stream.tally["joint states put on an even clock"] > 0.9 * 6000
    late = samples.select(slice(600, None))
    expected = gain() * np.stack([np.interp(late.time, time, column) for column in position.T], 1)
    speed = 0.4 * 2.0 * np.pi * HERTZ
    # some constant delay is left
    assert np.abs(late.position - expected).max() < 3.0 / RATE * speed


def test_time_that_goes_back_is_another_run(panda: Robot) -> None:
    stream = SampleStream(panda, SLOW)
    position = sines(1000, 7)
    push(stream, panda.joint_names, position, position, start=100.0)
    again = push(stream, panda.joint_names, position, position)
    assert stream.joint_counts.resets == 1
    assert again.time[-1] < 10.0
    assert (np.diff(again.time[again.time < 50.0]) > 0.0).all()


class Quadruped:
    """Solo12 in even motion, its feet changing at one second."""

    def __init__(self) -> None:
        self.robot = load_robot("solo12")
        self.time = np.arange(1500) / RATE
        self.joints = sines(1500, 12)
        self.position = np.stack([0.3 * self.time, 0.1 * self.time, 0.2 + 0.0 * self.time], axis=1)
        angle = 0.5 * self.time
        zero = np.zeros_like(angle)
        self.orientation = np.stack([zero, zero, np.sin(angle / 2), np.cos(angle / 2)], axis=1)
        linear = sines(1500, 3, seed=8)
        angular = np.tile([0.0, 0.0, 0.5], (1500, 1))
        self.twist = np.hstack([linear, angular])

    def feet(self, time: float) -> dict[str, bool]:
        return {"FL": time < 1.0, "FR": time >= 1.0, "HL": time >= 1.0, "HR": time < 1.0}

    def play(self, stream: SampleStream, *, odometry: bool = True, flip: bool = False) -> Samples:
        parts = []
        for i in range(0, 1500, 20):
            k = slice(i, i + 20)
            time = self.time[k]
            sign = np.where(flip & (np.arange(i, i + 20) % 3 == 0), -1.0, 1.0)[:, None]
            if odometry:
                base = BaseRecording(
                    time, self.position[k], sign * self.orientation[k], self.twist[k]
                )
                stream.push(Recording.of_sensors(base=base))
            flags = np.array([list(self.feet(t).values()) for t in time.tolist()])
            contacts = ContactRecording(time, tuple(self.feet(0.0)), flags)
            stream.push(Recording.of_sensors(contacts=contacts))
            parts.append(
                stream.push_joint_states(
                    self.time[i : i + 20],
                    self.robot.joint_names,
                    self.joints[i : i + 20],
                    self.joints[i : i + 20],
                )
            )
        whole = [part for part in parts if len(part)]
        return Samples.concatenate(whole) if whole else parts[0]


@pytest.mark.parametrize("flip", [False, True])
def test_a_floating_base_moves_in_step_with_its_joints(flip: bool) -> None:
    dog = Quadruped()
    stream = SampleStream(dog.robot, SLOW)
    samples = dog.play(stream, flip=flip)
    rows = np.rint(samples.time * RATE).astype(int)
    assert samples.base_pose is not None
    assert samples.base_twist is not None
    assert samples.base_acceleration is not None
    np.testing.assert_allclose(samples.position, gain() * dog.joints[rows], atol=1e-9)
    np.testing.assert_allclose(samples.base_pose[:, :3], dog.position[rows], atol=1e-6)
    overlap = np.abs(np.sum(samples.base_pose[:, 3:] * dog.orientation[rows], axis=1))
    np.testing.assert_allclose(overlap, 1.0, atol=1e-6)
    passed = np.array([gain()] * 3 + [1.0] * 3)  # the base turns evenly
    np.testing.assert_allclose(samples.base_twist, passed * dog.twist[rows], atol=1e-6)
    slope = passed * np.gradient(dog.twist, 1.0 / RATE, axis=0)[rows]
    # the reference's own differences are of second order
    np.testing.assert_allclose(samples.base_acceleration, slope, atol=1e-4)


def test_a_foot_counts_as_in_contact_a_margin_around_its_flag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sysid_core.online.contact_feed._UNKNOWN", 0.0)  # its feet slide
    dog = Quadruped()
    samples = dog.play(SampleStream(dog.robot, SLOW))
    assert samples.contacts is not None
    margin = SLOW.contact_margin - 1.0 / SLOW.output_rate  # less a sample's rounding
    assert (np.abs(samples.time - 1.0) < margin).any()
    for t, found in zip(samples.time.tolist(), samples.contacts, strict=True):
        flagged = np.array(list(dog.feet(t).values()))
        assert found[flagged].all()
        assert found.all() or abs(t - 1.0) > margin


def test_without_odometry_a_floating_base_gives_nothing_and_says_so() -> None:
    dog = Quadruped()
    stream = SampleStream(dog.robot, SLOW)
    assert len(dog.play(stream, odometry=False)) == 0
    assert stream.counts["joint states without odometry"] > 0


def test_odometry_that_is_none_is_counted() -> None:
    stream = SampleStream(load_robot("solo12"), SLOW)
    at, unit = np.zeros(1), np.array([[0.0, 0.0, 0.0, 1.0]])
    for base in (
        BaseRecording(at, np.zeros((1, 3)), 0.0 * unit, np.zeros((1, 6))),
        BaseRecording(at, np.full((1, 3), np.nan), unit, np.zeros((1, 6))),
    ):
        stream.push(Recording.of_sensors(base=base))
    assert stream.counts["odometry without a unit quaternion"] == 1
    assert stream.counts["odometry late or not finite"] == 1
    tail = ContactRecording(at, ("tail",), np.array([[True]]))
    stream.push(Recording.of_sensors(contacts=tail))
    assert stream.counts["contacts without the robot's feet"] == 1


@pytest.mark.parametrize(
    ("rate", "step"),
    [(1000.0, 10), (1000.2, 10), (999.0, 10), (1100.0, 11), (125.0, 2), (60.0, 1)],
)
def test_a_rate_that_was_measured_takes_whole_steps(rate: float, step: int) -> None:
    assert StreamConfig(rate=rate, sample_rate=100.0).step == step


def test_a_base_without_inertial_sensor_takes_half_the_cutoff_unless_told() -> None:
    dog, arm = load_robot("solo12"), load_robot("panda")
    described = dog.description.signals.cutoff
    assert described is not None
    assert stream_cutoff(dog, 1000.0) == described
    assert stream_cutoff(dog, 1000.0, inertial=False) == 0.5 * described
    assert stream_cutoff(dog, 1000.0, wanted=30.0, inertial=False) == 30.0
    assert stream_cutoff(dog, 60.0, inertial=False) == 12.0  # a fifth of the rate
    assert stream_cutoff(arm, 1000.0) == stream_cutoff(arm, 1000.0, inertial=False)


def test_legs_whose_description_names_no_cutoff_have_one_above_an_arms() -> None:
    dog, arm = load_robot("solo12"), load_robot("panda")
    plain = replace(dog.description.signals, cutoff=None)
    dog = Robot(replace(dog.description, signals=plain), dog.urdf)
    assert stream_cutoff(dog, 1000.0) == 4.0 * stream_cutoff(arm, 1000.0)
    assert stream_cutoff(dog, 1000.0, inertial=False) == 2.0 * stream_cutoff(arm, 1000.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rate", 0.0),
        ("cutoff", np.nan),
        ("cutoff", 250.0),
        ("sample_rate", -1.0),
        ("gap", 1.0),
        ("contact_margin", -0.1),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=name):
        StreamConfig(**{name: value})


def test_nothing_comes_of_a_joint_that_stood_while_others_moved(ur10: Robot) -> None:
    names, count = ur10.joint_names, 2000
    position, effort = sines(count, 6), sines(count, 6, seed=1)
    position[800:1300, 2] = position[800, 2]
    stream = SampleStream(ur10, SLOW)
    samples = push(stream, names, position, effort)
    reach = support(RATE, SLOW.cutoff) / RATE
    inside = (samples.time > 810 / RATE - reach) & (samples.time < 1300 / RATE + reach)
    assert not inside.any()
    expected = gain() * sines(count, 6)[np.rint(samples.time * RATE).astype(int)]
    np.testing.assert_allclose(samples.position, expected, atol=2e-3)
    assert stream.joint_counts.repeated > 480
    (text,) = map(str, stream.take_diagnostics())
    assert text.startswith(f"{names[2]}: its position stood")


def test_messages_with_a_lost_effort_of_a_leg_are_left_out_and_told() -> None:
    robot = load_robot("solo12")
    names, count = robot.joint_names, 2000
    stream = SampleStream(robot, SLOW)
    effort = sines(count, 12, seed=1) + np.random.default_rng(0).normal(0.0, 0.01, (count, 12))
    effort[800:1300, 2] = effort[799, 2]
    time = np.arange(count) / RATE
    for k in range(0, count, 37):
        part = slice(k, k + 37)
        stream.push_joint_states(time[part], names, sines(count, 12)[part], effort[part])
    assert 490 < stream.joint_counts.repeated <= 500
    assert stream.joint_counts.received == count
    (text,) = (one for one in map(str, stream.take_diagnostics()) if "its effort" in one)
    assert text.startswith(f"{names[2]}: its effort stood")


@pytest.mark.parametrize("stamps", [np.zeros(3000), np.tile([0.0, 0.1], 1500)])
def test_odometry_whose_stamps_are_no_clocks_does_not_pile_up(stamps: FloatArray) -> None:
    stream = SampleStream(load_robot("solo12"), SLOW)
    base = BaseRecording(
        stamps,
        np.random.default_rng(0).normal(size=(3000, 3)),
        np.tile([0.0, 0.0, 0.0, 1.0], (3000, 1)),
        np.zeros((3000, 6)),
    )
    for first in range(0, 3000, 10):
        stream.push(Recording.of_sensors(base=base.select(slice(first, first + 10))))
    assert stream.counts["odometry late or not finite"] > 1900  # not waiting for their clock
