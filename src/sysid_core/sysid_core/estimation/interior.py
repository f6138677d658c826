# SPDX-License-Identifier: Apache-2.0
"""Strictly feasible points: one to start from, and the way back to it."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import EstimationError
from sysid_core.estimation.conic import cvxpy, run
from sysid_core.estimation.divergence import Divergence
from sysid_core.estimation.gaussian import prior_covariance
from sysid_core.estimation.inequalities import Inequalities
from sysid_core.inertia import pseudo_inertia_basis
from sysid_core.parameters import INERTIAL_TERMS

__all__ = ["interior_point", "is_inside", "relative_margins", "repaired"]

_ROOM = 1e-3  # slack in prior standard deviations that makes a point worth starting from


def relative_margins(divergence: Divergence, x: FloatArray) -> FloatArray:
    """Return the smallest eigenvalue of J₀^-½ J J₀^-½ per body, then f/f₀ per friction term."""
    L, J = np.linalg.cholesky(divergence.inverse), divergence.pseudo_inertias(x)
    eigenvalues = np.linalg.eigvalsh(np.swapaxes(L, 1, 2) @ J @ L)[:, 0]
    index = divergence.split + divergence.positive
    return np.concatenate([eigenvalues, x[index] / divergence.mean[index]])


def is_inside(divergence: Divergence, inequalities: Inequalities, x: FloatArray) -> bool:
    """Return whether every constraint holds strictly."""
    return divergence.contains(x) and bool((inequalities.slack(x) > 0.0).all())


def repaired(
    divergence: Divergence,
    inequalities: Inequalities,
    x: FloatArray,
    inside: FloatArray,
    room: float = _ROOM,
) -> FloatArray:
    """Return the point nearest to x on the segment to `inside` where margins reach `room`."""
    least = np.minimum(room, relative_margins(divergence, inside))
    least_slack = np.minimum(room, inequalities.slack(inside))

    def roomy(share: float) -> bool:
        point = x + share * (inside - x)
        margins, slack = relative_margins(divergence, point), inequalities.slack(point)
        return bool((margins >= least).all() and (slack >= least_slack).all())

    low, high = 0.0, 1.0
    if roomy(low):
        return x
    for _ in range(30):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if roomy(middle) else (middle, high)
    return x + high * (inside - x)


def interior_point(divergence: Divergence, inequalities: Inequalities) -> FloatArray:
    """Return a strictly feasible point: the prior's mean if it is one.

    Else the largest common margin t is sought: J ⪰ t J₀, f ≥ t f₀, slacks ≥ t.

    Raises
    ------
    EstimationError
        If the constraints contradict each other.
    """
    mean = divergence.mean
    if (inequalities.slack(mean) >= _ROOM).all():
        return mean
    cp = cvxpy()
    scale = np.sqrt(np.diagonal(prior_covariance(divergence)))
    change, t = cp.Variable(len(mean)), cp.Variable()
    x = mean + cp.multiply(scale, change)
    constraints = [inequalities.matrix @ x - inequalities.bound >= t, t <= 0.1]
    index = divergence.split + divergence.positive
    constraints.append(cp.multiply(1.0 / mean[index], x[index]) >= t)
    width, E = len(INERTIAL_TERMS), pseudo_inertia_basis()
    for k, L in enumerate(np.linalg.cholesky(divergence.inverse)):
        whitened = (L.T @ E @ L).reshape(width, 16)
        body = x[width * k : width * (k + 1)]
        J = cp.reshape(whitened.T @ body, (4, 4), order="C")
        constraints.append(0.5 * (J + J.T) - t * np.eye(4) >> 0)
    problem = cp.Problem(cp.Maximize(t - 1e-6 * cp.sum_squares(change)), constraints)
    try:
        run(problem, "CLARABEL")
    except EstimationError as err:
        raise EstimationError(_contradiction(inequalities, mean)) from err
    point = np.asarray(mean + scale * change.value)
    if not is_inside(divergence, inequalities, point):
        raise EstimationError(_contradiction(inequalities, mean))
    return point


def _contradiction(inequalities: Inequalities, mean: FloatArray) -> str:
    broken = [
        label
        for label, slack in zip(inequalities.labels, inequalities.slack(mean), strict=True)
        if slack < _ROOM
    ]
    return (
        "the constraints contradict each other; loosen one of those that the prior breaks: "
        + ", ".join(broken[:5])
    )
