# SPDX-License-Identifier: Apache-2.0
"""The reference motion: trajectories that replace each other smoothly, and rest in between."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sysid_controller.planning import (
    CLOSEST_POINTS,
    Planner,
    Quintics,
    Reach,
    Waypoints,
    anywhere,
    rest,
)
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import ParameterError
from sysid_core.exchange import TrajectoryPoints
from sysid_core.excitation.fourier import States
from sysid_core.robot.limits import Limits

__all__ = ["HANDOVER_TIME", "START_TOLERANCE", "Reference"]

HANDOVER_TIME = 0.3  # Shortest time in which a difference between two references fades away [s]
START_TOLERANCE = 0.2  # Largest such difference [rad]
_MOST_WAITING = 100
_SAMPLES_PER_FADE = 33
_FADE_SPEED = 1.5  # [-] of the velocity limit, while two references are joined
_BRAKE_TIME = 0.15  # [s] in which joints that are told to stop come to rest
# A quintic from rest to rest is fastest at 1.875 of its mean speed; the rest is for the speed
# that it ends with. Tried in turn.
_APPROACH_TIMES = (2.2, 3.0, 4.5)


@dataclass(frozen=True, eq=False)
class _Track:
    """One trajectory from `begin` on, with the difference to its forerunner fading away."""

    begin: float
    path: Quintics
    difference: Quintics | None

    def at(self, time: float) -> States:
        motion = self.path.at(time)
        if self.difference is None or time >= self.difference.end:
            return motion
        return _add(motion, self.difference.at(time))

    @property
    def end(self) -> float:
        faded = -np.inf if self.difference is None else self.difference.end
        return max(self.path.end, faded)


def _add(a: States, b: States) -> States:
    return States(*(x + y for x, y in zip(a, b, strict=True)))


def _subtract(a: States, b: States) -> States:
    return States(*(x - y for x, y in zip(a, b, strict=True)))


class Reference:
    """What the robot's actuated joints are to do at any time; as for the `Planner`."""

    def __init__(
        self,
        joint_names: tuple[str, ...],
        limits: Limits,
        *,
        aliases: Mapping[str, str] | None = None,
        reach: Reach = anywhere,
    ) -> None:
        self.joint_names = joint_names
        self.limits = limits
        self._planner = Planner(joint_names, limits, aliases or {}, reach)
        self._speed = limits.velocity
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

    def hold(self, now: float, position: FloatArray) -> None:
        """Drop all trajectories and stay at a position (na,) [rad], or go to the nearest in range.

        From a position out of range no trajectory could ever start again.
        """
        inside = np.clip(position, self.limits.lower, self.limits.upper)
        path = Quintics(np.array([-np.inf]), *(part[None] for part in rest(inside)))
        self._tracks = [_Track(-np.inf, path, None)]
        self._bridge = None
        if (inside != position).any():
            self.rejoin(now, position, np.zeros_like(position))

    def brake(self, now: float, position: FloatArray, velocity: FloatArray) -> None:
        """Drop all trajectories and come to rest from a measured motion, then stay."""
        there = position + 0.5 * _BRAKE_TIME * velocity
        self.hold(now, np.clip(there, self.limits.lower, self.limits.upper))
        self.rejoin(now, position, velocity, _BRAKE_TIME)

    def rejoin(
        self, now: float, position: FloatArray, velocity: FloatArray, shortest: float = 0.0
    ) -> None:
        """Start from a measured motion and return to the reference gradually.

        It takes `shortest` [s] at least; by default the time of a handover.
        """
        self.sample(now)
        measured = States(position, velocity, np.zeros_like(position))
        gap = _subtract(measured, self._tracks[0].at(now))
        self._bridge = self._fade(now, gap, shortest or HANDOVER_TIME)

    def moving(self, now: float) -> bool:
        """Whether a trajectory or the return to one is under way or to come."""
        if not self._tracks:
            return False
        bridged = self._bridge is not None and now < self._bridge.end
        return bridged or now < self._tracks[-1].end

    def sample(self, now: float) -> States:
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

    def offer(self, points: TrajectoryPoints, now: float) -> Diagnostic | None:
        """Follow a trajectory, or say why not.

        Where the robot would be at rest before the first point, it moves there from the
        trajectory's start on; where it would be under way, the old reference goes on until the
        first point and the difference fades away then. A trajectory with a start in time that
        cannot be joined at its first point is joined at the first one that can be reached: whoever
        streams pieces of a long motion need not know where the robot is.
        """
        if not self._tracks:
            return Diagnostic(
                "refused", "no joint states yet, so that there is nowhere to start from"
            )
        try:
            waypoints = self._planner.waypoints(points, now)
            track = self._join(waypoints, now, timed=points.start is not None)
        except ParameterError as error:
            return Diagnostic("refused", str(error))
        before = self._before(track.begin)
        if len(before) > _MOST_WAITING:
            return Diagnostic(
                "refused", f"more than {_MOST_WAITING} trajectories are waiting to start"
            )
        self._tracks = before + [track]
        return None

    def replace(
        self, points: TrajectoryPoints, now: float, position: FloatArray, velocity: FloatArray
    ) -> Diagnostic | None:
        """As `offer`, but leave what is followed at once, from a measured motion."""
        before = self._tracks, self._bridge
        self.brake(now, position, velocity)
        refusal = self.offer(points, now)
        if refusal is not None:
            self._tracks, self._bridge = before
        return refusal

    def _before(self, time: float) -> list[_Track]:
        """Return the tracks that a new one from a time on leaves."""
        return [track for track in self._tracks if track.begin <= time] or self._tracks[:1]

    def _join(self, points: Waypoints, now: float, *, timed: bool) -> _Track:
        """Return the track that joins at the first point, or later where points are `timed`."""
        try:
            return self._join_first(points, now)
        except ParameterError:
            later = self._join_later(points) if timed else None
            if later is None:
                raise
            return later

    def _join_first(self, points: Waypoints, now: float) -> _Track:
        """Return the track that is at the first point in time."""
        takeover = max(float(points.time[0]), now)
        forerunner = self._before(takeover)[-1]
        begin = max(points.start, forerunner.end)
        if begin > points.time[0] - CLOSEST_POINTS:
            begin = takeover
        old = forerunner.at(begin)
        path = self._planner.path(points, begin, old, HANDOVER_TIME)
        gap = _subtract(old, path.at(begin))
        worst = int(np.argmax(np.abs(gap.position)))
        if abs(gap.position[worst]) > START_TOLERANCE:
            raise ParameterError(
                f"starts {abs(gap.position[worst]):.3g} rad from where joint "
                f"'{self.joint_names[worst]}' is then, more than {START_TOLERANCE:g}; "
                "start nearby or give the first point some time"
            )
        if all(np.abs(part).max() < 1e-12 for part in gap):
            return _Track(begin, path, None)
        track = _Track(begin, path, self._fade(begin, gap, HANDOVER_TIME))
        self._check_fade(track)
        return track

    def _join_later(self, points: Waypoints) -> _Track | None:
        """Return the track that joins at the first point that can be reached, None if none."""
        forerunner = self._tracks[-1]
        begin = max(points.start, forerunner.end)
        old = forerunner.at(begin)
        distance = np.abs(points.position - old.position) / self._speed
        available = points.time - begin
        for factor in _APPROACH_TIMES:
            needed = np.maximum(factor * distance.max(axis=1), HANDOVER_TIME)
            reachable = np.flatnonzero(available >= needed)
            if len(reachable) == 0:
                return None
            try:
                later = points.after(int(reachable[0]))
                path = self._planner.path(later, begin, old, HANDOVER_TIME)
            except ParameterError:
                continue
            return _Track(begin, path, None)
        return None

    def _check_fade(self, track: _Track) -> None:
        """Check the limits while the difference to the forerunner fades."""
        if track.difference is None:
            return
        times = np.linspace(track.begin, track.difference.end, _SAMPLES_PER_FADE)
        motions = [track.at(time) for time in times.tolist()]
        try:
            positions = np.array([motion.position for motion in motions])
            self._planner.check_range(positions)
            self._planner.check_reach(positions)
            velocities = np.array([motion.velocity for motion in motions])
            self._planner.check_speed(velocities, _FADE_SPEED)
        except ParameterError as error:
            raise ParameterError(f"cannot be joined from the motion before: {error}") from error

    def _fade(self, begin: float, gap: States, shortest: float) -> Quintics:
        """Return the motion (na,) that starts as the gap and ends at rest at zero."""
        # a quintic between rests is fastest at 1.875 of its mean speed; half the limit is for it
        slowest = float((3.75 * np.abs(gap.position) / self._speed).max(initial=0.0))
        duration = max(shortest, slowest)
        ends = (np.vstack([part, np.zeros_like(part)]) for part in gap)
        return Quintics(np.array([begin, begin + duration]), *ends)
