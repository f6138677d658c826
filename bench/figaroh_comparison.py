# SPDX-License-Identifier: Apache-2.0
"""Accuracy and speed beside FIGAROH 1.0.2, on the same simulated recordings in the same run.

``python -m bench.figaroh_comparison`` prints tables and writes
``out/bench/figaroh_comparison.json``. Positions come from an encoder with white noise, torques
carry one per cent of white noise, velocities and accelerations are differentiated. Both sides get
the same recording, URDF, nominal friction and cut-off, and leave out the same edges of the filter.
Goals look at FIGAROH's own defaults; its physical fit with a hand-tuned prior stands beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.figaroh_adapter import Figaroh, FigarohConfig
from bench.figaroh_arm import Experiment, Noise, make_experiment
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.estimation import estimator
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.robot import Robot, load_robot
from sysid_core.signals import SignalConfig

__all__ = ["main"]

ROBOTS = ("ur10", "panda")
CUTOFF = 5.0  # [Hz]
PRIOR_WEIGHTS = (1e-6, 1.0)  # FIGAROH's default, and the best power of ten found by hand here
GOALS = ("torque", "nrms", "mass_error", "mass_error_kg")
"""Ratios to FIGAROH that are to be at most one."""
GOAL_SPEED = 5.0
TIMED_ROWS = 1000

Row = dict[str, Any]


def _physical(weight: float) -> str:
    return f"FIGAROH physical_fit, weight {weight:g}"


def _ours(robot: Robot, experiment: Experiment, method: str) -> Identification:
    options = IdentifyConfig(
        train=1.0,
        signals=SignalConfig(cutoff=CUTOFF),
        estimator=estimator(method),
    )
    return identify(robot, experiment.recording, options)


def _judge(robot: Robot, experiment: Experiment, torque: FloatArray, masses: Any) -> Row:
    """Compare predicted torques with noise-free ones, and masses with the true ones."""
    error = np.sqrt(np.mean((torque - experiment.torque) ** 2, axis=0))
    size = np.sqrt(np.mean(experiment.torque**2, axis=0))
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
    states = (experiment.position, experiment.velocity, experiment.acceleration)
    regressor = TreeRegression(robot).full(*states)
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
        name = _physical(weight)
        rows[name] = {}
        if theirs.physical_accepted:
            torque = theirs.torques(experiment, physical=True)
            rows[name] = _judge(robot, experiment, torque, theirs.masses())
    for method in ("wls", "entropic"):
        rows[f"sysid {method}"] = judge(_ours(robot, experiment, method).estimate.parameters)
    return rows


def _median_times(functions: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Return each function's median time [s] on the processor, calls taking turns."""
    times = np.empty((repeats + 1, len(functions)))
    for turn in range(repeats + 1):  # the first one warms up
        for i, function in enumerate(functions):
            begin = time.process_time()
            function()
            times[turn, i] = time.process_time() - begin
    return [float(t) for t in np.median(times[1:], axis=0)]


def time_solves(robot: Robot, seed: int, noise: Noise, folder: Path, repeats: int) -> Row:
    """Time everything from the recording to consistent parameters, on the processor."""
    experiment = make_experiment(robot, seed, noise, samples=TIMED_ROWS)
    theirs = Figaroh(robot, experiment.recording, FigarohConfig(CUTOFF), folder)
    ours, whole = _median_times(
        (lambda: _ours(robot, experiment, "entropic"), theirs.solve), repeats
    )
    return {
        "rows": TIMED_ROWS,
        "sysid_s": ours,
        "figaroh_s": whole,
        "ratio": whole / ours,
    }


def _mean(runs: list[dict[str, Row]], method: str, key: str) -> float:
    """Return the geometric mean over the runs that have such a figure; NaN if none has."""
    values = [run[method][key] for run in runs if key in run[method]]
    return float(np.exp(np.mean(np.log(values)))) if values else np.nan


def _report_accuracy(robot: str, runs: list[dict[str, Row]]) -> Row:
    print(f"\n{robot}, geometric means over {len(runs)} random arms")
    print(f"{'':34}{'torque [N·m]':>14}{'NRMS':>10}{'mass error':>12}{'mass [kg]':>11}")
    for method in runs[0]:
        figures = [
            _mean(runs, method, key)
            for key in ("torque_error", "torque_nrms", "mass_error", "mass_error_kg")
        ]
        cells = [f"{figures[0]:14.4f}", f"{figures[1]:10.5f}"]
        if np.isfinite(figures[2]):
            cells += [f"{figures[2]:12.3f}", f"{figures[3]:11.3f}"]
        failed = sum(not run[method] for run in runs)
        note = f"   no solution in {failed} of {len(runs)}" if failed else ""
        print(f"{method:34}{''.join(cells)}{note}")
    ratios: Row = {}
    for name, key, ours, theirs in (
        ("torque", "torque_error", "sysid entropic", "FIGAROH wls"),
        ("nrms", "torque_nrms", "sysid entropic", "FIGAROH wls"),
        *(
            (f"{key}{', tuned' * tuned}", key, "sysid entropic", _physical(weight))
            for tuned, weight in enumerate(PRIOR_WEIGHTS)
            for key in ("mass_error", "mass_error_kg")
        ),
    ):
        each = [run[ours][key] / run[theirs][key] for run in runs if key in run[theirs]]
        if not each:
            continue
        ratios[name] = {"mean": float(np.exp(np.mean(np.log(each)))), "worst": max(each)}
    print("sysid entropic over FIGAROH:", end="")
    print("; ".join(f" {n} {r['mean']:.2f} (worst {r['worst']:.2f})" for n, r in ratios.items()))
    return ratios


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--seed", type=int, default=0, help="of the first random arm")
    parser.add_argument("--arms", type=int, default=5, help="number of random arms per robot")
    parser.add_argument("--repeats", type=int, default=5, help="of the timed solves")
    parser.add_argument("--encoder", type=float, default=1e-4, help="its noise [rad]")
    given = parser.parse_args(arguments)
    noise = Noise(position=given.encoder)
    seeds = list(range(given.seed, given.seed + given.arms))
    result: dict[str, Any] = {"seeds": seeds, "noise": vars(noise), "cutoff_hz": CUTOFF}
    print(
        f"encoder noise {noise.position:g} rad, torque noise {noise.torque:.0%}, "
        f"cut-off {CUTOFF:g} Hz, seeds {seeds}"
    )
    met = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for robot in map(load_robot, ROBOTS):
            runs = [compare(robot, seed, noise, folder) for seed in seeds]
            ratios = _report_accuracy(robot.name, runs)
            result[robot.name] = {"runs": runs, "ratios": ratios}
            met &= all(ratios[name]["mean"] <= 1.0 for name in GOALS)
        speed = time_solves(load_robot("ur10"), given.seed, noise, folder, given.repeats)
    result["speed"] = speed
    met &= speed["ratio"] >= GOAL_SPEED
    print(
        f"\nwhole solve, {TIMED_ROWS} rows of the UR10, physical consistency included: FIGAROH "
        f"{speed['figaroh_s']:.3f} s, sysid {speed['sysid_s']:.3f} s, "
        f"{speed['ratio']:.1f} times"
    )
    print(
        f"\ngoals (torque error ≤ wls's, masses closer than physical_fit's, ≥ {GOAL_SPEED:g}× "
        f"faster): {'met' if met else 'NOT met'}"
    )
    result["met"] = bool(met)
    given.out.mkdir(parents=True, exist_ok=True)
    target = given.out / "figaroh_comparison.json"
    target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
