# SPDX-License-Identifier: Apache-2.0
"""Intervals grow with what stretches of the data disagree on, and only with that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.sums import Places, Sums
from sysid_core.estimation import Entropic, Problem
from sysid_core.estimation.misfit import Widened, no_surer_than_prior, widened

if TYPE_CHECKING:
    from test.estimation.conftest import Synthetic

STRETCHES = 16
COUNT = 1600


def _widened(problem: Problem, rows: Rows) -> tuple[Widened, FloatArray]:
    """Return the widened estimate of rows in equal stretches, and the covariance before."""
    size = problem.base.size
    places = Places(size, (np.arange(size),) * len(rows.blocks))
    parts = [Sums(places) for _ in range(STRETCHES)]
    for k, part in enumerate(parts):
        stretch = slice(k * COUNT // STRETCHES, (k + 1) * COUNT // STRETCHES)
        part.add_rows(Rows(tuple(block.select(stretch) for block in rows.blocks)))
    problem = replace(problem, statistics=Sums.total(parts).statistics(), rows=None)
    estimate = Entropic().solve(problem)
    return widened(estimate, problem.base, parts, None), estimate.base_covariance


def _disturbed(rows: Rows, size: float) -> Rows:
    """Add an error that stays the same for a stretch."""
    rng = np.random.default_rng(5)
    return Rows(
        tuple(
            RowBlock(
                b.matrix,
                b.target + size * np.repeat(rng.normal(size=STRETCHES), COUNT // STRETCHES),
                b.sample,
            )
            for b in rows.blocks
        )
    )


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_predictions_are_covered_whether_errors_are_independent_or_last(
    panda: Synthetic, size: float
) -> None:
    problem = panda.problem(COUNT, noise=0.5)
    assert problem.rows is not None
    rows = _disturbed(problem.rows, size)
    (found, discrepancy), before = _widened(problem, rows)
    fresh = np.vstack([block.matrix for block in panda.rows(100, seed=99).blocks])
    error = fresh @ (found.base_parameters - panda.truth[None] @ panda.base.mapping.T).ravel()
    std, bare = (
        np.sqrt(np.einsum("ij,jk,ik->i", fresh, covariance, fresh))
        for covariance in (found.base_covariance, before)
    )
    # an error that lasts moves offsets, of which there are few to count
    assert np.mean(np.abs(error) < 1.96 * std) > (0.9 if size == 0.0 else 0.7)
    assert (std >= bare * (1.0 - 1e-9)).all()
    ratio = float(np.median(std / bare))
    assert ratio < 1.6 if size == 0.0 else ratio > 2.0
    assert np.allclose(discrepancy, np.hypot(0.5, size), rtol=0.35)


def test_what_data_leave_open_is_no_surer_than_before(panda: Synthetic) -> None:
    problem = panda.problem(400, noise=0.5)
    layout, mean = panda.layout, problem.prior.mean.copy()
    # the prior's last body is ten times too heavy, and no data show how its mass is spread
    mean[layout.body(layout.bodies[-1])] *= 10.0
    problem = replace(problem, prior=replace(problem.prior, mean=mean))
    before = Entropic().solve(problem)
    nothing = replace(problem, statistics=problem.statistics.scaled(1e-12), noise_std=np.ones(7))
    prior = no_surer_than_prior(Entropic().solve(nothing), nothing).std
    after = no_surer_than_prior(replace(before, noise_std=1e6 * before.noise_std), problem)
    assert (after.std >= before.std * (1.0 - 1e-9)).all()
    assert (after.std >= 0.98 * prior).all()
    assert before.std.min() < 0.5 * prior.min() or (before.std < 0.5 * prior).any()


def test_parameters_follow_their_base(panda: Synthetic) -> None:
    problem = panda.problem(COUNT, noise=0.5)
    assert problem.rows is not None
    (found, _), _ = _widened(problem, _disturbed(problem.rows, 1.0))
    B = panda.base.mapping
    scale = np.sqrt(np.diagonal(found.base_covariance))
    difference = (B @ found.covariance @ B.T - found.base_covariance) / scale / scale[:, None]
    assert np.abs(difference).max() < 1e-6
