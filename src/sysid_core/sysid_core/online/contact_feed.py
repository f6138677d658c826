# SPDX-License-Identifier: Apache-2.0
"""Contacts of a live floating base: from their topic while it lasts, else from the torques."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts import ContactConfig, ContactStream
from sysid_core.online.findings import FindingLog
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.companion import CompanionStream

__all__ = ["ContactFeed"]

_SILENCE = 1.0
"""Time [s] without contacts after which they are said to come from the torques."""


class ContactFeed:
    """Puts contacts to samples and conditions them.

    A sample whose flags are not known when it comes out has its contacts told from the torques,
    so that nothing waits for flags, and nothing is lost without them.

    Parameters
    ----------
    robot : Robot
        Floating, with contacts.
    settings : ContactConfig
    longest : float [s]
        Longest interruption of the flags that is bridged.
    horizon : float [s]
        Age at which messages are forgotten.
    counts, tally : Counter
        Where faults, and where facts are counted.
    log : FindingLog
    """

    def __init__(
        self,
        robot: Robot,
        settings: ContactConfig,
        *,
        longest: float,
        horizon: float,
        counts: Counter[str],
        tally: Counter[str],
        log: FindingLog,
    ) -> None:
        self._names = tuple(contact.name for contact in robot.description.contacts)
        count = len(self._names)
        self._counts, self._tally, self._log = counts, tally, log
        self._flags = CompanionStream(count, longest=longest, horizon=horizon, flags=True)
        self._wrenches = CompanionStream(6 * count, longest=longest, horizon=horizon)
        self._stream = ContactStream(robot, settings)
        self._begin = np.inf
        self._newest = -np.inf
        self._last_flags = -np.inf

    @property
    def margin(self) -> float:
        """Time [s] that samples are held back for what follows them."""
        return self._stream.margin

    @property
    def source(self) -> str:
        """Where contacts come from: ``topic``, ``torques``, or empty before either is certain."""
        since = self._newest - max(self._begin, self._last_flags)
        if since > _SILENCE:
            return "torques"
        return "topic" if np.isfinite(self._last_flags) else ""

    def reset(self) -> None:
        """Forget everything, as when time goes back."""
        self._flags.reset()
        self._wrenches.reset()
        self._stream.reset()
        self._begin, self._newest, self._last_flags = np.inf, -np.inf, -np.inf

    def push(
        self,
        time: float,
        active: Mapping[str, bool],
        wrenches: Mapping[str, FloatArray] | None = None,
    ) -> None:
        """Take contact flags by name, and wrenches (6,) [N, N·m] by name where measured."""
        if not set(self._names) <= set(active):
            self._counts["contacts without the robot's feet"] += 1
            return
        flags = np.array([float(active[name]) for name in self._names])
        if self._flags.push(time, flags):
            self._last_flags = time
        else:
            self._counts["contacts late or not finite"] += 1
        if wrenches is not None and set(self._names) <= set(wrenches):
            self._wrenches.push(time, np.concatenate([wrenches[name] for name in self._names]))

    def condition(self, samples: Samples) -> Samples:
        """Return the samples that are ready and fit, with their contacts."""
        if len(samples) == 0:
            return samples
        self._begin = min(self._begin, float(samples.time[0]))
        self._newest = float(samples.time[-1])
        flags = self._flags.at(samples.time)
        flagged: BoolArray = np.asarray(np.isfinite(flags).all(axis=1))
        wrenches = self._wrenches.at(samples.time).reshape(len(samples), -1, 6)
        given = replace(samples, contacts=flags > 0.5, wrenches=wrenches)
        fit, findings = self._stream.push(given, flagged)
        self._tally["samples with contacts from the torques"] += int((~flagged).sum())
        for finding in findings:
            if finding.kind == "switch":
                self._tally["samples close to a change of contacts"] += int(finding.samples.sum())
            elif finding.kind == "flight_doubtful":
                self._counts["samples in flight that do not fall"] += int(finding.samples.sum())
            elif finding.fatal:
                self._counts["samples with unusable odometry"] += int(finding.samples.sum())
        self._log.add(len(samples), findings)
        return fit
