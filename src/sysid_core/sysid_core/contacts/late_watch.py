# SPDX-License-Identifier: Apache-2.0
"""Looks for sensors that come late among the newest samples of a live robot."""

from __future__ import annotations

from collections import deque

from sysid_core.arrays import BoolArray
from sysid_core.contacts.feet import FootMotion
from sysid_core.contacts.lateness import SPAN, FootTrack, Lateness, foot_track, lateness
from sysid_core.dynamics.contact_kinematics import ContactKinematics
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["LateWatch"]

_EVERY, _RARELY = 1.0, 8.0
"""Time [s] between looks, until sensors are on time and since: clocks drift. To look far takes
tenths of a second, in which no message is taken: that is rare, too."""
_ENOUGH = 5.0  # Time [s] of samples that are worth it at first


class LateWatch:
    """Looks for late sensors among the newest samples of a live robot.

    Attributes
    ----------
    known : bool
        Whether sensors are on time, as far as feet that moved long enough could tell.
    unfit : bool
        Whether standing feet contradicted them when last looked at.
    """

    def __init__(self, robot: Robot) -> None:
        self._kinematics = ContactKinematics(robot)
        self.known = False
        self.reset()

    def reset(self) -> None:
        """Forget all samples: sensors were moved."""
        self._parts: deque[tuple[bool, FootTrack]] = deque()
        self._looked = self._search_at = 0.0  # Times [s], from the first samples on
        self.unfit = False

    def push(
        self, samples: Samples, motion: FootMotion, flagged: BoolArray, *, inertial: bool
    ) -> None:
        """Take new samples, whose base's motion is the `inertial` sensor's, and their feet's.

        Contacts are measured where `flagged` (n,).
        """
        if not len(samples):
            return
        newest = float(samples.time[-1])
        if not self._parts:
            self._looked, self._search_at = newest, newest + _ENOUGH
        self._parts.append((inertial, foot_track(self._kinematics, samples, motion, flagged)))
        while newest - float(self._parts[0][1].time[-1]) > SPAN:
            self._parts.popleft()

    def look(self) -> Lateness:
        """Return by how much sensors are late, now and then; see `lateness`."""
        if not self._parts:
            return Lateness()
        newest = float(self._parts[-1][1].time[-1])
        if newest - self._looked < (_RARELY if self.known and not self.unfit else _EVERY):
            return Lateness()
        self._looked = newest
        inertial = 2 * sum(used for used, _ in self._parts) > len(self._parts)
        same = [track for used, track in self._parts if used == inertial]
        search = newest >= self._search_at
        found = lateness(FootTrack.concatenate(same), inertial=inertial, search=search)
        if search:
            self._search_at = newest + _RARELY
        self.known |= found.known
        self.unfit = found.unfit
        return found
