# SPDX-License-Identifier: Apache-2.0
"""Coverage of stated 95 % intervals: real recordings in halves, and a plant outside the model.

``python -m bench.coverage`` identifies each recording from one half and asks how often the torque
measured in the other half lies within the interval of its prediction: the parameters' covariance
and the discrepancy together. The same is asked of simulated arms on another motion, against their
torque without noise. These have gear ripple, Stribeck and load-dependent friction, and share no
code with the identified model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.recordings import CASES, STILL, Case
from bench.runner import Given, Result, run_benchmark, say, show_rows
from bench.signal_faults import Plant
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.rows import Rows
from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.recording import Recording, Samples
from sysid_core.signals.options import SignalConfig
from sysid_core.validation import rows_at_learned_cutoff

NORMAL_95 = 1.96  # standard deviations of an interval of 95 %
RATE, DURATION = 200.0, 20.0  # [Hz, s] of a simulated recording
RIPPLE, TEETH = 0.15, 40.0  # gear ripple over Coulomb friction, periods per radian


class GearedPlant(Plant):
    """An arm whose gears ripple, beyond Stribeck and load-dependent friction."""

    def torque(self, q: FloatArray, v: FloatArray, a: FloatArray) -> FloatArray:
        """Return joint torques (n, nj) [N·m]."""
        ripple = RIPPLE * self.coulomb * np.sin(TEETH * q)
        return np.asarray(super().torque(q, v, a) + ripple)


def covered(found: Identification, rows: Rows, discrepancy: bool = True) -> list[np.ndarray]:
    """Return per joint which torques lie within the 95 % interval of their prediction."""
    estimate, inside = found.estimate, []
    rows = found.regression.with_load(rows, estimate.parameters)
    for group, block in enumerate(rows.blocks):
        error = block.target - block.matrix @ estimate.base_parameters
        known = np.einsum(
            "ij,jk,ik->i", block.matrix, estimate.base_covariance, block.matrix, optimize=True
        )
        variance = known + discrepancy * found.discrepancy[group] ** 2
        inside.append(np.abs(error) < NORMAL_95 * np.sqrt(variance))
    return inside


def _share(inside: Sequence[np.ndarray]) -> float:
    return float(np.mean(np.concatenate(list(inside))))


def _half(recording: Recording, first: bool) -> Recording:
    middle = recording.time[0] + 0.5 * np.ptp(recording.time)
    return recording.select((recording.time < middle) == first)


def halves(case: Case) -> dict[str, Any]:
    """Identify each half of a recording and predict the other."""
    robot, recording = case.load()
    parts = [_half(recording, True), _half(recording, False)]
    inside, alone = [], []
    for learned, other in (parts, parts[::-1]):
        found = identify(robot, learned, IdentifyConfig(train=1.0))
        config = IdentifyConfig(signals=SignalConfig(cutoff=found.signals.cutoff))
        rows = rows_at_learned_cutoff(found.robot, other, config, None)[1]
        inside += covered(found, rows)
        alone += covered(found, rows, discrepancy=False)
    return {"what": case.name, "covered": _share(inside), "parameters alone": _share(alone)}


def simulated(joints: int, seed: int) -> dict[str, Any]:
    """Identify a simulated arm and predict its torque on another motion."""
    plant = GearedPlant(joints, seed)
    time, q, v, a = plant.motion(RATE, DURATION)
    torque, rng = plant.torque(q, v, a), plant.rng
    effort = torque + 0.02 * torque.std(axis=0) * rng.normal(size=q.shape)
    noisy = q + 1e-5 * rng.normal(size=q.shape)
    recording = Recording(time, plant.robot.joint_names, noisy, effort=effort, source="simulated")
    found = identify(plant.robot, recording, IdentifyConfig(train=1.0))
    time, q, v, a = plant.motion(50.0, 10.0)
    rows = found.regression.rows(Samples(time, q, v, a, plant.torque(q, v, a)))
    moving = np.abs(v) > STILL * np.abs(v).max(axis=0)
    inside, alone = (
        [joint[moving[:, j]] for j, joint in enumerate(covered(found, rows, discrepancy))]
        for discrepancy in (True, False)
    )
    coulomb = found.robot.layout.term("coulomb")
    error = np.abs(found.estimate.parameters[coulomb] - plant.coulomb)
    return {
        "what": f"seed {seed}",
        "covered": _share(inside),
        "parameters alone": _share(alone),
        "Coulomb": float(np.mean(error < NORMAL_95 * found.estimate.std[coulomb])),
    }


def measure(given: Given) -> Result:
    """Measure coverage on every recording and on the simulated arms."""
    real = []
    for case in CASES:
        say(case.name)
        real.append(halves(case))
    say(f"{given.seeds} simulated arms")
    arms = [simulated(4 + seed % 4, 100 + given.seed + seed) for seed in range(given.seeds)]
    mean = {
        name: float(np.mean([arm[name] for arm in arms])) for name in arms[0] if name != "what"
    }
    told = [*real, {"what": "simulated arms", **mean}]
    rows = [
        {
            "data": one["what"],
            "torques": one["covered"],
            "torques, by the parameters alone": one["parameters alone"],
            "Coulomb friction": one.get("Coulomb"),
        }
        for one in told
    ]
    table = show_rows("share within stated 95 % intervals", rows, ".3f")
    shares = {one["what"]: one["covered"] for one in real} | {"simulated": mean["covered"]}
    figures = {f"coverage, {name}": share for name, share in shares.items()}
    return Result(figures, {"recordings": real, "simulated": arms}, {"coverage": table})


if __name__ == "__main__":
    run_benchmark(measure, seeds=(20, "simulated arms"))
