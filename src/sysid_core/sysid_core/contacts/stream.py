# SPDX-License-Identifier: Apache-2.0
"""Contacts of live samples: the same conditioning as offline, a margin behind the newest."""

from __future__ import annotations

import numpy as np

from sysid_core.contacts.condition import condition_contacts
from sysid_core.contacts.findings import Finding
from sysid_core.contacts.settings import ContactSettings
from sysid_core.recording import FloatArray, Samples
from sysid_core.robot.model import Robot

__all__ = ["ContactStream"]


class ContactStream:
    """Conditions batches as they come.

    A sample leaves once the margin behind it is known, together with the flags that its
    neighbours on both sides give it. A batch whose time goes back starts anew.

    Parameters
    ----------
    robot : Robot
        Floating, with contacts.
    settings : ContactSettings, optional
    history : float [s]
        How far back samples are kept to start the hysteresis of the load from, and to compare
        pose and twist over.
    """

    def __init__(
        self, robot: Robot, settings: ContactSettings | None = None, *, history: float = 0.3
    ) -> None:
        self.robot = robot
        self.settings = settings or ContactSettings()
        self.margin = max(self.settings.switch_margin, self.settings.contact_margin)
        self.history = max(history, 2.0 * self.margin)
        self.parameters: FloatArray | None = None
        self._tail: Samples | None = None
        self._released = -np.inf

    def reset(self) -> None:
        """Forget the samples held back."""
        self._tail = None
        self._released = -np.inf

    def push(self, samples: Samples) -> tuple[Samples, tuple[Finding, ...]]:
        """Take a batch; return those samples that are ready and fit, and the findings.

        Raises
        ------
        DataError
            If the odometry is missing or unusable.
        """
        tail = self._tail
        if tail is not None and len(samples) and samples.time[0] <= tail.time[-1]:
            self.reset()
            tail = None
        known = samples if tail is None else Samples.concatenate([tail, samples])
        if len(known) == 0:
            return known, ()
        conditioned = condition_contacts(self.robot, known, self.settings, self.parameters)
        newest = float(known.time[-1])
        ready = known.time <= newest - self.margin
        fresh = ready & (known.time > self._released)
        if ready.any():
            self._released = float(known.time[ready][-1])
        self._tail = known.select(known.time > self._released - self.history)
        findings = tuple(f for f in conditioned.findings if f.samples[fresh].any())
        return conditioned.samples.select(fresh & conditioned.keep), findings
