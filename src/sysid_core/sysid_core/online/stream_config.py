# SPDX-License-Identifier: Apache-2.0
"""How a live stream of messages becomes samples: rates, cut-off, gaps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import ParameterError
from sysid_core.robot.imu import described_cutoff
from sysid_core.robot.model import Robot
from sysid_core.settings import check_config, parameter
from sysid_core.signals.arrival import come_in_bursts, taken_times
from sysid_core.signals.cutoff import choose_cutoff, highest_cutoff
from sysid_core.signals.timing import estimate_clock, split_at_gaps

__all__ = [
    "TORQUE_LIMITS",
    "StreamConfig",
    "come_through_queue",
    "stream_cutoff",
    "stream_cutoffs",
    "stream_rate",
]

TORQUE_LIMITS = 2.0
"""Torques beyond so many times the limit are not measurements, live or in samples."""

_GAP = 5.0
"""Longest interruption that is interpolated by default, in periods."""

_LONGEST_STEP = 1.0
"""Interval of stamps [s] that is no robot's period."""

_UPDATES = 10
"""Joint states that differ from the one before, from which their rate is that of the sensors."""

_REST = 4.0
"""Usual numbers of rows for which a state stays the same before it is at rest rather than held."""

_REGULAR = 0.9
"""Share of held states that last for the usual number of rows or one more or less: what only seems
held, as rounded values that creep do, lasts as chance will have it [-]."""

_ROUNDED = 0.1
"""Share by which the clock of the stamps must differ from the states' rate to be another one."""

_FEWEST = 5
"""Periods between stamps that tell whether these are rounded."""

_SCATTER = 0.7
"""Part of the scatter by losses below which steps between stamps are those of rounding."""

_DEVIATIONS = 2.0
"""Standard deviations by which the scatter must be less than losses leave."""

_MEASURED = 0.02
"""Share by which a measured rate may be off; it must not make the sample rate fall a step."""


_ON_LEGS = 40.0
"""Cut-off [Hz] of robots in contact: their torques change as quickly as feet come and go."""


def stream_cutoff(
    robot: Robot, rate: float, *, wanted: float | None = None, inertial: bool = True
) -> float:
    """Return the cut-off [Hz] of a live stream of a rate [Hz], which knows no spectrum yet.

    By default the robot description's, or one for legs; half of it where a floating base's
    acceleration has to come from odometry, without an inertial sensor.
    """
    legs = _ON_LEGS if robot.floating and robot.description.contacts else None
    described = described_cutoff(robot.description, inertial=inertial, otherwise=legs)
    choice = choose_cutoff((), rate, wanted=wanted or described)
    return min(choice.cutoff, highest_cutoff(rate, live=True))


def stream_cutoffs(
    robot: Robot, rate: float, *, wanted: float | None, inertial: bool
) -> dict[str, float]:
    """Return both cut-offs of `StreamConfig`: for what comes, and without an inertial sensor."""
    return {
        "cutoff": stream_cutoff(robot, rate, wanted=wanted, inertial=inertial),
        "by_odometry": stream_cutoff(robot, rate, wanted=wanted, inertial=False),
    }


def come_through_queue(stamps: FloatArray) -> bool:
    """Whether messages with ascending stamps (n,) [s] come in bursts, for their mean interval."""
    run = _longest_run(stamps)
    return len(run) > 1 and come_in_bursts(run, float(run[-1] - run[0]) / (len(run) - 1))


def stream_rate(stamps: FloatArray, values: FloatArray) -> float:
    """Return the rate [Hz] at which values (n, nc) with ascending stamps (n,) [s] are updated.

    That is less than the messages' where a driver repeats each state until there is a new one.
    Stamps of messages that wait in a queue are seen through, and so are rounded ones, which
    several states may share.

    Raises
    ------
    DataError
        If the clock stands still.
    """
    same = np.diff(stamps, prepend=-np.inf) <= 0.0
    repeated = same & ~np.append(True, _changes(values))[: len(stamps)]
    if 2 * repeated.sum() > same.sum():  # messages that came twice, not rounded stamps
        stamps, values = stamps[~repeated], values[~repeated]
    held = _messages_per_update(values)
    if come_through_queue(stamps):
        taken = next(taken_times(_longest_run(stamps), _GAP), None)
        if taken is not None:
            return 1.0 / (taken.period * held)
    return _unrounded(estimate_clock(stamps).rate, _longest_run(stamps)) / held


