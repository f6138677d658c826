# SPDX-License-Identifier: Apache-2.0
"""Timings as ratios in one run: solves against Clarabel, ingestion against Pinocchio's call."""

import importlib
import time
import tracemalloc
from dataclasses import replace
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
import scipy.sparse as sp
from scipy.linalg import lapack

from bench.arms import robot_of, synthetic_problem, tree_urdf
from bench.runner import Given, Result, paired, run_benchmark, show_rows, timed
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.select import make_dynamics
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.sums import Places
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.estimation import Entropic, EntropicSolver, Estimate, Problem
from sysid_core.inertia import pseudo_inertia, pseudo_inertia_basis
from sysid_core.online.window import SlidingWindow, WindowConfig
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot

__all__ = ["run"]

cp: Any = importlib.import_module("cvxpy")  # partly typed, which is worse than not at all

BODIES = (7, 13, 31)
BATCH = 50  # samples that are ingested at once
CONTROLLED = ("panda", "digit_left_leg")


class ConicTime(NamedTuple):
    """What CVXPY took."""

    total: float  # [s] of the whole call, canonicalisation included
    solver: float  # [s] the solver's own time, by its own account
    base_parameters: FloatArray  # (b,)


def solve_conic(problem: Problem) -> ConicTime:
    """Solve a problem with known noise by CVXPY, as anybody would write it.

    Ellipsoids and bounds are left out.
    """
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


def time_solves(robot: Robot, seed: int) -> dict[str, float]:
    """Time whole solves, covariance included, and CVXPY on the same problem.

    Cold solves give the full covariance; warm ones, as online, its diagonal.
    """
    problem, moved = synthetic_problem(robot, seed)
    free = replace(
        problem.constraints,
        ellipsoids=(None,) * len(robot.layout.bodies),
        lower=np.full(robot.layout.size, -np.inf),
        upper=np.full(robot.layout.size, np.inf),
    )
    problem = replace(problem, constraints=free)
    solver = EntropicSolver(problem, Entropic(tolerance=1e-4))
    statistics, noise = problem.statistics, problem.noise_std
    cold = solver.solve(statistics, noise_std=noise)
    solve_conic(problem)  # to warm up
    conic = [solve_conic(problem) for _ in range(5)]

    def again() -> Estimate:
        return solver.solve(statistics, noise_std=noise)

    # as online, where the window moved by a fiftieth since the last solve
    live = EntropicSolver(problem, Entropic(tolerance=2e-3, covariance="diagonal"))
    last = live.solve(statistics, noise_std=noise, start=cold.parameters)
    windows = cycle((moved, statistics))

    def warm() -> None:
        nonlocal last
        last = live.solve(next(windows), noise_std=noise, start=last.parameters)

    hessian = np.asfortranarray(np.eye(live.coordinates.size) + 0.1)
    warm_s, over = paired(warm, lambda: lapack.dpotrf(hessian, lower=1), 50)
    difference = np.abs(conic[0].base_parameters - cold.base_parameters).max()
    cold_ms, clarabel_ms = 1e3 * timed(again, 20), 1e3 * min(run.solver for run in conic)
    return {
        "bodies": len(robot.layout.bodies),
        "cold [ms]": cold_ms,
        "cold steps": cold.iterations,
        "warm [ms]": 1e3 * warm_s,
        "warm steps": last.iterations,
        "warm / Cholesky": over,
        "Clarabel [ms]": clarabel_ms,
        "Clarabel / cold": clarabel_ms / cold_ms,
        "CVXPY [ms]": 1e3 * min(run.total for run in conic),
        "off by": float(difference / np.abs(cold.base_parameters).max()),
    }


def time_ingestion(robot: Robot, seed: int) -> dict[str, float]:
    """Time regressor, friction columns and statistics per sample against the raw call."""
    regression = TreeRegression(robot)
    q, v, a = random_states(robot, 1000, seed)
    tau = np.random.default_rng(seed).normal(size=v.shape)
    samples = Samples(np.linspace(0.0, 10.0, len(q)), q, v, a, tau)
    window = SlidingWindow(Places.of(regression), WindowConfig(samples=500, blocks=10))

    def ingest() -> None:
        for start in range(0, len(samples), BATCH):
            part = samples.select(slice(start, start + BATCH))
            window.push(regression.rows(part), len(part))

    data, call = robot.model.createData(), pin.computeJointTorqueRegressor

    def raw() -> None:
        for i in range(len(q)):
            call(robot.model, data, q[i], v[i], a[i])

    ours, theirs = 1e6 * timed(ingest, 20) / len(q), 1e6 * timed(raw, 20) / len(q)
    return {
        "bodies": len(robot.layout.bodies),
        "ingestion of a sample [µs]": ours,
        "Pinocchio's regressor [µs]": theirs,
        "ratio": ours / theirs,
    }


