# SPDX-License-Identifier: Apache-2.0
"""Recordings with faulty signals: the cut-off that is chosen against the best of a ladder.

``python -m bench.signal_faults`` records random arms of four to seven joints, spoils the signals
in several ways at three strengths, and identifies each recording at its default and at every rung
of a ladder. The error is that of the predicted torque on another motion, without noise. The plant
is Pinocchio's recursive Newton-Euler algorithm with Stribeck and load-dependent friction of its
own.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from bench.arms import chain_urdf, perturbed, robot_of
from bench.plants import Load, loaded
from bench.runner import Given, Result, run_benchmark, say, show_rows
from sysid_core.arrays import FloatArray
from sysid_core.errors import SysidError
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.recording import Recording, Samples
from sysid_core.signals.options import SignalConfig

__all__ = ["FAULTS", "Plant"]

RATE, DURATION = 1000.0, 20.0  # [Hz, s] of a recording
LADDER = (2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 32.0, 50.0)  # [Hz]
WITHIN = 1.05  # error relative to the ladder's best


class Plant:
    """A random arm: true parameters near the nominal ones and friction of a geared joint."""

    def __init__(self, joints: int, seed: int) -> None:
        self.robot = robot_of(f"arm{joints}_{seed}", chain_urdf(joints, seed))
        self.rng = np.random.default_rng(1000 + seed)
        layout, truth = self.robot.layout, perturbed(self.robot, self.rng)
        self.viscous, self.coulomb, self.armature, self.offset = (
            truth[layout.term(term)] for term in ("viscous", "coulomb", "armature", "offset")
        )
        self.model = self.robot.model.copy()
        self.model.armature = np.zeros(joints)
        for index, phi in zip(self.robot.body_joint_ids, layout.inertias(truth), strict=True):
            self.model.inertias[index] = pin.Inertia.FromDynamicParameters(phi)
        self.data = self.model.createData()

    def motion(self, rate: float, duration: float, speed: float = 1.0) -> tuple[FloatArray, ...]:
        """Return time (n,), position, velocity, acceleration (n, nj): a random Fourier series.

        Its period is 10 s over the speed, and its velocities are those at a speed of 1.
        """
        joints, base = self.model.nv, speed * 2.0 * np.pi / 10.0
        time = np.arange(0.0, duration, 1.0 / rate)
        q, v, a = (np.zeros((len(time), joints)) for _ in range(3))
        for k in range(1, 6):
            w = k * base
            s, c = self.rng.normal(size=(2, joints)) * 0.4 / (k * speed)
            sine, cosine = np.sin(w * time)[:, None], np.cos(w * time)[:, None]
            q += s * sine + c * cosine
            v += w * (s * cosine - c * sine)
            a += w**2 * (-s * sine - c * cosine)
        return time, q, v, a

    def rigid(
        self, q: FloatArray, v: FloatArray, a: FloatArray, load: Load | None = None
    ) -> FloatArray:
        """Return the joint torques (n, nj) [N·m] of the bodies, with a load at the tool."""
        model, data = self.model, self.data
        if load is not None:
            model = loaded(model, self.robot, load)
            data = model.createData()
        states = zip(q, v, a, strict=True)
        return np.array([pin.rnea(model, data, *state) for state in states])

    def torque(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return joint torques (n, nj) [N·m]."""
        rigid = self.rigid(q, v, a)
        stribeck = 1.0 + 0.2 * np.exp(-np.abs(v) / 0.1)
        dry = (self.coulomb * stribeck + 0.03 * np.abs(rigid)) * np.tanh(v / 1e-3)
        return rigid + dry + self.viscous * v + self.armature * a + self.offset


class Signals(NamedTuple):
    """What a logger writes: time (n,) [s], position [rad] and effort [N·m] (n, nj)."""

    time: FloatArray
    position: FloatArray
    effort: FloatArray


Fault = Callable[[Signals, int, np.random.Generator], Signals]


def _clean(s: Signals, strength: int, rng: np.random.Generator) -> Signals:
    del strength, rng
    return s


def _arrival(s: Signals, strength: int, rng: np.random.Generator) -> Signals:
    """Stamp at arrival: delays that vary, in order, and a share of repeated values."""
    delay = rng.gamma(1.0, (0.3e-3, 1e-3, 3e-3)[strength], len(s.time))
    repeated = rng.random(len(s.time)) < (0.02, 0.06, 0.15)[strength]
    source = np.maximum.accumulate(np.where(repeated, 0, np.arange(len(s.time))))
    time = np.maximum.accumulate(s.time + delay) + 1e-7 * np.arange(len(s.time))
    return Signals(time, s.position[source], s.effort[source])


def _quantised(s: Signals, strength: int, rng: np.random.Generator) -> Signals:
    """Round positions, and shake them between 200 and 400 Hz."""
    step, amplitude = (1e-5, 1e-4, 5e-4)[strength], (1e-5, 3e-5, 1e-4)[strength]
    shake = np.zeros(len(s.time))
    for frequency in rng.uniform(200.0, 400.0, 3):
        shake += np.sin(2.0 * np.pi * frequency * s.time + rng.uniform(0.0, 6.0))
    position = s.position + amplitude * shake[:, None]
    effort = s.effort + 0.02 * s.effort.std(axis=0) * shake[:, None]
    return Signals(s.time, step * np.round(position / step), effort)


