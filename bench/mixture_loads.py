# SPDX-License-Identifier: Apache-2.0
"""Loads that come and go on random arms with mixtures of faults: noticed, weighed and missed.

``python -m bench.mixture_loads`` records what `bench.mixtures` draws, with a load of 0.25 to 4 kg
held between the half and four fifths of each recording, or none. Each is identified as if live.
"""

from typing import Any

import numpy as np

from bench.mixtures import Carried, record
from bench.payload import DEVIATIONS, judged, updates_of
from bench.plants import Load
from bench.runner import Given, Result, run_benchmark, say, show_rows

_MASSES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)  # [kg]
_CAME, _GONE = 0.5, 0.8  # shares of the recording
_PLAIN = 0.3  # share of a joint's usual torque from which a load is plain to see [-]
_SOON = 2.0  # [s]


def run(seed: int) -> dict[str, Any]:
    """Tell when a load was noticed and missed, and how well it was weighed."""
    say(f"mixture {seed}")
    rng = np.random.default_rng([seed, 1])
    mass = float(rng.choice(_MASSES))
    com = rng.uniform(-0.1, 0.1, 3)
    load = Load(max(mass, 1e-9), (com[0], com[1], com[2]), rng.uniform(0.02, 0.08))
    drawn: dict[str, Any] = {"seed": seed, "mass": mass}
    robot, recording, truth, _ = record(seed, drawn, Carried(load, _CAME, _GONE))
    came, gone = _CAME * truth.time[-1], _GONE * truth.time[-1]
    updates = updates_of(robot, recording)
    told = np.array([(u.time, u.payload_attached) for u in updates])
    before = [u for u in updates if u.time < came]
    held = [u for u in updates if u.time < gone]
    last = max((u.time for u in held if u.payload_attached), default=came)
    found = judged(robot.name, held, load.mass, came, last - came - 1e-6, com=False)
    return {
        **drawn,
        "in use": bool(before) and before[-1].identified,
        "false": found.early or bool(mass == 0.0 and told[:, 1].any()),
        "noticed": found.noticed,
        "error": found.error,
        "off": found.off,
        "kept": bool(told[told[:, 0] > gone + _SOON, 1].any()),
    }


def _row(label: str, runs: list[dict[str, Any]]) -> dict[str, object]:
    seen = [one for one in runs if np.isfinite(one["noticed"])]
    return {
        "loads": label,
        "recordings": len(runs),
        "noticed [%]": 100.0 * len(seen) / max(len(runs), 1),
        "after [s], median": _median([one["noticed"] for one in seen]),
        "mass error [%], median": 100.0 * _median([one["error"] for one in seen]),
        "covered [%]": 100.0 * sum(one["off"] <= DEVIATIONS for one in seen) / max(len(seen), 1),
        "kept after 2 s": sum(one["kept"] for one in seen),
    }


def _median(values: list[float]) -> float:
    return float(np.median(values)) if values else np.nan


def measure(given: Given) -> Result:
    """Tell of all mixtures, by how large a share of the torque the load is."""
    runs = [run(seed) for seed in range(given.seed, given.seed + given.seeds)]
    loaded = [one for one in runs if one["mass"] > 0.0 and one["in use"]]
    plain = [one for one in loaded if one["share"] >= _PLAIN]
    right = [one for one in plain if one["gains"] == 0.0]
    rows = [
        _row("model in use, from 0.3 of a torque", plain),
        _row("of these, gains right", right),
        _row("model in use, smaller", [one for one in loaded if one["share"] < _PLAIN]),
    ]
    table = show_rows("loads on random arms", rows, ".3g")
    soon = [one["noticed"] <= _SOON for one in plain]
    figures = {
        "loads noticed within 2 s": float(np.mean(soon)),
        "loads told that are not there": float(sum(one["false"] for one in runs)),
        "loads kept 2 s after they are gone": float(sum(one["kept"] for one in runs)),
    }
    return Result(figures, {"runs": runs}, {"mixture_loads": table})


if __name__ == "__main__":
    run_benchmark(measure, seeds=(20, "recordings"))
