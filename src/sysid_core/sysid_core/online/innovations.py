# SPDX-License-Identifier: Apache-2.0
"""What innovations say of a change, with everything else that they may come from averaged out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import EstimationError
from sysid_core.estimation.noise import weighted_sums

__all__ = ["STILL", "Evidence", "Innovations", "Noise", "Own", "negligible", "solvable"]

_NEGLIGIBLE = 0.01
"""Torque errors below this share of a joint's torque count as that share [-]."""

STILL = 1e-4
"""Share of a joint's usual torque below which nothing is measured [-]."""


@contextmanager
def solvable(what: str) -> Iterator[None]:
    """Raise an `EstimationError` of what was asked for where rounding defeats a factorisation."""
    try:
        yield
    except np.linalg.LinAlgError as error:
        raise EstimationError(f"{what} failed ({error})") from error


def negligible(torque: FloatArray, usual: FloatArray) -> FloatArray:
    """Return the mean square (G,) [N²·m²] of errors not worth a word.

    Of torques with the mean square `torque`, at joints where it is `usual`.
    """
    return _NEGLIGIBLE**2 * torque + STILL**2 * usual + 1e-18


class Noise(NamedTuple):
    """What innovations hold besides errors of the parameters."""

    variance: FloatArray  # (G,) [N²·m²] of one row
    factors: FloatArray
    """(G, L) [-] rows ≥ 1 that stand for one independent row, within stretches of 1, 2, 4, …
    rows."""

    def factor(self, rows: FloatArray) -> FloatArray:
        """Return the factor (G,) of stretches of so many rows (G,)."""
        level = np.log2(np.maximum(rows, 1.0)).astype(int)
        last = self.factors.shape[1] - 1
        return np.take_along_axis(self.factors, np.minimum(level, last)[:, None], axis=1)[:, 0]

    def independent(self, square: FloatArray, count: FloatArray) -> tuple[float, float]:
        """Return errors of so many rows (G,), Σe² (G,) [N²·m²], as of rows that are independent.

        They are the square [-], in variances, and the number of such rows.
        """
        factor = self.factor(count)
        return float((square / (self.variance * factor)).sum()), float((count / factor).sum())

    def with_residuals(self, square: FloatArray, rows: FloatArray, weight: float) -> Noise:
        """Return the noise with the variance raised where residuals of so many rows show more.

        The variance until now counts as `weight` independent rows.
        """
        before = weight * self.factors[:, -1]
        seen = (before * self.variance + square) / (before + rows)
        return Noise(np.maximum(self.variance, seen), self.factors)


