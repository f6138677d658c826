# SPDX-License-Identifier: Apache-2.0
"""Reproduces Zhang, Haugk and Vasudevan's validation on Digit's leg: ``python -m bench.digit``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.digit_experiments import (
    CENTRE,
    SIGN_WIDTH,
    MultiSine,
    Segments,
    Tracking,
    follow,
    simulate_segments,
    track,
)
from bench.digit_plant import Effects, Log, Plant, draw_parameters, simulate
from bench.digit_plots import plot_segments, plot_torques, plot_tracking
from sysid_controller.dynamics import make_dynamics
from sysid_controller.laws import Gains
from sysid_core.arrays import FloatArray
from sysid_core.batch import batch_of, rows_of
from sysid_core.estimation import estimator
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.robot import Robot, load_robot
from sysid_core.scores import Scores, curves, score
from sysid_core.signals import SignalConfig

__all__ = ["main"]

SPEEDS = (1.8, 3.0, 5.0)  # [rad/s]
SEGMENTS, SEGMENT = 31, 0.5  # [-, s]
HOLD = 0.005  # [s]
TRACKING_GOAL = 0.3  # mean error at the highest speed, identified over nominal
TRAIN_SECONDS = 30.0
MODELS = ("nominal", "identified")


@dataclass(frozen=True)
class Bench:
    """The robot, its plant and the controller that all runs share."""

    robot: Robot
    plant: Plant
    gains: Gains
    seed: int

    def run(self, parameters: FloatArray, motion: int, seconds: float) -> Log:
        """Follow a random motion with a model's parameters (p,)."""
        path = MultiSine(motion)
        policy = follow(self.robot, path, parameters, self.gains)
        return simulate(self.plant, policy, CENTRE, seconds, self.seed + motion)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _torques(bench: Bench, found: Identification, log: Log, out: Path) -> Scores:
    """Table I: torques of inverse dynamics on a motion that nothing was learned from."""
    robot, regression = bench.robot, found.regression
    batch = batch_of(robot, log.recording(robot), SignalConfig())
    rows = rows_of(regression, batch)
    nominal, identified = found.nominal, found.estimate.parameters
    groups, base = regression.groups, regression.base
    shown = curves(rows, groups, base, batch.samples.time, nominal, identified, 0)
    plot_torques(shown, out / "torques.png")
    return score(rows, groups, base, nominal, identified)


def _table(title: str, columns: dict[str, FloatArray], joints: tuple[str, ...]) -> None:
    print(f"\n{title}")
    print(f"{'':16s}" + "".join(f"{name:>13s}" for name in columns))
    for j, joint in enumerate(joints):
        print(f"{joint:16s}" + "".join(f"{values[j]:13.4g}" for values in columns.values()))


def _compare(
    title: str, joints: tuple[str, ...], nominal: FloatArray, identified: FloatArray
) -> None:
    columns = {"nominal": nominal, "identified": identified, "ratio": identified / nominal}
    _table(title, columns, joints)


def _report_tracking(joints: tuple[str, ...], results: dict[float, dict[str, Tracking]]) -> None:
    for omega, models in results.items():
        columns = {
            f"{name[:7]} {kind}": getattr(models[name], field)
            for kind, field in (("mean", "mean"), ("max", "maximum"))
            for name in MODELS
        }
        columns["mean ratio"] = models["identified"].mean / models["nominal"].mean
        _table(f"III, IV  tracking at {omega:g} rad/s: error [deg]", columns, joints)


def _json(
    drawn: dict[str, Any],
    bench: Bench,
    found: Identification,
    torque: Scores,
    segments: dict[str, Segments],
    tracking: dict[float, dict[str, Tracking]],
) -> dict[str, Any]:
    robot, layout = bench.robot, bench.robot.layout
    identified = layout.joints_of(found.estimate.parameters)
    return {
        "robot": robot.name,
        "draw": drawn,
        "unmodelled": asdict(bench.plant.effects),
        "identified": {joint: identified[joint] for joint in robot.actuated_names},
        "joints": list(robot.actuated_names),
        "torque_rmse": {
            "nominal": torque.rmse_nominal.tolist(),
            "identified": torque.rmse_identified.tolist(),
        },
        "forward_l2": {name: s.l2.mean(axis=0).tolist() for name, s in segments.items()},
        "tracking": {
            f"{omega:g}": {
                name: {"mean": t.mean.tolist(), "max": t.maximum.tolist()}
                for name, t in models.items()
            }
            for omega, models in tracking.items()
        },
        "warnings": list(found.warnings),
    }


