# SPDX-License-Identifier: Apache-2.0
"""Recordings as comma-separated tables with columns such as `<joint>/position`, `base/x`."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isfinite, isnan, nan
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, UnreadableError, found_in
from sysid_core.files import appearing
from sysid_core.recording import (
    MOST_JOINTS,
    BaseRecording,
    ContactRecording,
    ImuRecording,
    Recording,
)
from sysid_core.untrusted import check_file
from sysid_core.wording import one_line

__all__ = ["Table", "read_csv", "read_table", "write_csv"]

_QUANTITIES = ("position", "velocity", "effort")
_CONTACT = "contact"
_WRENCH = ("fx", "fy", "fz", "tx", "ty", "tz")
_SENSORS = {
    "base": ("x", "y", "z", "qx", "qy", "qz", "qw", "vx", "vy", "vz", "wx", "wy", "wz"),
    "imu": ("wx", "wy", "wz", "ax", "ay", "az"),
}
"""Columns of odometry and inertial data, in the order of their arrays."""
_ALL = (*_QUANTITIES, _CONTACT, *_WRENCH, *_SENSORS["base"], *_SENSORS["imu"])
_MOST_COLUMNS = 1 + len(_QUANTITIES) * MOST_JOINTS
_LONGEST_LINE = 1 << 20
_HEADER_HELP = "expected 'time,<joint>/position,<joint>/velocity,<joint>/effort,…'"


class Table(NamedTuple):
    """Contents of a table with a column of time and columns such as `<name>/<quantity>`."""

    columns: list[tuple[str, str]]  # Name and quantity of every column after the first
    lines: list[int]  # Line in the file of every row
    values: FloatArray  # (n, k) time [s] first; NaN where a cell is empty


def read_table(path: Path, quantities: Sequence[str], header_help: str) -> Table:
    """Read a table whose columns have certain quantities.

    Raises
    ------
    DataError
        Naming the line of a malformed header or row; `header_help` says what is expected.
    """
    with found_in(path):
        try:
            check_file(path)
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(iter(partial(_line, file), ""))
                header = [cell.strip() for cell in next(reader, [])]
                columns = _parse_header(header, quantities, header_help)
                lines, values = _read_rows(reader, header)
        except UnreadableError as err:
            raise DataError(f"{err}; check the file and its permissions") from err
        except OSError as err:
            raise DataError(
                f"cannot be read ({err.strerror or err}); check the file and its permissions"
            ) from err
        except (UnicodeDecodeError, csv.Error) as err:
            raise DataError(
                f"is not a text table ({one_line(err)}); save it as UTF-8 CSV"
            ) from err
        if not lines:
            raise DataError("the table has a header but no rows; export it again")
        return Table(columns, lines, values)


def read_csv(path: Path) -> Recording:
    """Read a table of joint states and, of a floating base, odometry, inertial data and contacts.

    Empty cells are missing values: each sensor may have rows of its own.

    Raises
    ------
    DataError
        Naming the line of a malformed header or row.
    """
    with found_in(path):
        table = read_table(path, _ALL, _HEADER_HELP)
        feet = tuple(owner for owner, quantity in table.columns if quantity == _CONTACT)
        for owner, quantity in table.columns:
            if quantity not in (*_QUANTITIES, _CONTACT, *_SENSORS.get(owner, ())) and not (
                owner in feet and quantity in _WRENCH
            ):
                raise DataError(f"line 1: unknown column '{owner}/{quantity}'; {_HEADER_HELP}")
        base, imu = (_rows(table, [(s, q) for q in _SENSORS[s]]) for s in ("base", "imu"))
        odometry = inertial = None
        if base is not None:
            odometry = BaseRecording(base[:, 0], base[:, 1:4], base[:, 4:8], base[:, 8:])
        if imu is not None:
            inertial = ImuRecording(imu[:, 0], imu[:, 1:4], imu[:, 4:])
        return replace(
            _joints(table),
            base=odometry,
            imu=inertial,
            contacts=_contacts(table, feet) if feet else None,
            source=str(path),
        )


def _joints(table: Table) -> Recording:
    """Return the joint states of the rows that hold any."""
    columns = [
        (number, joint, quantity)
        for number, (joint, quantity) in enumerate(table.columns, start=1)
        if quantity in _QUANTITIES
    ]
    joints = tuple(dict.fromkeys(joint for _, joint, _ in columns))
    for joint in joints:
        if (joint, "position") not in table.columns:
            raise DataError(f"line 1: joint '{joint}' has no column '{joint}/position'; add it")
    rows = table.values
    if len(columns) < len(table.columns):  # rows of other sensors alone
        rows = rows[~np.isnan(rows[:, [number for number, _, _ in columns]]).all(axis=1)]
    arrays: dict[str, FloatArray | None] = {}
    for quantity in _QUANTITIES:
        array = np.full((len(rows), len(joints)), np.nan)
        for number, joint, kind in columns:
            if kind == quantity:
                array[:, joints.index(joint)] = rows[:, number]
        arrays[quantity] = None if np.isnan(array).all() else array
    position = arrays["position"]
    if position is None:
        raise DataError("the position columns are empty; export the table again")
    return Recording(rows[:, 0].copy(), joints, position, arrays["velocity"], arrays["effort"])


def _rows(table: Table, columns: Sequence[tuple[str, str]]) -> FloatArray | None:
    """Return the time [s] and some columns of the rows (m, 1 + k) that have them all, if any."""
    lacking = [f"{owner}/{q}" for owner, q in columns if (owner, q) not in table.columns]
    if len(lacking) == len(columns):
        return None
    if lacking:
        raise DataError(f"line 1: lacks {', '.join(lacking)} beside columns that belong to them")
    rows = table.values[:, [0, *(1 + table.columns.index(column) for column in columns)]]
    return rows[~np.isnan(rows).any(axis=1)]


def _contacts(table: Table, feet: tuple[str, ...]) -> ContactRecording:
    columns = [(foot, _CONTACT) for foot in feet]
    wrenches = [(foot, quantity) for foot in feet for quantity in _WRENCH]
    if set(wrenches) & set(table.columns):
        columns += wrenches
    rows = _rows(table, columns)
    first = 1 + len(feet)
    if rows is None or not np.isin(rows[:, 1:first], (0.0, 1.0)).all():
        raise DataError("columns '<foot>/contact' must be 0 or 1; write 1 where the foot stands")
    pushes = None
    if len(columns) > len(feet):
        pushes = rows[:, first:].reshape(-1, len(feet), len(_WRENCH))
    return ContactRecording(rows[:, 0], feet, rows[:, 1:first] > 0.0, pushes)


def _parse_header(
    header: Sequence[str], quantities: Sequence[str], header_help: str
) -> list[tuple[str, str]]:
    """Return name and quantity of every column after the first."""
    if not header:
        raise DataError(f"the file is empty; {header_help}")
    if header[0] != "time":
        apart = next((c for c in (";", "\t") if c in header[0]), None)
        mend = f"separate columns by commas, not by {apart!r}" if apart else header_help
        raise DataError(f"line 1: the first column is '{one_line(header[0])}', not 'time'; {mend}")
    if len(header) > _MOST_COLUMNS:
        raise DataError(f"line 1: has more than {_MOST_COLUMNS} columns")
    columns: list[tuple[str, str]] = []
    for name in header[1:]:
        owner, slash, quantity = name.rpartition("/")
        if not (owner and slash) or quantity not in quantities:
            raise DataError(f"line 1: unknown column '{one_line(name)}'; {header_help}")
        if (owner, quantity) in columns:
            raise DataError(f"line 1: column '{name}' stands there twice; delete one")
        columns.append((owner, quantity))
    if not columns:
        raise DataError(f"line 1: no columns beside the time; {header_help}")
    return columns


def _line(file: TextIO) -> str:
    line = file.readline(_LONGEST_LINE)
    if len(line) == _LONGEST_LINE:
        raise csv.Error(f"a line has more than {_LONGEST_LINE} characters")
    return line


# The reader's type has no public name, hence the structural one that is needed.
def _read_rows(
    reader: csv._reader,  # type: ignore[name-defined]
    header: Sequence[str],
) -> tuple[list[int], FloatArray]:
    lines: list[int] = []
    values = array("d")
    for cells in reader:
        if not cells or (len(cells) == 1 and not cells[0].strip()):
            continue
        if len(cells) != len(header):
            raise DataError(
                f"line {reader.line_num} has {len(cells)} values where the header has "
                f"{len(header)} columns; complete or delete the line"
            )
        try:
            row = [float(cell) if cell.strip() else nan for cell in cells]
        except ValueError:
            bad = next(name for name, cell in zip(header, cells, strict=True) if not _number(cell))
            raise DataError(
                f"line {reader.line_num}: '{one_line(cells[header.index(bad)])}' in column "
                f"'{bad}' is not a number; correct or delete the line"
            ) from None
        if not isfinite(row[0]):
            raise DataError(f"line {reader.line_num} has no time; fill it in or delete the line")
        lines.append(reader.line_num)
        values.extend(row)
    return lines, np.array(values, dtype=np.float64).reshape(-1, len(header))


def _number(cell: str) -> bool:
    try:
        float(cell or "nan")
    except ValueError:
        return not cell.strip()
    return True


def write_csv(recording: Recording, path: str | Path) -> None:
    """Write the joint states of a recording as a table.

    Odometry, inertial data and contacts have no columns there; a bag keeps them.

    Raises
    ------
    OutputError
        If the file exists already or cannot be written.
    """
    kinds = {
        quantity: values
        for quantity in _QUANTITIES
        if (values := getattr(recording, quantity)) is not None
    }
    header = ["time"] + [f"{joint}/{kind}" for joint in recording.joint_names for kind in kinds]
    table = np.stack(list(kinds.values()), axis=2).reshape(len(recording), -1)
    with (
        appearing(Path(path)) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for time, row in zip(recording.time.tolist(), table.tolist(), strict=True):
            writer.writerow([time, *("" if isnan(value) else value for value in row)])
