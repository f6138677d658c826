# SPDX-License-Identifier: Apache-2.0
"""Loads on robots that walk: how soon they are noticed and how well weighed, and false ones.

Solo12 and Spot, unknown in mass and friction, trot, crawl, sway or stand in MuJoCo, with the noise
of their sensors. Each is identified live from its nominal model; some pick up a load on the way,
others walk and stand for hours of their time without one.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from bench.runner import Result, run_benchmark, say, show_rows
from sysid_core.dynamics.stance import Stance
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.update import Update
from sysid_core.robot import load_robot
from sysid_sim.errors import SimulationError
from sysid_sim.legged_motion import LeggedMotion, Plan, Sensed, at_rest
from sysid_sim.run import run_scenario
from sysid_sim.scenarios import PayloadEvent, Scenario, find_scenario
from sysid_sim.walker import MOTIONS, Walker

__all__ = ["Carried", "carry", "run"]

_LOADS = {"solo12": (0.25, 0.5, 1.0), "spot": (2.0, 5.0)}
"""Masses [kg] on top of each robot: from a tenth of its own."""
_MOVES = ("trot", "crawl", "wobble")
_RESTS = ("stand",)
_BEFORE, _AFTER = 15.0, 6.0  # [s] without and with the load
_WEIGHED = 5.0  # [s] after which a load is weighed
_STRETCH = 120.0  # [s] that one robot moves for at most without a load
_TRIES = 5  # Seeds that are tried for one that does not fall
_UPDATE_RATE = 10.0  # [Hz]
_HOURS = 10.0  # that false loads are counted over


class Carried(NamedTuple):
    """What came of one load."""

    robot: str
    motion: str
    mass: float  # [kg]
    noticed: float  # [s] after it came; inf if never
    early: bool  # Whether one was told before it came
    error: float  # [-] of the mass after some seconds, relative; inf without a load
    off: float  # [-] the same in standard deviations


class _Stand:
    """Stands still on all feet."""

    def __init__(self, stance: Stance, seed: int) -> None:
        del seed  # standing has nothing to draw
        self._plan = Plan(at_rest(stance), np.ones(len(stance.feet), dtype=bool))

    def plan(self, time: float, sensed: Sensed) -> Plan:
        """Return what is wanted at any time."""
        return self._plan


def _scenario(robot: str, motion: str) -> Scenario:
    moves: Callable[[Stance, int], LeggedMotion] = MOTIONS.get(motion, _Stand)
    return replace(find_scenario(f"{robot}_trot"), behaviour=partial(Walker, moves))


def _updates(scenario: Scenario, seed: int, seconds: float) -> list[Update]:
    """Simulate with the first of some seeds that does not fall, and identify live."""
    for turn in range(_TRIES):
        try:
            done = run_scenario(scenario, seed=seed + 1000 * turn, duration=seconds)
            break
        except SimulationError:
            if turn == _TRIES - 1:
                raise
    robot = load_robot(scenario.robot)
    stream = stream_settings_for(done.recording, robot)
    steps = replay(done.recording, robot, stream=stream, update_rate=_UPDATE_RATE)
    return [step.update for step in steps]


def carry(robot: str, motion: str, mass: float, seed: int) -> Carried:
    """Let a robot pick up a load on its way."""
    height = 0.06 if robot == "solo12" else 0.14
    event = PayloadEvent(_BEFORE, mass, com=(0.03, -0.01, height))
    scenario = replace(_scenario(robot, motion), payloads=(event,))
    updates = _updates(scenario, seed, _BEFORE + _AFTER)
    attached = [u.time for u in updates if u.payload_attached]
    noticed = next((t - _BEFORE for t in attached if t >= _BEFORE), np.inf)
    load = next((u.payload for u in updates if u.time >= _BEFORE + _WEIGHED), None)
    early = any(t < _BEFORE for t in attached)
    if load is None:
        return Carried(robot, motion, mass, noticed, early, np.inf, np.inf)
    error = load.mass - mass
    return Carried(
        robot, motion, mass, noticed, early, abs(error) / mass, abs(error) / load.mass_std
    )


def false_loads(robot: str, motions: Sequence[str], seed: int, seconds: float) -> int:
    """Count the loads that are told in so long without one, each stretch by another robot."""
    count = math.ceil(seconds / _STRETCH)
    told = 0
    for k in range(count):
        motion = motions[k % len(motions)]
        updates = _updates(_scenario(robot, motion), seed + k, seconds / count)
        attached = np.array([False, *(u.payload_attached for u in updates)])
        told += int(np.sum(np.diff(attached.astype(int)) > 0))
    return told


def _row(label: str, own: Sequence[Carried]) -> dict[str, object]:
    return {
        "robot, load": label,
        "runs": len(own),
        "in 1 s [%]": 100.0 * float(np.mean([c.noticed <= 1.0 for c in own])),
        "noticed [s]": float(np.median([c.noticed for c in own])),
        "error [%]": 100.0 * float(np.median([c.error for c in own])),
        "covered [%]": 100.0 * float(np.mean([c.off <= 1.96 for c in own])),
        "too early [%]": 100.0 * float(np.mean([c.early for c in own])),
    }


def run(given: argparse.Namespace) -> Result:
    """Pick up loads, then walk and stand without any."""
    rows, carried = [], []
    for robot in given.robots:
        for mass in _LOADS[robot]:
            own = [
                carry(robot, motion, mass, given.seed + k)
                for motion in _MOVES
                for k in range(given.seeds)
            ]
            rows.append(_row(f"{robot}, {mass:g} kg", own))
            carried += own
        say(f"{robot}: loads done")
    rows += [_row(f"all, {m}", [c for c in carried if c.motion == m]) for m in _MOVES]
    table = show_rows("loads on robots that walk", rows, ".3g")
    share = 3600.0 * given.hours / len(given.robots)
    false = {}
    for kind, motions in (("walking", _MOVES), ("standing", _RESTS)):
        false[kind] = sum(false_loads(r, motions, given.seed, share) for r in given.robots)
        say(f"{kind} done")
        print(f"\n{false[kind]} false loads in {given.hours:g} h of {kind}")
    # ten hours are claimed for nothing but ten hours
    figures = {
        "noticed within 1 s": float(np.mean([c.noticed <= 1.0 for c in carried])),
        **{
            f"false loads in 10 h of {kind}": n if given.hours >= _HOURS else np.nan
            for kind, n in false.items()
        },
    }
    return Result(
        figures, {"carried": [c._asdict() for c in carried], **false}, {"walking": table}
    )


if __name__ == "__main__":
    sys.exit(
        run_benchmark(
            run,
            seeds=(2, "robots per motion and load"),
            robots=(tuple(_LOADS), "to run"),
            hours=(0.1, "of walking and of standing without load"),
        )
    )
