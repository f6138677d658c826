# SPDX-License-Identifier: Apache-2.0
"""Prequential scores are those of a direct computation on the newest samples."""

from __future__ import annotations

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import LeftOut, RowBlock, Rows
from sysid_core.online.left_out import RecentlyLeftOut
from sysid_core.online.prequential import Prequential

GROUPS, SIZE = 2, 3
MODELS = np.random.default_rng(9).normal(size=(3, SIZE))


def batch(rng: np.random.Generator, count: int) -> Rows:
    return Rows(
        tuple(
            RowBlock(rng.normal(size=(count, SIZE)), rng.normal(size=count), np.arange(count))
            for _ in range(GROUPS)
        )
    )


def errors(rows: list[Rows], model: FloatArray, group: int) -> FloatArray:
    return np.concatenate([part.residuals(model)[group] for part in rows])


def test_scores_are_those_of_the_newest_samples() -> None:
    rng = np.random.default_rng(0)
    scores, parts = Prequential(GROUPS, 20), []
    for _ in range(30):
        parts.append(batch(rng, 4))
        scores.push(parts[-1], 4, *MODELS)
    newest = parts[-5:]
    seen = scores.scores()
    assert seen.samples == 20
    targets = [np.concatenate([p.blocks[g].target for p in newest]) for g in range(GROUPS)]
    total = 0.0
    for g in range(GROUPS):
        candidate, nominal, used = (errors(newest, model, g) for model in MODELS)
        total += float(candidate @ candidate)
        square = float(targets[g] @ targets[g])
        np.testing.assert_allclose(seen.candidate.r2[g], 1.0 - candidate @ candidate / square)
        np.testing.assert_allclose(seen.candidate.rmse[g], np.sqrt(np.mean(candidate**2)))
        np.testing.assert_allclose(seen.nominal.rmse[g], np.sqrt(np.mean(nominal**2)))
        np.testing.assert_allclose(seen.used.rmse[g], np.sqrt(np.mean(used**2)))
        np.testing.assert_allclose(seen.nominal.r2[g], 1.0 - nominal @ nominal / square)
        np.testing.assert_allclose(seen.used.r2[g], 1.0 - used @ used / square)
    square = sum(float(t @ t) for t in targets)
    np.testing.assert_allclose(seen.r2, 1.0 - total / square)


def test_a_sample_is_scored_by_the_model_of_its_time() -> None:
    rng = np.random.default_rng(1)
    scores, first, second = Prequential(GROUPS, 100), batch(rng, 5), batch(rng, 5)
    scores.push(first, 5, *MODELS)
    scores.push(second, 5, *MODELS[[1, 2, 0]])
    mixed = [
        np.concatenate([first.residuals(MODELS[0])[g], second.residuals(MODELS[1])[g]])
        for g in range(GROUPS)
    ]
    rmse = [np.sqrt(np.mean(e**2)) for e in mixed]
    np.testing.assert_allclose(scores.scores().candidate.rmse, rmse)


def test_what_was_left_out_is_told_of_the_newest_samples_and_takes_bounded_memory() -> None:
    cause = Diagnostic("reach", "out of reach")
    recent = RecentlyLeftOut(20)
    for count in range(1000):
        recent.note(LeftOut())
        recent.note(LeftOut(4, ((cause, count // 997),)))
    assert recent.share == 3 * 1 / 20
    assert [one.share for one in recent.diagnostics] == [recent.share]
    assert len(recent._accounts) == 5


def test_without_data_the_score_is_unknown() -> None:
    scores = Prequential(GROUPS, 10)
    assert np.isnan(scores.scores().r2)
    scores.push(batch(np.random.default_rng(2), 3), 3, *MODELS)
    assert np.isfinite(scores.scores().r2)
    scores.clear()
    assert np.isnan(scores.scores().r2)
    assert scores.scores().samples == 0


def test_a_joint_without_rows_scores_zero_not_nan() -> None:
    rng = np.random.default_rng(3)
    part = batch(rng, 4)
    still = Rows((part.blocks[0], part.blocks[1].select(slice(0, 0))))
    scores = Prequential(GROUPS, 10)
    scores.push(still, 4, *MODELS)
    seen = scores.scores()
    assert seen.candidate.r2[1] == 0.0
    assert seen.candidate.rmse[1] == 0.0
    assert np.isfinite(seen.r2)
