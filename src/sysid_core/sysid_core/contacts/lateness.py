# SPDX-License-Identifier: Apache-2.0
"""By how much odometry, inertial sensor and contact flags come later than the joints.

A foot that stands still has no velocity, if the base's twist is of the same time as the joints'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.feet import FootMotion
from sysid_core.contacts.stance import base_maps
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.dynamics.contact_kinematics import BASE, ContactKinematics, configuration
from sysid_core.recording import Recording, Samples
from sysid_core.signals.switching import switching

__all__ = ["SPAN", "UNFIT", "FootTrack", "Lateness", "foot_track", "late_sensors", "lateness"]

_STRETCH = 1.0 / 16.0
"""Time [s] over which feet are averaged: a quarter of the period of a quick gait."""
_AROUND = 0.04  # Time [s] around a change of feet in which none is certain to stand
_PARTS = 16  # Parts that are left out in turn, to tell what of a result is chance
_FEWEST = 8  # Stretches of a part that can be judged by
_ROUNDS = 10  # In which lags settle, and feet that slip come to count for less
_SETTLED = 1e-4  # Step [s] at which they have
_USUAL = 2.0  # Median speeds from which a foot counts for less than half
_CERTAIN = 5.0  # Standard errors beyond which a sensor is late
_SHORTEST = 0.003
"""Time [s] below which stamps are as good as a driver's; feet that roll and give show a third."""
_LONGEST = 0.2  # Time [s] beyond which a gait of 2.5 Hz looks the same early or late
_FARTHEST, _APART = 2.0, 0.04  # [s] how far a sensor is looked for, and in what steps
_POOR = 0.1
"""Misfit from which a sensor is looked for at other times. Of good ones that of simulated walks is
below .01, and .15 and more of any that is off by .1 s or more."""
_UNIQUE = 0.5  # Share of the misfit at any other time that it must be below
_FLAGS_DIFFER = 0.05  # Share of flags that torques contradict from which other times are tried
_FLAGS_LEFT = 1.0 / 3.0  # Share of these that may be left at another time
_FLAGS_UNIQUE = 0.95
"""Share of what is left at any further time that it must be below: a steady gait looks alike after
each period, and flags of another foot half a period early and late."""
_UNFIT = 0.5  # Misfit from which odometry does not tell how the base moves
_MOVING = 0.02  # [m/s] Usual speed of a base, below which there is no misfit
_LEFT = 0.9  # Share of feet's squared speeds that lateness must not leave: others slide anyway
SPAN = 16.0  # Time [s] that live sensors are judged by
_RIDGE = 1e-9  # Share of the trace that keeps equations solvable
_SINGULAR = 1e6  # Condition from which one sensor's lateness looks like the other's


class Lateness(NamedTuple):
    """Time [s] by which sensors are late; 0 where that is little, or may be chance."""

    odometry: float = 0.0
    imu: float = 0.0
    known: bool = False  # Whether more would have been noticed
    unfit: bool = False  # Whether standing feet contradict the sensors, at any time
    contacts: float = 0.0

    @property
    def matters(self) -> bool:
        """Whether any sensor is late."""
        return bool(self.odometry or self.imu or self.contacts)

    def plus(self, other: Lateness) -> Lateness:
        """Return the sum of two."""
        return other._replace(
            odometry=self.odometry + other.odometry,
            imu=self.imu + other.imu,
            contacts=self.contacts + other.contacts,
        )

    def undone(self, messages: Recording) -> Recording:
        """Return messages whose stamps are as much earlier as they are late."""
        base, imu, contacts = messages.base, messages.imu, messages.contacts
        return replace(
            messages,
            base=base and replace(base, time=base.time - self.odometry),
            imu=imu and replace(imu, time=imu.time - self.imu),
            contacts=contacts and replace(contacts, time=contacts.time - self.contacts),
        )


UNFIT = Diagnostic(
    "odometry_unfit",
    "the odometry contradicts the legs: by both together, feet that stand would move",
    hint="check its clock and frames, and the names and signs of the joints",
    severity=Severity.ERROR,
)


