# SPDX-License-Identifier: Apache-2.0
"""Loads that are picked up: how soon they are noticed, how well they are weighed, and false ones.

Arms as in `bench.gate` pick up loads in motion; others repeat a pick-and-place motion for hours of
their time without one. Where the recordings are at hand, a real UR10e's two runs of one
trajectory, without and with 2.805 kg, are joined at various times.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bench.plants import ARMS, RATE, Load, Motion, Plant, arm
from bench.recordings import DATA, UR10E_ROWS, recording_of, ur10e_columns
from bench.runner import Given, Result, run_benchmark, say, show_rows
from sysid_core.arrays import FloatArray
from sysid_core.excitation.fourier import quintic_step
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.update import Update
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot

__all__ = [
    "DEVIATIONS",
    "HOURS",
    "Pickup",
    "judged",
    "loads_told",
    "pick_and_place",
    "run",
    "share_of",
    "splice",
    "updates_of",
]

MASSES = (0.25, 0.5, 1.0, 2.0)  # [kg]
_ELSEWHERE = (0.25, 1.0)  # [kg] with which arms go on along a motion that they did not learn on
_BEFORE, _AFTER = 12.0, 6.0  # [s] without and with the load
_WEIGHED = 5.0  # [s] after which a load is weighed
_COM = (0.03, -0.02, 0.08)  # [m]
DEVIATIONS = 1.96  # of 95 % intervals
_REAL_MASS, _REAL_WEIGHED = 2.805, 6.0  # [kg, s]
_UPDATE_RATE = 10.0  # [Hz]
HOURS = 10.0  # that false loads are counted over
_STRETCH = 600.0  # [s] that one arm picks and places for at most


class Pickup(NamedTuple):
    """What came of one load."""

    robot: str
    mass: float  # [kg]
    noticed: float  # [s] after it came; inf if never
    early: bool  # Whether one was told before it came
    error: float  # [-] of the mass after some seconds, relative; inf without a load
    # off, com_off: errors of mass and of the coordinate of its centre that is worst, in standard
    # deviations [-]; inf without a load, NaN where the truth is not known.
    off: float
    com_off: float


def updates_of(robot: Robot, recording: Recording) -> list[Update]:
    """Return the updates of a robot that is identified from a recording as if live."""
    stream = stream_settings_for(recording, robot)
    steps = replay(recording, robot, stream=stream, update_rate=_UPDATE_RATE)
    return [step.update for step in steps]


def loads_told(updates: Sequence[Update]) -> int:
    """Return how often a load was told that was not there before."""
    told = [u.payload_attached for u in updates]
    return int(np.sum(np.diff(np.array([False, *told]).astype(int)) > 0))


def judged(
    name: str, updates: Sequence[Update], mass: float, came: float, after: float, com: bool
) -> Pickup:
    """Hold what was told of a load that came at a time [s] to what it is."""
    attached = [u.time for u in updates if u.payload_attached]
    noticed = next((t - came for t in attached if t >= came), np.inf)
    load = next((u.payload for u in updates if u.time >= came + after), None)
    early = any(t < came for t in attached)
    if load is None or not np.isfinite(noticed):
        return Pickup(name, mass, noticed, early, np.inf, np.inf, np.inf)
    off = abs(load.mass - mass) / load.mass_std
    worst = np.max(np.abs(load.com - _COM) / load.com_std) if com else np.nan
    error = abs(load.mass / mass - 1.0)
    return Pickup(name, mass, noticed, early, error, float(off), float(worst))


def pick_up(
    name: str, seed: int, mass: float, *, elsewhere: bool = False, beforehand: bool = False
) -> Pickup:
    """Let an arm pick up a load in motion, and move on as before or `elsewhere`.

    It was identified `beforehand`, or only its wrong nominal model is known.
    """
    plant, end = Plant(arm(name), seed), _BEFORE + _AFTER
    motion = plant.changing(_BEFORE, end) if elsewhere else plant.states(0, 0.0, end)
    torque = plant.torque(motion)
    held = motion.time >= _BEFORE
    torque[held] = plant.torque(motion, Load(mass, _COM))[held]
    robot = plant.identified() if beforehand else plant.robot
    updates = updates_of(robot, plant.recording(motion, torque))
    return judged(name, updates, mass, _BEFORE, _WEIGHED, com=True)


def pick_and_place(name: str, seed: int, seconds: float) -> int:
    """Return how often a load was told of an arm that moves between two places without one."""
    plant = Plant(arm(name), seed)
    places = plant.states(0, 0.0, 10.0)
    ends = places.position[[0, len(places.time) // 2]]
    time = np.arange(round(seconds * RATE)) / RATE
    # two seconds there, two seconds back, a rest of half a second at either end
    back = (time // 2.5).astype(int) % 2 == 1
    share, rate, bend = quintic_step(time % 2.5 / 2.0)
    sign = np.where(back, -1.0, 1.0)
    step = np.subtract(*ends[::-1])
    motion = Motion(
        time,
        ends[0] + np.outer(np.where(back, 1.0 - share, share), step),
        np.outer(sign * rate / 2.0, step),
        np.outer(sign * bend / 4.0, step),
    )
    seen = plant.recording(motion, plant.torque(motion))
    return loads_told(updates_of(plant.robot, seen))


def _false_loads(arms: Sequence[str], seed: int, seconds: float) -> int:
    """Count the loads that are told in so long without one, each arm of a kind being another."""
    rounds = math.ceil(seconds / (_STRETCH * len(arms)))
    each = [(name, seed + k) for k in range(rounds) for name in arms]
    return sum(pick_and_place(*one, seconds / len(each)) for one in each)


def splice(at: float) -> Pickup:
    """Join the real UR10e's runs at a time [s] of its trajectory."""
    robot = load_robot("ur10e")
    parts: list[FloatArray] = []
    for run in UR10E_ROWS:
        table = ur10e_columns(run)
        table[:, 0] -= table[0, 0]
        time = table[:, 0]
        keep = time < at if not parts else (time >= at) & (time < at + _REAL_WEIGHED + 1.0)
        parts.append(table[keep])
    updates = updates_of(robot, recording_of(robot, np.vstack(parts), "ur10e"))
    return judged("ur10e", updates, _REAL_MASS, at, _REAL_WEIGHED, com=False)


