# SPDX-License-Identifier: Apache-2.0
"""Odometry that is missing, misframed or malformed is found and said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.contacts.condition import condition_contacts
from sysid_core.contacts.odometry import check_odometry
from sysid_core.contacts.stream import ContactStream
from sysid_core.errors import DataError
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

DT = 0.01


def walk(n: int = 200, *, turn: float = 0.5, speed: float = 0.4) -> Samples:
    """Return a base that walks a curve with a swaying trunk; its joints stand still."""
    t = DT * np.arange(n, dtype=np.float64)

    def pose(at: float) -> pin.SE3:
        rotation = pin.rpy.rpyToMatrix(0.1 * np.sin(9 * at), 0.05 * np.cos(7 * at), turn * at + 1)
        shift = np.array([speed * at, 0.1 * np.sin(2 * at), 0.2 + 0.01 * np.sin(12 * at)])
        return pin.SE3(rotation, speed * shift)

    def twist(at: float) -> FloatArray:
        step = 1e-5
        return np.array(pin.log6(pose(at - step).actInv(pose(at + step))).vector / (2 * step))

    twists = np.array([twist(at) for at in t])
    rates = np.array([(twist(at + 1e-3) - twist(at - 1e-3)) / 2e-3 for at in t])
    zeros = np.zeros((n, 12))
    return Samples(
        time=t,
        position=zeros,
        velocity=zeros,
        acceleration=zeros,
        effort=zeros,
        base_pose=np.array([pin.SE3ToXYZQUAT(pose(at)) for at in t]),
        base_twist=twists,
        base_acceleration=rates,
    )


def kinds(samples: Samples) -> set[str]:
    return {finding.kind for finding in check_odometry(samples)}


def in_world(samples: Samples) -> Samples:
    rotations = [pin.XYZQUATToSE3(pose).rotation for pose in np.asarray(samples.base_pose)]
    turned = [
        np.concatenate([R @ twist[:3], R @ twist[3:]])
        for R, twist in zip(rotations, np.asarray(samples.base_twist), strict=True)
    ]
    return replace(samples, base_twist=np.array(turned))


def test_sound_odometry_gives_no_finding() -> None:
    assert kinds(walk()) == set()


def test_noise_of_a_good_estimator_gives_no_finding() -> None:
    rng = np.random.default_rng(1)
    samples = walk()
    pose = np.array(samples.base_pose)
    pose[:, :3] += 2e-4 * rng.normal(size=(len(pose), 3))
    twist = np.asarray(samples.base_twist) + 0.01 * rng.normal(size=(len(pose), 6))
    assert kinds(replace(samples, base_pose=pose, base_twist=twist)) == set()


@pytest.mark.parametrize("turn", [0.0, 0.5, -1.0])
def test_a_twist_in_the_world_frame_is_recognised(turn: float) -> None:
    findings = check_odometry(in_world(walk(turn=turn)))
    assert [finding.kind for finding in findings] == ["twist_in_world"]
    assert findings[0].fatal
    assert "world frame" in str(findings[0].diagnostic)
    assert "child frame" in str(findings[0].diagnostic)


def test_a_stream_tells_of_a_twist_in_the_world_frame_within_half_a_second(solo12: Robot) -> None:
    samples = in_world(walk())
    stream = ContactStream(solo12)
    fit = []
    for first in range(0, len(samples), 5):
        part = samples.select(slice(first, first + 5))
        kept, found = stream.push(part)
        fit.append(len(kept))
        fatal = [one.diagnostic for one in found if one.fatal]
        if fatal:
            break
    assert part.time[-1] - samples.time[0] < 0.5
    assert [one.kind for one in fatal] == ["twist_in_world"]
    assert fit[-1] == 0


def test_a_twist_that_fits_neither_frame_is_named() -> None:
    samples = walk()
    assert kinds(replace(samples, base_twist=-np.asarray(samples.base_twist))) == {
        "twist_disagrees"
    }


def test_a_quaternion_that_begins_with_w_is_recognised() -> None:
    samples = walk()
    pose = np.asarray(samples.base_pose)[:, [0, 1, 2, 6, 3, 4, 5]]
    (finding,) = check_odometry(replace(samples, base_pose=pose))
    assert finding.kind == "quaternion_order"
    assert finding.fatal
    assert "x, y, z, w" in str(finding.diagnostic)


def test_an_orientation_that_does_not_turn_with_the_base_is_named() -> None:
    samples = walk(speed=0.0, turn=1.0)
    pose = np.array(samples.base_pose)
    pose[:, 3:] = (0.0, 0.0, 0.0, 1.0)
    (finding,) = check_odometry(replace(samples, base_pose=pose))
    assert finding.kind == "twist_disagrees"
    assert "angular velocity" in str(finding.diagnostic)


def test_a_base_that_only_turns_says_nothing_about_the_frame_of_its_velocity() -> None:
    (finding,) = check_odometry(in_world(walk(speed=0.01)))
    assert finding.kind == "twist_disagrees"
    assert "angular velocity" in str(finding.diagnostic)
    still = walk(speed=0.01)
    resting = np.tile(np.asarray(still.base_pose)[0], (len(still), 1))
    twist = 0.01 * np.random.default_rng(2).normal(size=(len(still), 6))
    assert kinds(replace(still, base_pose=resting, base_twist=twist)) == set()


def test_missing_odometry_is_refused(solo12: Robot) -> None:
    with pytest.raises(DataError, match="odom"):
        condition_contacts(solo12, replace(walk(), base_pose=None))


def test_gaps_in_odometry_are_marked() -> None:
    samples = walk()
    twist = np.array(samples.base_twist)
    twist[50:60] = np.nan
    finding = check_odometry(replace(samples, base_twist=twist))[0]
    assert finding.kind == "base_missing"
    assert not finding.fatal
    np.testing.assert_array_equal(np.flatnonzero(finding.samples), np.arange(50, 60))


def test_quaternions_off_unit_length_are_found(solo12: Robot) -> None:
    samples = walk()
    pose = np.array(samples.base_pose)
    pose[10:20, 3:] *= 1.05
    findings = check_odometry(replace(samples, base_pose=pose))
    assert [f.kind for f in findings] == ["quaternion_norm"]
    assert findings[0].samples.sum() == 10
    pose[5, 3:] = 0.0
    with pytest.raises(DataError, match="quaternion"):
        condition_contacts(solo12, replace(samples, base_pose=pose))


def test_sign_flips_of_the_quaternion_are_found_and_harmless() -> None:
    samples = walk()
    pose = np.array(samples.base_pose)
    pose[70:, 3:] *= -1.0
    findings = check_odometry(replace(samples, base_pose=pose))
    assert [f.kind for f in findings] == ["quaternion_sign"]
    assert not findings[0].fatal
    assert "1 times" in str(findings[0].diagnostic)
