# SPDX-License-Identifier: Apache-2.0
"""Essential parameters: the base parameters that data determine about as well as each other."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.noise import row_weights, weighted_sums

__all__ = ["essential_parameters"]

_SPREAD = 30.0
"""Ratio of the largest to the smallest relative standard deviation that essential parameters may
have (Gautier et al. 2013; FloBaRoID's default)."""
_INDEPENDENT = 1e-10
"""Smallest eigenvalue of scaled information that data have of a parameter [-]."""


def essential_parameters(
    statistics: Statistics, noise_std: FloatArray, correlation: FloatArray | None
) -> BoolArray:
    """Return which base parameters (b,) are essential, by least squares without a prior.

    The parameter with the largest relative standard deviation is taken away and the others are
    estimated anew, until these deviations lie within a factor of 30 of each other (Pham & Gautier
    1991). Noise (G,) in N·m.
    """
    gram, moment = weighted_sums(statistics, row_weights(noise_std, correlation))
    diagonal = np.diagonal(gram)
    active = np.flatnonzero(diagonal > 0.0)
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled, right = gram / np.outer(scale, scale), moment / scale
    while len(active) > 1:
        values, vectors = scipy.linalg.eigh(scaled[np.ix_(active, active)])
        if values[0] < _INDEPENDENT * values[-1]:
            active = np.delete(active, int(np.argmax(np.abs(vectors[:, 0]))))
            continue
        inverse = (vectors / values) @ vectors.T
        beta = inverse @ right[active]
        relative = np.sqrt(np.diagonal(inverse)) / np.maximum(np.abs(beta), 1e-300)
        if relative.max() <= _SPREAD * relative.min():
            break
        active = np.delete(active, int(np.argmax(relative)))
    chosen = np.zeros(len(diagonal), dtype=np.bool_)
    chosen[active] = True
    return chosen
