# SPDX-License-Identifier: Apache-2.0
"""The function that ``entropic`` minimises: derivatives in batch, and an exact line search."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.estimation.coordinates import Coordinates
from sysid_core.estimation.divergence import Divergence
from sysid_core.estimation.inequalities import Inequalities
from sysid_core.estimation.measured import Measured
from sysid_core.parameters import INERTIAL_TERMS

__all__ = ["Curvature", "Data", "Objective", "Point", "exact_step"]

_WIDTH = len(INERTIAL_TERMS)
_FARTHEST = 0.99  # share of the way to the boundary that a step may go


class Data(NamedTuple):
    """Weighted data on the base parameters: ½βᵀHβ − mᵀβ."""

    information: FloatArray  # (r, r)
    moment: FloatArray  # (r,)
    learned: FloatArray
    """(b, b) what of the information on all base parameters came from the data, not from an
    anchor."""


class Point(NamedTuple):
    """A strictly feasible point and what the derivatives need there."""

    x: FloatArray  # (n,)
    inverse: FloatArray  # (k, 4, 4): J⁻¹ of each body's pseudo-inertia
    slack: FloatArray  # (q,)
    slope: FloatArray  # (n,) gradient in (z, β) of all terms but the data's
    beta: FloatArray  # (r,)


class Curvature(NamedTuple):
    """The Hessian of everything but the data, as far as it has structure."""

    blocks: FloatArray  # (k, 10, 10) of the free bodies
    diagonal: FloatArray  # (s,) of the free scalars
    dense: FloatArray  # (e,) weights of inequalities between parameters of several bodies


class Objective:
    """½βᵀHβ − mᵀβ + divergence − w Σ log(slack) + ½ Σ (aᵀx − y)²/s².

    The last sum holds direct measurements of parameters. All terms but the
    quadratic ones are −w·log of affine functions, hence self-concordant after scaling.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        divergence: Divergence,
        inequalities: Inequalities,
        barrier_weight: float,
        measured: Measured,
    ) -> None:
        self.coordinates = coordinates
        self.divergence = divergence
        self.inequalities = inequalities
        self.barrier_weight = barrier_weight
        self.measured = measured
        self._index_blocks()
        self._index_rows()

    def _index_blocks(self) -> None:
        """Find where the entries of the block-diagonal Hessian land among base parameters."""
        c, d = self.coordinates, self.divergence
        place = np.full(c.size, -1)
        place[c.columns] = np.arange(c.rank)
        body = np.arange(d.split).reshape(len(d.bodies), _WIDTH)
        rows = np.repeat(body, _WIDTH, axis=1).ravel()
        columns = np.tile(body, (1, _WIDTH)).ravel()
        keep = np.flatnonzero((place[rows] >= 0) & (place[columns] >= 0))
        split = len(c.others)
        self._block_source = keep
        self._block_target = (split + place[rows[keep]]) * c.size + split + place[columns[keep]]
        scalars = np.arange(d.split, c.size)
        kept = np.flatnonzero(place[scalars] >= 0)
        self._scalar_source = kept
        self._scalar_target = (split + place[scalars[kept]]) * (c.size + 1)
        self._body_spread = c.spread[: d.split].reshape(len(d.bodies), _WIDTH, split)
        self._scalar_spread = c.spread[d.split :]
        self._work = np.empty((c.size, c.size))

    def _index_rows(self) -> None:
        """Sort inequalities by what they touch: one body, or parameters across bodies."""
        c, d = self.coordinates, self.divergence
        matrix = self.inequalities.matrix
        touched = matrix != 0.0
        bodies = touched[:, : d.split].reshape(len(matrix), len(d.bodies), _WIDTH).any(axis=2)
        scalar = touched[:, d.split :]
        local = (bodies.sum(axis=1) == 1) & ~scalar.any(axis=1)
        single = ~bodies.any(axis=1) & (scalar.sum(axis=1) == 1)
        self._local, self._single = np.flatnonzero(local), np.flatnonzero(single)
        self._dense = np.flatnonzero(~local & ~single)
        owner = np.argmax(bodies[self._local], axis=1) if len(self._local) else self._local
        entries = matrix[self._local, : d.split].reshape(len(self._local), len(d.bodies), _WIDTH)
        own = entries[np.arange(len(owner)), owner]
        products = (own[:, :, None] * own[:, None, :]).reshape(len(owner), _WIDTH**2)
        self._local_products = products
        self._local_owner = np.zeros((len(d.bodies), len(owner)))
        self._local_owner[owner, np.arange(len(owner))] = 1.0
        self._single_squares = matrix[self._single, d.split :].T ** 2
        rows = np.vstack([matrix[self._dense], self.measured.rows])
        self._dense_rows = np.hstack([rows @ c.spread, rows[:, c.columns]])

    def at(self, x: FloatArray) -> Point:
        """Return the point at a strictly feasible x."""
        inverse = np.asarray(np.linalg.inv(self.divergence.pseudo_inertias(x)), dtype=float)
        slack = self.inequalities.slack(x)
        slope = self.coordinates.gradient(self.prior_gradient(x, inverse, slack))
        return Point(x, inverse, slack, slope, self.coordinates.mapping @ x)

    def steadied(self, point: Point) -> Point:
        """Return a point with inverses that rounding leaves positive definite near the edge."""
        root = np.linalg.inv(np.linalg.cholesky(self.divergence.pseudo_inertias(point.x)))
        return point._replace(inverse=np.swapaxes(root, 1, 2) @ root)

    def prior_gradient(self, x: FloatArray, inverse: FloatArray, slack: FloatArray) -> FloatArray:
        """Return the gradient (n,) in x of all terms but the data's, given what `at` finds."""
        gradient = self.divergence.gradient(x, inverse)
        if len(slack):
            gradient -= (self.barrier_weight / slack) @ self.inequalities.matrix
        if len(self.measured.rows):
            gradient += self.measured.gradient(x)
        return gradient

    def gradient(self, point: Point, data: Data, share: float = 1.0) -> FloatArray:
        """Return the gradient (n,) in (z, β), with the data weighted by `share`."""
        gradient = point.slope.copy()
        pull = data.information @ point.beta - data.moment
        gradient[len(self.coordinates.others) :] += share * pull
        return gradient

    def prior_curvature(self, point: Point) -> Curvature:
        """Return the Hessian of all terms but the data's."""
        blocks, diagonal = self.divergence.curvature(point.x, point.inverse)
        weights = self.barrier_weight / point.slack**2
        if len(self._local):
            added = self._local_owner @ (weights[self._local, None] * self._local_products)
            blocks = blocks + added.reshape(blocks.shape)
        if len(self._single):
            diagonal = diagonal + self._single_squares @ weights[self._single]
        return Curvature(blocks, diagonal, weights[self._dense])

    def hessian(self, curvature: Curvature, data: Data, share: float = 1.0) -> FloatArray:
        """Return the Hessian (n, n) in (z, β), upper triangle; the array is reused."""
        c, (blocks, diagonal, dense) = self.coordinates, curvature
        split, M = len(c.others), self._work
        turned = np.concatenate(
            [
                (blocks @ self._body_spread).reshape(len(blocks) * _WIDTH, split),
                diagonal[:, None] * self._scalar_spread,
            ]
        )
        M[:split, :split] = turned[c.others]
        M[:split, :split] += c.tied[c.moved].T @ turned[c.columns[c.moved]]
        M[:split, split:] = turned[c.columns].T
        np.multiply(data.information, share, out=M[split:, split:])
        flat = M.reshape(-1)
        flat[self._block_target] += blocks.reshape(-1)[self._block_source]
        flat[self._scalar_target] += diagonal[self._scalar_source]
        if len(self._dense_rows):
            weights = np.concatenate([dense, self.measured.weight])
            # the lower triangle is never read, so adding to what it holds does no harm
            M += (self._dense_rows.T * weights) @ self._dense_rows
        return M

    def rates(self, point: Point, change: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return J⁻¹ΔJ (k, 4, 4), and relative changes (f + q,) of friction and slacks."""
        d = self.divergence
        index = d.split + d.positive
        ratios = change[index] / point.x[index]
        if len(point.slack):
            ratios = np.concatenate([ratios, (self.inequalities.matrix @ change) / point.slack])
        return point.inverse @ d.pseudo_inertias(change), ratios

    def logarithms(self, bodies: FloatArray, ratios: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return rates r and weights w so that all logarithms cost −Σ w log(1 + t r).

        For what `rates` returns, whose matrices are similar to symmetric ones.
        """
        weights = np.concatenate([np.repeat(self.divergence.weight, 4), self.ratio_weights])
        return np.concatenate([np.linalg.eigvals(bodies).real.ravel(), ratios]), weights

    @cached_property
    def weight(self) -> float:
        """Sum of the weights of all logarithms."""
        return float(4.0 * self.divergence.weight.sum() + self.ratio_weights.sum())

    @cached_property
    def ratio_weights(self) -> FloatArray:
        """Weights (f + q,) of the logarithms of friction terms and slacks."""
        d = self.divergence
        barriers = np.full(self.inequalities.size, self.barrier_weight)
        return np.concatenate([d.logarithmic[d.positive], barriers])


def exact_step(decrement_square: float, rates: FloatArray, weights: FloatArray) -> float:
    """Return the step length that minimises the objective along a Newton direction.

    Along the direction the objective is a parabola plus −Σ w log(1 + t r); its slope at 0 is
    minus the squared decrement and its curvature there the squared decrement.
    """
    pull = float(weights @ rates)
    parabola = max(0.0, decrement_square - float(weights @ rates**2))
    lowest = float(rates.min(initial=0.0))
    high = _FARTHEST / -lowest if lowest < 0.0 else 2.0
    low, t = 0.0, min(1.0, 0.5 * high) if lowest < 0.0 else 1.0
    for _ in range(30):
        left = 1.0 + t * rates
        slope = -decrement_square + pull + parabola * t - float(weights @ (rates / left))
        curve = parabola + float(weights @ (rates / left) ** 2)
        if slope > 0.0:
            high = t
        else:
            low = t
        following = t - slope / curve
        if not low < following < high:
            following = 0.5 * (low + high)
        if abs(following - t) < 1e-3 * following:
            return following
        t = following
    return t
