# SPDX-License-Identifier: Apache-2.0
"""The entropic program written in CVXPY, as anybody would, to compare solves with."""

import importlib
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from sysid_core.arrays import FloatArray
from sysid_core.estimation import Problem
from sysid_core.inertia import pseudo_inertia, pseudo_inertia_basis

__all__ = ["ConicTime", "solve_conic"]

cp: Any = importlib.import_module("cvxpy")  # partly typed, which is worse than not at all


class ConicTime(NamedTuple):
    """What CVXPY took."""

    total: float  # [s] of the whole call, canonicalisation included
    solver: float  # [s] the solver's own time, by its own account
    base_parameters: FloatArray  # (b,)


def solve_conic(problem: Problem) -> ConicTime:
    """Solve a problem with known noise by CVXPY; ellipsoids and bounds are left out."""
    layout, prior, noise = problem.layout, problem.prior, problem.noise_std
    if noise is None:
        raise ValueError("the comparison needs known noise")
    weight = 1.0 / noise**2
    gram = np.einsum("g,gij->ij", weight, problem.statistics.gram)
    moment = weight @ problem.statistics.moment
    upper = np.linalg.cholesky(gram).T
    target = np.linalg.solve(upper.T, moment)
    x = cp.Variable(layout.size)
    terms = [0.5 * cp.sum_squares(upper @ (sp.csr_matrix(problem.base.mapping) @ x) - target)]
    basis = pseudo_inertia_basis()
    for k, phi in enumerate(layout.inertias(prior.mean)):
        # scaled by the prior's factor, J becomes of order one: d(J‖J₀) = d(L⁻¹JL⁻ᵀ‖1)
        factor = np.linalg.inv(np.linalg.cholesky(pseudo_inertia(phi)))
        scaled = sp.csr_matrix((factor @ basis @ factor.T).reshape(10, 16).T)
        J = cp.reshape(scaled @ x[layout.body(k)], (4, 4), order="C")
        J = 0.5 * (J + J.T)
        terms.append((cp.trace(J) - cp.log_det(J)) / (4.0 * prior.body_std[k] ** 2))
    positive = layout.nonnegative[~problem.constraints.fixed[layout.nonnegative]]
    ratio = cp.multiply(1.0 / prior.mean[positive], x[positive])
    terms.append((1.0 / prior.scalar_std[positive] ** 2) @ (ratio - cp.log(ratio)))
    offset = layout.term("offset")
    scale = 1.0 / prior.scalar_std[offset]
    terms.append(0.5 * cp.sum_squares(cp.multiply(scale, x[offset] - prior.mean[offset])))
    program = cp.Problem(cp.Minimize(sum(terms)))
    begin = time.perf_counter()
    program.solve(solver="CLARABEL")
    total = time.perf_counter() - begin
    value, stats = x.value, program.solver_stats
    if value is None or stats is None or stats.solve_time is None:
        raise RuntimeError(f"Clarabel did not solve the program: {program.status}")
    return ConicTime(total, float(stats.solve_time), problem.base.project(np.asarray(value)))
