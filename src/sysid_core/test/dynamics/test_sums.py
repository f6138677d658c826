# SPDX-License-Identifier: Apache-2.0
"""Sums over a tree's rows: those of the whole matrices, in a fraction of the room."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.rows import Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.sums import Places, Sums
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.recording import Samples
from sysid_core.robot import load_robot


@pytest.fixture(scope="module")
def regression() -> TreeRegression:
    return TreeRegression(load_robot("panda"))


def _rows(regression: TreeRegression, seed: int) -> Rows:
    q, v, a = random_states(regression.robot, 50)
    effort = np.random.default_rng(seed).normal(size=v.shape)
    return regression.rows(Samples(np.linspace(0.0, 1.0, len(q)), q, v, a, effort))


def _sums(regression: TreeRegression, rows: Rows) -> Sums:
    sums = Sums(Places.of(regression))
    sums.add_rows(rows)
    return sums


def _assert_same(sums: Sums, expected: Statistics, beta: np.ndarray) -> None:
    found = sums.statistics()
    for name in ("gram", "moment", "square", "count"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-9)
    np.testing.assert_allclose(sums.residual_square(beta), expected.residual_square(beta))


def test_sums_are_those_of_whole_matrices(regression: TreeRegression) -> None:
    beta = np.random.default_rng(0).normal(size=regression.base.size)
    rows = _rows(regression, 1)
    _assert_same(_sums(regression, rows), Statistics.of(rows), beta)


def test_parts_add_up_with_weights_and_can_be_taken_out(regression: TreeRegression) -> None:
    beta = np.random.default_rng(0).normal(size=regression.base.size)
    rows = [_rows(regression, seed) for seed in (1, 2)]
    parts = [_sums(regression, each) for each in rows]
    first, second = (Statistics.of(each) for each in rows)
    total = Sums.total(parts, np.array([2.0, 0.5]))
    _assert_same(total, first.scaled(2.0) + second.scaled(0.5), beta)
    total.add(parts[0], -2.0)
    _assert_same(total, second.scaled(0.5), beta)
    _assert_same(parts[0], first, beta)


def test_a_joint_takes_the_room_of_what_it_carries(regression: TreeRegression) -> None:
    places = Places.of(regression)
    size, groups = regression.base.size, len(regression.groups)
    assert len(places.gram_target) < 0.6 * groups * size**2
    assert len(places.supports[-1]) < 0.5 * len(places.supports[0])
