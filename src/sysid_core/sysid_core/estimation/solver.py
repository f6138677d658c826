# SPDX-License-Identifier: Apache-2.0
"""One door to all estimators."""

from __future__ import annotations

from sysid_core.arrays import FloatArray
from sysid_core.estimation.entropic import solve_entropic
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.least_squares import solve_ols, solve_wls
from sysid_core.estimation.options import EstimatorConfig
from sysid_core.estimation.problem import Problem
from sysid_core.estimation.qp import solve_qp
from sysid_core.estimation.regularised import solve_prior
from sysid_core.estimation.sdp import solve_sdp

__all__ = ["solve"]


def solve(
    problem: Problem,
    options: EstimatorConfig | None = None,
    *,
    start: FloatArray | None = None,
) -> Estimate:
    """Estimate the parameters of a problem.

    Parameters
    ----------
    problem : Problem
    options : EstimatorConfig or None
        Names the method and its settings; None: the defaults.
    start : (p,) or None
        Parameters to start from, for the methods that iterate.

    Raises
    ------
    ParameterError
        If options, prior or constraints are malformed.
    EstimationError
        If the problem has no solution.
    """
    options = options or EstimatorConfig()
    if options.method == "ols":
        return solve_ols(problem, options)
    if options.method == "wls":
        return solve_wls(problem, options)
    if options.method == "prior":
        return solve_prior(problem, options)
    if options.method == "qp":
        return solve_qp(problem, options, start)
    if options.method == "sdp":
        return solve_sdp(problem, options, start)
    return solve_entropic(problem, options, start)
