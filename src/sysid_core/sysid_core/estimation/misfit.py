# SPDX-License-Identifier: Apache-2.0
"""Uncertainty from what stretches of the data disagree on, since no model is the robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.base_parameters import BaseParameters
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.noise import row_weights, weighted_sums

__all__ = ["STRETCHES", "Widened", "widened"]

STRETCHES = 16
"""Stretches that are left out in turn: 15 degrees of freedom for every variance."""
_ROUNDING = 1e-12
"""Relative eigenvalue of a covariance that is rounding."""
_LEFT = 0.02
"""Least share of the information on a direction that may be thought left without a stretch."""


class Widened(NamedTuple):
    """An estimate whose covariance holds the model's error, too.

    Attributes
    ----------
    estimate : Estimate
    discrepancy : (G,) [N·m]
        Root mean square error of torques in stretches that were not learned from: with the
        parameters' uncertainty, the standard deviation of a predicted torque.
    """

    estimate: Estimate
    discrepancy: FloatArray


def widened(
    estimate: Estimate,
    base: BaseParameters,
    stretches: Sequence[Statistics],
    correlation: FloatArray | None,
) -> Widened:
    """Widen an estimate's covariance to what its data disagree on from stretch to stretch.

    Independent noise makes the posterior covariance C of the base parameters. Friction that a
    model lacks acts alike for seconds, and moves the estimate from one stretch to the next by
    more. Leaving one stretch out moves it by δ = (C⁻¹ − H)⁻¹ g, of the stretch's information H and
    score g; the jackknife's covariance is J = (K−1)/K Σ δδᵀ (Efron 1982; blocks for dependent
    data, Künsch 1989). In every direction the larger of C and J counts.

    Parameters
    ----------
    estimate : Estimate
    base : BaseParameters
    stretches : sequence of Statistics
        Of the rows that were learned from, in the order of time.
    correlation : (G,) or None
        As the estimate was weighted.
    """
    total = sum(stretches[1:], stretches[0])
    covariance, beta = estimate.base_covariance, estimate.base_parameters
    if not np.isfinite(covariance).all():
        return Widened(estimate, total.rmse(beta))
    root = _root(covariance)
    weights = row_weights(estimate.noise_std, correlation)
    moves, square = [], np.zeros(len(total.count))
    for part in stretches:
        information, moment = weighted_sums(part, weights)
        left, axes = np.linalg.eigh(np.eye(root.shape[1]) - root.T @ information @ root)
        score = root.T @ (moment - information @ beta)
        moves.append(-axes @ ((axes.T @ score) / np.maximum(left, _LEFT)))
        square += part.residual_square(beta + root @ moves[-1])
    spread = np.sqrt((len(moves) - 1) / len(moves)) * np.array(moves)
    _, sizes, axes = np.linalg.svd(spread, full_matrices=False)
    more = axes[sizes > 1.0].T * np.sqrt(sizes[sizes > 1.0] ** 2 - 1.0)
    # the parameters follow the base parameters as their joint distribution says
    change = estimate.covariance @ base.mapping.T @ np.linalg.pinv(root).T @ more
    wide = estimate.covariance + change @ change.T
    return Widened(
        replace(
            estimate,
            covariance=wide,
            base_covariance=covariance + (root @ more) @ (root @ more).T,
            std=np.sqrt(np.maximum(np.diagonal(wide), 0.0)),
        ),
        np.sqrt(square / np.maximum(total.count, 1.0)),
    )


def _root(covariance: FloatArray) -> FloatArray:
    """Return R (b, r) with RRᵀ the covariance, without the directions that are rounding."""
    std = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    scale = np.where(std > 0.0, std, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale / scale[:, None])
    kept = values > _ROUNDING
    return np.asarray(std[:, None] * vectors[:, kept] * np.sqrt(values[kept]))
