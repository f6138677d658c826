# SPDX-License-Identifier: Apache-2.0
"""What the live gate adopts: right torques, wrong torques, and motions that show little.

Each run is a recording of an arm whose bodies are not the nominal ones and whose friction no
model has, through the live pipeline. A model counts by its error on another, wide motion relative
to the nominal model's; the worst that was in use counts, however short.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bench.plants import ARMS, Plant, arm
from bench.runner import Given, Result, run_benchmark, say, show_rows
from sysid_core.arrays import FloatArray
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.recording import Recording

__all__ = ["CASES", "Case", "Run", "observe", "run"]

SECONDS = 14.0
HARMLESS = 1.02  # error on a wide motion, relative to the nominal model's, that is no worse
LATE = 7.0  # [s] at which a torque turns wrong that was right until then
_UPDATE_RATE = 10.0  # [Hz]
_SMALL = 0.05  # amplitude of a small motion, as a share
_AMPERE = 0.1  # amperes per newton metre
_TOLD = ("gain_changed", "torque_saturated")  # kinds that are told while a model is in use
_SATURATED = 0.6  # share of its largest torque at which a drive saturates


class Case(NamedTuple):
    """What comes from a robot, and what must be told of it."""

    spoil: Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]
    """Torques (n,) of the joint, times (n,) and a generator to the torques that are published."""
    joint: int  # Which joint it is done to; may count from the end
    kinds: tuple[str, ...]  # Any of these must name the joint; empty: nothing may be refused
    motion: str = "wide"  # ``wide``, ``small`` or ``one``


def _late(tau: FloatArray, time: FloatArray, rng: np.random.Generator) -> FloatArray:
    return np.where(time < LATE, tau, 1.5 * tau)


def _noise(tau: FloatArray, time: FloatArray, rng: np.random.Generator) -> FloatArray:
    return float(np.sqrt(np.mean(tau**2))) * rng.normal(size=len(tau))


def _clipped(tau: FloatArray, time: FloatArray, rng: np.random.Generator) -> FloatArray:
    most = _SATURATED * float(np.abs(tau).max())
    return np.clip(tau, -most, most)


CASES = {
    "good": Case(lambda tau, time, rng: tau, 0, ()),
    "flipped": Case(lambda tau, time, rng: -tau, -1, ("torque_sign",)),
    "noise": Case(_noise, -1, ("torque_noise",)),
    "zero": Case(lambda tau, time, rng: 0.0 * tau, -1, ("torque_stuck",)),
    "gain 1.5": Case(lambda tau, time, rng: 1.5 * tau, 1, ("torque_scale",)),
    "amperes": Case(lambda tau, time, rng: _AMPERE * tau, 2, ("torque_scale",)),
    "saturated": Case(_clipped, 1, ("torque_saturated",)),
    "late": Case(_late, 1, ("torque_scale", "gain_changed")),
    "small": Case(lambda tau, time, rng: tau, 0, (), "small"),
    "one joint": Case(lambda tau, time, rng: tau, 0, (), "one"),
}

WRONG = tuple(name for name, case in CASES.items() if case.kinds)
LITTLE = ("small", "one joint")


class Run(NamedTuple):
    """What came of one recording."""

    robot: str
    case: str
    seed: int
    adopted: bool  # Whether a model was in use at the end
    share: float  # [-] of the updates with a model in use
    named: bool
    """Whether what was wrong was told by joint and kind, at the end (a change: at any time), and
    nothing of any other joint."""
    blamed: bool  # Whether the torque of a joint was refused that was right
    wide: float
    """[-] worst error on a wide motion of any model in use, relative to the nominal model's."""
    last: float  # [-] the same of the last one; 1 where the nominal model was in use
    told: str  # Why the last state


