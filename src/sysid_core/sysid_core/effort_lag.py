# SPDX-License-Identifier: Apache-2.0
"""By how much efforts come later than the positions that they go with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch, learning_rows
from sysid_core.dynamics.rows import Regression
from sysid_core.signals.interpolation import hermite

__all__ = ["LAG_PAYS", "LONGEST_LAG", "contact_lag", "find_lag", "without_presliding"]

LAG_PAYS = float(np.log(1.5))
"""Log ratio of errors by which moving the efforts must predict better: friction felt late looks
like a small lag, and whoever holds a model to efforts as they came would find it worse."""
LONGEST_LAG = 0.1
"""Lags [s] beyond are no driver's filter, but efforts that belong to another motion."""
_STEP = 0.02
"""Periods of the cut-off from which a slope over the lag is taken: 7° of its fastest sine."""
_SHOWS = 1.0 / 6.0
"""Share of what is left that the slope over the lag explains of a sine whose lag pays so much."""

_TRIED = 8.0
"""Lags per period of the cut-off that are tried: an eighth is 45° of its fastest sine."""
_QUIETEST = 1e-6
"""Least noise of a joint as a share of the noisiest one's: steps of an effort may have none."""
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
    if not noise.any():
        return 0.0, 1.0
    noise = np.maximum(noise, _QUIETEST * noise.max())
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

    return _least(left, _STEP / batch.report.cutoff)


def contact_lag(regression: Regression, batch: Batch) -> float:
    """Return the lag [s] of the efforts of a robot in contact if moving them pays, else 0.

    Least of the torques is left at it, whatever the base parameters are, of all lags that a driver
    may have. Samples that are left out near changes of contacts are interpolated over.
    """
    samples = batch.samples
    few = batch.select(slice(None, None, max(1, len(batch) // _SAMPLES)))
    rows = regression.rows(few.samples)
    ((matrix, target, sample),), by_effort = rows.blocks, rows.by_effort
    if by_effort is None or not len(target):
        return 0.0
    axes = np.linalg.qr(matrix)[0]

    def left(lag: float) -> float:
        """Return the square [N²·m²] of what no base parameters explain of the torques."""
        effort = hermite(samples.time, samples.effort, few.samples.time + lag)
        more = np.nan_to_num(effort - few.samples.effort)
        moved = target + np.einsum("mj,mj->m", by_effort, more[sample])
        return float(moved @ moved - np.sum((axes.T @ moved) ** 2))

    step = 1.0 / (_TRIED * batch.report.cutoff)
    lags = step * np.arange(-np.floor(LONGEST_LAG / step), np.floor(LONGEST_LAG / step) + 1.0)
    squares = np.array([left(lag) for lag in lags])
    best = int(np.clip(np.argmin(squares), 1, len(lags) - 2))
    before, least, after = squares[best - 1 : best + 2]
    bend = before - 2.0 * least + after
    lag = float(lags[best] + (0.5 * step * (before - after) / bend if bend > 0.0 else 0.0))
    pays = left(0.0) >= np.exp(2.0 * LAG_PAYS) * max(left(lag), 0.0)
    return lag if pays and abs(lag) < LONGEST_LAG else 0.0


def _least(left: Callable[[float], FloatArray], step: float) -> tuple[float, float]:
    """Return the lag [s] at which least is left, and how much less, by slopes over a step [s].

    No lag and 1 where the slope explains less than a share of what is left, `_SHOWS`.
    """
    lag, sizes = 0.0, list[float]()
    for _ in range(2):
        early, late = left(lag - step), left(lag + step)
        slope, twice = late - early, late + early
        if not slope.any():  # efforts that change at rest alone
            return 0.0, 1.0
        sizes.append(float(np.linalg.norm(twice)))
        along = float(slope @ twice) / float(slope @ slope)
        if len(sizes) == 1 and along**2 * (slope @ slope) < _SHOWS * sizes[0] ** 2:
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
