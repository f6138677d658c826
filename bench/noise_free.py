# SPDX-License-Identifier: Apache-2.0
"""Seven-joint arms without noise: every method must find the true base parameters.

``python -m bench.noise_free`` prints a table and writes ``out/bench/noise_free.json``. The true
parameters are random bodies inside the robots' bounding ellipsoids; what is learned from and what
is predicted are two different motions, as in FloBaRoID's simulation of a KUKA LWR 4+.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.estimation import METHODS, Problem, estimator
from sysid_core.excitation import fit_into, motion_limits, random_motion
from sysid_core.inertia import from_pseudo_inertia
from sysid_core.priors import default_constraints, default_prior, free_parameters
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot, parse_description

__all__ = ["main"]

GOAL_BASE, GOAL_TORQUE = 1e-9, 1e-6
FLOBAROID = (2.2e-4, 4e-4)  # its torque NRMS, identification and validation
PERIOD, HARMONICS, RATE = 10.0, 5, 50.0  # [s, -, Hz]
MASSES = 12  # point masses per random body


def _robots() -> dict[str, Robot]:
    """Return the arms: example-robot-data's Panda where it is installed, ours where not."""
    robots = {"kuka_lwr": load_robot("kuka_lwr")}
    try:
        package = distribution("example-robot-data")
    except PackageNotFoundError:
        return {"panda (ours)": load_robot("panda"), **robots}
    urdf = "cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf"
    description = parse_description(
        {
            "name": "panda",
            "urdf": str(package.locate_file(urdf)),
            "joints": {"locked": {"panda_finger_joint1": 0.0, "panda_finger_joint2": 0.0}},
        }
    )
    return {"panda (example-robot-data)": load_robot(description), **robots}


def random_bodies(robot: Robot, rng: np.random.Generator) -> FloatArray:
    """Return random true parameters (p,) that can exist inside the bounding ellipsoids."""
    layout, vector = robot.layout, robot.consistent_nominal.copy()
    for phi, ellipsoid in zip(layout.inertias(vector), robot.ellipsoids, strict=True):
        direction = rng.normal(size=(MASSES, 3))
        radius = rng.uniform(size=MASSES) ** (1.0 / 3.0) / np.linalg.norm(direction, axis=1)
        ball = direction * radius[:, None]
        points = np.ones((MASSES, 4))
        points[:, :3] = ellipsoid.center + ball @ np.linalg.cholesky(ellipsoid.shape).T
        share = rng.dirichlet(np.ones(MASSES)) * phi[0] * rng.uniform(0.5, 2.0)
        phi[:] = from_pseudo_inertia((points * share[:, None]).T @ points)
    joints = len(layout.joints)
    for term, low, high in (
        ("viscous", 0.1, 2.0),
        ("coulomb", 0.1, 2.0),
        ("armature", 0.01, 0.2),
        ("offset", -0.5, 0.5),
    ):
        vector[layout.term(term)] = rng.uniform(low, high, joints)
    return np.where(free_parameters(robot), vector, robot.consistent_nominal)


def _samples(robot: Robot, regression: TreeRegression, truth: FloatArray, seed: int) -> Samples:
    rng, joints = np.random.default_rng(seed), len(robot.joint_names)
    motion = random_motion(joints, PERIOD, HARMONICS, rng)
    motion = fit_into(motion, motion_limits(robot), fill=True)
    time = motion.times(RATE)
    states = motion.states(time)
    return Samples(time, *states, regression.full(*states) @ truth)


def run(robot: Robot, seed: int) -> list[dict[str, Any]]:
    """Identify one random arm by every method."""
    regression = TreeRegression(robot)
    truth = random_bodies(robot, np.random.default_rng(seed))
    learned, held = (_samples(robot, regression, truth, 2 * seed + k) for k in (1000, 1001))
    problem = Problem(
        robot.layout,
        regression.base,
        regression.groups,
        Statistics.of(regression.rows(learned)),
        default_prior(robot),
        default_constraints(robot),
    )
    true_base = regression.base.project(truth)
    results = []
    for method in METHODS:
        chosen = estimator(method, covariance="none")
        begin = time.perf_counter()
        estimate = chosen.solve(problem)
        seconds = time.perf_counter() - begin
        error = np.linalg.norm(estimate.base_parameters - true_base)
        result: dict[str, Any] = {
            "method": method,
            "base_error": float(error / np.linalg.norm(true_base)),
            "seconds": seconds,
            "consistent": bool(estimate.consistency.min() > 0.0),
            "converged": estimate.converged,
        }
        for name, samples in (("identification", learned), ("validation", held)):
            states = (samples.position, samples.velocity, samples.acceleration)
            torque = regression.full(*states) @ estimate.parameters
            off = np.sqrt(np.mean((torque - samples.effort) ** 2, axis=0))
            result[name] = float((off / np.sqrt(np.mean(samples.effort**2, axis=0))).max())
        results.append(result)
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--seed", type=int, default=0, help="of the first random arm")
    parser.add_argument("--arms", type=int, default=3, help="number of random arms per robot")
    given = parser.parse_args(arguments)
    seeds = range(given.seed, given.seed + given.arms)
    report: dict[str, Any] = {"seeds": list(seeds)}
    met = True
    for name, robot in _robots().items():
        runs = [run(robot, seed) for seed in seeds]
        report[name] = runs
        print(f"\n{name}, worst of {len(runs)} random arms")
        print(
            f"{'method':10}{'base parameters':>17}{'torque NRMS':>13}{'validation':>12}"
            f"{'seconds':>9}{'consistent':>12}"
        )
        for same in zip(*runs, strict=True):
            base, torque, held = (
                max(result[key] for result in same)
                for key in ("base_error", "identification", "validation")
            )
            met &= base <= GOAL_BASE and torque <= GOAL_TORQUE and held <= GOAL_TORQUE
            print(
                f"{same[0]['method']:10}{base:17.1e}{torque:13.1e}{held:12.1e}"
                f"{np.median([r['seconds'] for r in same]):9.2f}"
                f"{'yes' if all(r['consistent'] for r in same) else 'no':>12}"
            )
    print(f"\nFloBaRoID's KUKA LWR: torque NRMS {FLOBAROID[0]:.1e}, validation {FLOBAROID[1]:.1e}")
    print(
        f"goals (base parameters ≤ {GOAL_BASE:g}, torque ≤ {GOAL_TORQUE:g}): "
        f"{'met' if met else 'NOT met'}"
    )
    report["met"] = bool(met)
    given.out.mkdir(parents=True, exist_ok=True)
    target = given.out / "noise_free.json"
    target.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
