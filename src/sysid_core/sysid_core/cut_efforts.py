# SPDX-License-Identifier: Apache-2.0
"""Finds efforts of a recording that tell nothing, as cut off by a sensor's or driver's range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.select import make_regression
from sysid_core.lost_efforts import Run, lost_runs
from sysid_core.online.saturation import ASKED, cut_off, needs, varies
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.signals.align import Aligned
from sysid_core.signals.chain import ChainConfig, Grid, filter_grid
from sysid_core.signals.cutoff import highest_cutoff
from sysid_core.signals.filters import support
from sysid_core.signals.plateaus import ALIKE, BEYOND, COARSE, FEWEST, LIMIT, most_alike

__all__ = ["mark_cut_efforts"]

_CUTOFF = 10.0
"""Cut-off [Hz] behind which a motion tells what torque it needs."""
_MOVES = 0.01
"""Share of a joint's top speed from which it moves [-]: at rest it needs no other torque."""
_BEARS, _PLACES = 0.2, 20
"""Share of a joint's usual effort that its weight has where it cannot be zero [-]; places at which
the weight is looked at."""
_RATE, _LOOKED_AT = 50.0, 4000
"""Rate [Hz] of the samples that are looked at, several in any run that bends a model; the most."""


class _Flat(NamedTuple):
    """An extreme of a joint's effort that returns more often than that of a sine."""

    joint: int
    level: float  # [N·m]
    same: float  # [N·m] by which efforts differ that are the same
    step: float
    """[N·m] to the nearest value within that is as usual, as of a coarse effort; 0: none is."""

    def holds(self, effort: FloatArray) -> BoolArray:
        """Return where efforts (n, nj) have the value, (n,)."""
        return np.asarray(np.abs(effort[:, self.joint] - self.level) <= 2.0 * self.same)


def mark_cut_efforts(robot: Robot, aligned: Aligned) -> Aligned:
    """Mark the efforts that tell nothing, so that no row rests on them, and say whose these are.

    Efforts that were lost, and those that are cut off: an extreme that an effort has in more
    samples than a sine, while the joint moves and the nominal model asks for others there (see
    `Saturation`). For a robot in contact, where nobody knows what a joint's torque should be, it
    is the joint's speed that must differ.
    """
    grids = aligned.grids
    if any("effort" not in grid.joints for grid in grids):
        return aligned
    efforts = [grid.joints["effort"] for grid in grids]
    masks, said = [np.zeros(effort.shape) for effort in efforts], []
    joints = np.flatnonzero(robot.actuated).tolist()
    for j in joints:
        lost = lost_runs(j, grids)
        if not any(_bears(robot, grids, j, run) for run in lost if not run.level):
            lost = [run for run in lost if run.level]
        if lost:
            for run in lost:
                masks[run.grid][run.where, j] = 2.0
            seconds = sum(run.length for run in lost) / aligned.rate
            message = f"the torque stood for {seconds:.2g} s: left out"
            hint = "see whether its drive was off, or its messages were lost"
            name = robot.joint_names[j]
            said.append(str(Diagnostic("torque_lost", message, subject=name, hint=hint)))
    flats = [flat for j in joints for flat in _flats(j, efforts)]
    for flat, finding in _cut(robot, aligned, flats) if flats else ():
        said.append(str(finding))
        for effort, mask in zip(efforts, masks, strict=True):
            mask[flat.holds(effort), flat.joint] = 2.0
    if not said:
        return aligned
    marked = tuple(
        grid._replace(joints={**grid.joints, "cut_off": mask})
        for grid, mask in zip(grids, masks, strict=True)
    )
    return replace(aligned, grids=marked, warnings=(*aligned.warnings, *said))


