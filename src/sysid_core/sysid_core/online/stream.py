# SPDX-License-Identifier: Apache-2.0
"""From live messages to samples: short buffers through the same steps as a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.contacts.feet import ContactConfig
from sysid_core.diagnostics import Diagnostic
from sysid_core.online.columns import columns_of, no_samples
from sysid_core.online.contact_feed import ContactFeed
from sysid_core.online.sensor_feed import PATIENCE, SensorFeed
from sysid_core.online.stream_config import TORQUE_LIMITS, StreamConfig
from sysid_core.recording import Recording, Samples
from sysid_core.robot.conversion import JointConversion, are_others
from sysid_core.robot.model import Robot
from sysid_core.signals.buffer import GatedRows, StreamCounts
from sysid_core.signals.chain import (
    ChainConfig,
    Filtered,
    Fused,
    Grid,
    filter_grid,
    fuse,
    fuse_whole,
)
from sysid_core.signals.filters import support
from sysid_core.signals.inertial import FIRST, Biases
from sysid_core.signals.live_arrivals import LiveArrivals
from sysid_core.signals.outliers import HALF_WINDOW, unwrapped
from sysid_core.signals.plateaus import LIMIT, LiveEnds
from sysid_core.signals.repeats import LiveRepeats, LostEfforts, StandingJoints

__all__ = ["SampleStream"]

_RETURN = 5.0
"""Time [s] for which an inertial sensor that was refused must agree with the odometry again."""

_SPEED_LIMITS = 10.0
"""Changes of position beyond so many times the speed limit are none, noise and quanta included."""
_ROUNDING = 1e-3
"""Part of a period that rounding of stamps may amount to."""
_ORDERS = 16  # Of joints' names that are remembered; a robot has one for each of its drivers


class SampleStream:
    """Turns one robot's live messages into samples with a fixed, known delay.

    The last rows of every source are kept, as many as the filter reaches over; whenever a sample
    has its whole neighbourhood, they go through the steps of `sysid_core.signals.chain`, as a
    recording does. The delay is already taken off the samples' times.
    """

    def __init__(self, robot: Robot, config: StreamConfig) -> None:
        self.robot = robot
        self.config = config
        self.counts: Counter[str] = Counter()  # What came that was not as it should be, by fault
        self.tally: Counter[str] = Counter()  # What else happened to samples, by event
        self._conversion = JointConversion(robot)
        self._filter_by(config.cutoff)
        self._measured = np.flatnonzero(robot.actuated)
        nm = len(self._measured)
        limits = robot.limits
        self._joints = GatedRows(
            config.rate,
            2 * nm,
            gap=config.gap,
            upper=np.r_[np.full(nm, np.inf), TORQUE_LIMITS * limits.effort[self._measured]],
            max_rate=np.r_[_SPEED_LIMITS * limits.velocity[self._measured], np.full(nm, np.inf)],
        )
        # a leg's motor says what it gives, a sensor's range no more than what it measures
        most = limits.effort[self._measured] if robot.floating else np.full(nm, np.inf)
        self._ends = LiveEnds(config.rate, most)
        self._repeats = LiveRepeats(1.0 / config.rate, config.gap, positions=nm)
        self._standing = StandingJoints(nm)
        # where rows mix joints, one that is lost spoils all
        self._lost = LostEfforts(LIMIT * most) if robot.floating else None
        self._arrivals = LiveArrivals(1.0 / config.rate, config.gap, judged=nm)
        self._angles = np.full((1, nm), np.nan)
        longest = max(0.1, config.gap / config.rate)
        horizon = 2.0 * (PATIENCE + self._edge / config.rate)
        self._sensors = SensorFeed(
            robot, longest=longest, horizon=horizon, cutoff=config.cutoff, counts=self.counts
        )
        self._mounting = robot.imu_mounting
        self._contacts: ContactFeed | None = None
        if robot.floating and robot.description.contacts:
            contacts = ContactConfig(contact_margin=config.contact_margin)
            self._contacts = ContactFeed(robot, contacts, self.counts, self.tally)
        self._nothing = no_samples(robot)
        self._columns: dict[tuple[str, ...], IndexArray | None] = {}
        self._flagged: BoolArray  # (m,) Whether samples that wait have measured flags
        self._restart(reset=True)

    @property
    def delay(self) -> float:
        """Age [s] of a sample when it comes out."""
        margin = 0.0 if self._contacts is None else self._contacts.margin
        return (self._edge + HALF_WINDOW) / self.config.rate + margin

    @property
    def cutoff(self) -> float:
        """Cut-off of the low-pass [Hz]: less where an inertial sensor cannot be used."""
        return self._chain.cutoff

    def _filter_by(self, cutoff: float) -> None:
        self._chain = ChainConfig(self.config.rate, cutoff)
        self._edge = support(self.config.rate, cutoff)

    @property
    def contact_source(self) -> str:
        """Where contacts come from: ``topic``, ``torques``, or empty while not certain."""
        if self._contacts is None:
            return ""
        return self._contacts.source(self._sensors.newest("contacts"))

    @property
    def joint_counts(self) -> StreamCounts:
        """What the joint states have brought so far."""
        counts, repeats = self._joints.counts, self._repeats
        repeated = repeats.count + self._standing.count
        repeated += 0 if self._lost is None else self._lost.count
        return replace(
            counts,
            received=counts.received + repeated,
            repeated=repeated,
            lost=max(0, counts.lost - repeats.covered),
        )

    def push_joint_states(
        self,
        time: FloatArray,
        names: Sequence[str],
        position: FloatArray,
        effort: FloatArray,
    ) -> Samples:
        """Take joint states and return the samples that they complete.

        Names are those of the columns of positions (m, n) [rad] and efforts (m, n) as published,
        at times (m,) [s]; more than the robot's are ignored, and so are messages of others between
        its own. Gains and transmission are applied here.
        """
        columns = self._find_columns(tuple(names))
        if columns is None:
            own = self.robot.actuated_names, self.robot.description.names
            if np.isnan(self._angles).any() or not are_others(names, *own):
                self.counts["without the robot's joints"] += len(time)
            return self._nothing
        cutoff = self.config.by_odometry if self._by_odometry else self.config.cutoff
        if cutoff != self.cutoff:
            self._filter_by(cutoff)
            self._joints.reset()
            self._restart(reset=False)
        q, tau = self._conversion.convert(position[:, columns], effort[:, columns])
        q = unwrapped(np.vstack([self._angles, q]))[0][1:]
        known = q[np.isfinite(q).all(axis=1)]
        self._angles = known[-1:] if len(known) else self._angles
        parts: list[Samples] = []

        def finish(reset: bool) -> None:
            parts.append(self._complete(self._joints.newest))
            self._restart(reset=reset)

        clock = self._arrivals.clock
        stamps, rows = np.asarray(time, dtype=np.float64), np.hstack([q, tau])
        new = self._repeats.find_new(stamps, rows)
        new[new] = self._standing.take_out(rows[new])
        if self._lost is not None:
            new[new] = self._lost.take_out(tau[new])
        taken, rows = self._arrivals.push(stamps[new], rows[new])
        if self._arrivals.clock != clock and len(self._joints):  # times move by the delay
            finish(reset=False)
            self._joints.reset()
        if self._arrivals.clock != "stamps":
            self.tally["joint states put on an even clock"] += len(taken)
        self._joints.sort_in(taken, rows, finish)
        parts.append(self._complete(self._joints.known_until))
        whole = [part for part in parts if len(part)]
        return Samples.concatenate(whole) if len(whole) > 1 else (whole or parts)[0]

    def push(self, messages: Recording) -> None:
        """Take messages of other sensors, in any batches; joint states are left alone.

        The base's twist is in its own frame, inertial readings are in the sensor's own axes; the
        robot's description says how that is mounted.
        """
        self._sensors.push(messages)

    def take_diagnostics(self) -> tuple[Diagnostic, ...]:
        """Return what was noticed since the last call that someone should mend."""
        found = list(self._sensors.diagnostics(self._joints.newest))
        for standing in (self._standing, self._lost):
            if standing is not None:
                found += standing.take_diagnostics(self.robot.actuated_names)
        found += self._disagreement
        if self._contacts is not None:
            found += self._contacts.take_diagnostics()
        return tuple(found)

    def _find_columns(self, names: tuple[str, ...]) -> IndexArray | None:
        if names not in self._columns:
            if len(self._columns) >= _ORDERS:  # somebody makes names up
                self._columns.clear()
            self._columns[names] = columns_of(self.robot, names)
        return self._columns[names]

    def _restart(self, *, reset: bool) -> None:
        """Begin a run's grid anew; forget the sensors, too, where time went back."""
        self._next = self._edge
        self._on_grid = np.zeros((0, 3 * len(self._measured)))
        if reset:
            self._begin_fusing()
            self._disagreement: tuple[Diagnostic, ...] = ()
            self._sensors.reset()
            if self._contacts is not None:
                self._contacts.reset()

    def _index(self, time: float) -> int:
        """Return the last grid sample no later than a time [s]; −1 before the first."""
        elapsed = (time - self._joints.origin) * self.config.rate
        return int(np.floor(elapsed + _ROUNDING)) if elapsed >= 0.0 else -1

    def _complete(self, known: float) -> Samples:
        """Return the samples whose neighbourhood is there, joints being known until [s]."""
        if len(self._joints) == 0:
            return self._nothing
        newest = self._joints.newest
        ready = self._index(min(known, self._sensors.known_until(newest)))
        late = self._index(min(known, newest - PATIENCE))
        step = self.config.step
        count = (max(ready, late) - self._edge - self._next) // step + 1
        if count <= 0:
            return self._nothing
        first, last = self._next, self._next + (count - 1) * step
        self._next = last + step
        index = np.arange(first - self._edge, last + self._edge + 1, dtype=np.float64)
        grid = self._grid(self._joints.origin + index / self.config.rate)
        self._on_grid = self._on_grid[step * count :]
        return self._samples(grid)

    def _grid(self, time: FloatArray) -> Grid:
        """Interpolate what is new since the last stretch of grid, which this one overlaps."""
        nm = len(self._measured)
        new = time[len(self._on_grid) :]
        found = self._joints.at(new)
        at_end = 2.0 * self._ends.push(found)
        rows = self._on_grid = np.vstack([self._on_grid, np.hstack([found, at_end])])
        self._joints.forget(time[-1])
        position, effort, cut_off = (rows[:, k * nm : (k + 1) * nm] for k in range(3))
        joints = {"position": self._spread(position), "effort": self._spread(effort)}
        joints["cut_off"] = self._spread(cut_off, 0.0)
        sensors = self._sensors.at(time, self.config.rate)
        if self._contacts is not None:  # flags may come later: samples are joined
            feet = self.robot.description.contacts
            sensors.setdefault("contacts", np.full((len(time), len(feet)), np.nan))
        return Grid(time, joints, sensors)

    def _samples(self, grid: Grid) -> Samples:
        """Take a stretch of grid through the steps; return every `step`-th sample that is fit."""
        step = self.config.step
        filtered = filter_grid(grid, self._chain, every=step)
        if not self.robot.floating:
            return filtered.samples
        flags = grid.sensors.get("contacts")
        flagged = np.zeros(len(filtered.samples), dtype=np.bool_)
        if flags is not None:
            inner = flags[self._edge : len(flags) - self._edge : step]
            flagged = np.asarray(np.isfinite(inner).all(axis=1))
        if filtered.samples.base_pose is None:
            self.counts["joint states without odometry"] += step * len(filtered.samples)
            return self._nothing
        moved = np.isfinite(np.asarray(filtered.samples.base_acceleration)).all(axis=1)
        self.counts["joint states without odometry"] += step * int((~moved).sum())
        self._flagged = np.append(self._flagged, flagged[moved])
        fused = self._fused(filtered.select(moved))
        flagged, self._flagged = np.split(self._flagged, [len(fused.samples)])
        missing = len(fused.samples)
        if filtered.readings is not None:
            missing = int(np.isnan(filtered.readings.specific_force[moved]).any(axis=1).sum())
        self._count_inertial(fused, missing)
        self._judge_inertial(fused)
        self._biases = fused.biases
        if self._contacts is None:
            return fused.samples
        inertial = 2 * fused.used > len(fused.samples)
        samples = self._contacts.condition(fused.samples, flagged, inertial)
        if (late := self._contacts.late).matters:  # what is known of sensors is of other times
            self._sensors.move(late)
            self._begin_fusing()
        return samples

    def _begin_fusing(self) -> None:
        self._biases = Biases()
        self._flagged = np.zeros(0, dtype=np.bool_)
        self._first: list[Filtered] | None = []  # Until biases are known
        self._by_odometry = False  # Whether the inertial sensor is not the base's
        self._contrary = 0  # Samples on end that say otherwise

    def _fused(self, filtered: Filtered) -> Fused:
        """Fuse sensors; the first samples with inertial readings wait until biases are known."""
        rate = self.config.output_rate
        if self._first is None or (filtered.readings is None and not self._first):
            return fuse(filtered, self._mounting, self._biases, rate)
        self._first.append(filtered)
        if sum(len(part.samples) for part in self._first) < FIRST * rate:
            return Fused(self._nothing, self._biases, 0, None, None)
        whole, self._first = Filtered.concatenate(self._first), None
        return fuse_whole(whole, self._mounting, rate)

    def _judge_inertial(self, fused: Fused) -> None:
        """Let the cut-off be that of odometry from now on, or no longer, if the sensor says so."""
        refused = fused.diagnostic is not None and not fused.used
        contrary = fused.used > 0 if self._by_odometry else refused
        self._contrary = self._contrary + len(fused.samples) if contrary else 0
        span = _RETURN if self._by_odometry else FIRST
        if self.config.by_odometry and self._contrary >= span * self.config.output_rate:
            self._by_odometry, self._contrary = not self._by_odometry, 0

    def release(self) -> Samples:
        """Return the samples that wait until sensors are known to be on time."""
        held = [] if self._contacts is None else self._contacts.release()
        return Samples.concatenate(held) if held else self._nothing

    def _count_inertial(self, fused: Fused, missing: int) -> None:
        self._disagreement = fused.diagnostics
        self.tally["samples by imu"] += fused.used
        if fused.diagnostic is not None:
            self.counts["samples with an implausible imu"] += len(fused.samples) - fused.used
        elif self._sensors.sensed("imu"):
            self.counts["samples without imu"] += missing

    def _spread(self, values: FloatArray, others: float = np.nan) -> FloatArray:
        """Put columns of the measured joints where the robot has them, and `others` elsewhere."""
        if len(self._measured) == len(self.robot.joint_names):
            return values
        full = np.full((len(values), len(self.robot.joint_names)), others)
        full[:, self._measured] = values
        return full
