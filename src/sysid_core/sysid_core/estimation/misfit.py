# SPDX-License-Identifier: Apache-2.0
"""Uncertainty from what stretches of the data disagree on, since no model is the robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.base_parameters import BaseParameters
from sysid_core.dynamics.sums import Sums
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.gaussian import Gaussian, spread_over_prior
from sysid_core.estimation.noise import row_weights, weighted_sums
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.setting import Setting

__all__ = ["STRETCHES", "Widened", "no_surer_than_prior", "widened"]

STRETCHES = 16
"""Stretches that are left out in turn: 15 degrees of freedom for every variance."""
_ROUNDING = 1e-12
"""Relative eigenvalue of a covariance that is rounding."""
_LEFT = 0.02
"""Least share of the information on a direction that may be thought left without a stretch."""


class Widened(NamedTuple):
    """An estimate whose covariance holds the model's error, too."""

    estimate: Estimate
    discrepancy: FloatArray
    """(G,) [N·m] root mean square error of torques in stretches that were not learned from: with
    the parameters' uncertainty, the standard deviation of a predicted torque."""


def widened(
    estimate: Estimate,
    base: BaseParameters,
    stretches: Sequence[Sums],
    correlation: FloatArray | None,
) -> Widened:
    """Widen an estimate's covariance to what its data disagree on from stretch to stretch.

    Independent noise makes the posterior covariance C of the base parameters. Friction that a
    model lacks acts alike for seconds, and moves the estimate from one stretch to the next by
    more. Leaving one stretch out moves it by δ = (C⁻¹ − H)⁻¹ g, of the stretch's information H and
    score g; the jackknife's covariance is J = (K−1)/K Σ δδᵀ (Efron 1982; blocks for dependent
    data, Künsch 1989). In every direction the larger of C and J counts. The stretches' rows were
    learned from, in the order of time, with that correlation (G,).
    """
    total = Sums.total(stretches)
    covariance, beta = estimate.base_covariance, estimate.base_parameters
    if not np.isfinite(covariance).all():
        return Widened(estimate, total.statistics().rmse(beta))
    root = _root(covariance)
    weights = row_weights(estimate.noise_std, correlation)
    moves, square = [], np.zeros(len(total.count))
    for part in stretches:
        information, moment = weighted_sums(part.statistics(), weights)
        left, axes = np.linalg.eigh(np.eye(root.shape[1]) - root.T @ information @ root)
        score = root.T @ (moment - information @ beta)
        moves.append(-axes @ ((axes.T @ score) / np.maximum(left, _LEFT)))
        square += part.residual_square(beta + root @ moves[-1])
    spread = np.sqrt((len(moves) - 1) / len(moves)) * np.array(moves)
    _, sizes, axes = np.linalg.svd(spread, full_matrices=False)
    more = axes[sizes > 1.0].T * np.sqrt(sizes[sizes > 1.0] ** 2 - 1.0)
    # the parameters follow the base parameters as their joint distribution says
    change = estimate.covariance @ base.mapping.T @ np.linalg.pinv(root).T @ more
    discrepancy = np.sqrt(square / np.maximum(total.count, 1.0))
    return Widened(_grown(estimate, base, change), discrepancy)


def no_surer_than_prior(estimate: Estimate, problem: Problem) -> Estimate:
    """Widen an estimate's covariance to what the prior knew where the data do not determine.

    The divergence is steep at small bodies. Data that shrink a body, or a constraint that holds
    it, would make all that they leave open look known. So in every direction the covariance is at
    least that of the same data with the prior's curvature at its mean.
    """
    if not np.isfinite(estimate.base_covariance).all():
        return estimate
    setting = Setting(problem, 0.0)
    c, prior = setting.coordinates, setting.gaussian
    sums = weighted_sums(problem.statistics, row_weights(estimate.noise_std, problem.correlation))
    root = _root(c.mapping @ prior.covariance @ c.mapping.T)
    told, axes = np.linalg.eigh(root.T @ c.reduce(*sums)[0] @ root)
    shrunk = root @ (axes / np.sqrt(1.0 + np.maximum(told, 0.0)))
    base = Gaussian(c.mapping @ prior.mean, shrunk @ shrunk.T)
    least = spread_over_prior(c, prior, base).covariance
    for row, weight in zip(setting.measured.rows, setting.measured.weight, strict=True):
        gain = least @ row
        least = least - np.outer(gain, gain) / (1.0 / weight + row @ gain)
    free = np.ix_(c.free, c.free)
    own = _root(estimate.covariance[free])
    inverse = np.linalg.pinv(own)
    sizes, axes = np.linalg.eigh(inverse @ least @ inverse.T)
    surer = sizes > 1.0
    more = np.zeros((len(estimate.parameters), int(surer.sum())))
    more[c.free] = own @ axes[:, surer] * np.sqrt(sizes[surer] - 1.0)
    return _grown(estimate, problem.base, more)


def _grown(estimate: Estimate, base: BaseParameters, more: FloatArray) -> Estimate:
    """Return an estimate whose covariance is larger by ``more @ more.T``, more (p, k)."""
    covariance = estimate.covariance + more @ more.T
    of_base = base.mapping @ more
    return replace(
        estimate,
        covariance=covariance,
        base_covariance=estimate.base_covariance + of_base @ of_base.T,
        std=np.sqrt(np.maximum(np.diagonal(covariance), 0.0)),
    )


def _root(covariance: FloatArray) -> FloatArray:
    """Return R (b, r) with RRᵀ the covariance, without the directions that are rounding."""
    std = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    scale = np.where(std > 0.0, std, 1.0)
    values, vectors = np.linalg.eigh(covariance / scale / scale[:, None])
    kept = values > _ROUNDING
    return np.asarray(std[:, None] * vectors[:, kept] * np.sqrt(values[kept]))
