# SPDX-License-Identifier: Apache-2.0
"""What the low-pass that torques go through makes of friction that depends on a joint's way."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.presliding import deflected, deflections
from sysid_core.recording import Samples
from sysid_core.signals.filters import low_pass, support
from sysid_core.signals.prepare import PrepareReport

__all__ = ["Slide", "filtered_deflections", "late_signs"]

_PLACES_PER_PERIOD = 16.0
"""Places per period of the cut-off between which friction hardly changes behind the low-pass."""
_LATE = (1, 2, 4, 8)  # of these places
_INTERRUPTION = 1.0
"""Time [s] after which nobody knows how a joint came where it is."""


def filtered_deflections(
    samples: Samples, j: int, report: PrepareReport, distances: FloatArray
) -> FloatArray:
    """Return joint j's deflections (n, k), for distances (k,), behind the low-pass.

    A stretch begins with the joint sliding: nobody knows how it came there.
    """
    return _along(samples, j, report, lambda position: deflections(position, distances))


def late_signs(samples: Samples, j: int, report: PrepareReport) -> FloatArray:
    """Return the signs (n, k) of joint j's velocity some times ago, behind the low-pass.

    These are an eighth to all of the low-pass's rise time.
    """

    def late(position: FloatArray) -> FloatArray:
        step = np.sign(np.diff(position, prepend=position[:1]))
        return np.stack([np.pad(step, (k, 0), "edge")[: len(step)] for k in _LATE], axis=1)

    return _along(samples, j, report, late)


def _along(
    samples: Samples, j: int, report: PrepareReport, column: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Return columns (n, k) of joint j's way, behind the low-pass.

    Between samples positions are the cubics that their velocities give.
    """
    found: list[FloatArray] = []
    step = np.diff(samples.time)
    period = float(np.median(step)) if len(step) else 1.0 / report.output_rate
    broken = 1 + np.flatnonzero(np.abs(step - period) > 0.5 * period)
    finer = int(np.ceil(_PLACES_PER_PERIOD * report.cutoff * period))
    rate = finer / period
    margin = support(rate, report.cutoff) - 2
    for first, last in itertools.pairwise([0, *broken, len(samples)]):
        q, v = samples.position[first:last, j], samples.velocity[first:last, j]
        dense = np.pad(_between_samples(q, period * v, finer), margin, mode="edge")
        found.append(low_pass(column(dense), rate, report.cutoff, every=finer))
    return np.concatenate(found)


def _between_samples(value: FloatArray, change: FloatArray, finer: int) -> FloatArray:
    """Return values (n,) and so many less one between each two, by their change per sample."""
    f = np.arange(finer) / finer
    here, after = value[:-1, None], value[1:, None]
    inner = (
        (1.0 + 2.0 * f) * (1.0 - f) ** 2 * here
        + f * (1.0 - f) ** 2 * change[:-1, None]
        + f**2 * (3.0 - 2.0 * f) * after
        - f**2 * (1.0 - f) * change[1:, None]
    )
    return np.concatenate([inner.ravel(), value[-1:]])


class Slide:
    """How friction before sliding goes on, from one batch of samples to the next."""

    def __init__(self, scales: FloatArray) -> None:
        self._distance = np.where(scales > 0.0, scales, 1.0)
        self._before: tuple[float, FloatArray, FloatArray] | None = None
        """Time [s] and positions (nj,) of the last sample, and the newest deflections (m, nj)."""

    def go_on(
        self, samples: Samples, rate: float, time: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return the deflections (n, nj) behind the low-pass that weighs times around by weights.

        After a longer interruption joints are taken for sliding.
        """
        position, past = samples.position, int(np.ceil(time[-1] * rate))
        if self._before is None or not 0.0 < samples.time[0] - self._before[0] < _INTERRUPTION:
            sliding = np.sign(samples.velocity[:1])
            self._before = samples.time[0], position[0], np.repeat(sliding, past, axis=0)
        _, last, known = self._before
        lacking = max(0, past - len(known))  # after a lower cut-off than before
        known = np.concatenate([np.repeat(known[:1], lacking, axis=0), known])[-past:]
        found, steps = [*known], np.diff(position, axis=0, prepend=last[None])
        for step in steps:
            found.append(deflected(found[-1], step, self._distance))
        along = np.array(found)
        self._before = float(samples.time[-1]), position[-1], along[-past:]
        here, mean = along[past:], np.zeros_like(position)
        later, now = here, np.zeros_like(position)
        for shift, weight in zip(time, weights, strict=True):
            if shift <= 0.0:
                whole, part = divmod(past + shift * rate, 1.0)
                first = int(whole)
                at, after = (along[first + k : first + k + len(here)] for k in (0, 1))
                mean += weight * (at if part == 0.0 else (1.0 - part) * at + part * after)
            else:  # the motion goes on as it changes
                then = shift * samples.velocity + 0.5 * shift**2 * samples.acceleration
                later, now = deflected(later, then - now, self._distance), then
                mean += weight * later
        return mean
