# SPDX-License-Identifier: Apache-2.0
"""Tells a robot that is led by hand: its torques lack what its motion takes."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.online.update import ModelInUse
from sysid_core.recording import Samples

__all__ = ["HandGuiding"]

_SPAN = 3.0
"""Time of the samples that are looked at [s]."""

_RATE = 20.0
"""Samples per second that are looked at [Hz]: a hand moves slowly."""

_INDEPENDENT = 4.0
"""Residuals per second that are independent [Hz]: a model errs alike while a motion lasts."""

_LACKS = 0.5
"""Share of the inertial torque that must be lacking [-]. No load that is put down takes so much
from all joints, and none that is picked up takes any."""

_CERTAIN = 2.0
"""Standard deviations by which it must be lacking [-]."""

_LEFT = 0.5
"""Share of the errors' square that this may leave [-]: a load that is put down takes inertia too,
but mostly weight."""

_LOOSE = 1e-9
"""Relative ridge that lets a torque that there is none of be solved for [-]."""

_UNKNOWN = 0.25
"""Standard deviation of the share of a torque from which nothing is known of it [-]."""


class HandGuiding:
    """Looks for what a model's motion takes in the newest torques.

    A drive that a person leads through a motion compensates gravity, and perhaps friction; what
    accelerates the arm is the hand's force, which no effort tells. Masses that gravity confirms
    cannot have lost their inertia.
    """

    def __init__(self, regression: Regression, sample_rate: float) -> None:
        self._regression = regression
        self._step = max(1, round(sample_rate / _RATE))
        self._recent: deque[Samples] = deque()
        self._skip = 0  # Samples until the next one that is kept

    def push(self, samples: Samples) -> None:
        """Take in samples."""
        kept = samples.select(slice(self._skip, None, self._step))
        self._skip = (self._skip - len(samples)) % self._step
        if not (len(kept) and self._regression.per_joint):
            return
        if self._recent and kept.time[0] < self._recent[-1].time[-1]:  # the clock was set
            self._recent.clear()
        self._recent.append(kept)
        while self._recent[0].time[-1] < kept.time[-1] - _SPAN:
            self._recent.popleft()

    def told(self, model: ModelInUse, since: float) -> Diagnostic | None:
        """Say that the torques since a time [s] are none that move such a robot, if so."""
        recent = [part for part in self._recent if part.time[0] >= since]
        if sum(map(len, recent)) < 2:
            return None
        explained = self._explained(model, Samples.concatenate(recent))
        if explained is None:
            return None
        change, std = explained
        certain = change + _CERTAIN * std < -_LACKS
        if not (certain[0] or (certain[1] and std[0] > _UNKNOWN)):
            return None
        left = ", ".join(
            f"{1.0 + share:.2f} ± {_CERTAIN * doubt:.2f} of its {what}"
            for share, doubt, what in zip(change, std, ("inertia", "friction"), strict=True)
            if doubt <= _UNKNOWN
        )
        return Diagnostic(
            "led_by_hand",
            f"the torques lack what the robot's motion takes ({left}): it is led by hand",
            hint="nothing new is adopted until it moves by itself",
        )

    def _explained(
        self, model: ModelInUse, samples: Samples
    ) -> tuple[FloatArray, FloatArray] | None:
        """Return the changes (2,) of inertial and of friction torque that errors speak for [-].

        Also their standard deviations (2,); None where errors have another cause.
        """
        regression, still = self._regression, np.zeros_like(samples.velocity)
        at_rest = replace(samples, velocity=still, acceleration=still)
        moving, resting = (regression.rows(some) for some in (samples, at_rest))
        parameters = model.parameters.copy()
        parameters[regression.layout.friction] = 0.0
        rigid = regression.base.project(parameters)
        parts = np.column_stack([rigid, model.base - rigid])
        columns, errors = [], []
        for block, other in zip(moving.blocks, resting.blocks, strict=True):
            error = block.target - block.matrix @ model.base
            size = max(float(np.sqrt(np.mean(error**2))), 1e-12)
            columns.append((block.matrix - other.matrix) @ parts / size)
            errors.append(error / size)
        matrix, error = np.concatenate(columns), np.concatenate(errors)
        information = matrix.T @ matrix
        # one of the two may be zero
        information.flat[::3] += max(_LOOSE * float(np.trace(information)), 1e-300)
        covariance = np.linalg.inv(information)
        change = covariance @ (matrix.T @ error)
        square = float(np.mean((error - matrix @ change) ** 2))
        if square > _LEFT:
            return None
        colour = max(1.0, len(samples) / max(1.0, np.ptp(samples.time) * _INDEPENDENT))
        return change, np.sqrt(np.diag(covariance) * square * colour)
