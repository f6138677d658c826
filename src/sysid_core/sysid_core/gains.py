# SPDX-License-Identifier: Apache-2.0
"""Drive gains: what a known load says about the scale of each joint's efforts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.batch import rest_speed, rows_of, scored_rows
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.select import make_regression
from sysid_core.errors import DataError
from sysid_core.estimation.misfit import STRETCHES
from sysid_core.gathering import Gathering
from sysid_core.identification import IdentifyConfig
from sysid_core.parameters import INERTIAL_TERMS
from sysid_core.recordings import Source
from sysid_core.robot import Robot
from sysid_core.workers import workers

__all__ = ["DriveGains", "drive_gains", "measured_gains"]

_NO_COM = slice(1, len(INERTIAL_TERMS))
_NO_INERTIA = slice(4, len(INERTIAL_TERMS))
"""Inertial parameters of a load that are not known, without and with its centre of mass."""

_SEEN = 1e-10
"""Relative eigenvalue of scaled columns above which they are more than rounding."""
_TOLD = 0.5
"""Standard deviation of a scale beyond which the load says nothing about the joint [-]."""


@dataclass(frozen=True)
class DriveGains:
    """True torque over effort as described, per joint."""

    joints: tuple[str, ...]  # Those whose torque the load moves
    # gain, std: (k,) [-] what `effort.gain` is to be multiplied with, and its standard deviation.
    gain: FloatArray
    std: FloatArray


def measured_gains(
    robot: Robot, sources: Sequence[Source], cutoff: float, options: IdentifyConfig, com: bool
) -> DriveGains:
    """Return gains from recordings with and without a known load on one body.

    Unless the load's centre of mass is known (`com`), only its mass counts.

    Raises
    ------
    DataError
        If the load's torque cannot be told apart in any joint.
    """
    regression = make_regression(robot)
    signals = replace(options.signals, cutoff=cutoff)
    with workers() as here:
        gathering = Gathering(robot, sources, signals, options.lenient, here)
        batch = gathering.gather(gathering.choice, 1.0).batch
    body = next((source.load.body for source in sources if source.load is not None), "")
    found = None
    if regression.per_joint and batch.carried is not None:
        rows = scored_rows(
            regression, rows_of(regression, batch), batch, rest_speed(batch.samples, options.still)
        )
        of_body = regression.base.mapping[:, robot.layout.body(body)]
        carried = batch.carried @ regression.base.mapping.T
        unknown = of_body[:, _NO_INERTIA if com else _NO_COM]
        found = drive_gains(regression.groups, rows, carried, unknown)
    if found is None:
        raise DataError(
            f"the load on '{body}' moves no joint's torque by more than it is known; record with "
            "a heavier one, and without it"
        )
    return found


def drive_gains(
    joints: tuple[str, ...], rows: Rows, carried: FloatArray, unknown: FloatArray
) -> DriveGains | None:
    """Return gains from rows with and without a known load; None where these are not told apart.

    A joint whose efforts are s times its torque shows ``s (a·x + l)`` for rows a and the load's
    torque l. With parameters of its own, s x, that is linear in them and in s. The standard
    deviation is the jackknife's over stretches.

    Parameters
    ----------
    joints : tuple[str, ...]
        One per group of rows.
    rows : Rows
        Of moving joints; the load's torque has been taken off the targets.
    carried : (n, b)
        Base parameters of the load that each sample carries, zero where none.
    unknown : (b, u)
        Changes of the base parameters by what is not known of the load, such as its inertia.
    """
    loaded = carried.any(axis=1)
    if not loaded.any() or loaded.all():
        return None
    found = [_scale(block, carried, unknown) for block in rows.blocks]
    told = [j for j, (_, std) in enumerate(found) if std < _TOLD]
    if not told:
        return None
    scale, std = (np.array([found[j][k] for j in told]) for k in (0, 1))
    return DriveGains(tuple(joints[j] for j in told), 1.0 / scale, std / scale**2)


def _scale(block: RowBlock, carried: FloatArray, unknown: FloatArray) -> tuple[float, float]:
    """Return the scale s of one joint's efforts and its standard deviation."""
    load = np.einsum("mb,mb->m", block.matrix, carried[block.sample])
    loaded = np.asarray(carried[block.sample].any(axis=1))
    rest = (block.matrix @ unknown) * loaded[:, np.newaxis]
    table = np.column_stack([block.matrix, rest, load, block.target])
    size = np.sqrt(np.mean(table**2, axis=0))
    if not size[-2] > 0.0:
        return 1.0, np.inf
    table = table[:, size > 0.0] / size[size > 0.0]
    # loaded and bare stretches are cut alike, so that each part left out holds some of both
    grams = np.zeros((STRETCHES, table.shape[1], table.shape[1]))
    for kind in (True, False):
        chosen = np.flatnonzero(loaded == kind)
        for k, part in enumerate(np.array_split(chosen, STRETCHES)):
            grams[k] += table[part].T @ table[part]
    total = grams.sum(axis=0)
    excess = size[-1] / size[-2]
    whole = 1.0 + excess * _last_coefficient(total)
    without = np.array([1.0 + excess * _last_coefficient(total - gram) for gram in grams])
    spread = (STRETCHES - 1) / STRETCHES * np.sum((without - without.mean()) ** 2)
    return whole, float(np.sqrt(spread))


def _last_coefficient(gram: FloatArray) -> float:
    """Return the coefficient of the last column but one in the least squares for the last."""
    values, vectors = np.linalg.eigh(gram[:-1, :-1])
    kept = values > _SEEN * values[-1]
    axes = vectors[:, kept]
    return float(axes[-1] @ ((axes.T @ gram[:-1, -1]) / values[kept]))
