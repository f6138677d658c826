# SPDX-License-Identifier: Apache-2.0
"""From rows, a prior and constraints to parameters that certify themselves."""

from sysid_core.estimation.entropic import EntropicSolver
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.noise import effective_sample_factor
from sysid_core.estimation.options import EstimatorConfig
from sysid_core.estimation.problem import Constraints, Prior, Problem
from sysid_core.estimation.solver import solve

__all__ = [
    "Constraints",
    "EntropicSolver",
    "Estimate",
    "EstimatorConfig",
    "Prior",
    "Problem",
    "effective_sample_factor",
    "solve",
]
