# SPDX-License-Identifier: Apache-2.0
"""Reproduces Khorshidi et al., table I and figure 2, on a simulated Solo12.

``python -m bench.legged`` trains on three trots and scores on held-out samples of them, on a new
trot and on jumps. LMI is the default estimator (`entropic`), `sdp` its conic twin, SVD the
pseudo-inverse in base parameters. The network needs PyTorch: ``--torch PYTHON`` names an
interpreter that has it; without one its rows are left out.

Errors are against the simulation's exact torques at its exact states: what is left is the
model's own error, not the sensors'. ``measured`` in the JSON repeats the table against the noisy
ones. Samples with an impact in them are left out on both sides.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.legged_models import Projector, features, fit_consistent, fit_svd, time_offline
from bench.legged_motion import Jump, Log, Motion, Noise, Trot, record, simulate, stance_of
from bench.legged_plots import plot_noise, plot_samples
from sysid_core.contacts import condition_contacts
from sysid_core.recording import FloatArray, Samples
from sysid_core.regression.contact import ContactRegression
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalOptions
from sysid_core.signals.prepare import prepare
from sysid_sim.truth import draw_truth

__all__ = ["main"]

MOTIONS = ("validation", "new trot", "jump")
SIZES = (100, 300, 1000, 3000, 10_000)
NOISES = (0.0, 0.1, 0.3, 1.0, 2.0)
CUTOFF = 25.0  # [Hz] five times the steps' frequency
RADIUS = 0.018  # [m] of the feet
NETWORKS = ("leaky_relu", "tanh")
WIDTH, EPOCHS = 256, 200
GOALS = {("SVD", "new trot"): 0.38, ("SVD", "jump"): 0.21,
         ("MLP", "new trot"): 0.60, ("MLP", "jump"): 0.30}  # fmt: skip
OFFLINE_GOAL = 3.0  # [s]

Table = dict[str, dict[str, list[float]]]


class World(NamedTuple):
    """The robot, its true parameters, and what it did."""

    robot: Robot
    truth: FloatArray
    regression: ContactRegression
    train: tuple[Log, ...]
    tests: dict[str, Log]


def _say(text: str) -> None:
    print(text, flush=True)


def make_world(seed: int, seconds: float) -> World:
    """Simulate the motions."""
    plain = load_robot("solo12")
    contacts = tuple(replace(contact, radius=RADIUS) for contact in plain.description.contacts)
    robot = load_robot(replace(plain.description, contacts=contacts))
    truth = draw_truth(robot, seed)
    stance = stance_of(robot, RADIUS)

    def run(motion: Motion, share: float) -> Log:
        return simulate(robot, truth, motion, stance, share * seconds)

    def trot(x: float, y: float, turn: float, period: float, bob: float = 0.0) -> Trot:
        return Trot(stance, np.array([x, y, turn]), period=period, bob=bob)

    _say("simulating three trots to learn from, a new trot and jumps …")
    train = (
        run(trot(0.3, 0.0, 0.2, 0.22), 0.35),
        run(trot(0.1, 0.1, -0.3, 0.25, 0.01), 0.35),
        run(trot(-0.3, 0.1, 0.0, 0.18), 0.3),
    )
    tests = {
        "new trot": run(trot(0.4, 0.0, 0.4, 0.2, 0.01), 0.2),
        "jump": run(Jump(stance, 1.0), 0.2),
    }
    return World(robot, truth, ContactRegression(robot), train, tests)


def _exact(world: World, log: Log) -> Samples:
    every = slice(250, None, 5)  # 100 Hz, after the start
    samples = Samples(
        time=log.time[every],
        position=log.q[every, 7:],
        velocity=log.v[every, 6:],
        acceleration=log.a[every, 6:],
        effort=log.effort[every],
        base_pose=log.q[every, :7],
        base_twist=log.v[every, :6],
        base_acceleration=log.a[every, :6],
        contacts=log.contacts[every],
    )
    return condition_contacts(world.robot, samples).kept


def _measured(world: World, log: Log, noise: Noise, seed: int) -> Samples:
    options = SignalOptions(cutoff=CUTOFF, velocity="measured")
    samples = prepare(record(world.robot, log, noise, seed), None, options).samples()
    return condition_contacts(world.robot, samples).kept


class Data(NamedTuple):
    """Samples of one seed: to learn from, and to be scored on, measured and exact."""

    train: Samples
    measured: dict[str, Samples]
    exact: dict[str, Samples]


def draw(world: World, noise: Noise, seed: int) -> Data:
    """Return what noisy sensors recorded; a tenth of the training motions is held out."""
    parts = [_measured(world, log, noise, 100 * seed + i) for i, log in enumerate(world.train)]
    everything = Samples.concatenate(parts)
    order = np.random.default_rng(seed).permutation(len(everything))
    held = len(order) // 10
    exact = {name: _exact(world, log) for name, log in world.tests.items()}
    exact["validation"] = Samples.concatenate([_exact(world, log) for log in world.train])
    measured = {
        name: _measured(world, log, noise, 100 * seed + 50 + i)
        for i, (name, log) in enumerate(world.tests.items())
    }
    measured["validation"] = everything.select(np.sort(order[:held]))
    return Data(everything.select(order[held:]), measured, exact)


def _network(
    python: str, data: Data, size: int, seed: int, activation: str
) -> dict[str, dict[str, FloatArray]]:
    """Return predicted torques per kind of samples and motion."""
    learn = data.train.select(slice(0, size))
    arrays: dict[str, Any] = {
        "x": features(learn), "y": learn.effort, "seed": seed, "activation": activation,
        "width": WIDTH, "epochs": EPOCHS,
    }  # fmt: skip
    for kind, sets in (("exact", data.exact), ("measured", data.measured)):
        for name, samples in sets.items():
            arrays[f"x_{kind}/{name}"] = features(samples)
    script = Path(__file__).with_name("legged_mlp.py")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **arrays)
        subprocess.run([python, str(script), str(source), str(target)], check=True)
        with np.load(target) as found:
            return {
                kind: {name: found[f"y_{kind}/{name}"] for name in MOTIONS}
                for kind in ("exact", "measured")
            }


def evaluate(
    world: World, data: Data, size: int, seed: int, *, python: str = "", sdp: bool = False
) -> tuple[Table, Table, dict[str, Any]]:
    """Return errors per motion and model, exact and measured, and what was found."""
    regression = world.regression
    rows = regression.rows(data.train.select(slice(0, size)))
    begin = time.perf_counter()
    estimate = fit_consistent(regression, rows)
    seconds = time.perf_counter() - begin
    base = regression.base
    models = {
        "truth": base.project(world.truth),
        "nominal": base.project(world.robot.nominal),
        "SVD": fit_svd(rows),
        "LMI": estimate.base_parameters,
    }
    if sdp:
        models["LMI (sdp)"] = fit_consistent(regression, rows, "sdp").base_parameters
    predictions = {
        f"MLP {kind}": _network(python, data, size, seed, kind)
        for kind in (NETWORKS if python else ())
    }
    tables: list[Table] = []
    for kind, sets in (("exact", data.exact), ("measured", data.measured)):
        table: Table = {}
        for motion in MOTIONS:
            scorer = Projector.of(regression, sets[motion])
            table[motion] = {name: [scorer.model(x)] for name, x in models.items()}
            for name, predicted in predictions.items():
                table[motion][name] = [scorer.torques(predicted[kind][motion])]
        tables.append(table)
    masses = world.robot.layout.masses
    facts = {
        "total_mass": float(estimate.parameters[masses].sum()),
        "true_mass": float(world.truth[masses].sum()),
        "consistent": bool((estimate.consistency > 0.0).all()),
        "solve_s": seconds,
    }
    return tables[0], tables[1], facts


def _join(tables: Sequence[Table]) -> Table:
    return {
        motion: {
            model: [value for table in tables for value in table[motion].get(model, [])]
            for model in tables[0][motion]
        }
        for motion in MOTIONS
    }


def _ratios(table: Table) -> dict[str, dict[str, float]]:
    """Return the ratio of mean errors, LMI over the others, per motion."""
    found: dict[str, dict[str, float]] = {}
    for motion, models in table.items():
        means = {name: float(np.mean(values)) for name, values in models.items()}
        found[motion] = {"SVD": means["LMI"] / means["SVD"]}
        networks = [value for name, value in means.items() if name.startswith("MLP")]
        if networks:
            found[motion]["MLP"] = means["LMI"] / min(networks)
    return found


def _print(title: str, table: Table) -> None:
    _say(f"\n{title}: projected torque RMSE, √Σ over joints [N·m], mean over seeds")
    models = list(table[MOTIONS[0]])
    _say(f"{'':14s}" + "".join(f"{name:>16s}" for name in models) + f"{'LMI/SVD':>10s}")
    for motion, ratio in zip(MOTIONS, _ratios(table).values(), strict=True):
        means = [float(np.mean(table[motion][name])) for name in models]
        _say(f"{motion:14s}" + "".join(f"{m:16.4f}" for m in means) + f"{ratio['SVD']:10.3f}")


def _verdicts(table: Table, timing: dict[str, Any]) -> dict[str, str]:
    ratios = _ratios(table)
    verdicts = {}
    for (other, motion), goal in GOALS.items():
        value = ratios[motion].get(other)
        state = "not run" if value is None else f"{value:.3f}"
        met = "" if value is None else (", met" if value <= goal else ", NOT met")
        verdicts[f"LMI/{other} on {motion} at most {goal}"] = state + met
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


def _curves(
    world: World, seeds: Sequence[int], python: str, out: Path
) -> tuple[dict[str, Table], dict[str, Table]]:
    """Return errors over the number of samples and over the noise, and plot them."""
    _say("error over the number of samples …")
    by_size: dict[str, Table] = {}
    stated = {seed: draw(world, Noise(), seed) for seed in seeds}
    for size in SIZES:
        tables = [evaluate(world, stated[s], size, s, python=python)[0] for s in seeds]
        by_size[str(size)] = _join(tables)
    _say("error over the noise …")
    by_noise: dict[str, Table] = {}
    for level in NOISES:
        drawn = [(s, draw(world, Noise().scaled(level), s)) for s in seeds]
        tables = [evaluate(world, data, SIZES[-1], s)[0] for s, data in drawn]
        by_noise[f"{level:g}"] = _join(tables)
    plot_samples(by_size, MOTIONS, out / "legged_samples.png")
    plot_noise(by_noise, MOTIONS, out / "legged_noise.png")
    return by_size, by_noise


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    parser.add_argument("--seed", type=int, default=1, help="of the true parameters")
    parser.add_argument("--seeds", type=int, default=5, help="draws of the noise")
    parser.add_argument("--seconds", type=float, default=50.0, help="of motion to learn from")
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
    world = make_world(given.seed, given.seconds)
    seeds = range(1, given.seeds + 1)
    _say(f"table I, {given.seeds} draws of the noise …")
    results = []
    for seed in seeds:
        data = draw(world, Noise(), seed)
        results.append(evaluate(world, data, SIZES[-1], seed, python=python, sdp=seed == seeds[0]))
    exact = _join([r[0] for r in results])
    measured = _join([r[1] for r in results])
    _print("against exact torques", exact)
    _print("against measured torques", measured)
    many = draw(world, Noise(), 1).train
    many = many.select(np.arange(SIZES[-1]) % len(many))
    timing = time_offline(world.regression, many, given.raw_samples)
    verdicts = _verdicts(exact, timing)
    _say("\n" + "\n".join(f"{name}: {state}" for name, state in verdicts.items()))
    masses = [f"{r[2]['total_mass']:.3f}" for r in results]
    _say(f"total mass {', '.join(masses)} kg, true {results[0][2]['true_mass']:.3f} kg")
    result: dict[str, Any] = {
        "seed": given.seed, "noise": vars(Noise()), "cutoff": CUTOFF, "network_width": WIDTH,
        "table": exact, "measured": measured, "ratios": _ratios(exact), "timing": timing,
        "facts": [r[2] for r in results], "verdicts": verdicts,
    }  # fmt: skip
    if not given.no_curves:
        by_size, by_noise = _curves(world, list(seeds)[:2], python, given.out)
        result |= {"samples": by_size, "noise_levels": by_noise}
    path = given.out / "legged.json"
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    _say(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
