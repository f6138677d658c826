# SPDX-License-Identifier: Apache-2.0
"""Joint states that drivers publish in parts are joined, live and in recordings, alike."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.recording import Recording
from sysid_core.signals.parts import JoinedParts, NewestParts, joined

JOINTS = ("a", "b", "c")
ALIASES = {"left/b": "b"}
PERIOD = 0.01


def _motion(time: FloatArray, joints: int) -> FloatArray:
    return np.asarray(np.sin(time[:, None] + 0.3 * np.arange(joints)))


def _left(time: FloatArray) -> Recording:
    q = _motion(time, 2)
    return Recording(time, ("left/b", "a"), q[:, ::-1], None, 10.0 * q[:, ::-1])


def _right(time: FloatArray) -> Recording:
    q = _motion(time, 3)[:, 2:]
    return Recording(time, ("c",), q, None, 10.0 * q)


def _live(*parts: Recording, step: int = 1) -> Recording:
    """Push messages in the order of their stamps, so many of a driver at once."""
    join = JoinedParts(JOINTS, ALIASES)
    cut = [p.select(slice(k, k + step)) for p in parts for k in range(0, len(p), step)]
    pushed = [join.push(batch) for batch in sorted(cut, key=lambda batch: float(batch.time[0]))]
    return Recording.concatenate([batch for batch in pushed if len(batch.joint_names) == 3])


def _assert_right(found: Recording) -> None:
    assert [ALIASES.get(name, name) for name in found.joint_names] == list(JOINTS)
    assert found.effort is not None
    np.testing.assert_allclose(found.position, _motion(found.time, 3), atol=1e-4)
    np.testing.assert_allclose(found.effort, 10.0 * found.position, atol=1e-12)


@pytest.mark.parametrize(("every", "step"), [(1, 1), (1, 7), (3, 1)])
def test_parts_are_joined_at_the_stamps_of_the_slowest(every: int, step: int) -> None:
    time = PERIOD * np.arange(200.0)
    slow = time[::every] + 0.004
    found = _live(_left(time), _right(slow), step=step)
    _assert_right(found)
    times = slow if every > 1 else time  # of two that are as fast, the first
    assert set(found.time) <= set(times)
    assert len(found) > len(times) - 2 - 2 * step


def test_a_recording_in_parts_is_joined_as_live() -> None:
    time = PERIOD * np.arange(500.0)
    left, right = _left(time), _right(time + 0.004)
    stamps = np.sort(np.concatenate([left.time, right.time]))
    position, effort = np.full((2, len(stamps), 3), np.nan)
    for part, columns in ((left, [1, 0]), (right, [2])):
        at = np.ix_(np.searchsorted(stamps, part.time), np.array(columns))
        position[at] = part.position
        effort[at] = 10.0 * part.position
    recording = Recording(stamps, ("a", "left/b", "c"), position, None, effort)
    found, live = joined(recording, JOINTS, ALIASES), _live(left, right)
    _assert_right(found)
    assert len(live) > 495
    np.testing.assert_array_equal(found.time[:495], live.time[:495])
    np.testing.assert_array_equal(found.position[:495], live.position[:495])
    position[100], effort[100] = _motion(stamps[[100]], 3), 10.0 * _motion(stamps[[100]], 3)
    _assert_right(joined(recording, JOINTS, ALIASES))
    whole = recording.select(slice(0, 2))
    whole = Recording(whole.time, JOINTS, _motion(whole.time, 3), None, np.zeros((2, 3)))
    assert joined(whole, JOINTS, {}) is whole


def test_what_a_part_did_not_say_is_not_made_up() -> None:
    time = PERIOD * np.arange(300.0)
    silent = (time < 1.0) | (time > 2.0)
    found = _live(_left(time), _right(time[silent] + 0.004))
    _assert_right(found)
    assert not ((found.time > 1.02) & (found.time < 1.98)).any()
    assert found.time[-1] > 2.9


def test_angles_that_wrap_are_drawn_out_the_short_way() -> None:
    time = PERIOD * np.arange(100.0)
    turning = np.linspace(2.0, 5.0, 100)
    wrapped = (turning + np.pi) % (2.0 * np.pi) - np.pi
    left, right = _left(time), _right(time + 0.004)
    right = Recording(right.time, ("c",), wrapped[:, None], None, right.effort)
    found = _live(left, right).position[:, 2]
    steps = (np.diff(found) + np.pi) % (2.0 * np.pi) - np.pi
    np.testing.assert_allclose(steps, 3.0 / 99.0, atol=1e-9)


def test_a_clock_that_was_set_back_begins_anew() -> None:
    time = 100.0 + PERIOD * np.arange(50.0)
    join, found = JoinedParts(JOINTS, ALIASES), []
    for begin in (time, time - 90.0):
        for t in begin:
            found += [join.push(_left(np.array([t]))), join.push(_right(np.array([t + 0.004])))]
    stamps = np.concatenate([f.time for f in found if len(f.joint_names) == 3])
    assert (stamps > 50.0).sum() > 40
    assert (stamps < 50.0).sum() > 25  # the first few tell anew who is slower
    assert sum(later < sooner for sooner, later in pairwise(stamps)) == 1


def test_whole_states_and_those_that_lack_a_joint_pass_as_they_are() -> None:
    time = PERIOD * np.arange(20.0)
    join = JoinedParts(JOINTS, ALIASES)
    left = _left(time)
    assert join.push(left) is left  # nobody has told of the third joint
    whole = Recording(time, JOINTS, _motion(time, 3), None, _motion(time, 3))
    assert join.push(whole) is whole
    assert join.push(_right(time)).joint_names == ("c",)  # a driver of all joints is heard


def test_the_newest_of_each_joint_make_a_state_once_all_are_new() -> None:
    newest = NewestParts(JOINTS, ALIASES)
    left, none = ["left/b", "a"], np.zeros(0)
    assert newest.push(left, np.array([1.0, 2.0]), none) is not None  # refused elsewhere
    found = newest.push(["c"], np.array([3.0]), np.array([0.3]))
    assert found is not None
    assert found[0] == ["a", "left/b", "c"]
    np.testing.assert_array_equal(found[1][0], [2.0, 1.0, 3.0])
    np.testing.assert_array_equal(found[1][1], [np.nan, np.nan, 0.3])
    assert newest.push(["c"], np.array([4.0]), none) is None
    assert newest.push(["c"], np.array([5.0]), none) is None
    found = newest.push(left, np.array([6.0, 7.0]), none)
    assert found is not None
    np.testing.assert_array_equal(found[1][0], [7.0, 6.0, 5.0])
    whole = list(JOINTS), np.ones(3), np.ones(3)
    assert newest.push(*whole) == (whole[0], whole[1:])