def _bears(robot: Robot, grids: Sequence[Grid], j: int, run: Run) -> bool:
    """Whether joint j bears so much weight in a run that its torque cannot be zero.

    Without weight it can, as where the robot is led by hand. In contact nobody knows.
    """
    if robot.floating:
        return True
    grid = grids[run.grid]
    effort = grid.joints["effort"][:, j]
    few = slice(run.where.start, run.where.stop, max(1, run.length // _PLACES))
    position = grid.joints["position"][few]
    none = np.zeros_like(position)
    weight = _needed(robot, Samples(grid.time[few], position, none, none, none))[:, j]
    return bool(np.mean(np.nan_to_num(weight) ** 2) > _BEARS**2 * np.mean(effort**2))


def _flats(j: int, efforts: Sequence[FloatArray]) -> Iterator[_Flat]:
    """Yield the extremes of joint j that are frequent."""
    parts = [effort[:, j] for effort in efforts]
    values = np.concatenate(parts)
    if not np.isfinite(values).all():
        return
    same = ALIKE * float(np.sqrt(np.mean(values**2)))
    alike = np.sort(np.concatenate([p[1:][np.abs(np.diff(p)) <= same] for p in parts]))
    if not len(alike):
        return
    count = np.searchsorted(alike, alike + 2.0 * same, side="right") - np.arange(len(alike))
    least = most_alike(len(values))
    middle = float(np.median(values))
    for sign in (-1.0, 1.0):
        out, beyond = sign * (alike - middle), sign * (values - middle)
        most = int(np.argmax(np.where(out > 0.0, count, 0)))
        if not out[most] > 0.0 or count[most] <= least:
            continue
        end = float(np.median(out[most : most + count[most]]))
        level = middle + sign * end
        inside = (beyond > end + 2.0 * same).sum() > BEYOND * count[most]
        if inside or abs(level) <= 2.0 * same:  # small torques that a driver swallows
            continue
        apart = end - out[count >= COARSE * count[most]]
        apart = apart[apart > 4.0 * same]
        yield _Flat(j, level, same, float(apart.min()) if len(apart) else 0.0)


def _cut(
    robot: Robot, aligned: Aligned, flats: Sequence[_Flat]
) -> Iterator[tuple[_Flat, Diagnostic]]:
    """Yield the values at which an effort is cut off, and what to say of them."""
    rate = aligned.rate
    cutoff = min(aligned.choice.cutoff, _CUTOFF, highest_cutoff(rate))
    edge = support(rate, cutoff)
    long = [grid for grid in aligned.grids if len(grid.time) > 2 * edge]
    if not long:
        return
    length = sum(len(grid.time) for grid in long)
    every = int(max(1.0, rate / _RATE, length / _LOOKED_AT))
    config = ChainConfig(rate, cutoff)
    samples = Samples.concatenate(
        [filter_grid(grid, config, every=every).samples for grid in long]
    )
    effort = np.concatenate([grid.joints["effort"][edge:-edge:every] for grid in long])
    by_speed = robot.floating
    needed = samples.velocity if by_speed else _needed(robot, samples)
    for flat in flats:
        j = flat.joint
        speed = np.abs(samples.velocity[:, j])
        moves = (speed > _MOVES * speed.max(initial=0.0)) & np.isfinite(needed[:, j])
        held = np.flatnonzero(moves & flat.holds(effort))
        least = float(most_alike(moves.sum()))
        if not least < len(held) < moves.sum() - FEWEST:
            continue
        if by_speed and (flat.step > 0.0 or abs(flat.level) >= LIMIT * robot.limits.effort[j]):
            continue
        asked = _spread_in_runs(needed[:, j], held)
        if asked <= max(ASKED * float(np.sqrt(np.mean(needed[moves, j] ** 2))), flat.step):
            continue
        why = varies(asked) if by_speed else needs(asked)
        found = cut_off(robot.joint_names[j], flat.level, len(held), least, why)
        yield flat, replace(found, hint=f"these are left out; {found.hint}")


def _needed(robot: Robot, samples: Samples) -> FloatArray:
    """Return the torques (n, nj) [N·m] that the nominal model needs; NaN: unknown."""
    regression, needed = make_regression(robot), np.full(samples.effort.shape, np.nan)
    base_vector = regression.base.project(robot.nominal)
    blocks = regression.rows(samples).blocks
    for j, block in zip(np.flatnonzero(robot.actuated), blocks, strict=True):
        needed[block.sample, j] = block.matrix @ base_vector
    return needed


def _spread_in_runs(values: FloatArray, held: IndexArray) -> float:
    """Return by how much values (n,) differ within each run of the samples that are `held`.

    Errors of a model that change from one run to the next tell nothing.
    """
    run = np.cumsum(np.diff(held, prepend=held[:1]) > 1)
    runs, length = values[held], np.bincount(run)
    rest = runs - (np.bincount(run, runs) / length)[run]
    return float(np.sqrt(rest @ rest / max(len(held) - len(length), 1)))