def _recorded(plant: Plant, case: Case, seed: int) -> Recording:
    """Return the recording of a case."""
    joints = len(plant.robot.joint_names)
    size: FloatArray | float = 1.0
    if case.motion == "small":
        size = _SMALL
    elif case.motion == "one":
        size = (np.arange(joints) == seed % joints).astype(float)
    motion = plant.states(0, 0.0, SECONDS, size)
    torque = plant.torque(motion)
    rng = np.random.default_rng([seed, 7])
    joint = case.joint % joints
    published = {joint: case.spoil(torque[:, joint], motion.time, rng)} if case.kinds else {}
    return plant.recording(motion, torque, published)


def observe(name: str, label: str, seed: int) -> Run:
    """Run one case on one robot."""
    robot, case = arm(name), CASES[label]
    plant = Plant(robot, seed)
    recording = _recorded(plant, case, seed)
    wide, last, in_use, changes = 0.0, 1.0, [], set[tuple[str, str]]()
    stream = stream_settings_for(recording, robot)
    for step in replay(recording, robot, stream=stream, update_rate=_UPDATE_RATE):
        update = step.update
        in_use.append(update.identified)
        if update.changed:
            terms = update.robot.description.friction_chosen
            last = plant.wide_error(update.parameters, terms) if update.identified else 1.0
            wide = max(wide, last)
        changes |= {(d.kind, d.subject) for d in update.notes if d.kind in _TOLD}
    refused = {(d.kind, d.subject) for d in update.causes if d.kind.startswith("torque_")}
    told = refused | changes
    wrong = {(kind, robot.joint_names[case.joint]) for kind in case.kinds}
    blamed = {subject for _, subject in told} - {subject for _, subject in wrong}
    return Run(
        robot=name,
        case=label,
        seed=seed,
        adopted=in_use[-1],
        share=float(np.mean(in_use)),
        named=bool(told & wrong),
        blamed=bool(blamed),
        wide=wide,
        last=last,
        told="; ".join(update.reasons),
    )


def _row(name: str, label: str, runs: Sequence[Run]) -> dict[str, object]:
    own = [r for r in runs if (r.robot, r.case) == (name, label)]
    return {
        "arm, torques": f"{name}, {label}",
        "runs": len(own),
        "adopted [%]": 100.0 * np.mean([r.adopted for r in own]),
        "in use [%]": 100.0 * np.mean([r.share for r in own]),
        "named [%]": 100.0 * np.mean([r.named for r in own]),
        "wrongly blamed [%]": 100.0 * np.mean([r.blamed for r in own]),
        "wide, last": float(np.mean([r.last for r in own])),
        "wide, worst": max(r.wide for r in own),
    }


def _figures(runs: Sequence[Run]) -> dict[str, float]:
    """Return the least over the arms of every share that a goal is set for."""

    def least(case: str, holds: Callable[[Run], bool]) -> float:
        shares = [
            float(np.mean([holds(r) for r in runs if (r.robot, r.case) == (name, case)]))
            for name in sorted({r.robot for r in runs if r.case == case})
        ]
        return min(shares, default=np.nan)

    found = {"good, adopted": least("good", lambda r: r.adopted and not r.blamed)}
    for case in WRONG:
        found[f"{case}, named"] = least(case, lambda r: r.named and not r.blamed)
        found[f"{case}, harmless"] = least(case, lambda r: r.wide <= HARMLESS)
    for case in LITTLE:
        found[f"{case}, harmless"] = least(case, lambda r: r.wide <= HARMLESS)
        found[f"{case}, better"] = least(case, lambda r: r.adopted and r.last < 1.0)
    return found


def run(given: Given) -> Result:
    """Run all cases on all arms."""
    runs = []
    for label in given.cases:
        for name in given.arms:
            runs += [observe(name, label, given.seed + k) for k in range(given.seeds)]
        say(f"{label} done")
    rows = [_row(name, label, runs) for label in given.cases for name in given.arms]
    table = show_rows("gate", rows, ".3g")
    return Result(_figures(runs), {"runs": [r._asdict() for r in runs]}, {"gate": table})


if __name__ == "__main__":
    which = {"arms": (ARMS, "to run"), "cases": (tuple(CASES), "to run")}
    run_benchmark(run, seeds=(3, "arms of each kind"), **which)