def _interpolated(s: Signals, strength: int, rng: np.random.Generator) -> Signals:
    """Draw a slow log out by linear interpolation."""
    slow = np.arange(0.0, s.time[-1], 1.0 / (60.0, 30.0, 15.0)[strength])
    slow = np.sort(slow + rng.uniform(0.0, 2e-3, len(slow)))
    time = np.arange(slow[0], slow[-1], 0.01)

    def drawn(values: FloatArray) -> FloatArray:
        rare = np.array([np.interp(slow, s.time, column) for column in values.T])
        return np.array([np.interp(time, slow, column) for column in rare]).T

    return Signals(time, drawn(s.position), drawn(s.effort))


def _held(s: Signals, strength: int, rng: np.random.Generator) -> Signals:
    """Hold samples: the sensor is slower than the log."""
    del rng
    source = np.arange(len(s.time)) // (4, 10, 25)[strength] * (4, 10, 25)[strength]
    return Signals(s.time, s.position[source], s.effort[source])


def _shaken(s: Signals, strength: int, rng: np.random.Generator) -> Signals:
    """Add noise to the positions of a motion that is quick (`SPEEDS`)."""
    del strength
    return s._replace(position=s.position + 3e-4 * rng.normal(size=s.position.shape))


SPEEDS = {"quick": (2.0, 4.0, 8.0)}  # of the motions that are not as slow as the others'
FAULTS: dict[str, Fault] = {
    "clean": _clean,
    "arrival": _arrival,
    "quantised": _quantised,
    "interpolated": _interpolated,
    "held": _held,
    "quick": _shaken,
}


def record(plant: Plant, fault: Fault, strength: int, speed: float = 1.0) -> Recording:
    """Return a faulty recording of the plant."""
    rng = plant.rng
    time, q, v, a = plant.motion(RATE, DURATION, speed)
    effort = plant.torque(q, v, a)
    signals = Signals(
        time,
        q + 2e-6 * rng.normal(size=q.shape),
        effort + 0.02 * effort.std(axis=0) * rng.normal(size=q.shape),
    )
    time, position, effort = fault(signals, strength, rng)
    return Recording(time, plant.robot.joint_names, position, effort=effort, source="simulated")


def run(fault: str, strength: int, joints: int, seed: int) -> dict[str, Any]:
    """Identify one faulty recording at the default cut-off and at every rung."""
    plant = Plant(joints, seed)
    speed = SPEEDS[fault][strength] if fault in SPEEDS else 1.0
    recording = record(plant, FAULTS[fault], strength, speed)
    _, *states = plant.motion(50.0 * speed, 10.0 / speed, speed)
    expected = plant.torque(*states)
    errors: dict[str, float] = {}
    chosen = 0.0
    for cutoff in (None, *LADDER):
        config = IdentifyConfig(train=1.0, signals=SignalConfig(cutoff=cutoff))
        try:
            found = identify(plant.robot, recording, config)
        except SysidError as error:
            if cutoff is None:
                return {"fault": fault, "strength": strength, "seed": seed, "error": str(error)}
            continue
        predicted = _predict(found, states)
        errors["default" if cutoff is None else f"{cutoff:g}"] = float(
            np.linalg.norm(np.sqrt(np.mean((predicted - expected) ** 2, axis=0)))
        )
        if cutoff is None:
            chosen = found.signals.cutoff
    best = min(value for name, value in errors.items() if name != "default")
    return {
        "fault": fault,
        "strength": strength,
        "joints": joints,
        "seed": seed,
        "cutoff": chosen,
        "errors": errors,
        "ratio": errors["default"] / best,
    }


def _predict(found: Identification, states: Sequence[FloatArray]) -> FloatArray:
    """Return the torque (n, nj) of the identified model."""
    q, v, a = states
    samples = Samples(np.arange(float(len(q))), q, v, a, np.zeros_like(q))
    parameters, regression = found.estimate.parameters, found.regression
    rows = regression.with_load(regression.rows(samples), parameters)
    return -np.array(rows.residuals(regression.base.project(parameters))).T


def measure(given: Given) -> Result:
    """Compare every fault at every strength."""
    runs: list[dict[str, Any]] = []
    rows = []
    for fault in given.faults:
        for strength in range(3 if fault != "clean" else 1):
            say(f"{fault}, strength {strength}")
            some = [
                run(fault, strength, 4 + seed % 4, seed)
                for seed in range(given.seed, given.seed + given.seeds)
            ]
            runs += some
            ratios = np.array([one.get("ratio", np.inf) for one in some])
            cutoffs = [one.get("cutoff", np.nan) for one in some]
            rows.append(
                {
                    "fault": f"{fault} {strength}",
                    "within 5 %": float(np.mean(ratios <= WITHIN)),
                    "median": float(np.median(ratios)),
                    "worst": float(ratios.max()),
                    "lowest [Hz]": min(cutoffs),
                    "highest [Hz]": max(cutoffs),
                }
            )
    table = show_rows("error over that of the best cut-off of a ladder", rows, ".3g")
    share = float(np.mean([one.get("ratio", np.inf) <= WITHIN for one in runs]))
    figures = {"share of runs within 5 % of the best cut-off": share}
    return Result(figures, {"runs": runs}, {"signal_faults": table})


if __name__ == "__main__":
    faults = (tuple(FAULTS), "to record")
    run_benchmark(measure, seeds=(4, "recordings per row"), faults=faults)
