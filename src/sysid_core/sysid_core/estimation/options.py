# SPDX-License-Identifier: Apache-2.0
"""The settings of the estimators, validated once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.errors import ParameterError

__all__ = ["COVARIANCES", "METHODS", "REGULARISERS", "EstimatorConfig"]

METHODS = ("ols", "wls", "prior", "qp", "sdp", "entropic")
"""Names of the estimators."""

REGULARISERS = ("none", "euclidean", "geodesic", "entropic")
"""Regularisers of ``sdp``."""

COVARIANCES = ("full", "diagonal", "none")
"""How much of the posterior covariance is computed."""


@dataclass(frozen=True)
class EstimatorConfig:
    """Settings of every estimator; each ignores what does not concern it.

    Attributes
    ----------
    method : str
        One of `METHODS`.
    max_iterations : int
        Most Newton, reweighting or solver steps.
    tolerance : float [-]
        An iteration stops when the next step would move the estimate by less than this many
        posterior standard deviations.
    noise_updates : int
        Most re-estimations of the noise from the residuals; 0 keeps the first guess.
    noise_floor : float [-]
        Smallest noise standard deviation, relative to the root mean square target of the group.
    huber : float or None [-]
        ``wls``: residuals beyond this many standard deviations count linearly; needs
        `Problem.rows`. None: all count quadratically.
    rank_tolerance : float [-]
        ``ols`` and ``wls``: directions whose eigenvalue of the scaled Gram matrix is smaller,
        relative to the largest, are left at the prior.
    barrier_weight : float [-]
        ``entropic`` and its twin in ``sdp``: an inequality with slack s costs −w·log(s). One
        observation costs ½ in expectation, so the default is a fiftieth of an observation.
    margin : float [-]
        ``qp`` and ``sdp``: masses and pseudo-inertias stay above this fraction of the prior's.
    regulariser : str
        ``sdp``: one of `REGULARISERS`.
    solver : str
        ``sdp``: name under which CVXPY knows the conic solver.
    covariance : str
        One of `COVARIANCES`. "diagonal" fills only the diagonal; "none" leaves NaN and no
        `determined` shares, for loops that need nothing but the parameters.
    """

    method: str = "entropic"
    max_iterations: int = 500
    tolerance: float = 1e-6
    noise_updates: int = 30
    noise_floor: float = 3e-8
    huber: float | None = None
    rank_tolerance: float = 1e-13
    barrier_weight: float = 0.01
    margin: float = 1e-6
    regulariser: str = "geodesic"
    solver: str = "CLARABEL"
    covariance: str = "full"

    def __post_init__(self) -> None:
        for name, choices in (
            ("method", METHODS),
            ("regulariser", REGULARISERS),
            ("covariance", COVARIANCES),
        ):
            value = getattr(self, name)
            if value not in choices:
                raise ParameterError(
                    f"unknown {name} '{value}'; choose one of {', '.join(choices)}"
                )
        if self.max_iterations < 1 or self.noise_updates < 0:
            raise ParameterError(
                "max_iterations must be at least 1 and noise_updates at least 0, "
                f"got {self.max_iterations} and {self.noise_updates}"
            )
        for name in ("tolerance", "noise_floor", "rank_tolerance", "barrier_weight", "margin"):
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                raise ParameterError(f"{name} must lie between 0 and 1, got {value}")
        if self.huber is not None and not (np.isfinite(self.huber) and self.huber > 0.0):
            raise ParameterError(f"huber must be a positive number or None, got {self.huber}")
