# SPDX-License-Identifier: Apache-2.0
"""Recorded poses of links, as a motion capture system or a simulator tells them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.data.table import read_table
from sysid_core.errors import DataError
from sysid_core.signals import continuous, normalised

__all__ = ["Poses", "read_poses"]

_PARTS = ("x", "y", "z", "qx", "qy", "qz", "qw")
_HEADER_HELP = (
    "expected 'time,<link>/x,<link>/y,<link>/z,<link>/qx,<link>/qy,<link>/qz,<link>/qw,…'"
)
_FEWEST = 100
_UNIT = 0.05
"""A quaternion's length may differ from one by this much."""


@dataclass(frozen=True)
class Poses:
    """Poses of link frames in the world.

    Attributes
    ----------
    time : (n,) [s]
        Strictly ascending.
    position : (n, m, 3) [m]
    orientation : (n, m, 4) [-]
        Unit quaternions x, y, z, w; neighbours in time are close.
    """

    time: FloatArray
    links: tuple[str, ...]
    position: FloatArray
    orientation: FloatArray
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
    source = str(path)
    columns, lines, values = read_table(path, _PARTS, _HEADER_HELP)
    links = tuple(dict.fromkeys(link for link, _ in columns))
    for link in links:
        missing = [part for part in _PARTS if (link, part) not in columns]
        if missing:
            raise DataError(
                f"line 1: link '{link}' lacks {', '.join(missing)}; {_HEADER_HELP}", source=source
            )
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise DataError(
            f"line {lines[row]}: column '{'/'.join(columns[column - 1])}' holds no finite number; "
            "fill the gap or delete the line",
            source=source,
        )
    if len(values) < _FEWEST:
        raise DataError(
            f"{len(values)} rows are too few; record at least {_FEWEST}", source=source
        )
    time = values[:, 0]
    if not (np.diff(time) > 0.0).all():
        row = int(np.argmax(np.diff(time) <= 0.0)) + 1
        raise DataError(
            f"line {lines[row]}: time does not ascend; sort the rows and drop doubles",
            source=source,
        )
    order = [1 + columns.index((link, part)) for link in links for part in _PARTS]
    poses = values[:, order].reshape(len(values), len(links), len(_PARTS))
    quaternions = poses[:, :, 3:]
    length = np.linalg.norm(quaternions, axis=2)
    if (np.abs(length - 1.0) > _UNIT).any():
        row, link = np.argwhere(np.abs(length - 1.0) > _UNIT)[0]
        raise DataError(
            f"line {lines[row]}: the quaternion of '{links[link]}' has length "
            f"{length[row, link]:.3g}, not 1; check the order qx, qy, qz, qw",
            source=source,
        )
    chains = [continuous(normalised(quaternions[:, k])) for k in range(len(links))]
    return Poses(time, links, poses[:, :, :3], np.stack(chains, axis=1), source)
