# SPDX-License-Identifier: Apache-2.0
"""Watches a motion that is played: tracking, efforts, and whether joint states still come."""

from __future__ import annotations

import numpy as np

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

    def follow(self, error: FloatArray, velocity_error: FloatArray) -> str:
        """Say why the robot must stop, judged by its errors; empty while it need not.

        Parameters
        ----------
        error, velocity_error : (na,) [rad, rad/s]
            What was asked for less what was measured; velocities that are not count as right.
        """
        ahead = np.abs(error + _AHEAD * np.nan_to_num(velocity_error))
        now = np.abs(error)
        j = int(np.argmax(np.maximum(ahead, now)))
        if max(ahead[j], now[j]) <= self._tolerance:
            return ""
        return (
            f"joint '{self._names[j]}' is {1e3 * now[j]:.0f} mrad from where it should be, and "
            f"soon {1e3 * ahead[j]:.0f}, more than {1e3 * self._tolerance:.0f}: is it blocked, "
            "or its model far off?"
        )

    def push(self, time: float, effort: FloatArray, model: FloatArray) -> str:
        """Say why the robot must stop, judged by its torques; empty while it need not.

        Parameters
        ----------
        time : float [s]
            Of the joint state.
        effort : (na,) [N·m]
            As measured; what is not counts as right.
        model : (na,) [N·m]
            What the nominal model asks for.
        """
        elapsed = 0.0 if self._time is None else max(time - self._time, 0.0)
        self._time = time
        beyond = np.nan_to_num(np.abs(effort - model))
        self._pushed = np.where(beyond > self._most, self._pushed + elapsed, 0.0)
        j = int(np.argmax(self._pushed))
        if self._pushed[j] <= _PUSHES_FOR:
            return ""
        return (
            f"joint '{self._names[j]}' gives {effort[j]:.4g} N·m where its model asks for "
            f"{model[j]:.4g}, more than {self._most[j]:.4g} apart: is it blocked, or its model "
            "far off?"
        )
