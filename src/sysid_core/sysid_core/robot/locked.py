# SPDX-License-Identifier: Apache-2.0
"""Joints that a description locks and that data show elsewhere, or in motion."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.recording import Recording
from sysid_core.robot.model import Robot
from sysid_core.robot.plausibility import nominal_gravity, some_of

__all__ = ["locked_elsewhere"]

_OFF = 0.01  # [rad, m] by which a locked joint may lie elsewhere
_MATTERS = 0.01  # [-] share of the gravity torques that is worth a word
_SPOILS = 0.1  # [-] the same, from which on nothing right can be learned
_ROWS = 20  # that gravity is compared on
_SPIKES = 1.0  # Share of the positions at either end that spikes may take [%]


def locked_elsewhere(robot: Robot, data: Recording) -> Iterator[Diagnostic]:
    """Tell of locked joints that lie or move where it matters to the joints that are identified.

    It does as far as gravity's torques change, by the nominal model; of one that moves, gravity in
    any direction, as what it carries is accelerated.
    """
    aliases = robot.description.names
    known = [aliases.get(name, name) for name in data.joint_names]
    if not set(robot.description.locked) & set(known):
        return
    rows = _complete(robot, data, known)
    for joint, held in robot.description.locked.items():
        there = data.position[:, known.index(joint)] if joint in known else np.zeros(0)
        there = there[np.isfinite(there)]
        if not len(there) or not len(rows):
            continue
        low, high = np.percentile(there, [_SPIKES, 100.0 - _SPIKES])
        if high - low > _OFF:
            share = _change(robot, joint, (low, high), rows, np.eye(3))
            said = f"moves from {low:.3g} to {high:.3g}"
            mend = "hold it still, or identify it, too, if it has efforts"
        elif abs(np.median(there) - held) > _OFF:
            where = float(np.median(there))
            share = _change(robot, joint, (held, where), rows, robot.model.gravity.linear[None])
            said = f"lies at {where:.4g} in the data"
            mend = f"set 'joints.locked: {{{joint}: {where:.4g}}}'"
        else:
            continue
        if share > _MATTERS:
            told = f"is locked at {held:.4g}, but {said}, which changes torques"
            yield Diagnostic(
                "locked_elsewhere",
                f"{told} by {share:.0%} of gravity's",
                Severity.ERROR if share > _SPOILS else Severity.WARNING,
                subject=joint,
                hint=mend,
            )


def _complete(robot: Robot, data: Recording, known: Sequence[str]) -> FloatArray:
    """Return some positions (m, nj) of all moving joints."""
    if not robot.is_tree or not set(robot.joint_names) <= set(known):
        return np.zeros((0, 0))
    position = data.position[:, [known.index(name) for name in robot.joint_names]]
    rows = np.flatnonzero(np.isfinite(position).all(axis=1))
    return np.asarray(position[some_of(rows, _ROWS)])


def _change(
    robot: Robot, joint: str, ends: Sequence[float], rows: FloatArray, gravity: FloatArray
) -> float:
    """Return how much torques (n, nj) change with a locked joint [-], over the usual gravity's."""

    def torques(end: float) -> FloatArray:
        locked = {**robot.description.locked, joint: float(end)}
        model = Robot(replace(robot.description, locked=locked), robot.urdf).model
        found = []
        for pull in gravity:
            model.gravity.linear = pull
            found.append(nominal_gravity(model, rows))
        return np.array(found)

    first, last = map(torques, ends)
    usual, change = (np.sqrt(np.mean(t**2, axis=1)).max() for t in (first, last - first))
    return float(change / usual) if usual > 0.0 else 0.0
