# SPDX-License-Identifier: Apache-2.0
"""Names when something outside pushes a robot on legs, pulls it or lies on it."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.batch import rest_speed
from sysid_core.diagnostics import Diagnostic
from sysid_core.disturbances import Disturbed
from sysid_core.dynamics.rows import Regression
from sysid_core.gathering import Gathered

__all__ = ["find_outside_forces"]

_WINDOW, _MOST = 0.2, 400  # [s] of a window, and how many of them at most
_EACH = 10  # Samples of a window that are looked at
_FEWEST = 16  # Windows from which one can stand out
_LEAST = 0.03
"""Share of the robot's weight: errors of the model make as much of a force as that."""
_CERTAIN = 5.0
"""Standard errors from which a window tells a force, and times what a quarter of the windows stay
below: what a model lacks pushes in all of them."""
_EXPLAINED = 0.5
"""Share of the squared errors that a force on the base must explain [-]."""
_BESIDE = 0.5
"""Share of it that a window needs next to one that stands out: forces begin within one."""
_MINORITY = 0.5
"""Share of the windows beyond which it is the robot without the force that stands out."""
_DOWN = 0.9  # Cosine of the angle to gravity within which a force is a load's
_RIDGE = 1e-9  # Relative, keeps what a window does not show solvable


def find_outside_forces(
    regression: Regression, parameters: FloatArray, gathered: Gathered, still: float
) -> Disturbed:
    """Return when a force acted on a robot's base that does not act otherwise, and what to say.

    A person who leans on a walking robot, a rope or a load is learned as part of it. In windows,
    the wrench at the base is fitted that explains best what the model leaves; there is a force
    where that differs from the median of all windows. `parameters` (p,) were learned, `still` as
    in `rest_speed`.
    """
    found = _forces(regression, parameters, gathered, still)
    if found is None:
        return Disturbed()
    weight = abs(float(parameters[regression.layout.masses].sum()))
    weight *= float(np.linalg.norm(regression.robot.description.gravity))
    certain = _CERTAIN * max(1.0, float(np.quantile(found.certainty, 0.25)))
    plain = np.linalg.norm(found.force, axis=1) > _LEAST * weight
    apart = plain & (found.explained > _EXPLAINED) & (found.certainty > certain)
    if not apart.any() or apart.mean() > _MINORITY:
        return Disturbed()
    apart |= _beside(apart) & (found.certainty > _BESIDE * certain)
    mean = np.median(found.force[apart], axis=0)
    message = _described(mean, regression.robot.description.gravity)
    message += " in a part of the recording ({where}) and not in the rest"
    said = Diagnostic("outside_force", message, hint="leave that out by {option}")
    return Disturbed.of(said, gathered, found.edges, found.window[apart].tolist())


class _Forces(NamedTuple):
    """What acts in windows, beyond what acts in most."""

    window: IndexArray  # (m,) which of them tell anything
    edges: IndexArray  # First sample of each window, and the end of the last
    force: FloatArray  # (m, 3) [N] in the world
    explained: FloatArray  # (m,) share of the squared errors
    certainty: FloatArray  # (m,) standard errors that it is from none


def _forces(
    regression: Regression, parameters: FloatArray, gathered: Gathered, still: float
) -> _Forces | None:
    samples = gathered.batch.samples.select(slice(gathered.split))
    span = float(np.ptp(samples.time)) if len(samples) else 0.0
    count = min(_MOST, int(span / _WINDOW))
    if count < _FEWEST or not regression.robot.floating:
        return None
    changes = np.flatnonzero(np.diff(gathered.source[: gathered.split])) + 1
    even = np.ceil(np.linspace(0, gathered.split, count + 1)).astype(int)
    edges = np.unique(np.concatenate([even, changes]))
    places = (np.linspace(a, b - 1, min(_EACH, b - a)) for a, b in pairwise(edges))
    picked = np.unique(np.concatenate(list(places)).astype(int))
    own = np.searchsorted(edges, picked, side="right") - 1
    gram, moment = np.zeros((len(edges) - 1, 6, 6)), np.zeros((len(edges) - 1, 6))
    square, rows = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    rest = rest_speed(samples, still)
    for part in regression.outside_wrenches(samples.select(picked), parameters, rest):
        window, A = own[part.sample], part.columns
        np.add.at(gram, window, A.swapaxes(1, 2) @ A)
        np.add.at(moment, window, np.einsum("mri,mr->mi", A, part.left))
        np.add.at(square, window, np.sum(part.left**2, axis=1))
        np.add.at(rows, window, part.left.shape[1])
    seen = np.flatnonzero((square > 0.0) & (np.trace(gram, axis1=1, axis2=2) > 0.0))
    if len(seen) < _FEWEST:
        return None
    return _beyond_median(seen, edges, gram[seen], moment[seen], square[seen], rows[seen])


def _beyond_median(
    window: IndexArray,
    edges: IndexArray,
    gram: FloatArray,
    moment: FloatArray,
    square: FloatArray,
    rows: FloatArray,
) -> _Forces:
    """Solve each window's sums for its wrench, and compare it with the median one."""
    size = np.trace(gram, axis1=1, axis2=2)[:, None, None] / 6.0
    inverse = np.linalg.inv(gram + _RIDGE * size * np.eye(6))
    wrench = np.einsum("kij,kj->ki", inverse, moment)
    usual = np.median(wrench, axis=0)
    before = square - 2.0 * moment @ usual + np.einsum("kij,i,j->k", gram, usual, usual)
    gain = np.einsum("kij,ki,kj->k", gram, wrench - usual, wrench - usual)
    noise = np.median(np.maximum(before - gain, 0.0) / rows)
    force = (usual - wrench)[:, :3]  # what pushes the robot, its drives need not
    # a window's samples are neighbours, whose errors are much the same
    covariance = np.maximum(noise, 1e-300) * _EACH * inverse[:, :3, :3]
    certainty = np.einsum(
        "ki,ki->k", force, np.linalg.solve(covariance, force[:, :, None])[:, :, 0]
    )
    return _Forces(
        window,
        edges,
        force,
        gain / np.maximum(before, 1e-300),
        np.sqrt(np.maximum(certainty, 0.0)),
    )


def _beside(apart: BoolArray) -> BoolArray:
    beside = np.zeros_like(apart)
    beside[1:] |= apart[:-1]
    beside[:-1] |= apart[1:]
    return beside


def _described(force: FloatArray, gravity: tuple[float, ...]) -> str:
    """Say what a force (3,) [N] in the world may be."""
    size, g = float(np.linalg.norm(force)), np.array(gravity)
    if force @ g > _DOWN * size * np.linalg.norm(g):
        return f"the robot seems to carry about {size / np.linalg.norm(g):.2g} kg"
    return f"a force of about {size:.2g} N from outside seems to act on the base"
