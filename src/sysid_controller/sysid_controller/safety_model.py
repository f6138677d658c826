# SPDX-License-Identifier: Apache-2.0
"""Watches whether identified parameters predict the robot's torque at least as the nominal do."""

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.dynamics.select import Dynamics
from sysid_core.robot.limits import Limits

__all__ = ["ModelWatch"]

_BLOCK = 0.02  # [s] over which torques and accelerations are averaged: ten times a bus' delay
_LONGEST = 0.1  # [s] of a block; a longer one has a gap in it
_MEMORY = 0.1  # [s] of the mean of squared errors
_MARGIN = 0.03  # [-] of the torque limit: friction at reversals errs by a few hundredths


class ModelWatch:
    """Compares torques that were sent with what both models predict of the motion that came.

    A push, a collision or a payload adds the same to both errors, so that only their difference
    tells about the identified parameters. The dynamics are for nobody else.
    """

    def __init__(
        self,
        joint_names: tuple[str, ...],
        limits: Limits,
        dynamics: Dynamics,
        nominal: FloatArray,
        scales: FloatArray,
    ) -> None:
        self._names = joint_names
        self._margin = _MARGIN * limits.effort
        self._dynamics, self._nominal = dynamics, (nominal, scales)
        self.restart()

    def restart(self) -> None:
        """Forget the past: other parameters are in use, or the robot is not driven."""
        self._begin: tuple[float, FloatArray, FloatArray] | None = None
        self._impulse: FloatArray = np.zeros(len(self._names))
        self._squares: FloatArray = np.zeros((2, len(self._names)))

    def judge(
        self,
        parameters: FloatArray,
        scales: FloatArray,
        effort: FloatArray,
        position: FloatArray,
        velocity: FloatArray,
        elapsed: float,
        steady: float,
    ) -> Diagnostic | None:
        """Say how parameters (p,) are worse than the nominal ones; None while they are not.

        `scales` are those of their friction, as `Robot.friction_scales`.
        The efforts (na,) [N·m] were sent since `elapsed` [s] ago; states (na,) are in rad and
        rad/s, and `steady` [s] only grows.
        """
        self._impulse = self._impulse + elapsed * effort
        if self._begin is None:
            self._begin = steady, position, velocity
            self._impulse = np.zeros(len(effort))
            return None
        since, position_then, velocity_then = self._begin
        duration = steady - since
        if duration < _BLOCK:
            return None
        sent, self._impulse = self._impulse / duration, np.zeros(len(effort))
        self._begin = steady, position, velocity
        if duration > _LONGEST:
            return None
        motion = (
            0.5 * (position_then + position),
            0.5 * (velocity_then + velocity),
            (velocity - velocity_then) / duration,
        )
        models = (parameters, scales), self._nominal
        errors = np.array([sent - self._torque(model, motion) for model in models])
        if not np.isfinite(errors).all():
            return None
        gain = duration / (_MEMORY + duration)
        self._squares = self._squares + gain * (errors**2 - self._squares)
        own, nominal = np.sqrt(self._squares)
        worse = (own - nominal) / self._margin
        j = int(np.argmax(worse))
        if worse[j] <= 1.0:
            return None
        return Diagnostic(
            "worse_than_nominal",
            f"they predicted the torque of joint '{self._names[j]}' with an error of {own[j]:.3g} "
            f"N·m, the nominal ones with {nominal[j]:.3g}",
            Severity.WARNING,
        )

    def _torque(
        self,
        model: tuple[FloatArray, FloatArray],
        motion: tuple[FloatArray, FloatArray, FloatArray],
    ) -> FloatArray:
        self._dynamics.set_parameters(*model)
        return self._dynamics.torque(*motion)
