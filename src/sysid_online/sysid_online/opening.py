# SPDX-License-Identifier: Apache-2.0
"""A sample stream that opens itself as soon as the first messages tell the rate."""

from collections import Counter, deque
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import DataError, SysidError
from sysid_core.online.columns import columns_of, values_of
from sysid_core.online.stream import SampleStream
from sysid_core.online.stream_config import (
    StreamConfig,
    come_through_queue,
    stream_cutoffs,
    stream_rate,
)
from sysid_core.recording import Recording, Samples
from sysid_core.robot import Robot
from sysid_core.robot.locked import locked_elsewhere
from sysid_core.signals.parts import JoinedParts

__all__ = ["OpeningStream"]

_FEWEST = 100  # Joint states from which their rate is measured
_FEWEST_QUEUED = 1000  # The same where they come in bursts
_MOST = 2000  # Joint states, and batches of other messages, that are kept until then at most

_MORE = 1.3
"""Joint states that a rate promises, for each that came, from which on it is doubted: unevenly
stamped ones show the short intervals between them."""

_LONGEST = 5.0
"""Time [s] of joint states after which it is believed: so many may be lost."""

_INERTIAL_WAIT = 1.0
"""Time [s] of joint states in which a floating base's inertial sensor has to show itself."""


class OpeningStream:
    """Keeps messages until the joint states' rate is known, then passes them to a stream.

    A rate [Hz] of 0 is measured, a cut-off [Hz] of 0 is the description's.
    """

    def __init__(self, robot: Robot, config: StreamConfig, *, rate: float, cutoff: float) -> None:
        self.robot = robot
        self.stream: SampleStream | None = None  # None until it is open
        self.counts: Counter[str] = Counter()  # What came that was not as it should be, by fault
        self.locked: tuple[Diagnostic, ...] | None = None  # Told of the first joint states
        self._config = config
        self._rate, self._cutoff = rate, cutoff
        self._inertial = False
        self._parts = JoinedParts(robot.actuated_names, robot.description.names)
        self._batches: list[Recording] = []
        self._early: deque[Recording] = deque(maxlen=_MOST)
        if rate > 0.0 and not robot.floating:
            self._open(rate)

    @property
    def rate(self) -> float:
        """Rate of the joint states [Hz]; 0 while it is not known."""
        return self._rate if self.stream is None else self.stream.config.rate

    def push(self, messages: Recording) -> None:
        """Take messages of the other sensors."""
        self._inertial |= messages.imu is not None
        if self.stream is not None:
            self.stream.push(messages)
        else:
            self._early.append(messages)

    def push_joint_states(self, batch: Recording) -> list[Samples]:
        """Take joint states and return the samples that they complete.

        Those that nothing was prepared for are counted, and the stream opens anew.
        """
        try:
            return self._pushed(batch)
        except (SysidError, ArithmeticError, LookupError, ValueError) as error:
            self.counts[f"joint states lost to an error ({type(error).__name__})"] += len(batch)
            self.stream = None
            self._batches.clear()
            return []

    def _pushed(self, batch: Recording) -> list[Samples]:
        if self.locked is None and columns_of(self.robot, batch.joint_names) is not None:
            self.locked = tuple(locked_elsewhere(self.robot, batch))
        batch = self._parts.push(batch)
        if not len(batch):
            return []
        self._batches.append(batch)
        if self.stream is None:
            self._try_to_open()
        if self.stream is None:
            return []
        batches, self._batches = self._batches, []
        done = [
            self.stream.push_joint_states(b.time, b.joint_names, b.position, b.effort)
            for b in batches
            if b.effort is not None
        ]
        return [samples for samples in done if len(samples)]

    def _try_to_open(self) -> None:
        own = [b for b in self._batches if columns_of(self.robot, b.joint_names) is not None]
        own = own or self._batches
        time = np.concatenate([b.time for b in own])
        order = np.argsort(time, kind="stable")
        time = time[order]
        if len(time) < _FEWEST:
            return
        if len(time) < _FEWEST_QUEUED and come_through_queue(time):
            return
        if self._awaits_inertial(len(time), float(np.ptp(time))):
            return
        values = np.concatenate([values_of(self.robot, b) for b in own])[order]
        try:
            rate = self._rate or self._measured(time, values)
        except DataError:
            self._batches.clear()
            self.counts["joint states whose clock stands still"] += len(time)
            return
        if rate:
            self._open(rate)

    def _measured(self, time: FloatArray, values: FloatArray) -> float:
        """Return the rate [Hz] of joint states (n, nc) with ascending stamps; 0: not known yet."""
        rate = stream_rate(time, values)
        span = float(np.ptp(time))
        if rate * span <= _MORE * len(time):
            return rate
        newest = slice(-_FEWEST, None)
        newer = stream_rate(time[newest], values[newest])
        if newer * float(np.ptp(time[newest])) <= _MORE * _FEWEST:
            return newer
        return rate if len(time) >= _FEWEST_QUEUED or span >= _LONGEST else 0.0

    def _awaits_inertial(self, count: int, span: float) -> bool:
        """Whether an inertial sensor, which allows a higher cut-off, may still show itself."""
        missing = self.robot.floating and not self._inertial
        return missing and span < _INERTIAL_WAIT and count < _MOST

    def _open(self, rate: float) -> None:
        wanted, inertial = self._cutoff, self._inertial
        cutoffs = stream_cutoffs(self.robot, rate, wanted=wanted, inertial=inertial)
        config = replace(self._config, rate=rate, **cutoffs)
        self.stream = SampleStream(self.robot, config)
        for messages in self._early:
            self.stream.push(messages)
        self._early.clear()