def share_of(pickups: Sequence[Pickup], holds: Callable[[Pickup], bool]) -> float:
    """Return the share [-] of loads that something holds for."""
    return float(np.mean([holds(p) for p in pickups])) if pickups else np.nan


def _figures(pickups: Sequence[Pickup], real: Sequence[Pickup], false: float) -> dict[str, float]:
    return {
        "noticed within 1 s": share_of(pickups, lambda p: p.noticed <= 1.0),
        "median time to notice [s]": float(np.median([p.noticed for p in pickups])),
        "mass within 3 %": share_of(pickups, lambda p: p.error <= 0.03),
        "coverage, mass": share_of(pickups, lambda p: p.off <= DEVIATIONS),
        "coverage, centre of mass": share_of(pickups, lambda p: p.com_off <= DEVIATIONS),
        "false loads in 10 h": false,
        "real: noticed within 1.5 s": share_of(real, lambda p: p.noticed <= 1.5),
        "real: mass within 5 %": share_of(real, lambda p: p.error <= 0.05),
        "real: covered": share_of(real, lambda p: p.off <= DEVIATIONS),
    }


def _row(label: str, own: Sequence[Pickup]) -> dict[str, object]:
    known = [p for p in own if not np.isnan(p.com_off)]
    return {
        "arm, load": label,
        "runs": len(own),
        "in 1 s [%]": 100.0 * share_of(own, lambda p: p.noticed <= 1.0),
        "noticed [s]": float(np.median([p.noticed for p in own])),
        "error [%]": 100.0 * float(np.median([p.error for p in own])),
        "covered [%]": 100.0 * share_of(own, lambda p: p.off <= DEVIATIONS),
        "com covered [%]": 100.0 * share_of(known, lambda p: p.com_off <= DEVIATIONS),
        "RMS error [std]": float(np.sqrt(np.mean([p.off**2 for p in own]))),
        "too early [%]": 100.0 * share_of(own, lambda p: p.early),
    }


def run(given: Given) -> Result:
    """Pick up loads, move without any, and splice the recordings."""
    pickups, moved, known = [], [], []
    rows = []
    for name in given.arms:
        for mass in MASSES:
            own = [pick_up(name, given.seed + k, mass) for k in range(given.seeds)]
            rows.append(_row(f"{name}, {mass:g} kg", own))
            pickups += own
        again = [(given.seed + k, mass) for mass in _ELSEWHERE for k in range(given.seeds)]
        moved += [pick_up(name, *one, elsewhere=True) for one in again]
        known += [pick_up(name, *one, elsewhere=True, beforehand=True) for one in again]
        say(f"{name} done")
    rows += [_row("all, as before", pickups), _row("all, onto another motion", moved)]
    rows.append(_row("the same, identified beforehand", known))
    false = _false_loads(given.arms, given.seed, 3600.0 * given.hours)
    real: list[Pickup] = []
    if (DATA / "ur10e").is_dir():
        real = [splice(at) for at in np.linspace(10.0, 38.0, given.splices)]
    rows += [_row("real ur10e, 2.805 kg", real)] if real else []
    table = show_rows("payload", rows, ".3g")
    print(f"\n{false} false loads in {given.hours:g} h")
    # ten hours are claimed for nothing but ten hours
    rate = false * HOURS / given.hours if given.hours >= HOURS else np.nan
    figures = _figures(pickups, real, rate)
    details = {"pickups": [p._asdict() for p in (*pickups, *moved, *known, *real)], "false": false}
    return Result(figures, details, {"payload": table})


if __name__ == "__main__":
    run_benchmark(
        run,
        seeds=(2, "arms of each kind"),
        arms=(ARMS, "to run"),
        hours=(0.1, "without load"),
        splices=(4, "of the UR10e"),
    )
