# SPDX-License-Identifier: Apache-2.0
"""Recorded poses of links, as a motion capture system or a simulator tells them."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.data.wording import one_line
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
    links : tuple[str, ...]
    position : (n, m, 3) [m]
    orientation : (n, m, 4) [-]
        Unit quaternions x, y, z, w; neighbours in time are close.
    source : str
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
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            header = [cell.strip() for cell in next(reader, [])]
            links = _links(header, source)
            rows = [(reader.line_num, cells) for cells in reader if cells]
    except OSError as err:
        raise DataError(
            f"cannot be read ({err.strerror or err}); give a CSV table of poses", source=source
        ) from err
    except (UnicodeDecodeError, csv.Error) as err:
        raise DataError(
            f"is no text table ({one_line(err)}); {_HEADER_HELP}", source=source
        ) from err
    values = _numbers(rows, header, source)
    if len(values) < _FEWEST:
        raise DataError(
            f"{len(values)} rows are too few; record at least {_FEWEST}", source=source
        )
    time = values[:, 0]
    if not (np.diff(time) > 0.0).all():
        row = int(np.argmax(np.diff(time) <= 0.0)) + 1
        raise DataError(
            f"line {rows[row][0]}: time does not ascend; sort the rows and drop doubles",
            source=source,
        )
    order = [header.index(f"{link}/{part}") for link in links for part in _PARTS]
    poses = values[:, order].reshape(len(values), len(links), len(_PARTS))
    quaternions = poses[:, :, 3:]
    length = np.linalg.norm(quaternions, axis=2)
    if (np.abs(length - 1.0) > _UNIT).any():
        row, link = np.argwhere(np.abs(length - 1.0) > _UNIT)[0]
        raise DataError(
            f"line {rows[row][0]}: the quaternion of '{links[link]}' has length "
            f"{length[row, link]:.3g}, not 1; check the order qx, qy, qz, qw",
            source=source,
        )
    chains = [continuous(normalised(quaternions[:, k])) for k in range(len(links))]
    return Poses(time, links, poses[:, :, :3], np.stack(chains, axis=1), source)


def _links(header: list[str], source: str) -> tuple[str, ...]:
    """Return the links of a header in their order."""
    if not header or header[0] != "time":
        raise DataError(f"line 1: the first column is not 'time'; {_HEADER_HELP}", source=source)
    links: dict[str, set[str]] = {}
    for name in header[1:]:
        link, _, part = name.rpartition("/")
        if not link or part not in _PARTS:
            raise DataError(
                f"line 1: unknown column '{one_line(name)}'; {_HEADER_HELP}", source=source
            )
        if part in links.setdefault(link, set()):
            raise DataError(
                f"line 1: column '{name}' stands there twice; delete one", source=source
            )
        links[link].add(part)
    for link, parts in links.items():
        missing = [part for part in _PARTS if part not in parts]
        if missing:
            raise DataError(
                f"line 1: link '{link}' lacks {', '.join(missing)}; {_HEADER_HELP}", source=source
            )
    if not links:
        raise DataError(f"line 1: no poses; {_HEADER_HELP}", source=source)
    return tuple(links)


def _numbers(rows: list[tuple[int, list[str]]], header: list[str], source: str) -> FloatArray:
    values = np.empty((len(rows), len(header)))
    for row, (line, cells) in enumerate(rows):
        if len(cells) != len(header):
            raise DataError(
                f"line {line} has {len(cells)} values where the header has {len(header)} columns; "
                "complete or delete the line",
                source=source,
            )
        for column, cell in enumerate(cells):
            try:
                values[row, column] = float(cell)
            except ValueError:
                values[row, column] = np.nan
            if not np.isfinite(values[row, column]):
                raise DataError(
                    f"line {line}: '{one_line(cell)}' in column '{header[column]}' is no finite "
                    "number; fill the gap or delete the line",
                    source=source,
                )
    return values
