# SPDX-License-Identifier: Apache-2.0
"""From rows, a prior and constraints to parameters that certify themselves."""

from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.estimator import METHODS, Estimator, Solver, estimator
from sysid_core.estimation.methods.entropic import Entropic, EntropicSolver
from sysid_core.estimation.problem import Constraints, Prior, Problem

__all__ = [
    "METHODS",
    "Constraints",
    "Entropic",
    "EntropicSolver",
    "Estimate",
    "Estimator",
    "Prior",
    "Problem",
    "Solver",
    "estimator",
]
