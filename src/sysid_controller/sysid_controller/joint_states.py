# SPDX-License-Identifier: Apache-2.0
"""Takes joint states in any order, checks them, and fills in velocities that are missing."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.robot.conversion import JointConversion, are_others
from sysid_core.robot.limits import Limits
from sysid_core.robot.plausibility import BEYOND_RANGE, BEYOND_SPEED

__all__ = ["JointStates"]

_CUTOFF = 50.0  # [Hz] of the first-order low-pass on differentiated positions
_BELIEVED = 0.5  # [-] of an implausible velocity that positions must show for it to be true
_LEAP = 0.05  # [rad, m] that a position may leap at once: stamps jitter, encoders are coarse
_OUT_OF_ORDER = 0.1  # [s] by which a message may be overtaken; beyond, the clock was set back


class JointStates:
    """The newest measured state of the actuated joints, in their order; aliases name them, too.

    What is far beyond their limits is refused.
    """

    def __init__(
        self,
        joint_names: tuple[str, ...],
        conversion: JointConversion,
        aliases: Mapping[str, str],
        limits: Limits,
    ) -> None:
        self.joint_names = joint_names
        self._lower, self._upper = limits.lower - BEYOND_RANGE, limits.upper + BEYOND_RANGE
        self._fastest = BEYOND_SPEED * limits.velocity
        self._turns = np.isinf(limits.lower) & np.isinf(limits.upper)
        self.known = False  # Whether a state has been taken
        self.position: FloatArray = np.zeros(len(joint_names))  # (na,) [rad]
        self.velocity: FloatArray = np.zeros(len(joint_names))  # (na,) [rad/s]
        self.velocity_measured = True  # False while a velocity comes from differentiation
        self._conversion, self._aliases = conversion, aliases
        self._names: Sequence[str] = ()
        self._index: list[int] = []
        self._differentiated: FloatArray = np.zeros(len(joint_names))
        self._stamp: float | None = None

    def restart(self) -> None:
        """Forget the past of the positions: the clock was set back or the data had a gap."""
        self._stamp = None
        self._differentiated = np.zeros(len(self.joint_names))

    def update(
        self, names: Sequence[str], position: FloatArray, velocity: FloatArray, stamp: float
    ) -> Diagnostic | None:
        """Take a state with a stamp [s], or say why not.

        Names are in any order, with any joints besides the actuated ones; positions and velocities
        (k,) go with them, in the driver's units. Velocities may be empty.
        """
        if names != self._names:
            reason = self._find_joints(names)
            if reason:
                return Diagnostic("refused", reason)
        if len(position) != len(names):
            return Diagnostic("refused", f"{len(position)} positions for {len(names)} joints")
        taken = self._conversion.position(position[self._index])
        if not math.isfinite(float(taken.sum())):
            joint = self.joint_names[int(np.argmin(np.isfinite(taken)))]
            return Diagnostic("refused", f"the position of joint '{joint}' is not finite")
        if self._stamp is not None and 0.0 < self._stamp - stamp < _OUT_OF_ORDER:
            return Diagnostic(
                "refused", f"out of order: {self._stamp - stamp:.3f} s older than the newest"
            )
        speed = None
        if len(velocity) == len(names):
            speed = self._conversion.velocity(velocity[self._index])
        reason = self._implausible(taken, speed, stamp)
        if reason:
            return Diagnostic("implausible", reason)
        self._differentiate(taken, stamp)
        self.position, self.known = taken, True
        self._take_velocity(speed)
        return None

    def are_others(self, names: Sequence[str]) -> bool:
        """Return whether names are of none of the joints, after a state of all of them."""
        if not self.known or names == self._names:
            return False
        return are_others(names, self.joint_names, self._aliases)

    def torque(self, position: FloatArray, effort: FloatArray) -> FloatArray:
        """Return the torques (na,) [N·m] of the state that was taken last; NaN if it has none.

        Positions and efforts (k,) are as published, those of `update`.
        """
        if len(effort) != len(self._names):
            return np.full(len(self.joint_names), np.nan)
        published = position[None, self._index], effort[None, self._index]
        return self._conversion.convert(*published)[1][0]

    def _implausible(self, position: FloatArray, velocity: FloatArray | None, stamp: float) -> str:
        """Say which joint is where or as fast as no such robot can be; empty if none is.

        It can be where positions move as fast.
        """
        outside = (position < self._lower) | (position > self._upper)
        if outside.any():
            j = int(np.argmax(outside))
            return (
                f"joint '{self.joint_names[j]}' at {position[j]:.4g} rad is more than "
                f"{BEYOND_RANGE:.3g} rad outside its limits [{self._lower[j] + BEYOND_RANGE:.4g}"
                f", {self._upper[j] - BEYOND_RANGE:.4g}]; check its encoder and zero"
            )
        leapt = self._leapt(position, stamp)
        if leapt.any():
            j = int(np.argmax(leapt))
            return (
                f"joint '{self.joint_names[j]}' leaps from {self.position[j]:.4g} to "
                f"{position[j]:.4g} rad; does a second node publish its joint states?"
            )
        if velocity is None:
            return ""
        fast = np.isfinite(velocity) & (np.abs(velocity) > self._fastest)
        if fast.any() and self._stamp is not None and stamp > self._stamp:
            moved = (position - self.position) / (stamp - self._stamp)
            fast &= np.sign(velocity) * moved < _BELIEVED * self._fastest
        if fast.any():
            j = int(np.argmax(fast))
            return (
                f"joint '{self.joint_names[j]}' at {velocity[j]:.4g} rad/s is faster than "
                f"{BEYOND_SPEED:g} times its limit of {self._fastest[j] / BEYOND_SPEED:.4g}; "
                "check the driver's velocity"
            )
        return ""

    def _leapt(self, position: FloatArray, stamp: float) -> BoolArray:
        """Return which joints (na,) are where they cannot have come to since the newest state."""
        elapsed = 0.0 if self._stamp is None else stamp - self._stamp
        if elapsed <= 0.0:  # no stamps, or a clock that was set back, tell nothing
            return np.zeros(len(position), dtype=np.bool_)
        apart = position - self.position
        apart[self._turns] -= 2.0 * np.pi * np.round(apart[self._turns] / (2.0 * np.pi))
        return np.asarray(np.abs(apart) > self._fastest * elapsed + _LEAP)

    def _find_joints(self, names: Sequence[str]) -> str:
        known = [self._aliases.get(name, name) for name in names]
        missing = [name for name in self.joint_names if name not in known]
        if missing:
            return f"without the joints {', '.join(missing)}"
        self._index = [known.index(name) for name in self.joint_names]
        self._names = list(names)
        return ""

    def _differentiate(self, position: FloatArray, stamp: float) -> None:
        if self._stamp is None or stamp < self._stamp:
            self.restart()
        elif stamp > self._stamp:
            elapsed = stamp - self._stamp
            gain = 1.0 - math.exp(-2.0 * math.pi * _CUTOFF * elapsed)
            rate = (position - self.position) / elapsed
            self._differentiated = self._differentiated + gain * (rate - self._differentiated)
        self._stamp = stamp

    def _take_velocity(self, taken: FloatArray | None) -> None:
        self.velocity_measured = taken is not None and bool(np.isfinite(taken).all())
        if taken is None:
            self.velocity = self._differentiated
        else:
            self.velocity = np.where(np.isfinite(taken), taken, self._differentiated)
