# SPDX-License-Identifier: Apache-2.0
"""Timings as ratios in one run: solves against CVXPY, ingestion against Pinocchio's call.

``python -m bench.speed`` prints a table and writes ``out/bench/speed.json``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from bench.conic import solve_conic
from bench.trees import synthetic_problem, tree_urdf
from sysid_core.dynamics.rows import RowBlock, Rows
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.tree import TreeRegression, random_states
from sysid_core.estimation import Entropic, EntropicSolver
from sysid_core.online.window import SlidingWindow, WindowConfig
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot, parse_description

__all__ = ["main"]

BODIES = (7, 13, 31)
GOAL_SOLVE, GOAL_INGEST, GOAL_WINDOW = 15.0, 5.0, 1e-9


def _best(function: Callable[[], object], repeats: int) -> float:
    """Return the median time [s] of a call, after one to warm up."""
    function()
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return float(np.median(times))


def _tree(bodies: int, folder: Path) -> Robot:
    path = folder / f"tree{bodies}.urdf"
    path.write_text(tree_urdf(bodies, seed=bodies), encoding="utf-8")
    return load_robot(parse_description({"name": f"tree{bodies}", "urdf": str(path)}))


def time_solves(robot: Robot, seed: int) -> dict[str, float]:
    """Time whole solves, covariance included, cold and warm, and CVXPY on the same problem."""
    problem = synthetic_problem(robot, seed)
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
    # as online, where the window moved by a fiftieth since the last solve
    moved = statistics.scaled(0.98) + synthetic_problem(robot, seed + 1).statistics.scaled(0.02)
    solve_conic(problem)  # to warm up
    conic = [solve_conic(problem) for _ in range(3)]
    difference = np.abs(conic[0].base_parameters - cold.base_parameters).max()
    return {
        "bodies": len(robot.layout.bodies),
        "parameters": robot.layout.size,
        "cold_ms": 1e3 * _best(lambda: solver.solve(statistics, noise_std=noise), 20),
        "warm_ms": 1e3
        * _best(lambda: solver.solve(moved, noise_std=noise, start=cold.parameters), 20),
        "cvxpy_ms": 1e3 * float(np.median([run.total for run in conic])),
        "clarabel_ms": 1e3 * float(np.median([run.solver for run in conic])),
        "difference": float(difference / np.abs(cold.base_parameters).max()),
    }


def time_ingestion(robot: Robot, seed: int, batch: int = 50) -> dict[str, float]:
    """Time regressor, friction columns and statistics per sample against the raw call."""
    regression = TreeRegression(robot)
    q, v, a = random_states(robot, 1000, seed)
    tau = np.random.default_rng(seed).normal(size=v.shape)
    samples = Samples(np.linspace(0.0, 10.0, len(q)), q, v, a, tau)
    window = SlidingWindow(
        len(regression.groups),
        regression.base.size,
        WindowConfig(samples=500, blocks=10),
        regression.supports,
    )

    def ingest() -> None:
        for start in range(0, len(samples), batch):
            part = samples.select(slice(start, start + batch))
            window.push(regression.rows(part), len(part))

    data, call = robot.model.createData(), pin.computeJointTorqueRegressor

    def raw() -> None:
        for i in range(len(q)):
            call(robot.model, data, q[i], v[i], a[i])

    ours, theirs = _best(ingest, 5) / len(q), _best(raw, 5) / len(q)
    return {"bodies": len(robot.layout.bodies), "ingest_us": 1e6 * ours, "raw_us": 1e6 * theirs}


def check_window(samples: int, seed: int) -> dict[str, float]:
    """Slide a window over many samples; compare with a batch, and watch memory."""
    rng, size, batch = np.random.default_rng(seed), 30, 100
    window = SlidingWindow(1, size, WindowConfig(samples=2000, blocks=20))
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
    expected, actual = Statistics.of(rows), window.statistics()
    diagonal = np.sqrt(np.diag(expected.gram[0]))
    error = np.abs(actual.gram[0] - expected.gram[0]) / np.outer(diagonal, diagonal)
    return {
        "samples": samples,
        "relative_error": float(error.max()),
        "memory_growth": late / max(early, 1),
    }


def _report(result: dict[str, Any]) -> bool:
    met = True
    print(f"{'':7}{'entropic [ms]':>18}{'CVXPY [ms]':>20}{'ratio, cold':>20}{'ratio, warm':>20}")
    print(
        f"{'bodies':>7}{'cold':>9}{'warm':>9}{'call':>10}{'Clarabel':>10}"
        + f"{'call':>10}{'Clarabel':>10}" * 2
        + f"{'difference':>12}"
    )
    for row in result["solve"]:
        text = f"{row['bodies']:7d}{row['cold_ms']:9.2f}{row['warm_ms']:9.2f}"
        text += f"{row['cvxpy_ms']:10.1f}{row['clarabel_ms']:10.1f}"
        for ours in ("cold_ms", "warm_ms"):
            for theirs in ("cvxpy_ms", "clarabel_ms"):
                text += f"{row[theirs] / row[ours]:10.1f}"
        met &= row["cvxpy_ms"] / row["warm_ms"] >= GOAL_SOLVE
        print(text + f"{row['difference']:12.1e}")
    print(f"\n{'bodies':>7}{'ingestion [µs]':>16}{'Pinocchio [µs]':>16}{'ratio':>8}")
    for row in result["ingestion"]:
        ratio = row["ingest_us"] / row["raw_us"]
        met &= ratio <= GOAL_INGEST
        print(f"{row['bodies']:7d}{row['ingest_us']:16.1f}{row['raw_us']:16.1f}{ratio:8.1f}")
    window = result["window"]
    met &= window["relative_error"] <= GOAL_WINDOW
    print(
        f"\nwindow after {window['samples']} samples: relative error "
        f"{window['relative_error']:.1e}, memory × {window['memory_growth']:.2f}"
    )
    print(
        f"\ngoals (solve ≥ {GOAL_SOLVE:g}×, ingestion ≤ {GOAL_INGEST:g}×, window "
        f"≤ {GOAL_WINDOW:g}): {'met' if met else 'NOT met'}"
    )
    return met


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=1_000_000, help="for the window")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        robots = {n: _tree(n, Path(folder)) for n in (6, *BODIES)}
        result: dict[str, Any] = {
            "seed": given.seed,
            "solve": [time_solves(robots[n], given.seed) for n in BODIES],
            "ingestion": [time_ingestion(robots[n], given.seed) for n in (6, 13)],
            "window": check_window(given.samples, given.seed),
        }
    result["met"] = _report(result)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "speed.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
