# SPDX-License-Identifier: Apache-2.0
"""Reproduces Khorshidi et al., table I and figure 2, on a simulated Solo12.

``python -m bench.legged`` lets a Solo12 with unknown parameters trot, by the scenarios of
``sysid simulate`` with their sensor noise, and learns from the recording. LMI is the default
estimator (`entropic`), LMI (sdp) its conic twin, MLP a network, and SVD the pseudo-inverse in base
parameters on rows as they come; SVD, same rows has the rows that LMI has, without dry friction of
joints at rest. All are scored on held-out parts of the trot, on another trot and on jumps:

* ``model``: against the torques of the true parameters along the exact motion, which is the error
  of what was identified, and nothing else;
* ``exact``: against the simulation's torques by sensors without noise: sticking joints and the
  filter around impacts add an error that no parameters avoid (the row `truth` shows it);
* ``measured``: against noisy torques, at noisy motion.

The network needs PyTorch: ``--torch PYTHON`` names an interpreter that has it; without one its
rows are left out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.legged_data import MOTIONS, Data, pick, simulate
from bench.legged_models import (
    Projector,
    careful_rows,
    features,
    fit_consistent,
    fit_svd,
    time_offline,
)
from bench.legged_plots import plot_noise, plot_samples
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.robot import load_robot
from sysid_sim.scenarios import find_scenario

__all__ = ["main"]

KINDS = ("model", "exact", "measured")
SIZES = (100, 300, 1000, 3000, 10_000)
NOISES = (0.0, 0.3, 1.0, 3.0)
NETWORKS = ("leaky_relu", "tanh")
WIDTH, EPOCHS = 256, 200
GOALS = {
    ("SVD", "new trot"): 0.38,
    ("SVD", "jump"): 0.21,
    ("MLP", "new trot"): 0.60,
    ("MLP", "jump"): 0.30,
}
OFFLINE_GOAL = 3.0  # [s]

Table = dict[str, dict[str, list[float]]]
"""Errors [N·m] per motion and model, one per seed."""


def _say(text: str) -> None:
    print(text, flush=True)


def _network(
    python: str, data: Data, size: int, seed: int, activation: str
) -> dict[tuple[str, str], FloatArray]:
    """Return predicted torques per kind of samples and motion."""
    learn = _some(data, size, seed).samples
    arrays: dict[str, Any] = {
        "x": features(learn),
        "y": learn.effort,
        "seed": seed,
        "activation": activation,
        "width": WIDTH,
        "epochs": EPOCHS,
    }
    sets = {"exact": data.exact, "measured": data.measured}
    names = [(kind, motion) for kind in sets for motion in MOTIONS]
    for kind, motion in names:
        arrays[f"x_{kind}/{motion}"] = features(sets[kind][motion].samples)
    script = Path(__file__).with_name("legged_mlp.py")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **arrays)
        subprocess.run([python, str(script), str(source), str(target)], check=True)
        with np.load(target) as found:
            return {(kind, motion): found[f"y_{kind}/{motion}"] for kind, motion in names}


def _some(data: Data, size: int, seed: int) -> Any:
    order = np.random.default_rng(seed).permutation(len(data.train))
    return pick(data.train, order[:size])


def _scores(
    data: Data,
    regression: ContactRegression,
    models: dict[str, FloatArray],
    networks: dict[str, dict[tuple[str, str], FloatArray]],
) -> dict[str, Table]:
    """Return the error of every model, per kind and motion."""
    tables: dict[str, Table] = {kind: {} for kind in KINDS}
    for kind, sets in (("exact", data.exact), ("measured", data.measured)):
        for motion, batch in sets.items():
            scorer = Projector.of(regression, batch)
            target = scorer.rows.blocks[0].target
            true = scorer.predicted(models["truth"])
            found = {name: scorer.predicted(x) for name, x in models.items()}
            for name, predicted in networks.items():
                found[name] = scorer.projected(predicted[kind, motion])
            tables[kind][motion] = {n: [scorer.size(target - p)] for n, p in found.items()}
            if kind == "exact":
                tables["model"][motion] = {
                    n: [scorer.size(true - p)] for n, p in found.items() if n != "truth"
                }
    return tables


def evaluate(
    data: Data, size: int, seed: int, *, python: str = "", sdp: bool = False
) -> tuple[dict[str, Table], dict[str, Any]]:
    """Return errors per kind, motion and model, and what was found."""
    regression = ContactRegression(data.robot)
    batch = _some(data, size, seed)
    rows = careful_rows(data.robot, batch)
    estimate = fit_consistent(regression, batch, rows)
    base = regression.base
    models = {
        "truth": base.project(data.truth),
        "nominal": base.project(data.robot.nominal),
        "SVD": fit_svd(Projector.of(regression, batch).rows),
        "SVD, same rows": fit_svd(rows),
        "LMI": estimate.base_parameters,
    }
    if sdp:
        models["LMI (sdp)"] = fit_consistent(regression, batch, rows, "sdp").base_parameters
    networks = {
        f"MLP {kind}": _network(python, data, size, seed, kind)
        for kind in (NETWORKS if python else ())
    }
    masses = data.robot.layout.masses
    facts = {
        "samples": len(batch),
        "total_mass": float(estimate.parameters[masses].sum()),
        "true_mass": float(data.truth[masses].sum()),
        "consistent": bool((estimate.consistency > 0.0).all()),
    }
    return _scores(data, regression, models, networks), facts


def _join(tables: Sequence[Table]) -> Table:
    return {
        motion: {
            model: [value for table in tables for value in table[motion].get(model, [])]
            for model in tables[0][motion]
        }
        for motion in MOTIONS
    }


def _joined(results: Sequence[dict[str, Table]]) -> dict[str, Table]:
    return {kind: _join([result[kind] for result in results]) for kind in KINDS}


def _ratios(table: Table) -> dict[str, dict[str, float]]:
    """Return the ratio of mean errors, LMI over the others, per motion."""
    found: dict[str, dict[str, float]] = {}
    for motion, models in table.items():
        means = {name: float(np.mean(values)) for name, values in models.items()}
        found[motion] = {n: means["LMI"] / means[n] for n in ("SVD", "SVD, same rows")}
        networks = [value for name, value in means.items() if name.startswith("MLP")]
        if networks:
            found[motion]["MLP"] = means["LMI"] / min(networks)
    return found


def _print(title: str, table: Table) -> None:
    _say(f"\n{title}: projected torque RMSE, √Σ over joints [N·m], mean over seeds")
    models = list(table["jump"])
    _say(f"{'':11s}" + "".join(f"{name:>15s}" for name in models) + "  LMI/SVD")
    for motion, ratio in _ratios(table).items():
        means = [float(np.mean(table[motion][name])) for name in models]
        _say(f"{motion:11s}" + "".join(f"{m:15.4f}" for m in means) + f"{ratio['SVD']:9.3f}")


def _verdicts(tables: dict[str, Table], timing: dict[str, Any]) -> dict[str, str]:
    verdicts = {}
    for (other, motion), goal in GOALS.items():
        states = []
        for kind in KINDS:
            value = _ratios(tables[kind])[motion].get(other)
            if value is not None:
                states.append(f"{kind} {value:.3f} {'met' if value <= goal else 'NOT met'}")
        verdicts[f"LMI/{other} on {motion} at most {goal}"] = ", ".join(states) or "not run"
    whole = timing["whole_s"]
    met = "met" if whole < OFFLINE_GOAL else "NOT met"
    verdicts[f"{timing['samples']} samples offline in {OFFLINE_GOAL:g} s"] = (
        f"{whole:.2f} s, {met}"
    )
    return verdicts


def _torch_python(given: str) -> str:
    """Return an interpreter that has PyTorch, or an empty string."""
    python = given or sys.executable
    if shutil.which(python) is None:
        return ""
    found = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    return python if found.returncode == 0 else ""


def _over_samples(worlds: dict[int, Data], python: str) -> dict[str, dict[str, Table]]:
    _say("error over the number of samples …")
    found = {}
    for size in SIZES:
        results = [evaluate(data, size, seed, python=python)[0] for seed, data in worlds.items()]
        found[str(size)] = _joined(results)
        for kind in KINDS:
            ratios = _ratios(found[str(size)][kind])
            text = ", ".join(f"{motion} {r['SVD']:.2f}" for motion, r in ratios.items())
            _say(f"{size:6d} samples, {kind}: LMI/SVD {text}")
    return found


def _over_noise(worlds: dict[int, Data], seconds: float, size: int) -> dict[str, dict[str, Table]]:
    _say("error over the noise …")
    found = {}
    for level in NOISES:
        results = []
        for seed, data in worlds.items():
            noisy = data if level == 1.0 else simulate(seed, seconds, level)
            results.append(evaluate(noisy, size, seed)[0])
        found[f"{level:g}"] = _joined(results)
        for kind in KINDS:
            ratios = _ratios(found[f"{level:g}"][kind])
            text = ", ".join(f"{motion} {r['SVD']:.2f}" for motion, r in ratios.items())
            _say(f"noise × {level:g}, {kind}: LMI/SVD {text}")
    return found


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--seeds", type=int, default=5, help="robots, motions and noises")
    parser.add_argument("--seconds", type=float, default=40.0, help="of motion to learn from")
    parser.add_argument("--torch", default="", help="Python interpreter that has PyTorch")
    parser.add_argument(
        "--raw-samples", type=int, default=1000, help="of CVXPY's stacked problem; 0: leave it out"
    )
    parser.add_argument("--no-curves", action="store_true", help="table I only")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    given = _arguments(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    python = _torch_python(given.torch)
    if not python:
        _say(
            "no PyTorch: the network's rows are left out; give --torch PYTHON, an interpreter "
            "with torch and numpy (pip install torch numpy in a virtual environment)"
        )
    worlds: dict[int, Data] = {}
    results, facts = [], []
    for seed in range(1, given.seeds + 1):
        _say(f"seed {seed}: a trot of {given.seconds:g} s to learn from, and motions to predict …")
        worlds[seed] = simulate(seed, given.seconds)
        tables, fact = evaluate(worlds[seed], SIZES[-1], seed, python=python, sdp=seed == 1)
        results.append(tables)
        facts.append(fact)
    tables = _joined(results)
    _print("model: against the true parameters' torques", tables["model"])
    _print("exact: against torques without noise", tables["exact"])
    _print("measured: against noisy torques", tables["measured"])
    many = worlds[1].train
    timing = time_offline(
        ContactRegression(load_robot("solo12")),
        pick(many, np.arange(SIZES[-1]) % len(many)),
        given.raw_samples,
    )
    verdicts = _verdicts(tables, timing)
    _say("\n" + "\n".join(f"{name}: {state}" for name, state in verdicts.items()))
    masses = [f"{f['total_mass']:.3f} ({f['true_mass']:.3f})" for f in facts]
    _say(f"total mass (true) {', '.join(masses)} kg")
    sensors = vars(find_scenario(MOTIONS["jump"]).settings.sensors)
    result: dict[str, Any] = {
        "seeds": given.seeds,
        "noise": sensors,
        "network_width": WIDTH,
        "epochs": EPOCHS,
        "tables": tables,
        "ratios": {kind: _ratios(tables[kind]) for kind in KINDS},
        "timing": timing,
        "facts": facts,
        "verdicts": verdicts,
    }
    if not given.no_curves:
        few = {seed: worlds[seed] for seed in list(worlds)[:2]}
        sizes = _over_samples(few, python)
        noises = _over_noise(few, given.seconds, SIZES[-1])
        for kind in ("model", "measured"):
            by_size = {size: table[kind] for size, table in sizes.items()}
            by_noise = {level: table[kind] for level, table in noises.items()}
            plot_samples(by_size, tuple(MOTIONS), given.out / f"legged_samples_{kind}.png")
            plot_noise(by_noise, tuple(MOTIONS), given.out / f"legged_noise_{kind}.png")
        result |= {"samples": sizes, "noise_levels": noises}
    path = given.out / "legged.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    _say(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
