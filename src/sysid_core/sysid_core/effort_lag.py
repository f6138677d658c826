# SPDX-License-Identifier: Apache-2.0
"""By how much efforts come later than the positions that they go with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch, learning_rows, rows_of
from sysid_core.dynamics.rows import Regression
from sysid_core.signals.interpolation import hermite

__all__ = ["find_contact_lag", "find_lag", "without_presliding"]

_STEP = 0.02
"""Periods of the cut-off from which a slope over the lag is taken: 7° of its fastest sine."""
_SHOWS = 1.0 / 6.0
"""Share of what is left that the slope over the lag explains of a sine whose lag pays so much."""

_SAMPLES = 1000  # That a lag is told from in contact, where rows take long


def find_lag(
    regression: Regression,
    batch: Batch,
    still: float,
    noise: FloatArray,
    at: Callable[[float], Batch],
) -> tuple[float, float]:
    """Return the lag [s] at which least of a batch's torques is left, and how much less [-].

    Whatever the base parameters are (Gauss-Newton, two steps). No lag and 1 where the torques
    show none.

    Parameters
    ----------
    still : float [-]
        See `rest_speed`.
    noise : (G,) [N·m]
        Of the rows.
    at : callable
        Returns the batch with efforts that come so much later [s] moved.
    """
    blocks, actuated = learning_rows(regression, batch, still).blocks, regression.robot.actuated
    weighed = [block.matrix / std for block, std in zip(blocks, noise, strict=True)]
    axes = np.linalg.qr(np.concatenate(weighed))[0]

    def left(lag: float) -> FloatArray:
        """Return what no base parameters explain of the torques, over their noise."""
        more = (at(lag).samples.effort - batch.samples.effort)[:, actuated].T
        targets = [
            (block.target + own[block.sample]) / std
            for block, own, std in zip(blocks, more, noise, strict=True)
        ]
        target = np.concatenate(targets)
        return np.asarray(target - axes @ (axes.T @ target))

    return _least(left, _STEP / batch.report.cutoff, _SHOWS)


def find_contact_lag(regression: Regression, batch: Batch) -> tuple[float, float]:
    """Return the same as `find_lag` for a robot in contact.

    Samples that are left out near changes of contacts are interpolated over.
    """
    samples = batch.samples
    few = batch.select(slice(None, None, max(1, len(batch) // _SAMPLES)))
    axes = np.linalg.qr(np.concatenate([b.matrix for b in rows_of(regression, few).blocks]))[0]

    def left(lag: float) -> FloatArray:
        """Return what no base parameters explain of the torques."""
        effort = hermite(samples.time, samples.effort, few.samples.time + lag)
        moved = replace(few, samples=replace(few.samples, effort=effort))
        target = np.concatenate([block.target for block in rows_of(regression, moved).blocks])
        return np.asarray(target - axes @ (axes.T @ target))

    return _least(left, _STEP / batch.report.cutoff, 0.0)


def _least(left: Callable[[float], FloatArray], step: float, shows: float) -> tuple[float, float]:
    """Return the lag [s] at which least is left, and how much less, by slopes over a step [s].

    No lag and 1 where the slope explains less than a share of what is left, which it `shows`.
    """
    lag, sizes = 0.0, list[float]()
    for _ in range(2):
        early, late = left(lag - step), left(lag + step)
        slope, twice = late - early, late + early
        if not slope.any():  # efforts that change at rest alone
            return 0.0, 1.0
        sizes.append(float(np.linalg.norm(twice)))
        along = float(slope @ twice) / float(slope @ slope)
        if len(sizes) == 1 and along**2 * (slope @ slope) < shows * sizes[0] ** 2:
            return 0.0, 1.0
        lag -= step * along
    return lag, sizes[0] / max(sizes[1], np.finfo(float).tiny)


def without_presliding(regression: Regression) -> Regression:
    """Return a regression whose friction changes sign at once; the same if it does so already."""
    chosen = regression.robot.description.friction_chosen
    if not any("presliding" in terms for terms in chosen.values()):
        return regression
    left = {
        joint: {name: scale for name, scale in terms.items() if name != "presliding"}
        for joint, terms in chosen.items()
    }
    return regression.with_friction({j: t for j, t in left.items() if t})