def time_control(name: str, seed: int) -> dict[str, Any]:
    """Time a control torque of a shipped robot against Pinocchio's inverse dynamics."""
    robot = load_robot(name)
    dynamics = make_dynamics(robot, 0.02)
    rng = np.random.default_rng(seed)
    size = len(robot.limits.effort[robot.actuated])
    path = 0.2 * np.sin(np.linspace(0.0, 0.5, 200)[:, None] + rng.uniform(0.0, 6.0, size))
    v, a = rng.normal(size=(2, size))

    def ours() -> None:
        for q in path:
            dynamics.torque(q, v, a)

    data, whole = robot.model.createData(), random_states(robot, len(path), seed)

    def theirs() -> None:
        for state in zip(*whole, strict=True):
            pin.rnea(robot.model, data, *state)

    own, raw = 1e3 * timed(ours, 10) / len(path), 1e3 * timed(theirs, 10) / len(path)
    return {
        "robot": name,
        "joints": size,
        "torque [ms]": own,
        "Pinocchio's rnea [ms]": raw,
        "ratio": own / raw,
    }


def check_window(samples: int, seed: int) -> dict[str, float]:
    """Slide a window over many samples; compare with a batch, and watch memory."""
    rng, size, batch = np.random.default_rng(seed), 30, 100
    window = SlidingWindow(Places(size, [np.arange(size)]), WindowConfig(samples=2000, blocks=20))
    scale = 10.0 ** rng.uniform(-2, 2, size)
    kept: list[RowBlock] = []
    tracemalloc.start()
    early = 0
    for step in range(samples // batch):
        matrix = rng.normal(size=(batch, size)) * scale
        block = RowBlock(matrix, rng.normal(size=batch), np.arange(batch))
        window.push(Rows((block,)), batch)
        kept = [*kept[-25:], block]
        if step == 100:
            early = tracemalloc.get_traced_memory()[0]
    late = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    newest = kept[-(window.samples // batch) :]
    rows = Rows((RowBlock(*(np.concatenate(f) for f in zip(*newest, strict=True))),))
    expected, actual = Statistics.of(rows), window.sums().statistics()
    diagonal = np.sqrt(np.diag(expected.gram[0]))
    error = np.abs(actual.gram[0] - expected.gram[0]) / np.outer(diagonal, diagonal)
    return {
        "relative_error": float(error.max()),
        "memory_growth": late / max(early, 1),
    }


def run(given: Given) -> Result:
    """Time solves and ingestion, and slide a window."""
    robots = {n: robot_of(f"tree{n}", tree_urdf(n, seed=n)) for n in (6, *BODIES)}
    solve = [time_solves(robots[n], given.seed) for n in BODIES]
    ingestion = [time_ingestion(robots[n], given.seed) for n in (6, 13)]
    control = [time_control(name, given.seed) for name in CONTROLLED]
    window = check_window(given.samples, given.seed)
    tables = {
        "solve": show_rows(
            "whole solves, covariance included; Clarabel's own time without CVXPY's around it",
            solve,
            ".3g",
        ),
        "ingestion": show_rows("regressor, friction and statistics per sample", ingestion, ".3g"),
        "control": show_rows(
            "control torque of a state, a step of the path after the last", control, ".3g"
        ),
    }
    print(
        f"\nwindow after {given.samples} samples: relative error "
        f"{window['relative_error']:.1e}, memory × {window['memory_growth']:.2f}"
    )
    figures: dict[str, float] = {"window against batch": window["relative_error"]}
    for row in solve:
        bodies = f"{row['bodies']} bodies"
        figures[f"Clarabel's own time over a cold solve, {bodies}"] = row["Clarabel / cold"]
        figures[f"warm solve over a Cholesky factorisation, {bodies}"] = row["warm / Cholesky"]
    for row in ingestion:
        figures[f"ingestion over Pinocchio's regressor, {row['bodies']} bodies"] = row["ratio"]
    for line in control:
        figures[f"control torque of {line['robot']} [ms]"] = line["torque [ms]"]
    details = {"solve": solve, "ingestion": ingestion, "control": control, "window": window}
    return Result(figures, details, tables)


if __name__ == "__main__":
    run_benchmark(run, samples=(1_000_000, "for the window"))
