# SPDX-License-Identifier: Apache-2.0
"""Accuracy and speed beside FIGAROH 1.0.2, on the same simulated recordings in the same run.

Positions come from an encoder with white noise, torques
carry one per cent of white noise, velocities and accelerations are differentiated. Both sides get
the same recording, URDF, nominal friction and cut-off, and leave out the same edges of the filter.
Goals look at the best of FIGAROH's estimates on each arm: least squares, and its physical fit with
its default weight of the prior and with the best one found by hand here.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench.arms import Experiment, Noise, make_experiment
from bench.figaroh_adapter import Figaroh, FigarohConfig
from bench.runner import (
    Given,
    Result,
    Table,
    geometric_mean,
    run_benchmark,
    show_rows,
    show_table,
    timed,
)
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.estimation import estimator
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalConfig

__all__ = ["run"]

ROBOTS = ("ur10", "panda")
CUTOFF = 5.0  # [Hz]
PRIOR_WEIGHTS = (1e-6, 1.0)  # FIGAROH's default, and the best power of ten found by hand here
TIMED_ROWS, REPEATS = 1000, 5

Row = dict[str, Any]


COMPARED = {
    "torque_error": "torque error",
    "torque_nrms": "torque NRMS",
    "mass_error": "mass error",
    "mass_error_kg": "mass error in kg",
}
"""Figure → its name among the goals."""


def _ours(robot: Robot, experiment: Experiment, method: str) -> Identification:
    config = IdentifyConfig(
        train=1.0, signals=SignalConfig(cutoff=CUTOFF), estimator=estimator(method)
    )
    return identify(robot, experiment.recording, config)


def _judge(robot: Robot, experiment: Experiment, torque: FloatArray, masses: Any) -> Row:
    """Compare predicted torques with noise-free ones, and masses with the true ones."""
    error = np.sqrt(np.mean((torque - experiment.judged.effort) ** 2, axis=0))
    size = np.sqrt(np.mean(experiment.judged.effort**2, axis=0))
    row: Row = {
        "torque_error": float(np.linalg.norm(error)),
        "torque_nrms": float(np.sqrt(np.mean((error / size) ** 2))),
    }
    if masses is not None:
        true = experiment.truth[robot.layout.masses]
        row["mass_error"] = float(np.sqrt(np.mean((masses / true - 1.0) ** 2)))
        row["mass_error_kg"] = float(np.mean(np.abs(masses - true)))
    return row


def compare(robot: Robot, seed: int, noise: Noise, folder: Path) -> dict[str, Row]:
    """Identify one random arm in all ways; method → errors."""
    experiment = make_experiment(robot, seed, noise)
    s = experiment.judged
    regressor = TreeRegression(robot).full(s.position, s.velocity, s.acceleration)
    layout, rows = robot.layout, {}

    def judge(parameters: FloatArray) -> Row:
        return _judge(robot, experiment, regressor @ parameters, parameters[layout.masses])

    rows["nominal"] = judge(robot.nominal)
    for weight in PRIOR_WEIGHTS:
        theirs = Figaroh(robot, experiment.recording, FigarohConfig(CUTOFF, weight), folder)
        theirs.solve()
        if weight == PRIOR_WEIGHTS[0]:
            torque = theirs.torques(experiment, physical=False)
            rows["FIGAROH wls"] = _judge(robot, experiment, torque, None)
        name = f"FIGAROH physical_fit, weight {weight:g}"
        rows[name] = {}
        if theirs.physical_accepted:
            torque = theirs.torques(experiment, physical=True)
            rows[name] = _judge(robot, experiment, torque, theirs.masses())
    for method in ("wls", "entropic"):
        rows[f"sysid {method}"] = judge(_ours(robot, experiment, method).estimate.parameters)
    return rows


def time_solves(robot: Robot, seed: int, noise: Noise, folder: Path) -> Row:
    """Time everything from the recording to consistent parameters, on the processor."""
    experiment = make_experiment(robot, seed, noise, samples=TIMED_ROWS)
    theirs = Figaroh(robot, experiment.recording, FigarohConfig(CUTOFF), folder)
    ours = timed(lambda: _ours(robot, experiment, "entropic"), REPEATS)
    whole = timed(theirs.solve, REPEATS)
    return {"sysid_s": ours, "figaroh_s": whole, "ratio": whole / ours}


def _mean(runs: list[dict[str, Row]], method: str, key: str) -> float:
    """Return the geometric mean over the runs that have such a figure; NaN if none has."""
    return geometric_mean([run[method][key] for run in runs if key in run[method]])


def _table(found: dict[str, list[dict[str, Row]]]) -> Table:
    rows = [
        {
            "robot": robot,
            "estimate": method,
            "torque error [N·m]": _mean(runs, method, "torque_error"),
            "torque NRMS": _mean(runs, method, "torque_nrms"),
            "mass error": _mean(runs, method, "mass_error"),
            "mass error [kg]": _mean(runs, method, "mass_error_kg"),
            "failed": f"{sum(not run[method] for run in runs)} of {len(runs)}",
        }
        for robot, runs in found.items()
        for method in runs[0]
    ]
    return show_rows("geometric means over random arms", rows, ".3g")


def _ratio(runs: list[dict[str, Row]], key: str) -> float:
    """Return the geometric mean of our error over FIGAROH's least one; NaN without any."""
    each = []
    for run in runs:
        theirs = [row[key] for name, row in run.items() if "FIGAROH" in name and key in row]
        each += [run["sysid entropic"][key] / min(theirs)] if theirs else []
    return geometric_mean(each)


def run(given: Given) -> Result:
    """Compare on random arms, and time the whole identification."""
    noise = Noise()
    seeds = list(range(given.seed, given.seed + given.arms))
    found: dict[str, list[dict[str, Row]]] = {}
    figures: dict[str, float] = {}
    print(
        f"encoder noise {noise.position:g} rad, torque noise {noise.torque:.0%}, "
        f"cut-off {CUTOFF:g} Hz, seeds {seeds}"
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for robot in map(load_robot, ROBOTS):
            runs = [compare(robot, seed, noise, folder) for seed in seeds]
            found[robot.name] = runs
            for key, what in COMPARED.items():
                figures[f"{what}, {robot.name}"] = _ratio(runs, key)
        speed = time_solves(load_robot("ur10"), given.seed, noise, folder)
    figures["FIGAROH's time over ours"] = speed["ratio"]
    compared = _table(found)
    seconds = show_table(
        f"a consistent model of the UR10 from {TIMED_ROWS} samples",
        ("", "seconds"),
        (("FIGAROH", speed["figaroh_s"]), ("sysid", speed["sysid_s"])),
        ".2g",
    )
    return Result(figures, found, {"compared": compared, "seconds": seconds})


if __name__ == "__main__":
    run_benchmark(run, arms=(5, "random ones per robot"))
