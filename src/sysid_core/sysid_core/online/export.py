# SPDX-License-Identifier: Apache-2.0
"""Writes the parameters in use of a live identification as estimate.json and as a URDF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sysid_core.estimate_file import chosen_friction, named_parameters, scores_json, write_estimate
from sysid_core.files import results_folder, write_text
from sysid_core.inertia import smallest_eigenvalue
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.update import Update
from sysid_core.robot.export import identified_urdf, require_believable
from sysid_core.robot.model import Robot
from sysid_core.scores import Scores

__all__ = ["export_update", "update_json"]


def update_json(robot: Robot, update: Update, groups: tuple[str, ...]) -> dict[str, Any]:
    """Return the contents of ``estimate.json`` for the parameters in use.

    The scores are prequential: every torque was predicted before it was learned from.
    """
    layout, seen = robot.layout, update.scores
    nominal, used = seen.nominal, seen.used
    scores = Scores(groups, nominal.rmse, used.rmse, nominal.r2, used.r2, seen.samples)
    source = robot.description.source
    consistency = smallest_eigenvalue(layout.inertias(update.parameters))
    return {
        "robot": robot.name,
        "model_hash": robot.model_hash,
        "method": "online" if update.identified else "nominal",
        **named_parameters(robot, update.parameters),
        "std": named_parameters(robot, np.nan_to_num(update.std)),
        "consistency": dict(zip(layout.bodies, consistency.tolist(), strict=True)),
        "train": scores_json(scores),
        "validation": scores_json(scores),
        "timing_s": 0.0,
        "warnings": list(update.warnings),
        "description": None if source is None else str(source.resolve()),
        "nominal": named_parameters(robot, robot.nominal),
        "friction": chosen_friction(robot),
        "groups": list(groups),
        "state": update.state.name,
        "reasons": list(update.reasons),
        "revision": update.revision,
        "time": update.time if np.isfinite(update.time) else None,
    }


def export_update(
    robot: Robot, update: Update, identifier: OnlineIdentifier, folder: Path
) -> Path:
    """Write ``estimate.json`` and ``<robot>.urdf`` to a folder; returns the URDF's path.

    Raises
    ------
    OutputError
        If the folder cannot be written to.
    ModelError
        If the identified mass or torques are absurd.
    """
    require_believable(robot, update.parameters, "identify offline with --any-mass")
    urdf = identified_urdf(robot, update.parameters)
    with results_folder(folder) as temporary:
        write_estimate(update_json(robot, update, identifier.groups), temporary / "estimate.json")
        write_text(temporary / f"{robot.name}.urdf", urdf)
    return folder / f"{robot.name}.urdf"
