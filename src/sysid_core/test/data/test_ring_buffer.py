# SPDX-License-Identifier: Apache-2.0
"""The ring buffer keeps the last seconds, however long it runs."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.data.ring_buffer import RingBuffer
from sysid_core.errors import DataError
from sysid_core.recording import BaseRecording, ContactRecording, ImuRecording, Recording

NAMES = ("a", "b")


def batch(start: float, count: int = 10, names: tuple[str, ...] = NAMES) -> Recording:
    time = start + np.arange(count) / 100.0
    values = np.repeat(time[:, None], len(names), axis=1)
    return Recording(time, names, values, np.full_like(values, np.nan), values)


def sensors(time: float, wrenches: FloatArray | None = None) -> Recording:
    """Return one message of each sensor."""
    at = np.array([time])
    return Recording.of_sensors(
        base=BaseRecording(at, np.zeros((1, 3)), np.zeros((1, 4)), np.zeros((1, 6))),
        imu=ImuRecording(at, np.arange(3.0)[None], np.arange(3.0, 6.0)[None]),
        contacts=ContactRecording(
            at,
            ("left", "right"),
            np.array([[True, False]]),
            None if wrenches is None else wrenches[None],
        ),
    )


def test_only_the_last_seconds_stay() -> None:
    buffer = RingBuffer(1.0)
    for i in range(100):
        buffer.add(batch(0.1 * i))
        buffer.add(sensors(0.1 * i))
    recording = buffer.snapshot()
    assert 1.0 <= recording.time[-1] - recording.time[0] <= 1.1
    assert recording.velocity is None
    np.testing.assert_array_equal(recording.position[:, 0], recording.time)
    assert recording.base is not None
    assert len(recording.base.time) <= 12
    assert recording.contacts is not None
    assert len(recording.contacts.time) <= 12
    assert recording.imu is not None
    assert len(recording.imu.time) <= 12
    np.testing.assert_array_equal(recording.imu.angular_velocity[0], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(recording.imu.linear_acceleration[0], [3.0, 4.0, 5.0])


def test_contact_wrenches_stay_where_all_contacts_have_them() -> None:
    buffer = RingBuffer(10.0)
    buffer.add(batch(0.0))
    wrenches = np.array([np.arange(6.0), np.ones(6)])
    for i in range(3):
        buffer.add(sensors(0.1 * i, wrenches))
    contacts = buffer.snapshot().contacts
    assert contacts is not None
    assert contacts.wrenches is not None
    np.testing.assert_array_equal(contacts.wrenches[2], wrenches)
    buffer.add(sensors(0.3))
    contacts = buffer.snapshot().contacts
    assert contacts is not None
    assert contacts.wrenches is None


def test_it_stays_small_without_joint_states() -> None:
    buffer = RingBuffer(1.0)
    for i in range(1000):
        buffer.add(sensors(0.1 * i))
    buffer.add(batch(99.9))
    recording = buffer.snapshot()
    assert recording.base is not None
    assert recording.imu is not None
    assert recording.contacts is not None
    for companion in (recording.base, recording.imu, recording.contacts):
        assert len(companion.time) <= 12


def test_a_clock_that_goes_back_begins_anew() -> None:
    buffer = RingBuffer(10.0)
    buffer.add(batch(100.0))
    buffer.add(batch(1.0))
    assert buffer.snapshot().time[-1] < 2.0
    buffer.add(Recording.concatenate([batch(9.0), batch(0.5)]))
    np.testing.assert_array_equal(buffer.snapshot().time, batch(0.5).time)


def test_what_is_merely_late_costs_nothing() -> None:
    buffer = RingBuffer(10.0)
    for start in (1.0, 1.1, 1.08, 1.2):
        buffer.add(batch(start))
    assert len(buffer.snapshot()) == 40


def test_the_joints_of_several_drivers_are_kept_side_by_side() -> None:
    buffer = RingBuffer(10.0)
    for start in (0.0, 0.1):
        buffer.add(batch(start, names=("hand",)))
        buffer.add(batch(start + 0.002))
    recording = buffer.snapshot()
    assert recording.joint_names == ("hand", *NAMES)
    assert (np.diff(recording.time) > 0.0).all()
    hand, arm = recording.position[::2], recording.position[1::2]
    np.testing.assert_array_equal(hand[:, 0], recording.time[::2])
    np.testing.assert_array_equal(arm[:, 1:], recording.time[1::2, None] * np.ones(len(NAMES)))
    assert np.isnan(hand[:, 1:]).all()
    assert np.isnan(arm[:, 0]).all()
    assert recording.velocity is None


def test_who_hardly_says_anything_is_left_out() -> None:
    buffer = RingBuffer(10.0)
    buffer.add(batch(0.0, count=500))
    for k in range(20):
        buffer.add(batch(5.0 + 0.01 * k, count=1, names=(f"made_up_{k}",)))
    assert buffer.snapshot().joint_names == NAMES
    assert len(buffer.snapshot()) == 500


def test_an_empty_buffer_says_so() -> None:
    with pytest.raises(DataError, match="no joint states"):
        RingBuffer(1.0).snapshot()


def test_stamps_that_stand_still_do_not_fill_the_memory() -> None:
    buffer = RingBuffer(1.0)
    for _ in range(3000):
        buffer.add(batch(5.0, count=1))
        buffer.add(sensors(5.0))
    assert len(buffer.snapshot()) == 1000


def test_stamps_that_jump_do_not_empty_the_memory() -> None:
    """What is kept takes its room once: it does not grow again after each fault."""
    buffer = RingBuffer(2.0)
    for i in range(100):
        buffer.add(batch(10.0 + 0.1 * i))
    kept = len(buffer._joints._parts)
    for stamp in 10 * (0.0, 2.0**31 - 1.0, 5.0):
        buffer.add(batch(stamp, count=1))
        assert len(buffer.snapshot()) == 1
    assert len(buffer._joints._parts) == kept + 30
    for i in range(100):
        buffer.add(batch(20.0 + 0.1 * i))
    assert len(buffer._joints._parts) == kept
