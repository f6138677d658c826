# SPDX-License-Identifier: Apache-2.0
"""Designed motions against random Fourier motions of the same length within the same limits.

Each is played as by ``sysid calibrate --simulate``: on a robot whose model is wrong, approach and
ramps included. What is identified from it is held against the robot's true base parameters.
"""

from typing import Any

import numpy as np

from bench.runner import Given, Result, geometric_mean, run_benchmark, say, show_rows
from sysid_controller.motion_plan import MotionPlanner
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.stance import rest_configuration
from sysid_core.excitation.design import Design, ExciteConfig
from sysid_core.excitation.fourier import FourierMotion, States
from sysid_core.excitation.information import Information
from sysid_core.excitation.limits import MotionLimits, motion_limits
from sysid_core.excitation.motion_file import JointMotion
from sysid_core.excitation.optimise import excite
from sysid_core.excitation.standing import StandingMotion
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.robot import Robot, load_robot
from sysid_sim.run import run_scenario
from sysid_sim.scenarios import Behaviour, Scenario, find_scenario
from sysid_sim.trajectories import TrajectoryTracker

__all__ = ["run"]

_SCENARIOS = {"panda": "panda_excite", "ur10e": "ur10e_excite", "digit_left_leg": "digit_leg"}
"""Of each robot the scenario whose sensors, friction and delays it has."""
_SHARE = 0.8  # Of ranges, speeds and torques that motions use, as in ``sysid calibrate``
_RATE = 20.0  # [Hz] of the points that are played, as in a motion's file
_BANDWIDTH = 20.0  # [rad/s] of the feedback, as in all scenarios


def _play(
    robot: Robot, name: str, motion: FourierMotion | StandingMotion, seed: int
) -> tuple[float, float]:
    """Return the relative errors of base parameters that are identified, and of nominal ones."""
    time = motion.times(_RATE)
    planner = MotionPlanner(robot, JointMotion(robot.actuated_names, time, *motion.states(time)))
    plan = planner.plan(rest_configuration(robot)[robot.actuated])

    def path(time: FloatArray) -> States:
        return States(*map(np.array, zip(*map(plan.path.at, time.tolist()), strict=True)))

    def tracker(robot: Robot, _: int, period: float) -> Behaviour:
        return TrajectoryTracker(robot, path, bandwidth=_BANDWIDTH, period=period)

    scenario = find_scenario(_SCENARIOS[name])
    played = Scenario(name, name, "", tracker, rate=scenario.rate, config=scenario.config)
    done = run_scenario(played, seed=seed, duration=plan.duration)
    found = identify(robot, done.recording, IdentifyConfig(train=1.0)).estimate
    base = make_regression(robot).base
    true = base.project(done.truth)
    estimates = found.parameters, robot.consistent_nominal
    errors = [np.linalg.norm(base.project(x) - true) / np.linalg.norm(true) for x in estimates]
    return float(errors[0]), float(errors[1])


def _random(robot: Robot, limits: MotionLimits, config: ExciteConfig, seed: int) -> FourierMotion:
    """Return a random motion, other than those that the design begins with."""
    design = Design(Information(robot), limits, config)
    return design.random(np.random.default_rng([seed, 1]))


def _root_mean_square(name: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of all seeds: what error is to be expected, by luck or not."""
    kinds = ("nominal", "random motion", "designed motion")
    size = {kind: float(np.sqrt(np.mean([row[kind] ** 2 for row in rows]))) for kind in kinds}
    ratio = size["designed motion"] / size["random motion"]
    return {"robot": name, "seed": "all, RMS", **size, "ratio": ratio}


def run(given: Given) -> Result:
    """Identify each robot from both motions, seed by seed."""
    rows: list[dict[str, Any]] = []
    figures: dict[str, float] = {}
    for name in given.robots:
        robot, ratios = load_robot(name), []
        limits = motion_limits(robot, share=_SHARE, speed=_SHARE)
        for seed in range(given.seed, given.seed + given.seeds):
            config = ExciteConfig(seed=seed)
            designed, nominal = _play(robot, name, excite(robot, limits, config).motion, seed + 1)
            drawn, _ = _play(robot, name, _random(robot, limits, config, seed), seed + 1)
            ratios.append(designed / drawn)
            rows.append(
                {
                    "robot": name,
                    "seed": f"{seed}",
                    "nominal": nominal,
                    "random motion": drawn,
                    "designed motion": designed,
                    "ratio": ratios[-1],
                }
            )
            say(f"{rows[-1]}")
        figures[f"error over that of a random motion, {name}"] = geometric_mean(ratios)
        rows.append(_root_mean_square(name, rows[-given.seeds :]))
    table = show_rows("relative error of base parameters", rows, ".3g")
    return Result(figures, {"rows": rows}, {"excitation": table})


if __name__ == "__main__":
    seeds = (3, "of motion, truth and noise")
    run_benchmark(run, robots=(tuple(_SCENARIOS), "to design for"), seeds=seeds)
