# SPDX-License-Identifier: Apache-2.0
"""What is usual of a stretch of innovations: their noise, and how large they are at times."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.online.changes import CERTAIN, log_odds
from sysid_core.online.colour import Bursts, ResidualColour
from sysid_core.online.innovations import Noise, negligible
from sysid_core.online.window import Sums

__all__ = ["is_burst", "usual_noise"]


def usual_noise(recent: Sums | Statistics, colour: ResidualColour) -> Noise:
    """Return the usual noise; a joint that hardly moved until now has none to speak of."""
    return Noise(_usual_variance(recent, colour), colour.cautious_factors)


def _usual_variance(recent: Sums | Statistics, seen: ResidualColour | Bursts) -> FloatArray:
    torque = recent.square / np.maximum(recent.count, 1.0)
    usual = np.where(seen.known, seen.variance, torque)
    return np.maximum(usual, negligible(recent.square, recent.count))


def is_burst(recent: Sums, square: FloatArray, bursts: Bursts) -> bool:
    """Tell whether Σe² (G,) [N²·m²] is no larger than the model's errors are at times."""
    expected = _usual_variance(recent, bursts)
    whole, count = bursts.rise(float((square / expected).sum()), recent.samples)
    return log_odds(whole, 0.0, whole, count) < CERTAIN
