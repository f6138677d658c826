# SPDX-License-Identifier: Apache-2.0
"""Watches a motion that is played: tracking, efforts, and whether joint states still come."""

from __future__ import annotations

import numpy as np

from sysid_controller.laws import Motion
from sysid_core.arrays import FloatArray
from sysid_core.robot.model import Limits

__all__ = ["MotionWatch"]

_AHEAD = 0.15
"""Time [s] that tracking errors are looked ahead: a blocked joint shows in its velocity first."""
_PUSHES_FOR = 0.03
"""Time [s] that a joint may push more than it should: noise and a start against stiction."""


class MotionWatch:
    """Judges joint states against the motion that is played.

    Parameters
    ----------
    joint_names : tuple[str, ...]
    limits : Limits
        Of these joints.
    tolerance : float [rad]
        Largest error of a joint's position, now or where it is heading.
    effort_tolerance : float [-]
        Largest share of its effort limit that a joint may give beyond what its model asks for.
    """

    def __init__(
        self,
        joint_names: tuple[str, ...],
        limits: Limits,
        tolerance: float,
        effort_tolerance: float,
    ) -> None:
        self._names, self._tolerance = joint_names, tolerance
        self._most = effort_tolerance * limits.effort
        self._pushed = np.zeros(len(joint_names))
        self._time: float | None = None
        self.largest_error = np.zeros(len(joint_names))

    def judge(
        self,
        time: float,
        desired: Motion,
        position: FloatArray,
        velocity: FloatArray,
        effort: FloatArray,
        model: FloatArray,
    ) -> str:
        """Say why the robot must stop; empty while it need not.

        Parameters
        ----------
        time : float [s]
            Of the joint state.
        desired : Motion
            What was asked for at that time.
        position, velocity, effort : (na,) [rad, rad/s, N·m]
            As measured; velocities and efforts that are not count as right.
        model : (na,) [N·m]
            What the nominal model asks for.
        """
        elapsed = 0.0 if self._time is None else max(time - self._time, 0.0)
        self._time = time
        error = desired.position - position
        self.largest_error = np.maximum(self.largest_error, np.abs(error))
        ahead = np.abs(error + _AHEAD * np.nan_to_num(desired.velocity - velocity))
        j = int(np.argmax(np.maximum(ahead, np.abs(error))))
        if max(ahead[j], abs(error[j])) > self._tolerance:
            return (
                f"joint '{self._names[j]}' is {1e3 * abs(error[j]):.0f} mrad from where it should "
                f"be, and soon {1e3 * ahead[j]:.0f}, more than {1e3 * self._tolerance:.0f}: is it "
                "blocked, or its model far off?"
            )
        beyond = np.nan_to_num(np.abs(effort - model))
        self._pushed = np.where(beyond > self._most, self._pushed + elapsed, 0.0)
        j = int(np.argmax(self._pushed))
        if self._pushed[j] > _PUSHES_FOR:
            return (
                f"joint '{self._names[j]}' gives {effort[j]:.4g} N·m where its model asks for "
                f"{model[j]:.4g}, more than {self._most[j]:.4g} apart: is it blocked, or its "
                "model far off?"
            )
        return ""
