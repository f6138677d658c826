# SPDX-License-Identifier: Apache-2.0
"""Live sensors beside the joints': their recent rows, and up to when these are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.contacts.lateness import Lateness, late_sensors
from sysid_core.diagnostics import Diagnostic
from sysid_core.recording import BaseRecording, ContactRecording, Recording
from sysid_core.robot.model import Robot
from sysid_core.signals.buffer import RecentRows
from sysid_core.signals.inertial import INSTEAD, too_slow
from sysid_core.signals.live_arrivals import LiveArrivals
from sysid_core.signals.repeats import SPARE, LiveRepeats
from sysid_core.signals.rotation import continuous
from sysid_core.signals.sensors import SENSORS, Rows, Sensor

__all__ = ["PATIENCE", "SensorFeed"]

PATIENCE = 1.0
"""Time [s] that joint samples wait for odometry before the oldest are given up."""
_INERTIAL_PATIENCE = 0.1
"""Time [s] that joint samples wait for an inertial sensor that was there just now."""
_UPDATES = 5.0
"""Updates of odometry in the longest interruption that is interpolated."""
_UNIT = 1e-3
"""Deviation of a quaternion's size that rounding explains."""
_FIRST, _LONG, _MOST = 16, 0.2, 1000
"""Intervals between messages, and time [s], from which their period is told; intervals after which
it is told anyway."""
_TURN = slice(3, 7)
"""Columns of the quaternion in the odometry's rows."""


class _Clock:
    """Tells when odometry was taken whose stamps jitter; it waits until its period is known."""

    def __init__(self) -> None:
        self._arrivals: LiveArrivals | None = None
        self._waiting: list[Rows] = []

    def push(self, rows: Rows) -> Rows:
        """Take rows, and return those that are timed by now."""
        if self._arrivals is not None:
            return Rows(*self._arrivals.push(*rows))
        known = np.isfinite(rows.time) & np.isfinite(rows.values).all(axis=1)
        self._waiting.append(Rows(rows.time[known], rows.values[known]))
        time, values = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        steps = np.diff(time)
        if (len(steps) < _FIRST or steps.sum() < _LONG) and len(steps) < _MOST:
            return Rows(rows.time[~known], rows.values[~known])  # those are counted as they come
        self._waiting = []
        period = float(steps[steps <= _UPDATES * steps.mean()].mean())
        if not 0.0 < period < PATIENCE:  # these stamps are no clock's
            return Rows(time, values)
        self._arrivals = LiveArrivals(period, _UPDATES, judged=_TURN.stop)
        return Rows(*self._arrivals.push(time, values))


