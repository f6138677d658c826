# SPDX-License-Identifier: Apache-2.0
"""The one place that calls CVXPY."""

from __future__ import annotations

import warnings
from importlib import import_module
from typing import Any

from sysid_core.errors import EstimationError, ParameterError

__all__ = ["cvxpy", "run"]

# tried first; where they are out of reach, the solver's own tolerances count
_TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def cvxpy() -> Any:
    """Return CVXPY; importing it takes a second, so only those who need it do."""
    return import_module("cvxpy")


def run(program: Any, solver: str) -> None:
    """Solve a CVXPY problem, as accurately as the solver can; callers judge the result.

    Raises
    ------
    ParameterError
        If CVXPY has no such solver.
    EstimationError
        If the solver fails or finds the problem infeasible or unbounded.
    """
    cp = cvxpy()
    if solver not in cp.installed_solvers():
        raise ParameterError(
            f"conic solver '{solver}' is not installed; "
            f"choose one of {', '.join(cp.installed_solvers())}"
        )
    try:
        with warnings.catch_warnings():
            # callers measure inaccuracy themselves
            warnings.simplefilter("ignore", UserWarning)
            if solver == "CLARABEL":
                program.solve(solver=solver, **_TIGHT)
            if program.status != cp.OPTIMAL:
                program.solve(solver=solver)
    except cp.SolverError as err:
        raise EstimationError(
            f"{solver} failed on this problem; use the method entropic or loosen the constraints"
        ) from err
    if program.status not in (cp.OPTIMAL, cp.OPTIMAL_INACCURATE):
        raise EstimationError(
            f"{solver} found the problem {program.status}; loosen the constraints"
        )
