# SPDX-License-Identifier: Apache-2.0
"""Reproduces Zhang, Haugk and Vasudevan's validation on Digit's leg, simulated by MuJoCo."""

from dataclasses import asdict, dataclass

import numpy as np

from bench.digit_plant import (
    CENTRE,
    EFFECTS,
    SIGN_WIDTH,
    Log,
    Tracking,
    draw_parameters,
    follow,
    multi_sine,
    simulate,
    simulate_segments,
    track,
)
from bench.runner import Given, Result, run_benchmark, say, show_table
from sysid_controller.laws import Gains
from sysid_core.arrays import FloatArray
from sysid_core.batch import batch_of, rows_of
from sysid_core.dynamics.select import make_dynamics
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.robot import Robot, load_robot
from sysid_core.scores import Scores, score
from sysid_core.signals.options import SignalConfig

__all__ = ["run"]

ROBOT = "digit_left_leg"
BANDWIDTH = 20.0  # [rad/s] of the feedback
SPEEDS = (1.8, 3.0, 5.0)  # [rad/s]
SEGMENTS, SEGMENT = 31, 0.5  # [-, s]
HOLD = 0.005  # [s]
TRAIN_SECONDS = 30.0
MODELS = ("nominal", "identified")


@dataclass(frozen=True)
class Bench:
    """The robot, its true parameters and the controller that all runs share."""

    robot: Robot
    truth: FloatArray
    gains: Gains
    seed: int

    def record(self, motion: int, seconds: float) -> Log:
        """Follow a random motion with the nominal model."""
        policy = follow(self.robot, multi_sine(motion), self.robot.nominal, self.gains, seconds)
        return simulate(self.robot, self.truth, policy, CENTRE, seconds, self.seed + motion)


def _torques(bench: Bench, found: Identification, log: Log) -> Scores:
    """Table I: torques of inverse dynamics on a motion that nothing was learned from."""
    regression = found.regression
    rows = rows_of(regression, batch_of(bench.robot, log.recording(bench.robot), SignalConfig()))
    return score(rows, regression, found.nominal, found.estimate.parameters)


def _compare(
    title: str, joints: tuple[str, ...], nominal: FloatArray, identified: FloatArray
) -> FloatArray:
    """Print what both models reach, and return the joints' ratios (na,)."""
    ratio = identified / nominal
    rows = zip(joints, nominal, identified, ratio, strict=True)
    show_table(title, ("joint", *MODELS, "ratio"), rows)
    return ratio


def _tracking(bench: Bench, parameters: dict[str, FloatArray]) -> dict[str, dict[str, Tracking]]:
    """Tables III and IV: tracking of sines with both models; speed → model → errors."""
    joints = bench.robot.actuated_names
    found: dict[str, dict[str, Tracking]] = {}
    for omega in SPEEDS:
        say(f"III, IV: tracking at {omega:g} rad/s …")
        both = found[f"{omega:g}"] = {
            name: track(bench.robot, bench.truth, x, omega, bench.gains, bench.seed)
            for name, x in parameters.items()
        }
        for kind in ("mean", "maximum"):
            errors = [getattr(both[name], kind) for name in MODELS]
            _compare(f"III, IV  {kind} tracking error at {omega:g} rad/s [deg]", joints, *errors)
    return found


def run(given: Given) -> Result:
    """Identify the leg and repeat the paper's experiments with both models."""
    robot = load_robot(ROBOT)
    true, drawn = draw_parameters(robot, given.seed)
    # of each joint alone, as in the paper
    inertia = np.diag(make_dynamics(robot, SIGN_WIDTH).inertia(CENTRE))
    gains = Gains(BANDWIDTH**2 * inertia, 2.0 * BANDWIDTH * inertia)
    bench = Bench(robot, true, gains, given.seed)
    joints = robot.actuated_names
    say(f"exciting motion, {TRAIN_SECONDS:g} s, and identification …")
    learn = bench.record(0, TRAIN_SECONDS).recording(robot)
    found = identify(robot, learn, IdentifyConfig(train=1.0))
    parameters = {"nominal": np.array(robot.nominal), "identified": found.estimate.parameters}
    test = bench.record(1, SEGMENTS * SEGMENT + 0.1)
    torque = _torques(bench, found, test)
    title = "I  torque RMS of inverse dynamics [N·m]"
    first = _compare(title, joints, torque.rmse_nominal, torque.rmse_identified)
    say(f"II: forward simulation of {SEGMENTS} segments …")
    l2 = {
        name: simulate_segments(robot, x, test, count=SEGMENTS, seconds=SEGMENT, hold=HOLD).mean(
            axis=0
        )
        for name, x in parameters.items()
    }
    title = "II  forward simulation, mean L2 error of a segment [rad·√s]"
    second = _compare(title, joints, *(l2[name] for name in MODELS))
    tracking = _tracking(bench, parameters)
    fastest = tracking[f"{SPEEDS[-1]:g}"]
    figures = {
        "I, largest ratio of torque RMS": float(first.max()),
        "II, largest ratio of forward simulation": float(second.max()),
        "III, IV, largest ratio of mean tracking error": float(
            (fastest["identified"].mean / fastest["nominal"].mean).max()
        ),
    }
    details = {
        "robot": robot.name,
        "draw": drawn,
        "unmodelled": asdict(EFFECTS),
        "identified": robot.layout.joints_of(found.estimate.parameters),
        "joints": list(joints),
        "torque_rmse": [torque.rmse_nominal.tolist(), torque.rmse_identified.tolist()],
        "forward_l2": {name: values.tolist() for name, values in l2.items()},
        "tracking": {
            omega: {name: [e.tolist() for e in errors] for name, errors in both.items()}
            for omega, both in tracking.items()
        },
        "warnings": [str(warning) for warning in found.warnings],
    }
    return Result(figures, details)


if __name__ == "__main__":
    run_benchmark(run, seed=(1, "of the leg, motions and noise"))