class SensorFeed:
    """Keeps the recent rows of a floating base's sensors; a fixed base has none.

    Odometry must be there; the other sensors improve on it while they are. Interruptions up to
    `longest` [s] are interpolated, of the inertial sensor up to the cut-off's period; readings
    that are slower than the cut-off [Hz] are not used. Messages are forgotten at the age `horizon`
    [s].
    """

    def __init__(
        self,
        robot: Robot,
        *,
        longest: float,
        horizon: float,
        cutoff: float,
        counts: Counter[str],
    ) -> None:
        self._counts, self._cutoff = counts, cutoff
        self.late = Lateness()  # By which messages were moved
        self._feet = tuple(contact.name for contact in robot.description.contacts)
        self._recent = {
            sensor.name: RecentRows(
                longest=1.0 / cutoff if sensor.name == "imu" else longest,
                horizon=horizon,
                flags=sensor.flags,
            )
            for sensor in SENSORS
            if robot.floating
        }
        # readings of a simulated base at rest repeat themselves, too: none of these is old
        period = longest / _UPDATES
        self._repeats = {
            "base": LiveRepeats(period, _UPDATES, positions=3),
            "imu": LiveRepeats(period, SPARE, positions=6),
        }
        self._begin()

    def reset(self) -> None:
        """Forget everything, as when time goes back."""
        for rows in self._recent.values():
            rows.reset()
        self._begin()

    def _begin(self) -> None:
        """Begin to follow odometry's clock and the sign of its quaternions."""
        self._clock = _Clock()
        self._turn = np.full(4, np.nan)

    def move(self, late: Lateness) -> None:
        """Let messages count as earlier from now on, those that were moved already by more."""
        self.late = self.late.plus(late)
        self.reset()

    def sensed(self, name: str) -> bool:
        """Whether a sensor has shown itself."""
        return name in self._recent and len(self._recent[name]) > 0

    def newest(self, name: str) -> float:
        """Return the time [s] of a sensor's newest row; −∞ without any."""
        return self._recent[name].newest if name in self._recent else -np.inf

    def push(self, messages: Recording) -> None:
        """Take messages of any sensors."""
        if not self._recent:
            return
        messages = self.late.undone(messages)
        base, contacts = messages.base, messages.contacts
        messages = replace(
            messages,
            base=None if base is None else self._with_orientation(base),
            contacts=None if contacts is None else self._of_feet(contacts),
        )
        for sensor in SENSORS:
            rows = sensor.rows(messages)
            if rows is None or not len(rows.time):
                continue
            recent = self._recent[sensor.name]
            if sensor.name == "base":
                turns = rows.values[:, _TURN]
                rows.values[:, _TURN] = continuous(np.vstack([self._turn, turns]))[1:]
                known = np.flatnonzero(np.isfinite(turns).all(axis=1))
                self._turn = turns[known[-1]].copy() if len(known) else self._turn
            if sensor.name in self._repeats:
                rows = self._new(sensor, rows)
            if sensor.name == "base":
                rows = self._clock.push(rows)
            left_out = recent.push(rows.time, rows.values)
            if left_out and sensor.messages:
                self._counts[f"{sensor.messages} late or not finite"] += left_out

    def _new(self, sensor: Sensor, rows: Rows) -> Rows:
        """Return the rows that do not only repeat the one before: a frozen sensor is silent."""
        new = self._repeats[sensor.name].find_new(rows.time, rows.values)
        self._counts[f"{sensor.messages} repeated"] += int((~new).sum())
        return Rows(rows.time[new], rows.values[new])

    def _with_orientation(self, base: BaseRecording) -> BaseRecording | None:
        """Return the odometry that has an orientation."""
        size = np.linalg.norm(base.orientation, axis=1)
        there = size > _UNIT
        self._counts["odometry without a unit quaternion"] += int((~there).sum())
        self._counts["odometry quaternions scaled to unit length"] += int(
            (np.abs(size[there] - 1.0) > _UNIT).sum()
        )
        if there.all():
            return base
        chosen = (
            values[there] for values in (base.time, base.position, base.orientation, base.twist)
        )
        return BaseRecording(*chosen)

    def _of_feet(self, contacts: ContactRecording) -> ContactRecording | None:
        """Return the contacts of the robot's feet, in its order."""
        found = contacts.of(self._feet)
        if found is None:
            self._counts["contacts without the robot's feet"] += len(contacts.time)
        return found

    def known_until(self, newest: float) -> float:
        """Return up to when joint samples, the newest of them given [s], need not wait."""
        if not self._recent:
            return np.inf
        inertial = self._recent["imu"].known_until
        waiting = inertial if inertial > newest - _INERTIAL_PATIENCE else np.inf
        return min(self._recent["base"].known_until, waiting)

    def at(self, time: FloatArray, rate: float) -> dict[str, FloatArray]:
        """Return the rows (m, nc) of the sensors that are there at times (m,) of a rate [Hz]."""
        found = {
            name: rows.at(time, rate=rate) for name, rows in self._recent.items() if len(rows)
        }
        if "imu" in found and self._slow is not None:
            del found["imu"]
        return found

    @property
    def _slow(self) -> Diagnostic | None:
        rate = self._recent["imu"].rate
        return too_slow(rate, self._cutoff) if np.isfinite(rate) else None

    def diagnostics(self, newest: float) -> Iterator[Diagnostic]:
        """Yield what is missing at present, the newest joint states given [s]."""
        if not self._recent:
            return
        if self._slow is not None:
            yield self._slow
        elif newest - self._recent["imu"].known_until > PATIENCE and self.sensed("imu"):
            message = "the IMU is silent, or repeats its last message"
            yield Diagnostic("imu_silent", message, hint=INSTEAD)
        yield from late_sensors(self.late)
        if newest - self._recent["base"].known_until > PATIENCE:
            yield Diagnostic(
                "base_missing",
                "joint states come without odometry of their time",
                hint="publish 'odom' (nav_msgs/Odometry) for the floating base, by the same clock",
            )
