# SPDX-License-Identifier: Apache-2.0
"""Poses of links: reading them, and differentiating them twice."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.interpolate import BSpline, make_lsq_spline
from scipy.spatial.transform import Rotation

from sysid_core.arrays import FloatArray
from sysid_core.data.table import read_table
from sysid_core.errors import DataError, found_in
from sysid_core.signals.rotation import angular_motion, continuous, normalised

__all__ = ["LinkMotion", "Poses", "differentiate_poses", "read_poses"]

_PARTS = ("x", "y", "z", "qx", "qy", "qz", "qw")
_HEADER_HELP = (
    "expected 'time,<link>/x,<link>/y,<link>/z,<link>/qx,<link>/qy,<link>/qz,<link>/qw,…'"
)
_FEWEST = 100
_UNIT = 0.05  # A quaternion's length may differ from one by this much


@dataclass(frozen=True)
class Poses:
    """Poses of link frames in the world."""

    time: FloatArray  # (n,) [s] strictly ascending
    links: tuple[str, ...]
    position: FloatArray  # (n, m, 3) [m]
    orientation: FloatArray  # (n, m, 4) [-] unit quaternions x, y, z, w, close to their neighbours
    source: str = ""

    def __post_init__(self) -> None:
        n, m = len(self.time), len(self.links)
        if self.position.shape != (n, m, 3) or self.orientation.shape != (n, m, 4):
            raise DataError(
                f"poses of {m} links at {n} times have shapes {self.position.shape} and "
                f"{self.orientation.shape}",
                source=self.source,
            )

    def __len__(self) -> int:
        return len(self.time)


def read_poses(path: Path) -> Poses:
    """Read a table of poses; see docs/compliance.md.

    Raises
    ------
    DataError
        Naming the line or column that cannot be used.
    """
    with found_in(path):
        columns, lines, values = read_table(path, _PARTS, _HEADER_HELP)
        links = tuple(dict.fromkeys(link for link, _ in columns))
        for link in links:
            missing = [part for part in _PARTS if (link, part) not in columns]
            if missing:
                raise DataError(
                    f"line 1: link '{link}' lacks {', '.join(missing)}; {_HEADER_HELP}"
                )
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise DataError(
                f"line {lines[row]}: column '{'/'.join(columns[column - 1])}' holds no finite "
                "number; fill the gap or delete the line"
            )
        if len(values) < _FEWEST:
            raise DataError(f"{len(values)} rows are too few; record at least {_FEWEST}")
        time = values[:, 0]
        if not (np.diff(time) > 0.0).all():
            row = int(np.argmax(np.diff(time) <= 0.0)) + 1
            raise DataError(
                f"line {lines[row]}: time does not ascend; sort the rows and drop doubles"
            )
        order = [1 + columns.index((link, part)) for link in links for part in _PARTS]
        poses = values[:, order].reshape(len(values), len(links), len(_PARTS))
        quaternions = poses[:, :, 3:]
        length = np.linalg.norm(quaternions, axis=2)
        if (np.abs(length - 1.0) > _UNIT).any():
            row, link = np.argwhere(np.abs(length - 1.0) > _UNIT)[0]
            raise DataError(
                f"line {lines[row]}: the quaternion of '{links[link]}' has length "
                f"{length[row, link]:.3g}, not 1; check the order qx, qy, qz, qw"
            )
        chains = [continuous(normalised(quaternions[:, k])) for k in range(len(links))]
        return Poses(time, links, poses[:, :, :3], np.stack(chains, axis=1), str(path))


_DEGREE = 7
"""So high that a spline with nearly as many knots as samples passes vibrations of up to a third
of the sampling rate, second derivatives included."""
_RATIOS = (0.85, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08)
"""Numbers of spline coefficients per sample that are tried."""
_EXACT = 1e-6  # Share of a component's range below which what the spline leaves is nothing [-]
_EDGE = 12  # Coefficients whose support is left out at each end: derivatives are worst there


class LinkMotion(NamedTuple):
    """Motion of link frames in the world."""

    time: FloatArray  # (n,) [s]
    # position, velocity, acceleration: (n, m, 3) [m, m/s, m/s²] in world axes.
    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    rotation: FloatArray  # (n, m, 3, 3) from link to world axes
    # angular_velocity, angular_acceleration: (n, m, 3) [rad/s, rad/s²] in world axes.
    angular_velocity: FloatArray
    angular_acceleration: FloatArray
    ratio: float  # Number of spline coefficients per sample
    strained: bool
    """Even the finest spline leaves more than it should: the links vibrate too quickly for the
    poses' rate."""


def _spline(time: FloatArray, values: FloatArray, ratio: float) -> BSpline:
    """Fit a spline of `ratio` coefficients per sample, whose knots follow the samples' spacing."""
    inner = round(ratio * len(time)) - _DEGREE + 1
    index = np.linspace(0.0, len(time) - 1.0, inner)
    breaks = np.interp(index, np.arange(len(time)), time)
    ends = np.full(_DEGREE, 1.0)
    knots = np.concatenate([ends * breaks[0], breaks, ends * breaks[-1]])
    return make_lsq_spline(time, values, knots, k=_DEGREE)


def differentiate_poses(poses: Poses) -> LinkMotion:
    """Fit splines of seventh degree to positions and quaternions and differentiate them.

    The number of knots is chosen by generalised cross-validation (Craven & Wahba 1978). All three
    orders come from one curve, so what smoothing takes from a vibration it takes from forces and
    deflections alike.

    Raises
    ------
    DataError
        If there are too few poses.
    """
    n = len(poses)
    ratios = [ratio for ratio in _RATIOS if round(ratio * n) > 4 * _EDGE]
    if not ratios:
        raise DataError(f"{n} poses are too few; record for longer", source=poses.source)
    values = np.concatenate([poses.position, poses.orientation], axis=2).reshape(n, -1)
    time = poses.time - poses.time[0]
    scores, misfits = [], []
    for ratio in ratios:
        square = np.mean((values - _spline(time, values, ratio)(time)) ** 2, axis=0)
        misfits.append(np.sqrt(square))
        # rounding must not decide between curves that are both exact
        floor = (1e-13 * np.maximum(np.abs(values).max(axis=0), 1e-3)) ** 2
        freedom = 1.0 - round(ratio * n) / n
        scores.append(float(np.log((square + floor) / freedom**2).sum()))
    choice = int(np.argmin(scores))
    chosen, curve = ratios[choice], _spline(time, values, ratios[choice])
    rough = bool((misfits[choice] > _EXACT * np.ptp(values, axis=0)).any())
    edge = int(np.ceil(_EDGE / chosen))
    inside = time[edge:-edge]
    order = [curve(inside, nu).reshape(len(inside), -1, 7) for nu in range(3)]
    q, dq, ddq = (values[:, :, 3:] for values in order)
    turning = angular_motion(q, dq, ddq)
    shape = (*q.shape[:2], 3, 3)
    rotation = Rotation.from_quat(q.reshape(-1, 4)).as_matrix().reshape(shape)
    return LinkMotion(
        poses.time[edge:-edge],
        order[0][:, :, :3],
        order[1][:, :, :3],
        order[2][:, :, :3],
        rotation,
        np.einsum("nmij,nmj->nmi", rotation, turning.velocity),
        # ω̇ in world axes: R ω̇_body + ω × ω = R ω̇_body
        np.einsum("nmij,nmj->nmi", rotation, turning.acceleration),
        chosen,
        rough and chosen == _RATIOS[0],
    )
