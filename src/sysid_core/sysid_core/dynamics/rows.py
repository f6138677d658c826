# SPDX-License-Identifier: Apache-2.0
"""Regression rows ``A x = b`` in base columns, grouped by the sensor whose noise they share."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.dynamics.base_parameters import BaseParameters
from sysid_core.parameters import ParameterLayout
from sysid_core.recording import Samples

__all__ = ["Regression", "RowBlock", "Rows"]


class RowBlock(NamedTuple):
    """The rows of one group.

    Attributes
    ----------
    matrix : (m, b)
        Regressor in the base columns.
    target : (m,) [N·m]
        Right-hand side.
    sample : (m,)
        Index of the sample that each row belongs to.
    """

    matrix: FloatArray
    target: FloatArray
    sample: IndexArray

    def select(self, index: slice | IndexArray) -> RowBlock:
        """Return the rows that an index picks."""
        return RowBlock(self.matrix[index], self.target[index], self.sample[index])


class Rows(NamedTuple):
    """Row blocks, one per group of a regression.

    Attributes
    ----------
    blocks : tuple[RowBlock, ...]
    """

    blocks: tuple[RowBlock, ...]

    def residuals(self, base_vector: FloatArray) -> tuple[FloatArray, ...]:
        """Return target minus prediction (m,) [N·m] per group, for base parameters (b,)."""
        return tuple(block.target - block.matrix @ base_vector for block in self.blocks)

    @property
    def finite(self) -> bool:
        """Whether every number is finite."""
        return all(
            bool(np.isfinite(block.matrix).all() and np.isfinite(block.target).all())
            for block in self.blocks
        )


class Regression(Protocol):
    """What turns samples of one robot into rows; one class per kind of robot.

    Attributes
    ----------
    groups : tuple[str, ...]
        Names of the row groups: actuated joints, or ``("projected",)`` in contact.
    layout : ParameterLayout
    base : BaseParameters
        Structural base of the regressor.
    """

    @property
    def groups(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def layout(self) -> ParameterLayout: ...  # noqa: D102

    @property
    def base(self) -> BaseParameters: ...  # noqa: D102

    def rows(self, samples: Samples) -> Rows:
        """Return the rows of the samples."""
        ...
