# SPDX-License-Identifier: Apache-2.0
"""Tells joint states that a driver repeats, as when its robot is lost, from measurements."""

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.signals.repeats import StandingJoints

__all__ = ["Repeats"]

_MOVED = 0.05  # [rad] that a velocity promises while the position stands to the last digit
_SENT = 0.02  # [-] of the torque limit by which commands change while efforts stand
_LONGEST = 0.05  # [s] that counts for one state: what comes after a gap is new


class Repeats:
    """Positions that stand to the last digit are no measurement of what is known to move.

    A joint moves whose measured velocity says so, or that moved until it stood and did not come to
    rest. Where all numbers stand, efforts among them, they are old if the torques that were sent
    changed meanwhile.
    """

    def __init__(self, joint_names: tuple[str, ...], effort_limit: FloatArray, patience: float):
        self._names, self._limit = joint_names, effort_limit
        self.patience = patience  # [s]
        na = len(joint_names)
        self._steady: float | None = None
        self._position: FloatArray = np.full(na, np.nan)
        self._stood: FloatArray = np.zeros(na)  # [s]
        self._promised: FloatArray = np.zeros(na)  # [rad] that velocities add up to meanwhile
        self._standing = StandingJoints(na)
        self._last: tuple[bytes, ...] = ()
        self._repeated = 0.0  # [s] since when all numbers are the same
        self._sent: FloatArray = np.zeros(na)
        self.lost: BoolArray = np.zeros(na, dtype=np.bool_)  # Joints that are known to move

    def judge(
        self,
        position: FloatArray,
        velocity: FloatArray,
        effort: FloatArray,
        sent: FloatArray,
        steady: float,
    ) -> Diagnostic | None:
        """Say whether all repeats itself at a time [s] that only grows; None if it does not.

        Positions and measured velocities (na,) [rad, rad/s], efforts as published, which may be
        empty, and the torques (na,) [N·m] that were sent last.
        """
        elapsed = 0.0 if self._steady is None else min(steady - self._steady, _LONGEST)
        self._steady = steady
        stands = position == self._position
        self._position = position
        self._stood = np.where(stands, self._stood + elapsed, 0.0)
        self._promised = np.where(stands, self._promised + elapsed * velocity, 0.0)
        numbers = position.tobytes(), velocity.tobytes(), effort.tobytes()
        if numbers != self._last or not effort.any():
            self._last, self._repeated, self._sent = numbers, 0.0, sent
        else:
            self._repeated += elapsed
        self._standing.take_out(position[None])
        moved = (np.abs(self._promised) > _MOVED) | self._standing.stands
        self.lost = (self._stood > self.patience) & moved
        changed = np.abs(sent - self._sent) > _SENT * self._limit
        if self._repeated > self.patience and changed.any():
            return Diagnostic(
                "repeated",
                f"all joints have repeated their numbers for {self._repeated:.2g} s, efforts, "
                "too, while torques changed; has the driver lost the robot?",
                Severity.ERROR,
            )
        return None

    def standing(self) -> Diagnostic | None:
        """Say which joint stands to the last digit though it is known to move."""
        if not self.lost.any():
            return None
        name, stood = self._names[j := int(np.argmax(self.lost))], self._stood[j]
        known = f"in which it moved by {self._promised[j]:.2g} rad by its velocity"
        if abs(self._promised[j]) <= _MOVED:
            known = "without coming to rest before"
        return Diagnostic(
            "joint_lost",
            f"joint '{name}' has stood at {self._position[j]:.6g} rad to the last digit for "
            f"{stood:.2g} s, {known}; check its encoder and its drive's messages",
            Severity.ERROR,
            values={"joint": name},
        )
