# SPDX-License-Identifier: Apache-2.0
"""From live messages to samples: names and units, uniform grid, causal filter, derivatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sysid_core.errors import ParameterError
from sysid_core.recording import BoolArray, FloatArray, Samples
from sysid_core.robot.conversion import JointConversion
from sysid_core.robot.model import Robot
from sysid_core.signals.companion import CompanionStream
from sysid_core.signals.fixed_lag import FixedLagLowPass
from sysid_core.signals.stream import StreamCounts, StreamSynchroniser

__all__ = ["SampleStream", "StreamSettings"]

_ODOMETRY = 13  # position 3, quaternion 4, twist 6
_MEASURED = 0.02
"""Share by which a measured rate may be off; it must not make the sample rate fall a step."""

_PATIENCE = 1.0
"""Time [s] of joint samples that wait for odometry before the oldest are given up."""


@dataclass(frozen=True)
class StreamSettings:
    """Settings of a live sample stream.

    Attributes
    ----------
    rate : float [Hz]
        Of the joint states.
    cutoff : float [Hz]
        Of the low-pass that all signals share.
    sample_rate : float [Hz]
        Highest rate of the samples that come out; a whole fraction of `rate` is used.
    gap : float
        Longest interruption that is interpolated, in periods.
    contact_margin : float [s]
        Samples closer than this to a change of contact are left out.
    """

    rate: float = 500.0
    cutoff: float = 10.0
    sample_rate: float = 100.0
    gap: float = 5.0
    contact_margin: float = 0.02

    def __post_init__(self) -> None:
        for name in ("rate", "cutoff", "sample_rate"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ParameterError(f"{name} must be a positive number of Hz, got {value}")
        if self.cutoff >= 0.4 * self.rate:
            raise ParameterError(
                f"cutoff {self.cutoff:g} Hz must stay below 0.4 of the rate of {self.rate:g} Hz"
            )
        if not (np.isfinite(self.gap) and self.gap >= 1.5):
            raise ParameterError(f"gap must be at least 1.5 periods, got {self.gap}")
        if not (np.isfinite(self.contact_margin) and self.contact_margin >= 0.0):
            raise ParameterError("contact_margin must be finite and not negative")

    @property
    def step(self) -> int:
        """Grid samples per sample that comes out."""
        return max(1, int(np.ceil((1.0 - _MEASURED) * self.rate / self.sample_rate)))

    @property
    def output_rate(self) -> float:
        """Rate of the samples that come out [Hz]."""
        return self.rate / self.step


class SampleStream:
    """Turns one robot's live messages into samples with a fixed, known delay.

    Every signal passes the same linear-phase low-pass; derivatives are those of the filtered
    positions. The delay is already taken off the samples' times.

    Parameters
    ----------
    robot : Robot
    settings : StreamSettings
    """

    def __init__(self, robot: Robot, settings: StreamSettings) -> None:
        self.robot = robot
        self.settings = settings
        self._conversion = JointConversion(robot)
        self._contact_names = tuple(contact.name for contact in robot.description.contacts)
        self.counts: Counter[str] = Counter()
        nj = len(robot.joint_names)
        self._measured = np.flatnonzero(robot.actuated)
        nm = len(self._measured)
        self._synchroniser = StreamSynchroniser(settings.rate, 2 * nm, gap=settings.gap)
        lag = max(4, round(settings.rate / settings.cutoff))
        self._filter = FixedLagLowPass(settings.cutoff, 1.0 / settings.rate, lag)
        longest = max(0.1, settings.gap / settings.rate)
        horizon = 2.0 * _PATIENCE + 2.0 * self.delay
        self._odometry = CompanionStream(_ODOMETRY, longest=longest, horizon=horizon)
        self._contacts = CompanionStream(
            max(1, len(self._contact_names)), longest=longest, horizon=horizon, flags=True
        )
        self._wrenches = CompanionStream(
            max(1, 6 * len(self._contact_names)), longest=longest, horizon=horizon
        )
        self._held: list[tuple[FloatArray, FloatArray]] = []
        self._columns: dict[tuple[str, ...], FloatArray | None] = {}
        self._phase = 0
        self._nj, self._nm = nj, nm
        self._quaternion: FloatArray | None = None

    @property
    def delay(self) -> float:
        """Age [s] of a sample when it comes out."""
        return self._filter.delay

    @property
    def joint_counts(self) -> StreamCounts:
        """What the joint states have brought so far."""
        return self._synchroniser.counts

    def push_joint_states(
        self,
        time: FloatArray,
        names: Sequence[str],
        position: FloatArray,
        effort: FloatArray,
    ) -> Samples:
        """Take joint states and return the samples that they complete.

        Parameters
        ----------
        time : (m,) [s]
        names : sequence of str
            Joints in the order of the columns; more than the robot's are ignored.
        position : (m, n) [rad]
        effort : (m, n)
            As published; gains and transmission are applied here.
        """
        columns = self._find_columns(tuple(names))
        if columns is None:
            self.counts["without the robot's joints"] += len(time)
            return self._empty()
        position, effort = position[:, columns], effort[:, columns]
        q, tau = self._conversion.convert(position, effort)
        batch = self._synchroniser.push(time, np.hstack([q, tau]))
        if batch.reset:
            self._restart()
        if len(batch.time) == 0:
            return self._empty()
        return self._filtered(batch.time, batch.values)

    def push_odometry(
        self, time: float, position: FloatArray, orientation: FloatArray, twist: FloatArray
    ) -> None:
        """Take the base's pose [m, quaternion xyzw] and twist [m/s, rad/s] in the base frame."""
        size = float(np.linalg.norm(orientation))
        if not 0.9 < size < 1.1:
            self.counts["odometry without a unit quaternion"] += 1
            return
        quaternion = orientation / size
        if self._quaternion is not None and quaternion @ self._quaternion < 0.0:
            quaternion = -quaternion
        row = np.concatenate([position, quaternion, twist])
        if self._odometry.push(time, row):
            self._quaternion = quaternion
        else:
            self.counts["odometry late or not finite"] += 1

    def push_contacts(
        self,
        time: float,
        active: Mapping[str, bool],
        wrenches: Mapping[str, FloatArray] | None = None,
    ) -> None:
        """Take contact flags by name, and wrenches (6,) [N, N·m] by name where measured."""
        if not set(self._contact_names) <= set(active):
            self.counts["contacts without the robot's feet"] += 1
            return
        flags = np.array([float(active[name]) for name in self._contact_names])
        if not self._contacts.push(time, flags):
            self.counts["contacts late or not finite"] += 1
        if wrenches is not None and set(self._contact_names) <= set(wrenches):
            self._wrenches.push(
                time, np.concatenate([wrenches[name] for name in self._contact_names])
            )

    def _find_columns(self, names: tuple[str, ...]) -> FloatArray | None:
        if names not in self._columns:
            renamed = [self.robot.description.names.get(name, name) for name in names]
            wanted = [self.robot.joint_names[j] for j in self._measured]
            complete = set(wanted) <= set(renamed)
            self._columns[names] = (
                np.array([renamed.index(name) for name in wanted]) if complete else None
            )
        return self._columns[names]

    def _restart(self) -> None:
        self._filter.reset()
        self._odometry.reset()
        self._contacts.reset()
        self._wrenches.reset()
        self._held.clear()
        self._quaternion = None

    def _filtered(self, time: FloatArray, values: FloatArray) -> Samples:
        nm = self._nm
        if not self.robot.floating:
            smooth = self._filter.push(time, values[:, :nm], values[:, nm:])
            return self._samples(smooth.time, smooth.position, smooth.velocity,
                                 smooth.acceleration, smooth.companions, None)  # fmt: skip
        self._held.append((time, values))
        time = np.concatenate([t for t, _ in self._held])
        values = np.concatenate([v for _, v in self._held])
        ready = time <= self._odometry.known_until
        late = time < time[-1] - _PATIENCE
        waiting = ~ready & ~late
        self.counts["joint states without odometry"] += int((late & ~ready).sum())
        self._held = [(time[waiting], values[waiting])] if waiting.any() else []
        time, values = time[ready], values[ready]
        if len(time) == 0:
            return self._empty()
        base = self._odometry.at(time)
        known = np.isfinite(base).all(axis=1)
        self.counts["joint states without odometry"] += int((~known).sum())
        time, values, base = time[known], values[known], base[known]
        if len(time) == 0:
            return self._empty()
        smooth = self._filter.push(
            time,
            np.hstack([values[:, :nm], base[:, 7:]]),
            np.hstack([values[:, nm:], base[:, :7]]),
        )
        pose = smooth.companions[:, nm:]
        pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
        motion = np.hstack([pose, smooth.position[:, nm:], smooth.velocity[:, nm:]])
        position, velocity, acceleration = (
            values[:, :nm] for values in (smooth.position, smooth.velocity, smooth.acceleration)
        )
        effort = smooth.companions[:, :nm]
        return self._samples(smooth.time, position, velocity, acceleration, effort, motion)

    def _samples(
        self,
        time: FloatArray,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        effort: FloatArray,
        motion: FloatArray | None,
    ) -> Samples:
        start = (-self._phase) % self.settings.step
        keep = np.zeros(len(time), dtype=bool)
        keep[start :: self.settings.step] = True
        self._phase = (self._phase + len(time)) % self.settings.step
        contacts, wrenches = self._contacts_at(time, keep)
        return Samples(
            time[keep],
            self._spread(position[keep]),
            self._spread(velocity[keep]),
            self._spread(acceleration[keep]),
            self._spread(effort[keep]),
            None if motion is None else motion[keep, :7],
            None if motion is None else motion[keep, 7:13],
            None if motion is None else motion[keep, 13:],
            contacts,
            wrenches,
        )

    def _contacts_at(
        self, time: FloatArray, keep: BoolArray
    ) -> tuple[BoolArray | None, FloatArray | None]:
        """Return flags and wrenches of the kept samples; drops those near a change from `keep`."""
        count = len(self._contact_names)
        if count == 0 or not self.robot.floating:
            return None, None
        margin = self.settings.contact_margin
        around = [self._contacts.at(time + shift) for shift in (0.0, -margin, margin)]
        known = np.isfinite(around[0]).all(axis=1)
        self.counts["samples without contacts"] += int((keep & ~known).sum())
        steady = known.copy()
        for other in around[1:]:
            both = np.isfinite(other).all(axis=1)
            steady &= ~both | (other == around[0]).all(axis=1)
        keep &= steady
        wrenches = self._wrenches.at(time)[keep].reshape(-1, count, 6)
        measured = bool(len(wrenches)) and bool(np.isfinite(wrenches).all())
        return around[0][keep] > 0.5, wrenches if measured else None

    def _spread(self, values: FloatArray) -> FloatArray:
        """Put columns of the measured joints where the robot has them, NaN elsewhere."""
        if self._nm == self._nj:
            return values
        full = np.full((len(values), self._nj), np.nan)
        full[:, self._measured] = values
        return full

    def _empty(self) -> Samples:
        none = np.zeros((0, self._nj))
        if not self.robot.floating:
            return Samples(np.zeros(0), none, none, none, none)
        count = len(self._contact_names)
        return Samples(
            np.zeros(0), none, none, none, none, np.zeros((0, 7)), np.zeros((0, 6)),
            np.zeros((0, 6)), np.zeros((0, count), dtype=bool) if count else None,
        )  # fmt: skip
