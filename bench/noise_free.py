# SPDX-License-Identifier: Apache-2.0
"""Seven-joint arms without noise: what each method finds of the true base parameters.

The true parameters are random bodies inside the robots' bounding ellipsoids; what is learned from
and what is predicted are two different motions, as in FloBaRoID's simulation of a KUKA LWR 4+.
Every arm is identified twice: from exact states, which shows the estimators alone, and from
positions and torques through the filters of `sysid identify`, as FloBaRoID's figures are.
"""

import time
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np

from bench.arms import Experiment, Noise, anywhere, make_experiment
from bench.runner import Given, Result, run_benchmark, show_rows
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.statistics import Statistics
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.estimation import METHODS, Estimator, Problem, estimator
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot, parse_description

__all__ = ["run"]


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


def _nrms(torque: FloatArray, samples: Samples) -> float:
    """Return the largest error of a joint's torque over the size of that torque."""
    error = np.sqrt(np.mean((torque - samples.effort) ** 2, axis=0))
    return float((error / np.sqrt(np.mean(samples.effort**2, axis=0))).max())


def _identify(
    robot: Robot, experiment: Experiment, config: Estimator, *, filtered: bool
) -> tuple[FloatArray, bool]:
    """Return the parameters (p,) that are found, and whether every body can exist."""
    if filtered:
        found = identify(
            robot, experiment.recording, IdentifyConfig(train=1.0, estimator=config)
        ).estimate
    else:
        regression = TreeRegression(robot)
        problem = Problem(
            robot.layout,
            regression.base,
            regression.groups,
            Statistics.of(regression.rows(experiment.learned)),
            default_prior(robot),
            default_constraints(robot),
        )
        found = config.solve(problem)
    return found.parameters, bool(found.consistency.min() > 0.0)


def compare(robot: Robot, seed: int, *, filtered: bool) -> list[dict[str, Any]]:
    """Identify one random arm by every method.

    Returns the relative error of the base parameters, and the torque NRMS of the motion that was
    learned from (`identification`) and of another one (`validation`).
    """
    experiment = make_experiment(robot, seed, Noise(0.0, 0.0), anywhere)
    regression = TreeRegression(robot)
    true_base = regression.base.project(experiment.truth)
    results = []
    for method in METHODS:
        begin = time.perf_counter()
        config = estimator(method, covariance="none")
        parameters, consistent = _identify(robot, experiment, config, filtered=filtered)
        result: dict[str, Any] = {
            "method": method,
            "seconds": time.perf_counter() - begin,
            "consistent": consistent,
        }
        error = np.linalg.norm(regression.base.project(parameters) - true_base)
        result["base"] = float(error / np.linalg.norm(true_base))
        for name, s in (("identification", experiment.learned), ("validation", experiment.judged)):
            torque = regression.full(s.position, s.velocity, s.acceleration) @ parameters
            result[name] = _nrms(torque, s)
        results.append(result)
    return results


def _worst(runs: list[list[dict[str, Any]]], key: str) -> float:
    return max(result[key] for results in runs for result in results)


def run(given: Given) -> Result:
    """Identify random arms from exact states, and through our filters."""
    seeds = range(given.seed, given.seed + given.arms)
    details: dict[str, list[list[dict[str, Any]]]] = {}
    every: dict[bool, list[list[dict[str, Any]]]] = {False: [], True: []}
    for name, robot in _robots().items():
        for filtered in (False, True):
            way = "through our filters" if filtered else "exact states"
            runs = [compare(robot, seed, filtered=filtered) for seed in seeds]
            every[filtered] += runs
            details[f"{name}, {way}"] = runs
    defaults = [[r for r in results if r["method"] == "entropic"] for results in every[True]]
    exact = every[False]
    rows = [
        {
            "arm and way": name,
            "method": same[0]["method"],
            "base parameters": max(one["base"] for one in same),
            "torque NRMS, identification": max(one["identification"] for one in same),
            "validation": max(one["validation"] for one in same),
        }
        for name, runs in details.items()
        for same in zip(*runs, strict=True)
    ]
    table = show_rows(f"worst of {given.arms} random arms", rows, ".1e")
    figures = {
        "base parameters, exact states": _worst(exact, "base"),
        "torque NRMS, exact states": max(
            _worst(exact, key) for key in ("identification", "validation")
        ),
        "torque NRMS, filtered, identification": _worst(defaults, "identification"),
        "torque NRMS, filtered, validation": _worst(defaults, "validation"),
    }
    return Result(figures, details, {"noise_free": table})


if __name__ == "__main__":
    run_benchmark(run, arms=(3, "random ones per robot"))
