# SPDX-License-Identifier: Apache-2.0
"""Follows a payload from the step in the innovations until it is part of the model."""

from __future__ import annotations

from collections import deque

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.problem import Constraints, Prior
from sysid_core.online.payload import PayloadConfig, PayloadEstimate, PayloadEstimator
from sysid_core.online.window import SlidingWindow

__all__ = ["PayloadWatch"]

_ALARM = 0.7
"""Share of the rise that counts as a step from which on nothing new is adopted [-]."""

_NEGLIGIBLE = 0.01
"""Torque errors below this share of a joint's torque count as that share [-]."""

_PATIENCE = 2.0
"""Windows after an alarm in which a payload may still be recognised."""

_MEMORY = 10.0
"""Time over which the usual size of the innovations is averaged [s]."""

_KEEP = 0.25
"""Weight that data from before the step keep, moved by the payload's estimate [-]."""


class PayloadWatch:
    """Detects that a payload changed, and estimates it against the robot without one.

    Parameters
    ----------
    estimator : PayloadEstimator
    settings : PayloadConfig
    sample_rate : float [Hz]
    correlation : float [-]
        Number of samples that count as one independent observation.
    """

    def __init__(
        self,
        estimator: PayloadEstimator,
        settings: PayloadConfig,
        sample_rate: float,
        correlation: float = 1.0,
    ) -> None:
        self.settings = settings
        self.estimate: PayloadEstimate | None = None
        self.attached = False
        self.active = False
        self.alarmed = False
        self.detected_after = 0.0
        self._alarm_time = -np.inf
        self._calm: deque[tuple[float, FloatArray, FloatArray | None]] = deque()
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
        self._turned_clean = False
        self._shift: FloatArray = np.zeros(0)
        self._started = -np.inf

    def look(
        self,
        window: SlidingWindow,
        used: FloatArray,
        covariance: FloatArray | None,
        time: float,
    ) -> str:
        """Compare the newest innovations with the usual ones; becomes `active` on a step.

        Parameters
        ----------
        window : SlidingWindow
        used : (p,)
            Parameters in use.
        covariance : (b, b) or None
            Of the base parameters of `used`.
        time : float [s]

        Returns
        -------
        str
            A warning if the innovations rose but no payload explains them, else empty.

        Raises
        ------
        EstimationError
            If rounding defeats the estimate.
        """
        samples = max(1, round(self.settings.window * self._rate))
        recent = window.recent(samples)
        if recent.count.sum() == 0.0 or window.samples < samples:
            return ""
        error, negligible = self._errors(recent, self._base(used))
        variance = np.maximum(error, negligible)
        if self._usual is None or time < self._looked:
            self._relax(variance, used, covariance, time)
            return ""
        seen = recent.count > 0.0
        # totals, as a joint that hardly moved until now has no usual size to speak of
        usual = np.maximum(self._usual, negligible)
        rise = float(np.sqrt(error[seen].sum() / usual[seen].sum()))
        if rise < _ALARM * self.settings.rise:
            self._learn(variance, used, covariance, time)
            return ""
        if self._watched < self.settings.window:
            return ""
        if not self.alarmed:
            self.alarmed, self._alarm_time = True, time
        if rise >= self.settings.rise and self._explained(recent, used, samples, window, time):
            return ""
        if time - self._alarm_time > self.settings.settle:
            # no payload came of it: this is how the robot is now
            self._relax(variance, used, covariance, time)
        return (
            f"the torque errors are {rise:.1f} times their usual size and no payload explains "
            "them: look at friction, sensors and contacts"
        )

    @staticmethod
    def _errors(recent: Statistics, base_vector: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the mean square of the errors (G,), and what of it is not worth mentioning."""
        count = np.maximum(recent.count, 1.0)
        negligible = _NEGLIGIBLE**2 * recent.square / count + 1e-18
        return recent.residual_square(base_vector) / count, negligible

    def _relax(
        self, variance: FloatArray, used: FloatArray, covariance: FloatArray | None, time: float
    ) -> None:
        """Take the present innovations for the usual ones."""
        self._usual, self._watched, self._looked = variance, 0.0, time
        self.alarmed = False
        self._calm.clear()
        self._calm.append((time, used, covariance))

    def _learn(
        self, variance: FloatArray, used: FloatArray, covariance: FloatArray | None, time: float
    ) -> None:
        """Let calm innovations teach what is usual, and remember the model that gave them."""
        elapsed, self._looked = time - self._looked, time
        self._watched += elapsed
        share = min(1.0, elapsed / min(_MEMORY, max(self._watched, 1e-9)))
        usual = variance if self._usual is None else self._usual
        self._usual = usual + share * (variance - usual)
        self.alarmed = False
        self._calm.append((time, used, covariance))
        while len(self._calm) > 1 and self._calm[1][0] <= time - self.settings.window:
            self._calm.popleft()

    def _explained(
        self,
        recent: Statistics,
        used: FloatArray,
        samples: int,
        window: SlidingWindow,
        time: float,
    ) -> bool:
        """Begin to follow a payload if one explains the innovations."""
        if self._usual is None:
            return False
        # the step lies before the alarm, so the model is taken from a while before that
        _, trusted, covariance = self._calm[0]
        empty = trusted if self._empty is None else self._empty
        if self._empty is None:
            known = covariance is not None and bool(np.isfinite(covariance).all())
            self._base_covariance = covariance if known else None
        found = self._estimate(recent, empty)
        before = recent.residual_square(self._base(used)) / self._usual
        loaded = self._base(empty) + self._estimator.base_shift(found.parameters)
        after = recent.residual_square(loaded) / self._usual
        explained = 1.0 - float(after.sum() / before.sum())
        change = abs(found.mass - (self.estimate.mass if self.attached and self.estimate else 0.0))
        if explained < self.settings.explained or change < max(
            self._estimator.min_mass, self.settings.significance * found.mass_std
        ):
            return False
        since_alarm = round((time - self._alarm_time) * self._rate)
        newest = window.recent(max(1, samples // 2))
        self._begin(window, newest, samples + since_alarm, empty, found, time)
        return True

    def undecided(self, time: float) -> bool:
        """Whether it is too early to tell if a payload made the errors rise.

        What is compared holds enough of the new samples only some windows after the alarm; until
        then a poor prediction does not speak against the model.
        """
        return self.alarmed and time - self._alarm_time <= _PATIENCE * self.settings.window

    def forget(self) -> None:
        """Forget what errors are usual: another model comes into use."""
        self._usual, self._watched, self.alarmed = None, 0.0, False
        self._calm.clear()

    def restart(self, time: float) -> None:
        """Go on at another time [s]: the clock was set."""
        self.forget()
        self._started = time

    def _base(self, vector: FloatArray) -> FloatArray:
        return self._estimator.project(vector)

    def _begin(
        self,
        window: SlidingWindow,
        newest: Statistics,
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
        self._first = newest
        self._since = Statistics.zero(*newest.moment.shape)
        self._since_samples = 0
        self._turned_clean = False
        self._empty = empty
        self.estimate = found
        self.active = True
        self.alarmed = False
        self._started = time
        self.detected_after = time - self._alarm_time

    def push(self, statistics: Statistics, samples: int) -> None:
        """Add samples taken since the step."""
        if self._since is not None:
            self._since = self._since + statistics
            self._since_samples += samples

    def refine(self) -> bool:
        """Estimate the payload anew from the samples since the step was noticed.

        What was seen until then may hold samples from before the step: it serves only until
        enough have come since. Returns whether this estimate is the first without them.
        """
        if self._since is None or self._first is None or self._empty is None:
            return False
        seen = self._since
        if not self.clean:
            seen = seen + self._first
        found = self._estimate(seen, self._empty)
        self.estimate = found
        self.attached = found.mass > max(
            self._estimator.min_mass, self.settings.significance * found.mass_std
        )
        turned = self.clean and not self._turned_clean
        self._turned_clean = self.clean
        return turned

    @property
    def clean(self) -> bool:
        """Whether the payload's estimate rests on nothing from before the step."""
        return self._since_samples >= self.settings.window * self._rate

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
        self.abandon()
        if not self.attached:
            self._empty = None
        return memory

    def abandon(self) -> None:
        """End the episode without result."""
        self.active = self.alarmed = False
        self._usual = None
        self._before = self._since = self._first = None

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