class Evidence(NamedTuple):
    """The log-likelihood ``hᵀφ − ½ φᵀJφ`` of a change φ (k,) against no change."""

    information: FloatArray  # (k, k): J
    moment: FloatArray  # (k,): h

    def select(self, index: IndexArray) -> Evidence:
        """Return the evidence on some coefficients where the others are zero."""
        return Evidence(self.information[np.ix_(index, index)], self.moment[index])

    def likeness(self, std: FloatArray) -> tuple[float, float]:
        """Return what coefficients thought N(0, std²) explain, and what they would by chance.

        The two are ``hᵀ(J + P)⁻¹h`` and its mean without a change, ``tr (J + P)⁻¹J``.
        """
        both = np.column_stack([self.moment, self.information])
        found = np.linalg.solve(self.information + np.diag(1.0 / std**2), both)
        return float(self.moment @ found[:, 0]), float(np.trace(found[:, 1:]))

    def explained_each(self, index: IndexArray, std: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what m changes, each of some coefficients (m, k), explain and what they cost.

        For coefficients that were thought N(0, std²) the two (m,) are ``hᵀ(J + P)⁻¹h`` and
        ``½ log det(I + P⁻¹J)``: half the one less the other is the logarithm of the Bayes factor.
        """
        information = self.information[index[:, :, None], index[:, None, :]]
        scaled = std[:, :, None] * information * std[:, None, :]
        root = np.linalg.cholesky(np.eye(index.shape[1]) + scaled)
        turned = np.linalg.solve(root, (std * self.moment[index])[:, :, None])
        cost = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        return (turned**2).sum(axis=(1, 2)), cost


class Own(NamedTuple):
    """A torque that every group has by a coefficient of its own: an error of its gain, say."""

    direction: FloatArray  # (n,) the rows times this are the torque per coefficient
    # mean, variance: (G,) of the coefficients.
    mean: FloatArray
    variance: FloatArray


class Innovations:
    """Innovations of some samples: ``e = A δ + C φ + ν``.

    δ ~ N(0, Σ) is what is not known of the robot's base parameters and ν is coloured noise; both
    are averaged out, so that only a change φ is left to be judged or estimated. The base vector
    (b,) is the predicting model's, its covariance is Σ. What the groups have of their `own` is
    averaged out as well; it may be along columns (n − b) that the rows have beyond the base.
    """

    def __init__(
        self,
        statistics: Statistics,
        base_vector: FloatArray,
        covariance: FloatArray,
        noise: Noise,
        own: Sequence[Own] = (),
    ) -> None:
        size, beyond = len(base_vector), statistics.moment.shape[1] - len(base_vector)
        residual = statistics.shifted(-np.pad(base_vector, (0, beyond)))
        self._residual, self._base_vector = residual.leading(size), base_vector
        factor = noise.factor(statistics.count)
        self._weight = 1.0 / (noise.variance * factor)
        gram, moment = weighted_sums(residual, self._weight)
        gram, moment = gram[:size, :size], moment[:size]
        square, variance = float(self._weight @ residual.square), np.zeros(0)
        if own:
            along, mean, spread = (np.stack(part, axis=-1) for part in zip(*own, strict=True))
            torque = self._weight[:, None, None] * (residual.gram @ along)
            cross = np.concatenate(np.swapaxes(torque[:, :size], 1, 2))
            between = np.zeros((*mean.shape, *mean.shape))
            each = np.arange(len(mean))
            between[each, :, each] = along.T @ torque
            gram = np.block([[gram, cross.T], [cross, between.reshape(len(cross), -1)]])
            scores = self._weight[:, None] * (residual.moment @ along)
            moment = np.concatenate([moment, scores.ravel()])
            mean, variance = np.concatenate([np.zeros(size), mean.ravel()]), spread.ravel()
            square -= float((2.0 * moment - gram @ mean) @ mean)
            moment = moment - gram @ mean
        self._gram, self._moment = gram, moment
        # variance: (n − b,) of what the groups have of their own, beside Σ
        self._covariance, self._variance = covariance, variance
        # (Σ⁻¹ + G)⁻¹ = (I + ΣG)⁻¹Σ, for a Σ that may be singular
        both = np.eye(len(gram)) + self._spread(gram)
        self._factor = lu_factor(both, overwrite_a=True, check_finite=False)
        self.count = float((statistics.count / factor).sum())  # Number of independent rows
        # [-] sum of squares in units of what is expected; about `count` where nothing changed
        self.square = square - float(moment @ self._absorbed(moment))

    def _spread(self, columns: FloatArray) -> FloatArray:
        """Return Σ times columns (n, …)."""
        base, own = np.split(columns, [len(self._covariance)])
        return np.concatenate([self._covariance @ base, (self._variance * own.T).T])

    def _absorbed(self, columns: FloatArray) -> FloatArray:
        """Return what the parameters' own uncertainty takes up of columns (n, …)."""
        scaled = self._spread(columns)
        return np.asarray(lu_solve(self._factor, scaled, overwrite_b=True, check_finite=False))

    def evidence(self, directions: FloatArray, *, gains: bool = False) -> Evidence:
        """Return the evidence on changes of the base parameters (b, k), and on the groups' gains.

        Gains are G more coefficients, each of which scales the predicted torque of one group.
        """
        size = len(directions)
        cross, moment = self._gram[:, :size] @ directions, directions.T @ self._moment[:size]
        square = directions.T @ cross[:size]
        if gains:
            predicted = self._weight[:, None] * (self._residual.gram @ self._base_vector)
            scores = self._weight * (self._residual.moment @ self._base_vector)
            between = directions.T @ predicted.T
            own = np.diag(predicted @ self._base_vector)
            square = np.block([[square, between], [between.T, own]])
            cross, moment = np.hstack([cross, predicted.T]), np.concatenate([moment, scores])
        absorbed = self._absorbed(cross)
        return Evidence(square - cross.T @ absorbed, moment - absorbed.T @ self._moment)
