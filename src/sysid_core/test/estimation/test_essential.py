# SPDX-License-Identifier: Apache-2.0
"""Essential parameters are those that data determine about as well as each other."""

from __future__ import annotations

import numpy as np

from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.essential import essential_parameters


def test_what_hardly_shows_or_depends_on_others_is_not_essential() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(2000, 5))
    matrix[:, 2] *= 1e-4  # hardly moved
    matrix[:, 3] = 0.0  # never moved
    matrix[:, 4] = matrix[:, 0] + matrix[:, 1]
    target = matrix[:, :2] @ [2.0, -3.0] + 0.1 * rng.normal(size=2000)
    rows = Rows((RowBlock(matrix, target, np.arange(2000)),))
    found = essential_parameters(Statistics.of(rows), np.array([0.1]), None)
    assert found.sum() == 2
    assert not found[[2, 3]].any()
