# SPDX-License-Identifier: Apache-2.0
"""Standing feet tell by how much odometry and inertial sensor are late."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.contacts.lateness import FootTrack, Lateness, late_sensors, lateness

RATE = 100.0
FEET = 4


def track(
    odometry: float = 0.0,
    imu: float = 0.0,
    *,
    vigour: float = 1.0,
    noise: float = 0.003,
    slipping: float = 0.0,
    flags: float = 0.0,
    seconds: float = 20.0,
) -> FootTrack:
    """Return a base that sways over standing feet, as sensors that are late [s] show it."""
    rng = np.random.default_rng(7)
    time = np.arange(0.0, seconds, 1.0 / RATE)
    w = 2.0 * np.pi * rng.uniform(0.5, 3.0, (4, 6))
    phase, size = rng.uniform(0.0, 6.0, (4, 6)), vigour * rng.uniform(0.05, 0.15, (4, 6))

    def at(late: FloatArray) -> tuple[FloatArray, FloatArray]:
        angle = w * (time[:, None, None] - late) + phase
        return (size * np.sin(angle)).sum(axis=1), (size * w * np.cos(angle)).sum(axis=1)

    maps = rng.normal(size=(len(time), FEET, 3, 6)) * np.repeat([1.0, 0.3], 3)
    by_joints = -(maps @ at(np.zeros(6))[0][:, None, :, None])[..., 0]
    by_joints += noise * rng.normal(size=by_joints.shape)
    slips = rng.random((len(time), FEET, 1)) < slipping
    by_joints += np.where(slips, 0.5, 0.0)
    stands = rng.random((len(time), FEET)) < 0.7
    # feet step at random times; flags come as late as they are asked to
    steps = np.sort(rng.uniform(0.0, seconds, 4 * int(seconds)))
    loaded, said = (np.searchsorted(steps, time - lag) % 2 == 0 for lag in (0.0, flags))
    return FootTrack(
        time,
        stands,
        by_joints,
        maps,
        *at(np.repeat([odometry, imu], 3)),
        np.repeat(loaded[:, None], FEET, axis=1),
        np.repeat(said[:, None], FEET, axis=1).astype(float),
    )


@pytest.mark.parametrize("late", [(0.04, 0.0), (0.0, 0.03), (0.08, -0.02), (-0.05, 0.1)])
def test_each_sensor_is_as_late_as_it_is(late: tuple[float, float]) -> None:
    found = lateness(track(*late), inertial=True)
    assert found[:2] == pytest.approx(late, abs=1e-3)
    assert found.known


@pytest.mark.parametrize("late", [0.1, -0.3, 1.5, 0.01, 2.5])
def test_contact_flags_are_late_where_torques_say_so_beyond_doubt(late: float) -> None:
    found = lateness(track(0.04, flags=late), inertial=True)
    assert found.odometry == pytest.approx(0.04, abs=1e-3)
    assert found.contacts == pytest.approx(0.0 if abs(late) in (0.01, 2.5) else late, abs=0.021)
    unknown = track(flags=late)
    unknown = unknown._replace(flags=np.full_like(unknown.flags, np.nan))
    assert lateness(unknown, inertial=True).contacts == 0.0


def test_feet_that_slip_now_and_then_do_not_matter() -> None:
    found = lateness(track(0.04, 0.0, slipping=0.1), inertial=True)
    assert found[:2] == pytest.approx((0.04, 0.0), abs=2e-3)


def test_odometry_alone_is_late_as_a_whole() -> None:
    found = lateness(track(0.06, 0.06), inertial=False)
    assert found.odometry == pytest.approx(0.06, abs=1e-3)
    assert found.imu == 0.0


def test_sensors_on_time_stay_as_they_are() -> None:
    found = lateness(track(), inertial=True)
    assert not found.matters
    assert found.known
    assert late_sensors(found) == []


@pytest.mark.parametrize("late", [(0.7, 0.0), (-1.9, 0.0), (0.0, 1.3), (0.9, 0.9)])
def test_a_sensor_on_another_clock_is_found_wherever_it_is(late: tuple[float, float]) -> None:
    found = lateness(track(*late), inertial=True)
    assert found[:2] == pytest.approx(late, abs=1e-3)
    assert found.known
    assert not found.unfit


def test_odometry_that_is_found_at_no_time_contradicts_the_legs() -> None:
    found = lateness(track(2.7, 2.7), inertial=False)
    assert found.unfit
    assert not found.matters
    assert not lateness(track(0.1, vigour=1e-2), inertial=True).unfit  # hardly moves


def test_a_floor_that_moves_contradicts_nobody() -> None:
    given = track(0.05)
    found = lateness(given._replace(by_joints=given.by_joints + [0.8, 0.0, 0.0]), inertial=True)
    assert not found.unfit


def test_feet_that_slide_all_along_tell_nothing() -> None:
    found = lateness(track(0.01, slipping=0.9), inertial=True)
    assert not found.matters


def test_nothing_is_told_of_a_base_at_rest_nor_of_a_moment() -> None:
    for short in (track(0.04, vigour=1e-4), track(0.04, seconds=0.8)):
        found = lateness(short, inertial=True)
        assert not found.matters
        assert not found.known


def test_late_sensors_are_named_with_what_was_done() -> None:
    said = [str(one) for one in late_sensors(Lateness(0.031, -0.012))]
    assert "the odometry comes 31 ms late" in said[0]
    assert "inertial sensor's readings come 12 ms early" in said[1]
    assert all("mend the stamps" in one for one in said)
