# SPDX-License-Identifier: Apache-2.0
"""The reference motion: trajectories that replace each other smoothly, and rest in between."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sysid_controller.laws import Motion
from sysid_controller.trajectory import (
    Quintics,
    derive_accelerations,
    derive_velocities,
    rest,
)
from sysid_controller.verdict import ACCEPTED, Verdict, refused
from sysid_core.recording import FloatArray
from sysid_core.robot.model import Limits

__all__ = ["Reference", "TrajectoryPoints"]

_MOST_WAITING = 100
_LONGEST_LEAD = 60.0
_CLOSEST_POINTS = 1e-6
_SAMPLES_PER_SEGMENT = 8
_POSITION_TOLERANCE = 1e-3
_SAMPLES_PER_FADE = 33
_VELOCITY_TOLERANCE = 1.01
_FADE_SPEED = 1.5  # [-] of the velocity limit, while two references are joined
_USUAL_VELOCITY = 1.0


@dataclass(frozen=True, eq=False)
class TrajectoryPoints:
    """A trajectory as it was received.

    Attributes
    ----------
    joint_names : tuple[str, ...]
    start : float or None [s]
        Time that the points count from; None: now.
    time : (n,) [s]
        Of each point from the start.
    position : (n, k) [rad]
    velocity, acceleration : (n, k) or None [rad/s, rad/s²]
    """

    joint_names: tuple[str, ...]
    start: float | None
    time: FloatArray
    position: FloatArray
    velocity: FloatArray | None = None
    acceleration: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class _Track:
    """One trajectory from `begin` on, with the difference to its forerunner fading away."""

    begin: float
    path: Quintics
    difference: Quintics | None

    def at(self, time: float) -> Motion:
        motion = self.path.at(time)
        if self.difference is None or time >= self.difference.end:
            return motion
        return _add(motion, self.difference.at(time))

    @property
    def end(self) -> float:
        faded = -np.inf if self.difference is None else self.difference.end
        return max(self.path.end, faded)


def _add(a: Motion, b: Motion) -> Motion:
    return Motion(
        a.position + b.position, a.velocity + b.velocity, a.acceleration + b.acceleration
    )


def _subtract(a: Motion, b: Motion) -> Motion:
    return Motion(
        a.position - b.position, a.velocity - b.velocity, a.acceleration - b.acceleration
    )


class Reference:
    """What the robot is to do at any time.

    Parameters
    ----------
    joint_names : tuple[str, ...]
        Actuated joints, the order of all results.
    limits : Limits
        Of these joints.
    handover_time : float [s]
        Shortest time in which a difference between two references fades away.
    start_tolerance : float [rad]
        Largest such difference.
    aliases : Mapping[str, str], optional
        Other names of joints → their names.
    """

    def __init__(
        self,
        joint_names: tuple[str, ...],
        limits: Limits,
        *,
        handover_time: float,
        start_tolerance: float,
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        self.joint_names = joint_names
        self.limits = limits
        self.handover_time = handover_time
        self.start_tolerance = start_tolerance
        self._aliases = dict(aliases or {})
        self._tracks: list[_Track] = []
        self._bridge: Quintics | None = None

    @property
    def known(self) -> bool:
        """Whether there is anything to follow or hold."""
        return bool(self._tracks)

    def clear(self) -> None:
        """Forget everything; there is no reference until `hold`."""
        self._tracks.clear()
        self._bridge = None

    def hold(self, position: FloatArray) -> None:
        """Drop all trajectories and stay at a position (na,) [rad]."""
        still = rest(position.copy())
        path = Quintics(np.array([-np.inf]), *(part[None] for part in still))
        self._tracks = [_Track(-np.inf, path, None)]
        self._bridge = None

    def rejoin(self, now: float, position: FloatArray, velocity: FloatArray) -> None:
        """Start from a measured motion and return to the reference gradually."""
        self.sample(now)
        measured = Motion(position, velocity, np.zeros_like(position))
        self._bridge = self._fade(now, _subtract(measured, self._tracks[0].at(now)))

    def moving(self, now: float) -> bool:
        """Whether a trajectory or the return to one is under way or to come."""
        if not self._tracks:
            return False
        bridged = self._bridge is not None and now < self._bridge.end
        return bridged or now < self._tracks[-1].end

    def sample(self, now: float) -> Motion:
        """Return the reference motion now; call it with times that do not go back.

        Raises
        ------
        IndexError
            If there is no reference yet; see `known`.
        """
        while len(self._tracks) > 1 and self._tracks[1].begin <= now:
            self._tracks.pop(0)
        motion = self._tracks[0].at(now)
        if self._bridge is not None:
            if now >= self._bridge.end:
                self._bridge = None
            else:
                motion = _add(motion, self._bridge.at(now))
        return motion

    def offer(self, points: TrajectoryPoints, now: float) -> Verdict:
        """Follow a trajectory, or say why not.

        Where the robot would be at rest before the first point, it moves there from the
        trajectory's start on; where it would be under way, the old reference goes on until the
        first point and the difference fades away then.
        """
        if not self._tracks:
            return refused("no joint states yet, so that there is nowhere to start from")
        reason, columns = self._columns(points)
        reason = reason or self._malformed(points, columns)
        if reason:
            return refused(reason)
        start = now if points.start is None else points.start
        time = start + points.time
        if time[-1] < now:
            return refused(f"ended {now - time[-1]:.3g} s ago; check the clocks of both sides")
        if time[0] > now + _LONGEST_LEAD:
            return refused(
                f"starts {time[0] - now:.3g} s from now, more than {_LONGEST_LEAD:g} s; "
                "check the clocks of both sides and use_sim_time"
            )
        return self._plan(points, columns, max(start, now), time, now)

    def _plan(
        self,
        points: TrajectoryPoints,
        columns: list[int],
        start: float,
        time: FloatArray,
        now: float,
    ) -> Verdict:
        takeover = max(float(time[0]), now)
        before = [t for t in self._tracks if t.begin <= takeover] or self._tracks[:1]
        if len(before) > _MOST_WAITING:
            return refused(f"more than {_MOST_WAITING} trajectories are waiting to start")
        position = points.position[:, columns]
        reason = self._beyond_range(position.min(axis=0), position.max(axis=0))
        if reason:
            return refused(reason)
        forerunner = before[-1]
        idle_from = max(start, forerunner.end)
        begin = idle_from if idle_from < time[0] - _CLOSEST_POINTS else takeover
        old = forerunner.at(begin)
        path = self._path(points, columns, time, begin, old)
        reason = self._out_of_limits(path)
        if reason:
            return refused(reason)
        gap = _subtract(old, path.at(begin))
        worst = int(np.argmax(np.abs(gap.position)))
        if abs(gap.position[worst]) > self.start_tolerance:
            return refused(
                f"starts {abs(gap.position[worst]):.3g} rad from where joint "
                f"'{self.joint_names[worst]}' is then, more than {self.start_tolerance:g}; "
                "start nearby or give the first point some time"
            )
        same = all(np.abs(part).max() < 1e-12 for part in gap)
        track = _Track(begin, path, None if same else self._fade(begin, gap))
        reason = self._unjoinable(track)
        if reason:
            return refused(reason)
        self._tracks = before + [track]
        return ACCEPTED

    def _path(
        self,
        points: TrajectoryPoints,
        columns: list[int],
        time: FloatArray,
        begin: float,
        old: Motion,
    ) -> Quintics:
        """Return the path through the points; where it begins before them, it leads up from `old`.

        Derivatives that are not given are derived; a path that does not end at rest is brought
        to rest.
        """
        position = points.position[:, columns]
        velocity = None if points.velocity is None else points.velocity[:, columns]
        acceleration = None if points.acceleration is None else points.acceleration[:, columns]
        joins = begin <= time[0]
        leads = begin < time[0]
        if leads:
            time = np.concatenate([[begin], time])
            position = np.vstack([old.position, position])
            velocity = None if velocity is None else np.vstack([old.velocity, velocity])
            if acceleration is not None:
                acceleration = np.vstack([old.acceleration, acceleration])
        if velocity is None:
            velocity = derive_velocities(time, position, old.velocity if joins else None)
        if acceleration is None:
            acceleration = derive_accelerations(time, position, velocity)
            if leads:
                acceleration[0] = old.acceleration
        return self._with_stop(time, position, velocity, acceleration)

    def _unjoinable(self, track: _Track) -> str:
        """Say why a track leaves the limits while the difference to its forerunner fades."""
        if track.difference is None:
            return ""
        times = np.linspace(track.begin, track.difference.end, _SAMPLES_PER_FADE)
        motions = [track.at(t) for t in times.tolist()]
        position = np.array([motion.position for motion in motions])
        reason = self._beyond_range(position.min(axis=0), position.max(axis=0))
        fastest = np.abs([motion.velocity for motion in motions]).max(axis=0)
        good = fastest <= self.limits.velocity * _FADE_SPEED
        if not reason and not good.all():
            j = int(np.argmin(good))
            reason = f"moves joint '{self.joint_names[j]}' at {fastest[j]:.4g} rad/s"
        return f"cannot be joined from the motion before: {reason}" if reason else ""

    def _with_stop(
        self,
        time: FloatArray,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
    ) -> Quintics:
        """Return the path; one that does not end at rest is brought to rest."""
        if velocity[-1].any() or acceleration[-1].any():
            stop = position[-1] + 0.5 * self.handover_time * velocity[-1]
            zero = np.zeros((1, len(stop)))
            time = np.append(time, time[-1] + self.handover_time)
            position = np.vstack([position, stop])
            velocity, acceleration = (np.vstack([v, zero]) for v in (velocity, acceleration))
        return Quintics(time, position, velocity, acceleration)

    def _fade(self, begin: float, gap: Motion) -> Quintics:
        """Return the motion (na,) that starts as the gap and ends at rest at zero."""
        # a quintic between rests is fastest at 1.875 of its mean speed; half the limit is for it
        speed = np.where(np.isfinite(self.limits.velocity), self.limits.velocity, _USUAL_VELOCITY)
        duration = max(
            self.handover_time, float((3.75 * np.abs(gap.position) / speed).max(initial=0.0))
        )
        ends = (np.vstack([part, np.zeros_like(part)]) for part in gap)
        return Quintics(np.array([begin, begin + duration]), *ends)

    def _columns(self, points: TrajectoryPoints) -> tuple[str, list[int]]:
        names = [self._aliases.get(name, name) for name in points.joint_names]
        missing = [name for name in self.joint_names if name not in names]
        if missing:
            return f"lacks the joints {', '.join(missing)}; give all actuated joints", []
        return "", [names.index(name) for name in self.joint_names]

    def _malformed(self, points: TrajectoryPoints, columns: list[int]) -> str:
        shape = (len(points.time), len(points.joint_names))
        if shape[0] == 0:
            return "has no points"
        for kind in ("position", "velocity", "acceleration"):
            values = getattr(points, kind)
            if values is None:
                continue
            if values.shape != shape:
                return f"needs {shape[1]} {kind} values at each of its {shape[0]} points"
            finite = np.isfinite(values[:, columns]).all(axis=0)
            if not finite.all():
                joint = self.joint_names[int(np.argmin(finite))]
                return f"has a {kind} of joint '{joint}' that is not finite"
        start = 0.0 if points.start is None else points.start
        if not np.isfinite(points.time).all() or not np.isfinite(start):
            return "has a time that is not finite"
        if points.time[0] < 0.0 or (np.diff(points.time) < _CLOSEST_POINTS).any():
            return "has times that do not ascend from 0 s on"
        return ""

    def _out_of_limits(self, path: Quintics) -> str:
        dense, speed = path.dense(_SAMPLES_PER_SEGMENT)
        if len(dense) == 0:
            return ""
        reason = self._beyond_range(dense.min(axis=0), dense.max(axis=0))
        if reason:
            return reason
        fastest = np.abs(speed).max(axis=0)
        good = fastest <= self.limits.velocity * _VELOCITY_TOLERANCE
        if not good.all():
            j = int(np.argmin(good))
            return (
                f"moves joint '{self.joint_names[j]}' at {fastest[j]:.4g} rad/s, its limit is "
                f"{self.limits.velocity[j]:.4g}; give it more time"
            )
        return ""

    def _beyond_range(self, low: FloatArray, high: FloatArray) -> str:
        lower, upper = self.limits.lower, self.limits.upper
        for values, good in (
            (low, (low >= lower - _POSITION_TOLERANCE) & np.isfinite(low)),
            (high, (high <= upper + _POSITION_TOLERANCE) & np.isfinite(high)),
        ):
            if not good.all():  # said this way, NaN from an overflow is bad too
                j = int(np.argmin(good))
                return (
                    f"takes joint '{self.joint_names[j]}' to {values[j]:.4g} rad, outside its "
                    f"limits [{lower[j]:.4g}, {upper[j]:.4g}]"
                )
        return ""