def _unrounded(rate: float, stamps: FloatArray) -> float:
    """Return the rate [Hz] of states whose stamps (n,) [s] may be rounded to steps of a clock.

    Of periods that are lost by chance, a share 1 - 1/m, the steps from stamp to stamp scatter as
    a geometric distribution: mean m, variance m (m - 1). Rounding an even clock leaves them less.
    """
    steps = np.rint(np.diff(stamps) * rate)
    steps = steps[steps <= _GAP]
    if steps.sum() < _FEWEST:  # nor can fewer steps than that be rounded
        return rate
    mean = float(np.polyfit(np.arange(len(steps)), np.cumsum(steps), 1)[0])
    if mean < 1.0 - _ROUNDED:  # several states share a stamp
        return rate / mean
    if mean < 1.0 + _ROUNDED:
        return rate
    variance = mean * (mean - 1.0)
    chance = ((8.0 + 1.0 / variance) / len(steps)) ** 0.5  # standard deviation of the scatter
    least = min(_SCATTER, 1.0 - _DEVIATIONS * chance)
    return rate / mean if float(np.var(steps)) < least * variance else rate


def _changes(values: FloatArray) -> BoolArray:
    """Return which rows (n - 1,) of values (n, nc) differ from the one before."""
    known = np.isfinite(values)
    same = (values[1:] == values[:-1]) | ~(known[1:] & known[:-1])
    return np.asarray(~same.all(axis=1))


def _messages_per_update(values: FloatArray) -> float:
    """Return the usual number of rows (n, nc) of which all but the first repeat it.

    One row that is repeated now and then, and a robot that rests, change nothing.
    """
    length = np.diff(np.flatnonzero(_changes(values)))
    usual = float(np.median(length)) if len(length) else 1.0
    moving = length[length <= _REST * usual]
    regular = moving[np.abs(moving - usual) <= 1.0]
    if usual < 2.0 or len(regular) < max(_UPDATES, _REGULAR * len(moving)):
        return 1.0
    return float(regular.mean())


def _longest_run(stamps: FloatArray) -> FloatArray:
    runs = split_at_gaps(stamps, _LONGEST_STEP)
    return stamps[max(runs, key=lambda run: run.stop - run.start)] if runs else stamps


@dataclass(frozen=True)
class StreamConfig:
    """Settings of a live sample stream."""

    rate: float = 500.0  # [Hz] of the joint states
    cutoff: float = 10.0  # [Hz] of the low-pass that all signals share
    by_odometry: float = 0.0  # [Hz] without an inertial sensor that is usable; 0: the same
    gap: float = _GAP  # Longest interruption that is interpolated, in periods
    sample_rate: float = parameter(
        100.0,
        "Highest rate of the samples that are published [Hz]; a whole fraction of the joint "
        "states' is used. More of them cost the identifier time and say little new",
        range=(1.0, 10000.0),
        read_only=True,
    )
    contact_margin: float = parameter(
        0.02,
        "A foot counts as in contact this long before and after its contact, too [s]. More for "
        "contact sensors that lag",
        range=(0.0, 1.0),
        read_only=True,
    )

    def __post_init__(self) -> None:
        check_config(self)
        for name in ("rate", "cutoff"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ParameterError(f"{name} must be a positive number of Hz, got {value}")
        if self.cutoff >= 0.4 * self.rate:
            raise ParameterError(
                f"cutoff {self.cutoff:g} Hz must stay below 0.4 of the rate of {self.rate:g} Hz"
            )
        if not (np.isfinite(self.gap) and self.gap >= 1.5):
            raise ParameterError(f"gap must be at least 1.5 periods, got {self.gap}")

    @property
    def step(self) -> int:
        """Grid samples per sample that comes out."""
        return max(1, int(np.ceil((1.0 - _MEASURED) * self.rate / self.sample_rate)))

    @property
    def output_rate(self) -> float:
        """Rate of the samples that come out [Hz]."""
        return self.rate / self.step