class FootTrack(NamedTuple):
    """How feet move by the joints and by the base's twist, sample by sample."""

    time: FloatArray  # (n,) [s]
    stands: BoolArray  # (n, nc) feet that carry load, and do so for a while
    by_joints: FloatArray  # (n, nc, 3) [m/s] their velocity in the world while the base rests
    maps: FloatArray  # (n, nc, 3, 6) from the base's twist to the rest of it
    # twist, acceleration: (n, 6) of the base, as sensors tell them.
    twist: FloatArray
    acceleration: FloatArray
    # loaded, flags: (n, nc) feet that torques, and that flags say to bear the robot; NaN: unknown.
    loaded: BoolArray
    flags: FloatArray

    @staticmethod
    def concatenate(parts: Sequence[FootTrack]) -> FootTrack:
        """Return the track over several parts in the order of time."""
        return FootTrack(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    @property
    def beginning(self) -> FootTrack:
        """As much of it as live sensors are judged by."""
        shown = self.time <= self.time[0] + SPAN
        return FootTrack(*(each[shown] for each in self))

    def at(self, late: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the velocities (m, 3) of standing feet if twists are late (2,) [s].

        In the mean over short stretches, with what the linear and the angular part bring to it
        per second of lateness (m, 3, 2).
        """
        mean, stood = self.means(late)
        return mean[stood][..., 0], mean[stood][..., 1:]

    def means(self, late: FloatArray, columns: int = 3) -> tuple[FloatArray, BoolArray]:
        """Return what `at` does of all stretches and feet (s, nc, 3, 3), and who stood (s, nc).

        Of the velocity and its two changes, the first so many `columns`.
        """
        times = self.time[:, None] + np.repeat(late, 3)

        def then(values: FloatArray) -> FloatArray:
            pairs = zip(times.T, values.T, strict=True)
            return np.stack([np.interp(t, self.time, x) for t, x in pairs], axis=1)

        values = np.empty((*self.by_joints.shape, columns))
        values[..., 0] = self.by_joints + (self.maps @ then(self.twist)[:, None, :, None])[..., 0]
        if columns > 1:
            change = then(self.acceleration)[:, None, :, None]
            for k, part in enumerate((slice(3), slice(3, BASE)), 1):
                values[..., k] = (self.maps[..., part] @ change[:, :, part])[..., 0]
        stretch = np.floor(self.time / _STRETCH)
        start = np.flatnonzero(np.diff(stretch, prepend=-np.inf))
        count = np.add.reduceat(self.stands, start, axis=0, dtype=np.intp)
        standing = np.where(self.stands[..., None, None], values, 0.0)
        total = np.add.reduceat(standing, start, axis=0)
        return total / np.maximum(count, 1)[..., None, None], count > 0


def foot_track(
    kinematics: ContactKinematics,
    samples: Samples,
    motion: FootMotion,
    flagged: BoolArray | None = None,
) -> FootTrack:
    """Return how the feet of samples move; those that are not finite are left out.

    Contacts are measured where `flagged` (n,); default: everywhere, if there are any.
    """
    state = configuration(kinematics.robot, samples)
    known: BoolArray = np.asarray(np.isfinite(np.hstack(state)).all(axis=1))
    samples, motion = samples.select(known), motion.select(known)
    flags = np.full(motion.loaded.shape, np.nan)
    if samples.contacts is not None:
        measured = slice(None) if flagged is None else flagged[known]
        flags[measured] = samples.contacts[measured]
    q, twist, acceleration = state.q[known], state.v[known, :BASE], state.a[known, :BASE]
    maps = base_maps(q, motion.position + kinematics.reach)
    by_joints = motion.velocity - (maps @ twist[:, None, :, None])[..., 0]
    stands = motion.loaded & ~switching(samples.time, motion.loaded, _AROUND)[:, None]
    return FootTrack(
        samples.time, stands, by_joints, maps, twist, acceleration, motion.loaded, flags
    )


class _Fit(NamedTuple):
    """Lags (k,) [s] at which feet stand best, with their standard errors."""

    late: FloatArray
    error: FloatArray
    left: float  # [m²/s²] sum of feet's squared speeds that they leave, and
    whole: float  # without them
    bound: bool  # Whether any ran into its limit
    misfit: float  # [-] see `_misfit`


def lateness(track: FootTrack, *, inertial: bool, search: bool = True) -> Lateness:
    """Return by how much sensors and flags are late, and whether feet contradict the sensors.

    Linear velocities are the odometry's, and angular ones the inertial sensor's, if that is used.
    Where feet do not stand by them, one sensor, or both together, is looked for at other times if
    there is time for a `search`.
    """
    if len(track.time) < _PARTS:
        return Lateness()
    return _sensors_late(track, inertial, search)._replace(contacts=_flags_late(track.beginning))


def _sensors_late(track: FootTrack, inertial: bool, search: bool) -> Lateness:
    """Return the lateness of odometry and inertial sensor."""
    whose = np.eye(2) if inertial else np.ones((2, 1))
    found = _fitted(track, whose, np.zeros(whose.shape[1]))
    if found is None:
        return Lateness(unfit=_misfit(track, np.zeros(2)) > _UNFIT)
    poor = search and found.misfit > _POOR
    if poor and (start := _searched(track.beginning, whose)) is not None:
        found = _fitted(track, whose, start) or found
    certain = np.maximum(_CERTAIN * found.error, _SHORTEST) < np.abs(found.late)
    certain &= found.left < _LEFT * found.whole
    late = np.where(certain & (not found.bound), found.late, 0.0)
    if _misfit(track, whose @ late) > _UNFIT:
        return Lateness(unfit=True)
    known = bool((_CERTAIN * found.error < _SHORTEST).all())
    return Lateness(*late.tolist())._replace(known=known)


def _fitted(track: FootTrack, whose: FloatArray, start: FloatArray) -> _Fit | None:
    """Fit lags near a start (k,) [s] by weighted least squares (Gauss-Newton).

    None where feet do not tell.
    """
    late = start
    for _ in range(_ROUNDS):
        feet, change = track.at(whose @ late)
        if len(feet) < _FEWEST * _PARTS:
            return None
        speed = np.linalg.norm(feet, axis=1)
        weight = 1.0 / (1.0 + (speed / max(_USUAL * float(np.median(speed)), 1e-12)) ** 2)
        change = change @ whose
        weighed = np.swapaxes(change * weight[:, None, None], 1, 2)
        part = np.arange(len(feet)) * _PARTS // len(feet)
        A, b = np.zeros((_PARTS, len(late), len(late))), np.zeros((_PARTS, len(late)))
        np.add.at(A, part, weighed @ change)
        np.add.at(b, part, -(weighed @ feet[..., None])[..., 0])
        total = A.sum(axis=0) + _RIDGE * np.trace(A.sum(axis=0)) * np.eye(len(late))
        if not np.linalg.cond(total) < _SINGULAR:
            return None
        step = np.linalg.solve(total, b.sum(axis=0))
        late = np.clip(late + step, start - _LONGEST, start + _LONGEST)
        if np.abs(step).max() < _SETTLED:
            break
    without = np.linalg.solve(total - A, (b.sum(axis=0) - b)[..., None])[..., 0]
    error = np.sqrt((_PARTS - 1.0) * np.var(without, axis=0))
    left, whole = (weight @ (v**2).sum(axis=1) for v in (feet, track.at(np.zeros(2))[0]))
    bound = bool((np.abs(late - start) >= _LONGEST).any())
    return _Fit(late, error, left, whole, bound, _misfit(track, whose @ late))


def _misfit(track: FootTrack, late: FloatArray) -> float:
    """Return the lesser of `_misfits`; zero where the base hardly moves.

    Poor linear velocities, which feet mend, are no matter of time.
    """
    ratios = _misfits(track, late)
    return float(min(ratios[np.isfinite(ratios)], default=0.0))


def _misfits(track: FootTrack, late: FloatArray) -> FloatArray:
    """Return how much standing feet move if twists are late (2,) [s], of a base at rest's [-].

    The ratio of their usual squares (2,), each about its own mean, since a floor may move, too,
    and of those relative to each other; infinite where feet hardly do.
    """
    inside = (track.time + late.min() >= track.time[0]) & (
        track.time + late.max() <= track.time[-1]
    )
    track = track._replace(stands=track.stands & inside[:, None])
    still = track._replace(twist=np.zeros_like(track.twist))
    pairs = zip(*(_usual_squares(*each.means(late, 1)) for each in (track, still)), strict=True)
    ratios = [feet / by_joints if by_joints > _MOVING**2 else np.inf for feet, by_joints in pairs]
    return np.array(ratios)


def _usual_squares(mean: FloatArray, stood: BoolArray) -> tuple[float, float]:
    """Return the median squares [m²/s²] of `means` about their own, and about the other feet's."""
    feet, count = mean[..., 0], stood.sum(axis=1)
    middle = np.where(stood[..., None], feet, 0.0).sum(axis=1) / np.maximum(count, 1)[:, None]
    of_several = stood & (count > 1)[:, None]
    relative = (feet - middle[:, None])[of_several]
    return _median_square(feet[stood]), _median_square(relative)


def _median_square(vectors: FloatArray) -> float:
    """Return the median square of vectors (m, 3) about their median; 0 of a few."""
    if len(vectors) < _PARTS:
        return 0.0
    return float(np.median(np.sum((vectors - np.median(vectors, axis=0)) ** 2, axis=1)))


def _searched(track: FootTrack, whose: FloatArray) -> FloatArray | None:
    """Return at which lags (k,) [s] feet stand, of one sensor or of all alike.

    None if at none or at several.
    """
    lags = np.arange(-_FARTHEST, _FARTHEST + 0.5 * _APART, _APART)
    count = whose.shape[1]
    ways = np.unique(np.vstack([np.eye(count), np.ones(count)]), axis=0)
    starts = [lag * way for way in ways for lag in lags]
    for misfits in np.transpose([_misfits(track, whose @ start) for start in starts]):
        best = int(np.argmin(misfits))
        others = np.array([np.abs(start - starts[best]).max() > _LONGEST for start in starts])
        if misfits[best] < min(_POOR, _UNIQUE * misfits[others].min()):
            return starts[best]
    return None


def _flags_late(track: FootTrack) -> float:
    """Return by how much flags are late [s], by the load that torques tell; 0 unless certain."""
    time, loaded, flags = track.time, track.loaded, track.flags

    def compared(lag: float) -> tuple[int, int]:
        """Return how many flags torques contradict, as they are and if they are so late."""
        at = np.searchsorted(time, time + lag)
        inside = (at < len(time)) & (time + lag >= time[0])
        now, then = flags[inside], flags[at[inside]]
        known = np.isfinite(now) & np.isfinite(then)
        wrong = [np.sum((own != loaded[inside])[known]) for own in (now, then)]
        return int(wrong[0]), int(wrong[1])

    present = compared(0.0)[0]
    if not present > _FLAGS_DIFFER * max(1, int(np.isfinite(flags).sum())):
        return 0.0
    step = 0.5 * _APART
    lags = np.arange(-_FARTHEST, _FARTHEST + 0.5 * step, step)
    before, after = np.transpose([compared(lag) for lag in lags])
    left = np.where(2 * before > present, after / np.maximum(before, 1), 1.0)
    best = int(np.argmin(left))
    others = left[np.abs(lags - lags[best]) > _LONGEST]
    certain = left[best] < min(_FLAGS_LEFT, _FLAGS_UNIQUE * others.min())
    return float(lags[best]) if certain else 0.0


def late_sensors(late: Lateness) -> list[Diagnostic]:
    """Say which sensors come late, or early."""
    found = []
    for name, what, lag, judges in (
        ("odometry", "the odometry comes", late.odometry, "the standing feet"),
        ("imu", "the inertial sensor's readings come", late.imu, "the standing feet"),
        ("contacts", "contact flags come", late.contacts, "the torques"),
    ):
        if abs(lag) >= _SHORTEST:  # the sum of several may be less
            side = "late" if lag > 0.0 else "early"
            text = f"{what} {1e3 * abs(lag):.0f} ms {side}, judged by {judges}"
            found.append(Diagnostic(f"{name}_late", text, hint="moved by that; mend the stamps"))
    return found
