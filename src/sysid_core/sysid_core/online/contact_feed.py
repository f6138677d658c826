# SPDX-License-Identifier: Apache-2.0
"""Contacts of a live floating base: from their topic while it lasts, else from the torques."""

from __future__ import annotations

from collections import Counter

import numpy as np

from sysid_core.arrays import BoolArray
from sysid_core.contacts.feet import ContactConfig
from sysid_core.contacts.lateness import UNFIT, Lateness
from sysid_core.contacts.noticed import NoticedLog
from sysid_core.contacts.stream import ContactStream
from sysid_core.diagnostics import Diagnostic
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["ContactFeed"]

_SILENCE = 1.0
"""Time [s] without contacts after which they are said to come from the torques."""
_AT_REST = 0.2
"""Acceleration [m/s², rad/s²] of a base that rests: lateness changes nothing there."""
_UNKNOWN = 12.0
"""Time [s] after which samples come out although feet did not tell whether sensors are on time, or
whether they are since they were moved."""
_COUNTED = {
    "switch": "samples close to a change of contacts",
    "flight_doubtful": "samples in flight that do not fall",
    "stance_doubtful": "samples with a foot of doubtful stance",
}


class ContactFeed:
    """Conditions the contacts of samples, and counts what comes of it.

    A sample whose flags are not known when it comes out has its contacts estimated from the
    torques, so that nothing waits for flags, and nothing is lost without them. Faults, and facts,
    are counted.
    """

    def __init__(
        self, robot: Robot, config: ContactConfig, counts: Counter[str], tally: Counter[str]
    ) -> None:
        self._counts, self._tally = counts, tally
        self.log = NoticedLog()
        self._stream = ContactStream(robot, config)
        self.late = Lateness()  # Of sensors, as the newest samples show it
        self._held: list[Samples] = []  # Until sensors are known to be on time
        self._passing = False  # Whether they are, or were not known to be for long
        self.reset()

    @property
    def margin(self) -> float:
        """Time [s] that samples are held back for what follows them."""
        return self._stream.margin

    def source(self, flags: float) -> str:
        """Return where contacts come from: ``topic``, ``torques``, or empty while not certain.

        `flags` [s] is the time of the newest flags.
        """
        if self._newest - max(self._begin, flags) > _SILENCE:
            return "torques"
        return "topic" if np.isfinite(flags) else ""

    def reset(self) -> None:
        """Forget everything, as when time goes back."""
        self._stream.reset()
        self._held.clear()
        self._begin, self._newest, self._waiting = np.inf, -np.inf, np.inf

    def condition(self, samples: Samples, flagged: BoolArray, inertial: bool) -> Samples:
        """Return the samples that are ready and fit; see `ContactStream.push`."""
        self.late = Lateness()
        if len(samples) == 0:
            return samples
        self._begin = min(self._begin, float(samples.time[0]))
        self._newest = float(samples.time[-1])
        fit, found = self._stream.push(samples, flagged, inertial=inertial)
        self._tally["samples with contacts from the torques"] += int((~flagged).sum())
        for one in found:
            counter = self._tally if one.kind == "switch" else self._counts
            name = _COUNTED.get(one.kind, "samples with unusable odometry" if one.fatal else "")
            if name:
                counter[name] += int(one.samples.sum())
        self.log.add(len(samples), found)
        return self._on_time(fit)

    def _on_time(self, samples: Samples) -> Samples:
        """Return samples once sensors are known to be on time; those before are lost if not."""
        self.late = self._stream.watch.look()
        if self.late.matters:
            self._stream.watch.reset()
            self._tally["samples before sensors were on time"] += sum(map(len, self._held))
            self._held.clear()
            return samples.select(slice(0))
        if self._stream.watch.unfit:
            self._counts["samples with odometry that contradicts the legs"] += len(samples)
            return samples.select(slice(0))
        if self._passing or not len(samples):
            return samples
        resting = np.abs(np.asarray(samples.base_acceleration)).max() < _AT_REST
        if resting and not self._held:
            return samples
        self._held.append(samples)
        self._waiting = min(self._waiting, float(samples.time[0]))
        waited = float(samples.time[-1]) - self._waiting
        self._passing = self._stream.watch.known or waited >= _UNKNOWN
        return Samples.concatenate(self.release()) if self._passing else samples.select(slice(0))

    def take_diagnostics(self) -> list[Diagnostic]:
        """Return what was noticed of feet and odometry since the last call."""
        return [*self.log.take(), *([UNFIT] if self._stream.watch.unfit else [])]

    def release(self) -> list[Samples]:
        """Return the samples that wait until sensors are known to be on time."""
        done, self._held = self._held, []
        return done
