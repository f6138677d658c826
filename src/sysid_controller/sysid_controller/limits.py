# SPDX-License-Identifier: Apache-2.0
"""The last gate before the robot: torque, torque rate and position range."""

from typing import NamedTuple

import numpy as np

from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.robot.limits import Limits

__all__ = ["POSITION_MARGIN", "EffortLimiter", "LimitedEffort"]

POSITION_MARGIN = 0.05  # Zone before the position limits in which outward torque fades away [rad]
_SHORTEST_STEP = 1e-6
_SPRING_SHARE = 0.5
_BRAKE_SHARE = 0.5
_URGENT_RATE = 200.0  # [1/s] from one torque limit to the other in 10 ms, where a robot must stop


class LimitedEffort(NamedTuple):
    """A torque that may be sent, and which joints (na,) were limited by what."""

    effort: FloatArray  # (na,) [N·m]
    by_range: BoolArray  # (na,)
    by_effort: BoolArray  # (na,)
    by_rate: BoolArray  # (na,)
    not_finite: BoolArray  # (na,)

    @property
    def limited(self) -> BoolArray:
        """Joints (na,) whose torque is not the one that was asked for."""
        return self.by_range | self.by_effort | self.by_rate | self.not_finite


class EffortLimiter:
    """Keeps torques within their limits, whatever is asked for."""

    def __init__(self, limits: Limits, config: ControllerConfig) -> None:
        self._limits = limits
        self.last: FloatArray = np.zeros(len(limits.effort))
        self.configure(config)

    def configure(self, config: ControllerConfig) -> None:
        """Take over new settings; the last torque stays."""
        self.effort_limit = self._limits.effort * config.effort_scale
        self._rate = self.effort_limit * config.effort_rate
        self._lower_zone = self._limits.lower + POSITION_MARGIN
        self._upper_zone = self._limits.upper - POSITION_MARGIN

    def near_limits(self, position: FloatArray) -> bool:
        """Whether a joint (na,) [rad] is within the margin of its limits or beyond them."""
        return not ((position < self._upper_zone) & (position > self._lower_zone)).all()

    def apply(
        self,
        effort: FloatArray,
        elapsed: float,
        hold: FloatArray,
        position: FloatArray | None = None,
        velocity: FloatArray | None = None,
        *,
        urgent: bool = False,
    ) -> LimitedEffort:
        """Return the torque that may be sent.

        Parameters
        ----------
        effort : (na,) [N·m]
            Torque asked for; values that are not finite count as zero.
        elapsed : float [s]
            Time since the last call.
        hold : (na,) [N·m]
            Torque that holds the joints against gravity; only looked at near their limits.
        position : (na,) [rad], optional
            Without it the position range is not protected.
        velocity : (na,) [rad/s], optional
        urgent : bool
            Whether the robot must be stopped: the torque may change faster.
        """
        finite = np.isfinite(effort)
        wanted = effort if finite.all() else np.where(finite, effort, 0.0)
        limit = self.effort_limit
        clamped = np.minimum(np.maximum(wanted, -limit), limit)
        inside = clamped
        if position is not None and velocity is not None:
            inside = self._protect_range(clamped, hold, position, velocity)
        rate = np.maximum(self._rate, _URGENT_RATE * limit) if urgent else self._rate
        step = rate * max(elapsed, _SHORTEST_STEP)
        near = np.minimum(np.maximum(inside, self.last - step), self.last + step)
        # the limit has the last word, even when it was lowered just now
        safe = np.minimum(np.maximum(near, -limit), limit)
        self.last = safe
        return LimitedEffort(safe, inside != clamped, clamped != wanted, safe != inside, ~finite)

    def _protect_range(
        self, effort: FloatArray, hold: FloatArray, position: FloatArray, velocity: FloatArray
    ) -> FloatArray:
        """Return torques (na,) that do not push joints out of their range."""
        if not self.near_limits(position):
            return effort
        hold = np.where(np.abs(hold) <= self.effort_limit, hold, 0.0)  # neither is NaN
        above = np.clip((position - self._upper_zone) / POSITION_MARGIN, 0.0, 2.0)
        below = np.clip((self._lower_zone - position) / POSITION_MARGIN, 0.0, 2.0)
        effort = self._fade_outward(effort, hold, above, velocity)
        return -self._fade_outward(-effort, -hold, below, -velocity)

    def _fade_outward(
        self, effort: FloatArray, hold: FloatArray, depth: FloatArray, speed: FloatArray
    ) -> FloatArray:
        """Take the outward push from torques whose positive sense points out of the range.

        Within the margin (`depth` 0 to 1) what exceeds gravity fades away and outward speed is
        braked; beyond the limit a spring pushes back; a margin beyond it (`depth` 2) no outward
        torque is left at all.
        """
        taken = np.maximum(effort - hold, 0.0) * np.minimum(depth, 1.0)
        spring = _SPRING_SHARE * self.effort_limit * np.maximum(depth - 1.0, 0.0)
        ratio = np.clip(speed / self._limits.velocity, 0.0, 1.0)
        brake = _BRAKE_SHARE * self.effort_limit * ratio * np.minimum(depth, 1.0)
        total = effort - taken - spring - brake
        return np.where(total > 0.0, total * np.minimum(2.0 - depth, 1.0), total)
