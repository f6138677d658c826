# SPDX-License-Identifier: Apache-2.0
"""How well parameters predict measured torques: RMSE and R² per joint, and the curves behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import Regression, Rows
from sysid_core.errors import DataError
from sysid_core.wording import number

__all__ = [
    "SCORE_HEADINGS",
    "WORSE",
    "Curve",
    "Fit",
    "Scores",
    "Tally",
    "curves",
    "is_clear",
    "score",
]

WORSE = 1.02
"""Ratio of errors above which a model counts as worse: less is within what noise does [-]."""


class Fit(NamedTuple):
    """How well one model predicts the torques of each group."""

    rmse: FloatArray  # (G,) [N·m]
    r2: FloatArray  # (G,) [-]: 1 − eᵀe/UᵀU as in Kolathaya et al

    @staticmethod
    def of(
        error_square: FloatArray, square: FloatArray, count: FloatArray, unknown: float = np.nan
    ) -> Fit:
        """Return the fit from Σe², Σy² and the number of rows (G,) of each group.

        `unknown` is the R² of groups that saw no torque.
        """
        seen = square > 0.0
        r2 = np.where(seen, 1.0 - error_square / np.where(seen, square, 1.0), unknown)
        return Fit(np.sqrt(error_square / np.maximum(count, 1.0)), r2)


SCORE_HEADINGS = (
    "joint",
    "RMSE [N·m]\nnominal",
    "RMSE [N·m]\nidentified",
    "ratio",
    "R²\nnominal",
    "R²\nidentified",
)


@dataclass(frozen=True)
class Scores:
    """Prediction of torques by the nominal and the identified parameters."""

    joints: tuple[str, ...]  # Actuated joints, or the one group of rows in contact
    rmse_nominal: FloatArray  # (G,) [N·m]
    rmse_identified: FloatArray  # (G,) [N·m]
    # r2_nominal, r2_identified: (G,) [-]: 1 − eᵀe/UᵀU as in Kolathaya et al.; NaN where no torque
    # was measured.
    r2_nominal: FloatArray
    r2_identified: FloatArray
    samples: int  # Rows of the largest group

    @property
    def improvement(self) -> float:
        """Nominal over identified root sum of squares over the joints [-]."""
        identified = float(np.sqrt((self.rmse_identified**2).sum()))
        return float(np.sqrt((self.rmse_nominal**2).sum())) / max(identified, 1e-300)

    def rows(self) -> Iterator[tuple[tuple[str, ...], bool]]:
        """Yield the cells of each joint's row below `SCORE_HEADINGS`, and whether it is better."""
        for joint, before, after, *r2 in zip(
            self.joints,
            self.rmse_nominal,
            self.rmse_identified,
            self.r2_nominal,
            self.r2_identified,
            strict=True,
        ):
            errors: tuple[str, ...] = ("–",) * 3  # of a joint without rows
            if before > 0.0:
                errors = number(before), number(after), f"{after / before:.2f}"
            shown = (*errors, *(number(v, 3, "f") for v in r2))
            yield (joint, *shown), bool(after < before)


@dataclass(frozen=True)
class Curve:
    """Torques of one joint over time."""

    joint: str
    time: FloatArray  # (m,) [s]
    measured: FloatArray  # (m,) [N·m]
    nominal: FloatArray  # (m,) [N·m]
    identified: FloatArray  # (m,) [N·m]
    held_out: np.ndarray  # (m,) which rows were not learned from

    @staticmethod
    def joined(parts: Sequence[Curve]) -> Curve:
        """Return one curve of parts that follow each other."""
        names = ("time", "measured", "nominal", "identified", "held_out")
        return Curve(
            parts[0].joint,
            *(np.concatenate([getattr(part, name) for part in parts]) for name in names),
        )


class Tally:
    """Sums over rows of what two parameter vectors leave of their torques, for `groups` groups."""

    def __init__(self, groups: int) -> None:
        self._errors = np.zeros((2, groups))
        self._square, self._count = np.zeros(groups), np.zeros(groups)

    def add(
        self, rows: Rows, regression: Regression, nominal: FloatArray, identified: FloatArray
    ) -> None:
        """Add rows of a regression, judged by two parameter vectors (p,)."""
        for k, vector in enumerate((nominal, identified)):
            residuals = regression.with_load(rows, vector).residuals(
                regression.base.project(vector)
            )
            self._errors[k] += [e @ e for e in residuals]
        self._square += [block.target @ block.target for block in rows.blocks]
        self._count += [len(block.target) for block in rows.blocks]

    @property
    def empty(self) -> bool:
        """Whether there were no rows."""
        return not self._count.any()

    def scores(self, groups: tuple[str, ...]) -> Scores:
        """Return the scores of all rows.

        Raises
        ------
        DataError
            If there were none.
        """
        if self.empty:
            raise DataError("no samples to compare torques on; record for longer")
        before, after = (Fit.of(errors, self._square, self._count) for errors in self._errors)
        samples = int(self._count.max())
        return Scores(groups, before.rmse, after.rmse, before.r2, after.r2, samples)


def score(
    rows: Rows, regression: Regression, nominal: FloatArray, identified: FloatArray
) -> Scores:
    """Compare two parameter vectors (p,) on rows of a regression.

    Raises
    ------
    DataError
        If there are no rows.
    """
    tally = Tally(len(regression.groups))
    tally.add(rows, regression, nominal, identified)
    return tally.scores(regression.groups)


def curves(
    rows: Rows,
    regression: Regression,
    time: FloatArray,
    nominal: FloatArray,
    identified: FloatArray,
    split: int,
) -> tuple[Curve, ...]:
    """Return torques of every group at times (n,) [s], held out from the sample `split` on."""
    base = regression.base
    before, after = (regression.with_load(rows, vector) for vector in (nominal, identified))
    nominal_base, identified_base = base.project(nominal), base.project(identified)
    return tuple(
        Curve(
            name,
            time[block.sample],
            block.target,
            first.matrix @ nominal_base,
            block.matrix @ identified_base,
            block.sample >= split,
        )
        for name, first, block in zip(regression.groups, before.blocks, after.blocks, strict=True)
    )


def is_clear(excess: FloatArray, least: float, certain: float) -> bool:
    """Whether the mean of log ratios of errors (f,), one per stretch, exceeds a least one.

    It must exceed a number of its standard errors, too, by which it is certain. Stretches without
    rows have NaN.
    """
    excess = excess[np.isfinite(excess)]
    if len(excess) < 2:  # no two stretches have rows in both
        return False
    usual = float(excess.std(ddof=1)) / np.sqrt(len(excess))
    return bool(excess.mean() > max(certain * usual, least))
