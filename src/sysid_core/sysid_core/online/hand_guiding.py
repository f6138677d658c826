# SPDX-License-Identifier: Apache-2.0
"""Tells a robot that is led by hand: its torques lack what its motion takes."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.online.spans import LONGEST
from sysid_core.online.update import ModelInUse
from sysid_core.recording import Samples

__all__ = ["HandGuiding"]

_SPAN = 3.0
"""Time of the samples that are looked at [s]."""

_RATE = 20.0
"""Samples per second that are looked at [Hz]: a hand moves slowly."""

_EVERY = 0.5
"""Time between looks while errors are as usual [s]: these may have been learned from a hand."""

_INDEPENDENT = 4.0
"""Residuals per second that are independent [Hz]: a model errs alike while a motion lasts."""

_LACKS = 0.5
"""Share of the inertial torque below which what is left must lie [-]. No load that is put down
takes so much from all joints, and none that is picked up takes any."""

_CERTAIN, _ALARMED = 2.0, 1.0
"""Standard deviations by which it must lie below [-], and where errors rose besides."""

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

    def __init__(self, regression: Regression, load: FloatArray, sample_rate: float) -> None:
        # (b, k) what mass and first moments of a load at the tool add to the base parameters
        self._regression, self._load = regression, load
        self._step = max(1, round(sample_rate / _RATE))
        self._recent: deque[Samples] = deque()
        self._skip = 0  # Samples until the next one that is kept
        self._looked = -np.inf  # [s]

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

    def look(
        self, model: ModelInUse, time: float, since: float | None, *, rose: bool
    ) -> Diagnostic | None:
        """Say that the newest torques are none that move such a robot, if so.

        Looks at what came `since` an alarm [s]. Without one it looks at the newest samples, and
        only now and then unless the errors `rose`.
        """
        if since is None and not rose and self._looked <= time < self._looked + _EVERY:
            return None
        first = time - LONGEST if since is None else since
        recent = [part for part in self._recent if part.time[-1] >= first]
        if not recent:
            return None
        samples = Samples.concatenate(recent)
        samples = samples.select(samples.time >= first)
        if len(samples) < 2:
            return None
        self._looked = time
        left, std = self._left(model, samples)
        known = std <= _UNKNOWN
        sure = _CERTAIN if since is None else _ALARMED
        lacks = known & (left + sure * std < _LACKS) & (left > -_LACKS)
        if not (lacks[0] or (lacks[1] and not known[0])):
            return None
        shares = zip(left, std, ("inertia", "friction"), known, strict=True)
        told = ", ".join(
            f"{share:.2f} ± {_CERTAIN * doubt:.2f} of its {what}"
            for share, doubt, what, is_known in shares
            if is_known
        )
        return Diagnostic(
            "led_by_hand",
            f"the torques lack what the robot's motion takes ({told}): it is led by hand",
            hint="nothing new is adopted until it moves by itself",
        )

    def _left(self, model: ModelInUse, samples: Samples) -> tuple[FloatArray, FloatArray]:
        """Return what torques have of the model's inertial and friction torques (2,) [-].

        Also the standard deviations (2,), infinite where errors have another cause.
        """
        regression, still = self._regression, np.zeros_like(samples.velocity)
        at_rest = replace(samples, velocity=still, acceleration=still)
        moving, resting = (regression.rows(some).blocks for some in (samples, at_rest))
        parameters = model.parameters.copy()
        parameters[regression.layout.friction] = 0.0
        rigid = regression.base.project(parameters)
        motions, others, errors = [], [], []
        for block, other in zip(moving, resting, strict=True):
            # a chain gives no rows near a singular configuration
            if not (len(block.sample) and np.array_equal(block.sample, other.sample)):
                continue
            error = block.target - block.matrix @ model.base
            size = max(float(np.sqrt(np.mean(error**2))), 1e-12)
            motions.append((block.matrix - other.matrix) / size)
            weight = np.column_stack([block.matrix @ self._load, other.matrix @ rigid])
            others.append(weight / size)
            errors.append(error / size)
        if not errors:
            return np.ones(2), np.full(2, np.inf)
        motion, error = np.concatenate(motions), np.concatenate(errors)
        matrix = motion @ np.column_stack([rigid, model.base - rigid])
        # weight that drives do not bear as the model has it: of a tool that they know nothing of
        matrix = np.column_stack([matrix, np.concatenate(others)])
        information = matrix.T @ matrix
        # one of the two torques may be zero
        information.flat[:: len(information) + 1] += max(
            _LOOSE * float(np.trace(information)), 1e-300
        )
        covariance = np.linalg.inv(information)
        change = covariance @ (matrix.T @ error)
        square = float(np.mean((error - matrix @ change) ** 2))
        # errors are as large as what is lacking, or it is only that columns are alike
        if square > _LEFT or _LACKS**2 * float(np.mean(matrix[:, 0] ** 2)) > 1.0:
            return 1.0 + change[:2], np.full(2, np.inf)
        colour = max(1.0, len(samples) / max(1.0, np.ptp(samples.time) * _INDEPENDENT))
        # what the model itself was not told of either
        bodies = regression.base.columns < regression.layout.inertial.stop
        known = model.known.posterior[1]
        doubt = [
            np.sum(motion[:, own] @ known[np.ix_(own, own)] * motion[:, own])
            for own in (bodies, ~bodies)
        ]
        variance = np.diag(covariance)[:2] * square * colour + doubt / np.diag(information)[:2]
        return 1.0 + change[:2], np.sqrt(variance)