def _verdicts(result: dict[str, Any]) -> dict[str, bool]:
    def ratios(entry: dict[str, list[float]]) -> FloatArray:
        return np.array(entry["identified"]) / np.array(entry["nominal"])

    fastest = result["tracking"][f"{SPEEDS[-1]:g}"]
    means = {name: fastest[name]["mean"] for name in MODELS}
    return {
        "I: torque RMS better on every joint": bool((ratios(result["torque_rmse"]) < 1.0).all()),
        "II: forward simulation better on every joint": bool(
            (ratios(result["forward_l2"]) < 1.0).all()
        ),
        f"III, IV: mean tracking error at most {TRACKING_GOAL} of nominal's at "
        f"{SPEEDS[-1]:g} rad/s on every joint": bool((ratios(means) <= TRACKING_GOAL).all()),
    }


def _run(
    bench: Bench, drawn: dict[str, Any], options: IdentifyConfig, out: Path
) -> dict[str, Any]:
    robot, joints = bench.robot, bench.robot.actuated_names
    nominal = np.array(robot.nominal)
    _say(f"exciting motion, {TRAIN_SECONDS:g} s …")
    learn = bench.run(nominal, motion=0, seconds=TRAIN_SECONDS)
    _say("identification …")
    begin = time.perf_counter()
    found = identify(robot, learn.recording(robot), options)
    seconds = time.perf_counter() - begin
    parameters = {"nominal": nominal, "identified": found.estimate.parameters}
    _say("I: torques on another motion …")
    test = bench.run(nominal, motion=1, seconds=SEGMENTS * SEGMENT + 0.1)
    torque = _torques(bench, found, test, out)
    _compare(
        "I  torque RMS of inverse dynamics [N·m]",
        joints,
        torque.rmse_nominal,
        torque.rmse_identified,
    )
    _say(f"II: forward simulation of {SEGMENTS} segments …")
    segments = {
        name: simulate_segments(robot, x, test, count=SEGMENTS, seconds=SEGMENT, hold=HOLD)
        for name, x in parameters.items()
    }
    l2 = {name: s.l2.mean(axis=0) for name, s in segments.items()}
    _compare(
        "II  forward simulation, mean L2 error of a segment [rad·√s]",
        joints,
        l2["nominal"],
        l2["identified"],
    )
    plot_segments(joints, test, segments, out / "forward.png")
    tracking: dict[float, dict[str, Tracking]] = {}
    for omega in SPEEDS:
        _say(f"III, IV: tracking at {omega:g} rad/s …")
        tracking[omega] = {
            name: track(bench.plant, robot, x, omega, bench.gains, bench.seed)
            for name, x in parameters.items()
        }
        plot_tracking(joints, tracking[omega], out / f"tracking_{omega:g}.png")
    _report_tracking(joints, tracking)
    result = _json(drawn, bench, found, torque, segments, tracking)
    result["identification_s"] = seconds
    return result


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; 0 if every requirement is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robot", default="digit_left_leg", help="a leg in config/robots")
    parser.add_argument("--seed", type=int, default=1, help="of the true parameters and the noise")
    parser.add_argument("--method", default="entropic", help="estimator")
    parser.add_argument(
        "--motors-only", action="store_true", help="hold all inertias, as the paper does for legs"
    )
    parser.add_argument("--bandwidth", type=float, default=20.0, help="of the feedback [rad/s]")
    parser.add_argument("--out", type=Path, default=Path("out/bench/digit"), help="folder")
    given = parser.parse_args(arguments)
    robot = load_robot(given.robot)
    true, drawn = draw_parameters(robot, given.seed)
    if given.motors_only:
        robot = load_robot(replace(robot.description, inertias="none"))
    # of each joint alone, as in the paper
    inertia = np.diag(make_dynamics(robot, SIGN_WIDTH).inertia(CENTRE))
    gains = Gains(given.bandwidth**2 * inertia, 2.0 * given.bandwidth * inertia)
    bench = Bench(robot, Plant(robot, true, Effects()), gains, given.seed)
    given.out.mkdir(parents=True, exist_ok=True)
    options = IdentifyConfig(train=1.0, estimator=estimator(given.method))
    result = _run(bench, drawn, options, given.out)
    result["requirements"] = _verdicts(result)
    (given.out / "digit.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    print()
    for name, met in result["requirements"].items():
        print(f"{'met' if met else 'NOT MET':8s} {name}")
    print(f"\n{given.out}/digit.json and figures beside it")
    return 0 if all(result["requirements"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
