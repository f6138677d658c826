# SPDX-License-Identifier: Apache-2.0
"""Contacts of live samples: the same conditioning as offline, a margin behind the newest."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.contacts.condition import corrected, judge_contacts
from sysid_core.contacts.feet import ContactConfig, FootMotion, foot_motion, loaded_contacts
from sysid_core.contacts.late_watch import LateWatch
from sysid_core.contacts.noticed import Noticed
from sysid_core.contacts.odometry import check_odometry
from sysid_core.contacts.stance import StanceMotion
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["ContactStream"]

_REFUSED = 2.0  # [s] that unusable odometry is refused for: a base at rest does not show its frame


class _Held(NamedTuple):
    """Samples that the next ones are judged with, and their feet's motion."""

    samples: Samples
    motion: FootMotion
    flagged: BoolArray

    def select(self, chosen: BoolArray) -> _Held:
        return _Held(self.samples.select(chosen), self.motion.select(chosen), self.flagged[chosen])

    def joined(self, other: _Held) -> _Held:
        return _Held(
            Samples.concatenate([self.samples, other.samples]),
            FootMotion.concatenate([self.motion, other.motion]),
            np.concatenate([self.flagged, other.flagged]),
        )


class ContactStream:
    """Conditions batches as they come.

    A sample leaves once the margin behind it is known, together with the flags that its neighbours
    on both sides give it. A batch whose time goes back starts anew. A `history` [s] of samples is
    kept to start the hysteresis of the load from, and to compare pose and twist over.
    """

    def __init__(
        self, robot: Robot, config: ContactConfig | None = None, *, history: float = 0.3
    ) -> None:
        self.robot = robot
        self.config = config or ContactConfig()
        self.margin = max(self.config.switch_margin, self.config.contact_margin)
        self.history = max(history, 2.0 * self.margin)
        self.parameters: FloatArray | None = None
        self._stance = StanceMotion(robot)
        self.watch = LateWatch(robot)  # Of sensors that come late
        self._tail: _Held | None = None
        self._released = -np.inf
        self._refusal: Noticed | None = None
        self._refused_until = -np.inf

    def reset(self) -> None:
        """Forget the samples held back."""
        self._tail = self._refusal = None
        self._stance.reset()
        self.watch.reset()
        self._released = self._refused_until = -np.inf

    def push(
        self, samples: Samples, flagged: BoolArray | None = None, *, inertial: bool = False
    ) -> tuple[Samples, tuple[Noticed, ...]]:
        """Take a batch; return those samples that are ready and fit, and what was noticed.

        Contact flags were measured where `flagged` (n,); default: everywhere, if there are any.
        Most of the base's motion is the `inertial` sensor's, or the odometry's.
        Samples whose odometry is unusable are left out, as is what follows within two seconds.

        Raises
        ------
        DataError
            If the odometry is missing.
        """
        if len(samples) == 0:
            return samples, ()
        if self._tail is not None and samples.time[0] <= self._tail.samples.time[-1]:
            self.reset()
        held = self._held(samples, flagged)
        loaded = loaded_contacts(self.robot, held.motion.force)
        held = held._replace(motion=held.motion._replace(loaded=loaded))
        known = held.samples
        judged = judge_contacts(self.robot, known, held.motion, held.flagged, self.config)
        ready = known.time <= known.time[-1] - self.margin
        fresh = ready & (known.time > self._released)
        if ready.any():
            self._released = float(known.time[ready][-1])
        self._tail = held.select(known.time > self._released - self.history)
        moved = known.select(fresh), held.motion.select(fresh), held.flagged[fresh]
        self.watch.push(*moved, inertial=inertial)
        odometry = self._odometry(known)
        keep = fresh & judged.keep & (known.time > self._refused_until)
        judged = corrected(replace(judged, keep=keep), held.motion, self._stance)
        found = tuple(
            one.among(fresh) for one in (*odometry, *judged.noticed) if one.samples[fresh].any()
        )
        return _without_gaps(judged.kept), found

    def _held(self, samples: Samples, flagged: BoolArray | None) -> _Held:
        """Return the new samples behind those of before; wrenches that lack are NaN."""
        if flagged is None:
            flagged = np.full(len(samples), samples.contacts is not None)
        motion = foot_motion(self.robot, samples, self.parameters)
        shape = motion.loaded.shape
        if samples.contacts is None:
            samples = replace(samples, contacts=np.zeros(shape, dtype=bool))
        if samples.wrenches is None:
            samples = replace(samples, wrenches=np.full((*shape, 6), np.nan))
        new = _Held(samples, motion, flagged)
        return new if self._tail is None else self._tail.joined(new)

    def _odometry(self, known: Samples) -> tuple[Noticed, ...]:
        """Check the odometry; an error holds on for a while."""
        found = check_odometry(known)
        newest = float(known.time[-1])
        for one in found:
            if one.fatal:
                self._refusal, self._refused_until = one, newest + _REFUSED
                return found
        if self._refusal is None or known.time[0] > self._refused_until:
            return found
        return (*found, self._refusal._replace(samples=known.time <= self._refused_until))


def _without_gaps(samples: Samples) -> Samples:
    """Return samples with wrenches only if all of them have some."""
    if samples.wrenches is None or (len(samples) and np.isfinite(samples.wrenches).all()):
        return samples
    return replace(samples, wrenches=None)
