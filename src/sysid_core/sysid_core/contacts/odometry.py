# SPDX-License-Identifier: Apache-2.0
"""Checks of a floating base's odometry: frames, quaternions, agreement of pose and twist."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.noticed import Noticed, noticed
from sysid_core.recording import Samples
from sysid_core.signals.rotation import continuous, normalised, rotate_into_body

__all__ = ["check_odometry"]

_NORM_TOLERANCE = 1e-3
_SHORTEST = 10
_MOVING = 0.02
"""Slower bases [m/s] tell nothing about the frame of their twist."""
_CLEARLY = 0.5
"""A frame is mistaken if the other one's error is smaller by this factor."""
_WORST_DISAGREEMENT = 0.3
_AVERAGED = 0.1
"""Velocities are compared as means over this time [s]: a pose's derivative is noisy."""


def check_odometry(samples: Samples) -> tuple[Noticed, ...]:
    """Check the pose and twist of samples that have both, with no quaternion zero.

    Finds gaps, quaternions that are not normalised or flip their sign, and a twist that is given
    in the world frame or disagrees with the pose.
    """
    pose, twist = np.asarray(samples.base_pose), np.asarray(samples.base_twist)
    known = np.isfinite(pose).all(axis=1) & np.isfinite(twist).all(axis=1)
    found = []
    if not known.all():
        text = "{share} of the samples lack odometry; they are left out"
        found.append(noticed("base_missing", text, ~known))
    found += _check_quaternions(pose, known)
    return tuple(found + _check_twist(samples.time, pose, twist, known))


def _check_quaternions(pose: FloatArray, known: BoolArray) -> list[Noticed]:
    found = []
    norm = np.linalg.norm(pose[:, 3:], axis=1)
    off = known & (np.abs(norm - 1.0) > _NORM_TOLERANCE)
    if off.any():
        worst = float(np.abs(norm[off] - 1.0).max())
        found.append(
            noticed(
                "quaternion_norm",
                "{share} of the base's quaternions are not normalised (norm off by up "
                f"to {worst:.3g}); they are scaled to unit length",
                off,
            )
        )
    flipped = np.zeros_like(known)
    both = known[1:] & known[:-1]
    flipped[1:] = both & (np.sum(pose[1:, 3:] * pose[:-1, 3:], axis=1) < 0.0)
    if flipped.any():
        found.append(
            noticed(
                "quaternion_sign",
                f"the base's quaternion changes its sign {int(flipped.sum())} times; both signs "
                "are the same orientation, so poses are used as they are",
                flipped,
            )
        )
    return found


def _check_twist(
    time: FloatArray, pose: FloatArray, twist: FloatArray, known: BoolArray
) -> list[Noticed]:
    """Compare the twist with the pose's derivative in both frames."""
    if known.sum() < _SHORTEST:
        return []
    t, pose, twist = time[known], pose[known], twist[known]
    middle = slice(1, -1)
    span = (t[2:] - t[:-2])[:, None]
    # central differences over gaps and jumps of time say nothing
    usual = float(np.median(span))
    even = (span[:, 0] > 0.0) & (span[:, 0] < 1.5 * usual)
    if even.sum() < _SHORTEST:
        return []
    quaternion = continuous(normalised(pose[:, 3:]))
    velocity = (pose[2:, :3] - pose[:-2, :3]) / np.where(span > 0.0, span, usual)
    in_body = rotate_into_body(quaternion[middle], velocity)
    width = int(np.clip(_AVERAGED / max(0.5 * usual, 1e-9), 1, even.sum() // 2))
    given, in_body, velocity = (
        _averaged(values[even], width) for values in (twist[middle, :3], in_body, velocity)
    )
    speed = _rms(velocity)
    if speed < _MOVING:
        return []
    error_body, error_world = _rms(given - in_body), _rms(given - velocity)
    where = np.array(known)
    if error_world < _CLEARLY * error_body and error_body > 0.02 * speed:
        return [
            noticed(
                "twist_in_world",
                "the base's velocity looks as if it were given in the world frame (it differs "
                f"from the pose's derivative by {error_body:.3g} m/s in the base frame, by "
                f"{error_world:.3g} m/s in the world frame); REP-105 puts an odometry's twist "
                "into the child frame: rotate it there, or leave the twist out of the data so "
                "that it is derived from the pose",
                where,
                fatal=True,
            )
        ]
    if error_body > _WORST_DISAGREEMENT * speed:
        return [
            noticed(
                "twist_disagrees",
                f"the base's velocity differs from the pose's derivative by {error_body:.3g} m/s "
                f"at a mean speed of {speed:.3g} m/s; check the odometry's frames and clock",
                where,
            )
        ]
    return []


def _averaged(vectors: FloatArray, width: int) -> FloatArray:
    """Return the means over `width` successive rows."""
    total = np.cumsum(np.vstack([np.zeros((1, vectors.shape[1])), vectors]), axis=0)
    return np.asarray((total[width:] - total[:-width]) / width)


def _rms(vectors: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.sum(vectors**2, axis=1))))
