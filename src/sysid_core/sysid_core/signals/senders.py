# SPDX-License-Identifier: Apache-2.0
"""Tells joint states of the robot's driver from those that another node sends beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray

__all__ = ["FOREIGN", "Form", "Senders", "form_of"]

FOREIGN = (
    "a second node publishes them without the efforts or velocities of the driver's; stop it "
    "(joint_state_publisher, a bridge) or give it another topic"
)

_INTERVALS = 3.0  # of a sender within which another that says less is foreign: one may be late
_FORGET = 0.9  # [-] of the longest interval, per message
_MOST = 100  # Senders that are remembered: names that never repeat are an attack
_LONGEST = 1.0  # [s] interval that is believed: after a pause, the next one tells
_STALL = 2.0  # [s] for which a process may stand still, and its messages with it


class Form(NamedTuple):
    """What tells one node's messages from another's."""

    names: tuple[str, ...]
    velocity: bool
    effort: bool


def form_of(
    names: Sequence[str],
    velocity: Sequence[float] | FloatArray,
    effort: Sequence[float] | FloatArray,
) -> Form:
    """Return the form of a message."""
    return Form(tuple(names), len(velocity) > 0, len(effort) > 0)


@dataclass
class _Sender:
    """When messages of a form come, and others that name some of their joints."""

    form: Form
    newest: float  # [s]
    interval: float = 0.0  # [s] between two of them, rather too long
    measures: bool = False  # Whether any effort was not zero
    rivals: list[_Sender] = field(default_factory=list)

    def comes(self, time: float) -> bool:
        """Return whether it has not fallen silent at a time [s]; one message tells nothing."""
        bound = max(_INTERVALS * self.interval, _STALL) if self.interval > 0.0 else 0.0
        return abs(time - self.newest) <= bound

    @property
    def says(self) -> tuple[bool, bool]:
        """What a message says beside positions; more is greater."""
        return self.measures, self.form.velocity

    def came(self, time: float) -> None:
        """Take note of a message."""
        if time > self.newest:
            apart = min(time - self.newest, _LONGEST)
            self.newest, self.interval = time, max(apart, _FORGET * self.interval)
        elif time < self.newest - _LONGEST:  # the clock was set back
            self.newest = time


class Senders:
    """Joint states that say less than others of the same joints, which still come, are foreign.

    A viewer's slider, a joint_state_publisher or a bridge that publishes on the driver's topic
    knows positions, late or made up, and no efforts, or nothing but zeros. Where the driver falls
    silent for three of its intervals and 2 s, what others say is all there is.
    """

    def __init__(
        self, joints: Collection[str] | None = None, aliases: Mapping[str, str] | None = None
    ) -> None:
        self._joints = None if joints is None else frozenset(joints)  # None: all count
        self._aliases = aliases or {}
        self._known: dict[Form, _Sender] = {}

    def foreign(
        self,
        names: Sequence[str],
        time: float,
        velocity: Sequence[float] | FloatArray,
        effort: Sequence[float] | FloatArray,
    ) -> bool:
        """Take note of a message of a time [s]; return whether it is another node's."""
        form = form_of(names, velocity, effort)
        sender = self._known.get(form) or self._add(form, time)
        sender.came(time)
        if not sender.measures:
            sender.measures = bool(np.any(effort))
        return any(rival.says > sender.says and rival.comes(time) for rival in sender.rivals)

    def _add(self, form: Form, time: float) -> _Sender:
        if len(self._known) >= _MOST:
            self._known.clear()
        sender, own = _Sender(form, time), self._own(form)
        for known in self._known.values():
            if not own.isdisjoint(self._own(known.form)):
                sender.rivals.append(known)
                known.rivals.append(sender)
        self._known[form] = sender
        return sender

    def _own(self, form: Form) -> frozenset[str]:
        own = frozenset(self._aliases.get(name, name) for name in form.names)
        return own if self._joints is None else own & self._joints
