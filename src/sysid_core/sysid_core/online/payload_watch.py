# SPDX-License-Identifier: Apache-2.0
"""Follows a payload from the step in the innovations until it is part of the model."""

from __future__ import annotations

import numpy as np

from sysid_core.estimation.problem import Constraints, Prior
from sysid_core.online.payload import PayloadEstimate, PayloadEstimator, PayloadSettings
from sysid_core.online.window import SlidingWindow
from sysid_core.recording import FloatArray
from sysid_core.regression.statistics import Statistics

__all__ = ["PayloadWatch"]

_MEMORY = 10.0
"""Time over which the usual size of the innovations is averaged [s]."""

_KEEP = 0.25
"""Weight that data from before the step keep, moved by the payload's estimate [-]."""


class PayloadWatch:
    """Detects that a payload changed, and estimates it against the robot without one.

    Parameters
    ----------
    estimator : PayloadEstimator
    settings : PayloadSettings
    sample_rate : float [Hz]
    correlation : float [-]
        Number of samples that count as one independent observation.
    """

    def __init__(
        self,
        estimator: PayloadEstimator,
        settings: PayloadSettings,
        sample_rate: float,
        correlation: float = 1.0,
    ) -> None:
        self.settings = settings
        self.estimate: PayloadEstimate | None = None
        self.attached = False
        self.active = False
        self.detected_after = 0.0
        self._estimator = estimator
        self._rate = sample_rate
        self._correlation = correlation
        self._usual: FloatArray | None = None
        self._watched = 0.0
        self._looked = -np.inf
        self._empty: FloatArray | None = None  # parameters without any payload
        self._base_covariance: FloatArray | None = None
        self._before: Statistics | None = None
        self._first: Statistics | None = None
        self._since: Statistics | None = None
        self._since_samples = 0
        self._shift: FloatArray = np.zeros(0)
        self._started = -np.inf

    def look(
        self,
        window: SlidingWindow,
        used_base: FloatArray,
        used: FloatArray,
        covariance: FloatArray | None,
        time: float,
    ) -> str:
        """Compare the newest innovations with the usual ones; becomes `active` on a step.

        Parameters
        ----------
        window : SlidingWindow
        used_base, used : (b,), (p,)
            Base and full parameters in use.
        covariance : (p, p) or None
            Of `used`.
        time : float [s]

        Returns
        -------
        str
            A warning if the innovations rose but no payload explains them, else empty.
        """
        samples = max(1, round(self.settings.window * self._rate))
        recent = window.recent(samples)
        if recent.count.sum() == 0.0 or window.samples < samples:
            return ""
        variance = recent.residual_square(used_base) / np.maximum(recent.count, 1.0)
        floor = 1e-6 * recent.square / np.maximum(recent.count, 1.0) + 1e-18
        variance = np.maximum(variance, floor)
        if self._usual is None or time < self._looked:
            self._usual, self._watched, self._looked = variance, 0.0, time
            return ""
        seen = recent.count > 0.0
        # totals, as a joint that hardly moved until now has no usual size to speak of
        rise = float(np.sqrt(variance[seen].sum() / self._usual[seen].sum()))
        if rise < self.settings.rise:
            elapsed, self._looked = time - self._looked, time
            self._watched += elapsed
            share = min(1.0, elapsed / min(_MEMORY, max(self._watched, elapsed, 1e-9)))
            self._usual = self._usual + share * (variance - self._usual)
            return ""
        if self._watched < self.settings.window:
            return ""
        empty = used if self._empty is None else self._empty
        if self._empty is None:
            self._base_covariance = self._estimator.project_covariance(covariance)
        found = self._estimate(recent, empty)
        before = recent.residual_square(used_base) / self._usual
        loaded = self._base(empty) + self._estimator.base_shift(found.parameters)
        after = recent.residual_square(loaded) / self._usual
        explained = 1.0 - float(after.sum() / before.sum())
        change = abs(found.mass - (self.estimate.mass if self.attached and self.estimate else 0.0))
        if explained < self.settings.explained or change < max(
            self._estimator.min_mass, self.settings.significance * found.mass_std
        ):
            return (
                f"the torque errors are {rise:.1f} times their usual size and no payload "
                "explains them: look at friction, sensors and contacts"
            )
        self._begin(window, recent, samples, empty, found, time)
        return ""

    def _base(self, vector: FloatArray) -> FloatArray:
        return self._estimator.project(vector)

    def _begin(
        self,
        window: SlidingWindow,
        recent: Statistics,
        samples: int,
        empty: FloatArray,
        found: PayloadEstimate,
        time: float,
    ) -> None:
        shift = np.zeros_like(self._base(empty))
        if self.attached and self.estimate is not None:
            shift = self._estimator.base_shift(self.estimate.parameters)
        self._before = window.older(samples) + window.memory
        self._shift = shift
        self._first = recent
        self._since = Statistics.zero(*recent.moment.shape)
        self._since_samples = 0
        self._empty = empty
        self.estimate = found
        self.active = True
        self._started = time
        self.detected_after = samples / self._rate

    def push(self, statistics: Statistics, samples: int) -> None:
        """Add samples taken since the step."""
        if self._since is not None:
            self._since = self._since + statistics
            self._since_samples += samples

    def refine(self) -> None:
        """Estimate the payload anew from the samples since the step was noticed.

        What was seen until then holds samples from before the step: it serves only until as
        many have come since.
        """
        if self._since is None or self._first is None or self._empty is None:
            return
        seen = self._since
        if self._since_samples < self.settings.window * self._rate:
            seen = seen + self._first
        found = self._estimate(seen, self._empty)
        self.estimate = found
        self.attached = found.mass > max(
            self._estimator.min_mass, self.settings.significance * found.mass_std
        )

    def _estimate(self, statistics: Statistics, empty: FloatArray) -> PayloadEstimate:
        if self._usual is None:
            raise ValueError("the usual size of the innovations is not known yet")
        noise_std = np.sqrt(self._correlation * self._usual)
        start = None if self.estimate is None else self.estimate.parameters
        return self._estimator.estimate(
            statistics, self._base(empty), noise_std, self._base_covariance, start
        )

    def parameters_in_use(self) -> FloatArray:
        """Return the parameters (p,) of the robot with its payload."""
        if self._empty is None:
            raise ValueError("no payload was noticed yet")
        if self.estimate is None or not self.attached:
            return self._empty
        return self._estimator.add_to(self._empty, self.estimate.parameters)

    def settled(self, time: float) -> bool:
        """Whether enough was seen of the payload to make it part of the model."""
        return self.active and time - self._started >= self.settings.settle

    def finish(self) -> Statistics:
        """End the episode; returns the data that the window should remember."""
        if self._before is None or self._since is None:
            raise ValueError("no payload was noticed yet")
        shift = -self._shift
        if self.attached and self.estimate is not None:
            shift = shift + self._estimator.base_shift(self.estimate.parameters)
        memory = self._before.shifted(shift).scaled(_KEEP)
        self.active = False
        self._before = self._since = self._first = None
        if not self.attached:
            self._empty = None
        return memory

    def loaded_problem(self, prior: Prior, constraints: Constraints) -> tuple[Prior, Constraints]:
        """Return prior and constraints of the robot with its payload."""
        if not self.attached or self.estimate is None:
            return prior, constraints
        return self._estimator.loaded_problem(prior, constraints, self.estimate)

    def describe(self) -> str:
        """Say what is going on."""
        if self.estimate is None:
            return "no payload was noticed"
        return (
            f"payload being identified: {self.estimate.mass:.2f} ± {self.estimate.mass_std:.2f} kg"
        )
