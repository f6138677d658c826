# SPDX-License-Identifier: Apache-2.0
"""The contents of ``estimate.json``: an identified model with its standing, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.friction import FRICTION
from sysid_core.files import as_plain, json_text, write_text
from sysid_core.robot.model import Robot
from sysid_core.scores import Scores

if TYPE_CHECKING:  # the nodes write such files too, and do without all that identifies offline
    from sysid_core.forecast import Forecast
    from sysid_core.gains import DriveGains
    from sysid_core.identification import Identification

__all__ = [
    "estimate_json",
    "forecasts_json",
    "identity_json",
    "model_json",
    "scores_json",
    "write_estimate",
]


def named_parameters(robot: Robot, vector: FloatArray) -> dict[str, Any]:
    """Return ``bodies``, ``joints`` and ``couplings`` of a parameter vector by name."""
    layout = robot.layout
    lacking = [
        [term.name for term, scale in zip(FRICTION, scales, strict=True) if scale == 0.0]
        for scales in robot.friction_scales.T
    ]
    joints = layout.joints_of(vector)
    for terms, missing in zip(joints.values(), lacking, strict=True):
        for term in missing:
            del terms[term]
    return {
        "bodies": {name: phi.tolist() for name, phi in layout.bodies_of(vector).items()},
        "joints": joints,
        "couplings": layout.couplings_of(vector),
    }


def identity_json(robot: Robot, parameters: FloatArray) -> dict[str, Any]:
    """Return the entries that say whose model it is: robot, parameters by name, friction terms."""
    chosen = robot.description.friction_chosen
    return {
        "robot": robot.name,
        "model_hash": robot.model_hash,
        **named_parameters(robot, parameters),
        "friction": {joint: dict(terms) for joint, terms in chosen.items()},
    }


def model_json(
    robot: Robot, parameters: FloatArray, std: FloatArray, nominal: FloatArray
) -> dict[str, Any]:
    """Return those entries, and what is known of the model and of the one it started from."""
    source = robot.description.source
    return {
        **identity_json(robot, parameters),
        "std": named_parameters(robot, np.nan_to_num(std)),
        "description": None if source is None else str(Path(source).resolve()),
        "nominal": named_parameters(robot, nominal),
    }


def scores_json(scores: Scores) -> dict[str, Any]:
    """Return scores as ``joints``, ``rmse`` and ``r2`` with nominal and identified lists."""
    return {
        "joints": scores.joints,
        "rmse": {"nominal": scores.rmse_nominal, "identified": scores.rmse_identified},
        "r2": {"nominal": scores.r2_nominal, "identified": scores.r2_identified},
        "samples": scores.samples,
    }


def forecasts_json(forecasts: tuple[Forecast, Forecast]) -> dict[str, Any]:
    """Return the errors of the nominal and the identified model's motions."""
    nominal, identified = forecasts
    return {
        "position": {"nominal": nominal.position, "identified": identified.position},
        "velocity": {"nominal": nominal.velocity, "identified": identified.velocity},
        "windows": identified.windows,
        "seconds": identified.seconds,
    }


def estimate_json(
    found: Identification, timing: Mapping[str, float], gains: DriveGains | None = None
) -> dict[str, Any]:
    """Return the contents of ``estimate.json``; `timing` has the time [s] of every stage."""
    estimate, robot, base = found.estimate, found.robot, found.regression.base
    covariance = estimate.base_covariance
    of_base = {
        "expression": base.expressions(),
        "value": estimate.base_parameters,
        "std": np.sqrt(np.diagonal(covariance)),
        "determined": estimate.determined,
        "essential": found.essential,
    }
    result = {
        **model_json(robot, estimate.parameters, estimate.std, found.nominal),
        "method": estimate.method,
        "consistency": dict(zip(robot.layout.bodies, estimate.consistency, strict=True)),
        "train": scores_json(found.train),
        "validation": None if found.validation is None else scores_json(found.validation),
        "timing_s": sum(timing.values()),
        "warnings": found.warnings,
        "groups": found.regression.groups,
        "noise_std": estimate.noise_std,
        "correlation": found.correlation,
        "discrepancy": found.discrepancy,
        "base_parameters": [
            dict(zip(of_base, entry, strict=True)) for entry in zip(*of_base.values(), strict=True)
        ],
        "condition": estimate.condition,
        "optimality": estimate.optimality,
        "iterations": estimate.iterations,
        "converged": estimate.converged,
        "cutoff_hz": found.signals.cutoff,
        "effort_lag_s": found.signals.lag,
        "timing": timing,
    }
    if np.isfinite(covariance).all():
        result["base_covariance"] = [row[: k + 1] for k, row in enumerate(covariance)]
    if found.gravity is not None:
        result["gravity"] = found.gravity
    if found.loads:
        result["loads"] = found.loads
    if gains is not None:
        table = zip(gains.joints, gains.gain, gains.std, strict=True)
        result["gains"] = {joint: {"gain": gain, "std": std} for joint, gain, std in table}
    plain: dict[str, Any] = as_plain(result)
    return plain


def write_estimate(data: Mapping[str, Any], path: Path) -> None:
    """Write the contents of an ``estimate.json``.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    write_text(path, json_text(data, indent=1))
