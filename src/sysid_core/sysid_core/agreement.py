# SPDX-License-Identifier: Apache-2.0
"""Whether recordings that one model was identified from belong to one robot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import DataError
from sysid_core.estimation import Entropic, Estimate, Problem

__all__ = ["check_agreement"]

_APART = 2.0
"""Ratio of torque errors, one model for all over one of its own, from which recordings differ."""
_SHARE = 0.05
"""Share of the torques that such an error makes up where robots or loads differ; friction that
changes with temperature makes less [-]."""


def check_agreement(
    problem: Problem,
    recordings: Sequence[Statistics],
    estimate: Estimate,
    names: Sequence[str],
) -> tuple[str, ...]:
    """Warn of recordings that one model predicts worse than models of their own would.

    Raises
    ------
    DataError
        If one does by much of its torques.
    """
    apart: list[str] = []
    differ: list[str] = []
    for name, statistics in zip(names, recordings, strict=True):
        if not statistics.count.any():
            continue
        alone = replace(problem, statistics=statistics, rows=None, noise_std=estimate.noise_std)
        own = Entropic(covariance="none").solve(alone, estimate.parameters)
        error = _error(statistics, estimate)
        ratio = error / max(_error(statistics, own), 1e-300)
        torque = float(np.sqrt((statistics.square / statistics.count.clip(min=1.0)).sum()))
        if ratio > _APART:
            text = f"{name} ({ratio:.1f} times)"
            (apart if error > _SHARE * torque else differ).append(text)
    if apart:
        raise DataError(
            "the recordings are not of one robot under one load: a model of all predicts "
            f"{', '.join(apart)} worse than a model of its own; identify such recordings apart, "
            "or state the 'load' of each in a list of recordings"
        )
    if not differ:
        return ()
    return (
        f"one model predicts {', '.join(differ)} worse than a model of its own: friction may have "
        "changed between the recordings",
    )


def _error(statistics: Statistics, estimate: Estimate) -> float:
    return float(np.linalg.norm(statistics.rmse(estimate.base_parameters)))
