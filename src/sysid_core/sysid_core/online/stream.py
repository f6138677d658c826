# SPDX-License-Identifier: Apache-2.0
"""From live messages to samples: names and units, uniform grid, causal filter, derivatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.contacts import ContactConfig
from sysid_core.errors import ParameterError
from sysid_core.online.contact_feed import ContactFeed
from sysid_core.online.findings import FindingLog
from sysid_core.online.floating import PATIENCE, FloatingBase
from sysid_core.online.inertial import Readings
from sysid_core.recording import Samples
from sysid_core.robot.conversion import JointConversion
from sysid_core.robot.imu import described_cutoff
from sysid_core.robot.model import Robot
from sysid_core.signals.fixed_lag import FixedLagLowPass, SmoothedBatch
from sysid_core.signals.motion import BaseMotion
from sysid_core.signals.stream import StreamCounts, StreamSynchroniser

__all__ = ["SampleStream", "StreamConfig", "stream_cutoff"]

_MEASURED = 0.02
"""Share by which a measured rate may be off; it must not make the sample rate fall a step."""

_DEFAULT_CUTOFF = 10.0
"""Cut-off [Hz] where nothing else is known."""
_HIGHEST = 0.2
"""Share of the rate that the cut-off may reach."""


def stream_cutoff(
    robot: Robot, rate: float, *, wanted: float | None = None, inertial: bool = True
) -> float:
    """Return the cut-off [Hz] of a live stream.

    Parameters
    ----------
    robot : Robot
    rate : float [Hz]
        Of the joint states.
    wanted : float, optional [Hz]
        Default: the robot description's; half of it where a floating base's acceleration has to
        come from odometry.
    inertial : bool
        Whether the base has an inertial sensor.
    """
    described = described_cutoff(robot, inertial=inertial)
    return min(wanted or described or _DEFAULT_CUTOFF, _HIGHEST * rate)


@dataclass(frozen=True)
class StreamConfig:
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
        A foot counts as in contact this long before and after its contact, too.
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
    settings : StreamConfig

    Attributes
    ----------
    counts : Counter
        What came that was not as it should be, by fault.
    tally : Counter
        What else happened to samples, by event.
    """

    def __init__(self, robot: Robot, settings: StreamConfig) -> None:
        self.robot = robot
        self.settings = settings
        self._conversion = JointConversion(robot)
        self.counts: Counter[str] = Counter()
        self.tally: Counter[str] = Counter()
        self._log = FindingLog()
        nj = len(robot.joint_names)
        self._measured = np.flatnonzero(robot.actuated)
        nm = len(self._measured)
        self._synchroniser = StreamSynchroniser(settings.rate, 2 * nm, gap=settings.gap)
        lag = max(4, round(settings.rate / settings.cutoff))
        self._filter = FixedLagLowPass(settings.cutoff, 1.0 / settings.rate, lag)
        longest = max(0.1, settings.gap / settings.rate)
        horizon = 2.0 * PATIENCE + 2.0 * self._filter.delay
        self._base: FloatingBase | None = None
        self._contacts: ContactFeed | None = None
        if robot.floating:
            self._base = FloatingBase(
                robot,
                longest=longest,
                horizon=horizon,
                cutoff=settings.cutoff,
                rate=settings.output_rate,
                counts=self.counts,
                tally=self.tally,
            )
        if robot.floating and robot.description.contacts:
            self._contacts = ContactFeed(
                robot,
                ContactConfig(contact_margin=settings.contact_margin),
                longest=longest,
                horizon=horizon,
                counts=self.counts,
                tally=self.tally,
                log=self._log,
            )
        self._columns: dict[tuple[str, ...], FloatArray | None] = {}
        self._phase = 0
        self._nj, self._nm = nj, nm

    @property
    def delay(self) -> float:
        """Age [s] of a sample when it comes out."""
        return self._filter.delay + (0.0 if self._contacts is None else self._contacts.margin)

    @property
    def contact_source(self) -> str:
        """Where contacts come from: ``topic``, ``torques``, or empty while not certain."""
        return "" if self._contacts is None else self._contacts.source

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
        if self._base is not None:
            self._base.push_odometry(time, position, orientation, twist)

    def push_imu(
        self, time: float, angular_velocity: FloatArray, linear_acceleration: FloatArray
    ) -> None:
        """Take the inertial sensor's angular velocity (3,) [rad/s] and specific force (3,) [m/s²].

        Both in the sensor's own axes; the robot's description says how it is mounted.
        """
        if self._base is not None:
            self._base.push_imu(time, angular_velocity, linear_acceleration)

    def push_contacts(
        self,
        time: float,
        active: Mapping[str, bool],
        wrenches: Mapping[str, FloatArray] | None = None,
    ) -> None:
        """Take contact flags by name, and wrenches (6,) [N, N·m] by name where measured."""
        if self._contacts is not None:
            self._contacts.push(time, active, wrenches)

    def take_findings(self) -> tuple[str, ...]:
        """Return what was found since the last call that someone should mend; most are none."""
        troubles = () if self._base is None else self._base.troubles
        return (*troubles, *self._log.take())

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
        if self._base is not None:
            self._base.reset()
        if self._contacts is not None:
            self._contacts.reset()

    def _filtered(self, time: FloatArray, values: FloatArray) -> Samples:
        nm = self._nm
        if self._base is not None:
            return self._floating(self._base, time, values)
        return self._joints(self._thinned(self._filter.push(time, values[:, :nm], values[:, nm:])))

    def _floating(self, base: FloatingBase, time: FloatArray, values: FloatArray) -> Samples:
        nm = self._nm
        joined = base.join(time, values)
        if len(joined.time) == 0:
            return self._empty()
        joints, odometry, inertial = joined.joints, joined.odometry, joined.inertial
        smooth = self._thinned(
            self._filter.push(
                joined.time,
                np.hstack([joints[:, :nm], odometry[:, 7:], inertial[:, :3]]),
                np.hstack([joints[:, nm:], odometry[:, :7], inertial[:, 3:]]),
            )
        )
        twist, gyro = slice(nm, nm + 6), slice(nm + 6, nm + 9)
        pose = smooth.companions[:, nm : nm + 7]
        pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
        moved = base.motion(
            pose[:, 3:],
            BaseMotion(smooth.position[:, twist], smooth.velocity[:, twist]),
            Readings(
                smooth.position[:, gyro], smooth.velocity[:, gyro], smooth.companions[:, nm + 7 :]
            ),
        )
        samples = replace(
            self._joints(smooth),
            base_pose=pose,
            base_twist=moved.twist,
            base_acceleration=moved.acceleration,
        )
        return samples if self._contacts is None else self._contacts.condition(samples)

    def _joints(self, smooth: SmoothedBatch) -> Samples:
        signals = (smooth.position, smooth.velocity, smooth.acceleration, smooth.companions)
        position, velocity, acceleration, effort = (
            self._spread(signal[:, : self._nm]) for signal in signals
        )
        return Samples(smooth.time, position, velocity, acceleration, effort)

    def _thinned(self, smooth: SmoothedBatch) -> SmoothedBatch:
        """Return every `step`-th estimate."""
        start = (-self._phase) % self.settings.step
        self._phase = (self._phase + len(smooth.time)) % self.settings.step
        return SmoothedBatch(*(field[start :: self.settings.step] for field in smooth))

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
        count = len(self.robot.description.contacts)
        return Samples(
            np.zeros(0),
            none,
            none,
            none,
            none,
            np.zeros((0, 7)),
            np.zeros((0, 6)),
            np.zeros((0, 6)),
            np.zeros((0, count), dtype=bool) if count else None,
        )
