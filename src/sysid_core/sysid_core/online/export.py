# SPDX-License-Identifier: Apache-2.0
"""Writes the parameters in use of a live identification as estimate.json, URDF and description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sysid_core.errors import OutputError
from sysid_core.estimate_json import model_json, scores_json, write_estimate
from sysid_core.files import results_folder
from sysid_core.inertia import smallest_eigenvalue
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.update import Update
from sysid_core.robot.export import model_files, require_believable, write_model
from sysid_core.scores import Scores

__all__ = ["export_update", "update_json"]


def update_json(update: Update, groups: tuple[str, ...]) -> dict[str, Any]:
    """Return the contents of ``estimate.json`` for the parameters in use.

    The scores are prequential: every torque was predicted before it was learned from.
    """
    robot, seen = update.robot, update.scores
    layout = robot.layout
    nominal, used = seen.nominal, seen.used
    scores = Scores(groups, nominal.rmse, used.rmse, nominal.r2, used.r2, seen.samples)
    consistency = smallest_eigenvalue(layout.inertias(update.parameters))
    return {
        **model_json(robot, update.parameters, update.std, robot.nominal),
        "method": "online" if update.identified else "nominal",
        "consistency": dict(zip(layout.bodies, consistency, strict=True)),
        "train": scores_json(scores),
        "validation": scores_json(scores),
        "timing_s": 0.0,
        "warnings": update.warnings,
        "groups": groups,
        "state": update.state.name,
        "reasons": update.reasons,
        "revision": update.revision,
        "time": update.time,
    }


def export_update(update: Update, identifier: OnlineIdentifier, folder: Path) -> Path:
    """Write ``estimate.json``, URDF and description to a folder; returns the URDF's path.

    Raises
    ------
    OutputError
        If the folder cannot be written to, or holds a file of one of these names: whoever can
        call a node's service may not replace what is there.
    ModelError
        If the identified mass or torques are absurd.
    """
    robot = update.robot
    require_believable(robot, update.parameters, "identify offline with --any-mass")
    names = ("estimate.json", *model_files(robot))
    for there in filter(Path.exists, (folder / name for name in names)):
        raise OutputError(f"{there}: exists already; choose another folder")
    with results_folder(folder) as temporary:
        write_estimate(update_json(update, identifier.groups), temporary / names[0])
        write_model(robot, update.parameters, temporary)
    return folder / names[1]
