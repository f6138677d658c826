# SPDX-License-Identifier: Apache-2.0
"""Loads on robots that walk: how soon they are noticed and how well weighed, and false ones.

Solo12 and Spot, unknown in mass and friction, trot, crawl, sway or stand in MuJoCo, with the noise
of their sensors. Each is identified live from its nominal model; some pick up a load on the way,
others walk and stand for hours of their time without one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from bench.payload import (
    DEVIATIONS,
    HOURS,
    Pickup,
    judged,
    loads_told,
    share_of,
    updates_of,
)
from bench.runner import Given, Result, run_benchmark, say, show_rows
from sysid_core.dynamics.stance import Stance
from sysid_core.online.update import Update
from sysid_core.robot import load_robot
from sysid_sim.errors import SimulationError
from sysid_sim.legged_motion import Plan, Sensed, at_rest
from sysid_sim.run import run_scenario
from sysid_sim.scenarios import PayloadEvent, Scenario, find_scenario
from sysid_sim.walker import MOTIONS, MotionFactory, Walker

__all__ = ["carry", "run"]

_LOADS = {"solo12": (0.25, 0.5, 1.0), "spot": (2.0, 5.0)}
"""Masses [kg] on top of each robot: from a seventeenth of its own."""
_MOVES = ("trot", "crawl", "wobble")
_RESTS = ("stand",)
_BEFORE, _AFTER = 15.0, 6.0  # [s] without and with the load
_WEIGHED = 5.0  # [s] after which a load is weighed
_STRETCH = 120.0  # [s] that one robot moves for at most without a load
_TRIES = 5  # Seeds that are tried for one that does not fall


class _Stand:
    """Stands still on all feet."""

    def __init__(self, stance: Stance, seed: int) -> None:
        del seed  # standing has nothing to draw
        self._plan = Plan(at_rest(stance), np.ones(len(stance.feet), dtype=bool))

    def plan(self, time: float, sensed: Sensed) -> Plan:
        """Return what is wanted at any time."""
        return self._plan


def _scenario(robot: str, motion: str) -> Scenario:
    moves: Mapping[str, MotionFactory] = {**MOTIONS, "stand": _Stand}
    return replace(find_scenario(f"{robot}_trot"), behaviour=partial(Walker, moves[motion]))


def _updates(scenario: Scenario, seed: int, seconds: float) -> list[Update]:
    """Simulate with the first of some seeds that does not fall, and identify live."""
    for turn in range(_TRIES):
        try:
            done = run_scenario(scenario, seed=seed + 1000 * turn, duration=seconds)
            break
        except SimulationError:
            if turn == _TRIES - 1:
                raise
    return updates_of(load_robot(scenario.robot), done.recording)


def carry(robot: str, motion: str, mass: float, seed: int) -> Pickup:
    """Let a robot pick up a load on its way."""
    height = 0.06 if robot == "solo12" else 0.14
    event = PayloadEvent(_BEFORE, mass, com=(0.03, -0.01, height))
    scenario = replace(_scenario(robot, motion), payloads=(event,))
    updates = _updates(scenario, seed, _BEFORE + _AFTER)
    return judged(robot, updates, mass, _BEFORE, _WEIGHED, com=False)


def _false_loads(robot: str, motions: Sequence[str], seed: int, seconds: float) -> int:
    """Count the loads that are told in so long without one, each stretch by another robot."""
    count = math.ceil(seconds / _STRETCH)
    told = 0
    for k in range(count):
        motion = motions[k % len(motions)]
        updates = _updates(_scenario(robot, motion), seed + k, seconds / count)
        told += loads_told(updates)
    return told


def _row(label: str, own: Sequence[Pickup]) -> dict[str, object]:
    return {
        "robot, load": label,
        "runs": len(own),
        "in 1 s [%]": 100.0 * share_of(own, lambda p: p.noticed <= 1.0),
        "noticed [s]": float(np.median([p.noticed for p in own])),
        "error [%]": 100.0 * float(np.median([p.error for p in own])),
        "covered [%]": 100.0 * share_of(own, lambda p: p.off <= DEVIATIONS),
        "too early [%]": 100.0 * share_of(own, lambda p: p.early),
    }


def run(given: Given) -> Result:
    """Pick up loads, then walk and stand without any."""
    rows, carried = [], dict[str, list[Pickup]]()
    for robot in given.robots:
        for mass in _LOADS[robot]:
            own = {
                motion: [carry(robot, motion, mass, given.seed + k) for k in range(given.seeds)]
                for motion in _MOVES
            }
            for motion, loads in own.items():
                carried.setdefault(motion, []).extend(loads)
            rows.append(
                _row(f"{robot}, {mass:g} kg", [p for loads in own.values() for p in loads])
            )
        say(f"{robot}: loads done")
    rows += [_row(f"all, {motion}", loads) for motion, loads in carried.items()]
    table = show_rows("loads on robots that walk", rows, ".3g")
    share = 3600.0 * given.hours / len(given.robots)
    false = {}
    for kind, motions in (("walking", _MOVES), ("standing", _RESTS)):
        false[kind] = sum(_false_loads(r, motions, given.seed, share) for r in given.robots)
        say(f"{kind} done")
        print(f"\n{false[kind]} false loads in {given.hours:g} h of {kind}")
    everything = [p for loads in carried.values() for p in loads]
    # ten hours are claimed for nothing but ten hours
    figures = {
        "noticed within 1 s": share_of(everything, lambda p: p.noticed <= 1.0),
        **{
            f"false loads in 10 h of {kind}": n if given.hours >= HOURS else np.nan
            for kind, n in false.items()
        },
    }
    details = {motion: [p._asdict() for p in loads] for motion, loads in carried.items()}
    return Result(figures, {**details, **false}, {"walking": table})


if __name__ == "__main__":
    run_benchmark(
        run,
        seeds=(2, "robots per motion and load"),
        robots=(tuple(_LOADS), "to run"),
        hours=(0.1, "of walking and of standing without load"),
    )
