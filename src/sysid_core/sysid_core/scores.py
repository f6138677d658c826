# SPDX-License-Identifier: Apache-2.0
"""How well parameters predict measured torques: RMSE and R² per joint, and the curves behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.base_parameters import BaseParameters
from sysid_core.dynamics.rows import Rows
from sysid_core.errors import DataError

__all__ = ["Curve", "Scores", "curves", "score"]


@dataclass(frozen=True)
class Scores:
    """Prediction of torques by the nominal and the identified parameters.

    Attributes
    ----------
    joints : tuple[str, ...]
        Actuated joints, or the one group of rows in contact.
    rmse_nominal, rmse_identified : (G,) [N·m]
    r2_nominal, r2_identified : (G,) [-]
        1 − eᵀe/UᵀU as in Kolathaya et al.; NaN where no torque was measured.
    samples : int
        Rows of the largest group.
    """

    joints: tuple[str, ...]
    rmse_nominal: FloatArray
    rmse_identified: FloatArray
    r2_nominal: FloatArray
    r2_identified: FloatArray
    samples: int

    @property
    def improvement(self) -> float:
        """Nominal over identified root sum of squares over the joints [-]."""
        identified = float(np.sqrt((self.rmse_identified**2).sum()))
        return float(np.sqrt((self.rmse_nominal**2).sum())) / max(identified, 1e-300)


@dataclass(frozen=True)
class Curve:
    """Torques of one joint over time.

    Attributes
    ----------
    joint : str
    time : (m,) [s]
    measured, nominal, identified : (m,) [N·m]
    held_out : (m,) bool
        Which rows were not learned from.
    """

    joint: str
    time: FloatArray
    measured: FloatArray
    nominal: FloatArray
    identified: FloatArray
    held_out: np.ndarray


def _rmse_and_r2(rows: Rows, base_vector: FloatArray) -> tuple[FloatArray, FloatArray]:
    rmse, r2 = [], []
    for block, residual in zip(rows.blocks, rows.residuals(base_vector), strict=True):
        error, power = float(residual @ residual), float(block.target @ block.target)
        rmse.append(np.sqrt(error / max(len(residual), 1)))
        r2.append(1.0 - error / power if power > 0.0 else np.nan)
    return np.array(rmse), np.array(r2)


def score(
    rows: Rows,
    groups: tuple[str, ...],
    base: BaseParameters,
    nominal: FloatArray,
    identified: FloatArray,
) -> Scores:
    """Compare two parameter vectors (p,) on the rows of the named groups.

    Raises
    ------
    DataError
        If there are no rows.
    """
    samples = max((len(block.target) for block in rows.blocks), default=0)
    if samples == 0:
        raise DataError("no samples to compare torques on; record for longer")
    rmse_nominal, r2_nominal = _rmse_and_r2(rows, base.project(nominal))
    rmse_identified, r2_identified = _rmse_and_r2(rows, base.project(identified))
    return Scores(groups, rmse_nominal, rmse_identified, r2_nominal, r2_identified, samples)


def curves(
    rows: Rows,
    groups: tuple[str, ...],
    base: BaseParameters,
    time: FloatArray,
    nominal: FloatArray,
    identified: FloatArray,
    split: int,
) -> tuple[Curve, ...]:
    """Return measured and predicted torques of every group.

    Parameters
    ----------
    time : (n,) [s]
        Of the samples that the rows belong to.
    split : int
        First sample that was held out.
    """
    nominal_base, identified_base = base.project(nominal), base.project(identified)
    return tuple(
        Curve(
            name,
            time[block.sample],
            block.target,
            block.matrix @ nominal_base,
            block.matrix @ identified_base,
            block.sample >= split,
        )
        for name, block in zip(groups, rows.blocks, strict=True)
    )
