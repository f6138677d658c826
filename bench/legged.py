# SPDX-License-Identifier: Apache-2.0
"""Reproduces Khorshidi et al., table I, on a simulated Solo12.

A Solo12 with unknown parameters trots, by the scenarios of ``sysid simulate`` with their sensor
noise, and is learned from. LMI is the default estimator (`entropic`), LMI (sdp) its conic twin,
MLP a network, and SVD the pseudo-inverse in base parameters on rows as they come; SVD, same rows
has the rows that LMI has, without dry friction of joints at rest. All are scored on held-out
stretches of the trot, on another trot and on jumps. Goals hold for the scores ``exact`` and
``measured``; ``model``, which was added after the first results, shows the error of what was
identified and nothing else.

The network needs PyTorch: ``--torch PYTHON`` names an interpreter that has it.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.legged_data import (
    MOTIONS,
    Data,
    Projector,
    careful_rows,
    features,
    fit_consistent,
    fit_svd,
    pick,
    simulate,
    time_offline,
)
from bench.runner import Given, Result, Table, run_benchmark, say, show_rows
from sysid_core.arrays import FloatArray
from sysid_core.batch import Batch
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.robot import load_robot
from sysid_sim.scenarios import find_scenario

__all__ = ["run"]

SCORED = {
    "exact": "exact torques",
    "measured": "measured torques",
    "model": "error of the model alone",
}
"""Scores, the paper's first: the simulation's torques by sensors without noise; noisy torques at
noisy motion; the torques of the true parameters along the exact motion. But in the last, sticking
joints and the filter around impacts add an error that no parameters avoid: `truth` shows it."""
SAMPLES, SECONDS = 10_000, 40.0  # to learn from, of a motion so long [s]
NETWORKS = ("leaky_relu", "tanh")
WIDTH, EPOCHS = 256, 200

Errors = dict[str, dict[str, float]]  # Errors [N·m] per motion and model


def _network(
    python: str, data: Data, seed: int, activation: str
) -> dict[tuple[str, str], FloatArray]:
    """Return predicted torques per kind of samples and motion."""
    learn = _some(data, seed).samples
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


def _some(data: Data, seed: int) -> Batch:
    order = np.random.default_rng(seed).permutation(len(data.train))
    return pick(data.train, order[:SAMPLES])


def _scores(
    data: Data,
    regression: ContactRegression,
    models: dict[str, FloatArray],
    networks: dict[str, dict[tuple[str, str], FloatArray]],
) -> dict[str, Errors]:
    """Return the error of every model, per kind and motion."""
    tables: dict[str, Errors] = {kind: {} for kind in SCORED}
    for kind, sets in (("exact", data.exact), ("measured", data.measured)):
        for motion, batch in sets.items():
            scorer = Projector.of(regression, batch)
            target = scorer.rows.blocks[0].target
            true = scorer.predicted(models["truth"])
            found = {name: scorer.predicted(x) for name, x in models.items()}
            for name, predicted in networks.items():
                found[name] = scorer.projected(predicted[kind, motion])
            tables[kind][motion] = {n: scorer.size(target - p) for n, p in found.items()}
            if kind == "exact":
                tables["model"][motion] = {
                    n: scorer.size(true - p) for n, p in found.items() if n != "truth"
                }
    return tables


def evaluate(
    data: Data, seed: int, *, python: str, sdp: bool
) -> tuple[dict[str, Errors], dict[str, Any]]:
    """Return errors per kind, motion and model, and what was found."""
    regression = ContactRegression(data.robot)
    batch = _some(data, seed)
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
        f"MLP {kind}": _network(python, data, seed, kind) for kind in (NETWORKS if python else ())
    }
    masses = data.robot.layout.masses
    facts = {
        "samples": len(batch),
        "total_mass": float(estimate.parameters[masses].sum()),
        "true_mass": float(data.truth[masses].sum()),
        "consistent": bool((estimate.consistency > 0.0).all()),
    }
    return _scores(data, regression, models, networks), facts


def _means(results: Sequence[dict[str, Errors]]) -> dict[str, Errors]:
    """Return the means over those seeds that have a model; the first has all."""

    def mean(kind: str, motion: str, model: str) -> float:
        found = [errors[kind][motion] for errors in results]
        return float(np.mean([one[model] for one in found if model in one]))

    return {
        kind: {
            motion: {model: mean(kind, motion, model) for model in models}
            for motion, models in motions.items()
        }
        for kind, motions in results[0].items()
    }


def _ratios(means: dict[str, float]) -> dict[str, float]:
    """Return the ratio of mean errors, LMI over the others."""
    found = {name: means["LMI"] / means[name] for name in ("SVD", "SVD, same rows")}
    networks = [value for name, value in means.items() if name.startswith("MLP")]
    return {**found, "MLP": means["LMI"] / min(networks)} if networks else found


def _table(errors: dict[str, Errors]) -> Table:
    models = list(errors["exact"]["jump"])
    rows = [
        {
            "scored against": SCORED[kind],
            "motion": motion,
            **{name: found.get(name) for name in models},
            **{f"LMI / {n}": f"{_ratios(found)[n]:.2f}" for n in ("SVD", "SVD, same rows")},
        }
        for kind in SCORED
        for motion, found in errors[kind].items()
    ]
    title = "projected torque RMSE, √Σ over joints [N·m], mean over seeds"
    return show_rows(title, rows, ".4f")


def _torch_python(given: str) -> str:
    """Return an interpreter that has PyTorch, or an empty string."""
    python = given or sys.executable
    if shutil.which(python) is None:
        return ""
    found = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    if found.returncode == 0:
        return python
    say("no PyTorch, so the network is not run: give --torch PYTHON, an interpreter that has it")
    return ""


def run(given: Given) -> Result:
    """Let robots walk, learn, and predict other motions."""
    python = _torch_python(given.torch)
    results, facts = [], []
    for seed in range(1, given.seeds + 1):
        say(f"seed {seed}: a trot of {SECONDS:g} s to learn from, and motions to predict …")
        data = simulate(seed, SECONDS)
        tables, fact = evaluate(data, seed, python=python, sdp=seed == 1)
        results.append(tables)
        facts.append(fact)
    errors = _means(results)
    shown = {"legged": _table(errors)}
    many = data.train
    seconds = time_offline(load_robot("solo12"), pick(many, np.arange(SAMPLES) % len(many)))
    masses = [f"{f['total_mass']:.3f} ({f['true_mass']:.3f})" for f in facts]
    print(f"\ntotal mass (true) {', '.join(masses)} kg")
    details = {
        "noise": vars(find_scenario(MOTIONS["jump"]).config.sensors),
        "errors": results,
        "facts": facts,
    }
    figures = {
        f"LMI/{other}, {motion}, {kind}": ratio
        for kind in ("exact", "measured")
        for motion, models in errors[kind].items()
        for other, ratio in _ratios(models).items()
    }
    return Result({**figures, f"seconds for {SAMPLES} samples": seconds}, details, shown)


if __name__ == "__main__":
    torch = ("", "Python interpreter that has PyTorch")
    run_benchmark(run, seeds=(2, "robots, motions and noises"), torch=torch)
