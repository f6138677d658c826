# SPDX-License-Identifier: Apache-2.0
"""Checks of a floating base's odometry: frames, quaternions, agreement of pose and twist."""

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.noticed import Noticed, noticed
from sysid_core.recording import Samples
from sysid_core.signals.rotation import angular_motion, continuous, normalised, rotate_into_body

__all__ = ["check_odometry"]

_NORM_TOLERANCE = 1e-3
_SHORTEST = 10
_MOVING = 0.02  # Slower bases [m/s] tell nothing about the frame of their twist
_TURNING = 0.2  # Bases that turn more slowly [rad/s] tell nothing about their orientation
_MARGIN = 0.02  # Share of the velocity by which a good estimator's twist may differ from its pose
_CLEARLY = 0.5  # A frame is mistaken if the other one's error is smaller by this factor
_WORST_DISAGREEMENT = 0.3
_AVERAGED = 0.1
"""Velocities are compared as means over this time [s]: a pose's derivative is noisy."""


def check_odometry(samples: Samples) -> tuple[Noticed, ...]:
    """Check the pose and twist of samples that have both, with no quaternion zero.

    Finds gaps, quaternions that are not normalised, flip their sign or begin with w, and a twist
    that is given in the world frame or disagrees with the pose.
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
    """Compare the twist with the pose's derivative, read in each of the usual conventions."""
    if known.sum() < _SHORTEST:
        return []
    t, pose, twist = time[known], pose[known], twist[known]
    span = (t[2:] - t[:-2])[:, None]
    # central differences over gaps and jumps of time say nothing
    usual = float(np.median(span))
    even = (span[:, 0] > 0.0) & (span[:, 0] < 1.5 * usual)
    if even.sum() < _SHORTEST:
        return []
    span = np.where(span > 0.0, span, usual)
    width = int(np.clip(_AVERAGED / max(0.5 * usual, 1e-9), 1, even.sum() // 2))
    velocity = (pose[2:, :3] - pose[:-2, :3]) / span

    def of(values: FloatArray) -> FloatArray:
        return _averaged(values[even], width)

    def in_body(quaternion: FloatArray) -> FloatArray:
        q = continuous(normalised(quaternion))
        rate = angular_motion(q[1:-1], (q[2:] - q[:-2]) / span, 0.0 * q[1:-1]).velocity
        return of(np.hstack([rotate_into_body(q[1:-1], velocity), rate]))

    given, body, world = of(twist[1:-1]), in_body(pose[:, 3:]), of(velocity)
    sizes = np.array([_rms(world), max(_rms(body[:, 3:]), _rms(given[:, 3:]))])
    tells = sizes >= (_MOVING, _TURNING)
    errors = _errors(given, body)
    if not tells.any() or (errors <= _MARGIN * sizes).all():
        return []
    where = np.array(known)
    first = _errors(given, in_body(pose[:, [4, 5, 6, 3]]))
    if (first < _CLEARLY * errors)[tells].all():
        return [
            noticed(
                "quaternion_order",
                "the base's orientation looks as if its quaternion were w, x, y, z (the twist "
                f"differs from the pose's derivative by {errors[0]:.3g} m/s and {errors[1]:.3g} "
                f"rad/s, so read by {first[0]:.3g} and {first[1]:.3g})",
                where,
                hint="publish x, y, z, w, as geometry_msgs/Quaternion names them",
                fatal=True,
            )
        ]
    in_world = _rms(given[:, :3] - world)
    if tells[0] and in_world < _CLEARLY * errors[0] and errors[0] > _MARGIN * sizes[0]:
        return [
            noticed(
                "twist_in_world",
                "the base's velocity looks as if it were given in the world frame (it differs "
                f"from the pose's derivative by {errors[0]:.3g} m/s in the base frame, by "
                f"{in_world:.3g} m/s in the world frame); REP-105 puts an odometry's twist "
                "into the child frame: rotate it there, or leave the twist out of the data so "
                "that it is derived from the pose",
                where,
                fatal=True,
            )
        ]
    off = tells & (errors > _WORST_DISAGREEMENT * sizes)
    names, units = ("velocity", "angular velocity"), ("m/s", "rad/s")
    return [
        noticed(
            "twist_disagrees",
            f"the base's {names[k]} differs from the pose's derivative by {errors[k]:.3g} "
            f"{units[k]} of {sizes[k]:.3g}; check the odometry's frames and clock",
            where,
        )
        for k in np.flatnonzero(off)
    ]


def _errors(given: FloatArray, expected: FloatArray) -> FloatArray:
    """Return the root mean squares (2,) of the differences of linear and angular velocities."""
    return np.array([_rms((given - expected)[:, part]) for part in (slice(3), slice(3, 6))])


def _averaged(vectors: FloatArray, width: int) -> FloatArray:
    """Return the means over `width` successive rows."""
    total = np.cumsum(np.vstack([np.zeros((1, vectors.shape[1])), vectors]), axis=0)
    return np.asarray((total[width:] - total[:-width]) / width)


def _rms(vectors: FloatArray) -> float:
    return float(np.sqrt(np.mean(np.sum(vectors**2, axis=1))))
