# SPDX-License-Identifier: Apache-2.0
"""Reading a recording from whatever kind of file it lies in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sysid_core.data.bag import bag_parts, read_bag
from sysid_core.data.table import read_csv
from sysid_core.errors import DataError, UnreadableError
from sysid_core.recording import Part, Recording, cut
from sysid_core.untrusted import existing
from sysid_core.wording import one_line

__all__ = ["read_parts", "read_recording"]


def read_parts(
    path: str | Path, *, joint_topic: str | None = None, rows: int, reach: float
) -> Iterator[Part]:
    """Read a recording in overlapping parts, so that memory does not grow with its length.

    Parameters
    ----------
    path, joint_topic
        See `read_recording`.
    rows : int
        Joint states of a part.
    reach : float [s]
        How far a part goes beyond what it stands for.
    """
    target = _existing(path)
    if _is_table(target):
        yield from cut(read_recording(target, joint_topic=joint_topic), rows, reach)
    else:
        yield from bag_parts(target, joint_topic=joint_topic, rows=rows, reach=reach)


def read_recording(path: str | Path, *, joint_topic: str | None = None) -> Recording:
    """Read a bag folder, an `.mcap`, a `.db3` (with or without metadata.yaml) or a `.csv`.

    Parameters
    ----------
    joint_topic : str, optional
        The topic of the joint states, if a bag has several; a table has no topics.

    Raises
    ------
    DataError
        In one line: what is wrong, where, and how to mend it.
    """
    target = _existing(path)
    if not _is_table(target):
        return read_bag(target, joint_topic=joint_topic)
    if joint_topic is not None:
        raise DataError(
            f"a table has no topics; leave out the topic '{joint_topic}'", source=str(target)
        )
    return read_csv(target)


def _existing(path: str | Path) -> Path:
    try:
        return existing(path)
    except UnreadableError as error:
        raise DataError(f"{error}; check the path", source=one_line(path)) from error


def _is_table(path: Path) -> bool:
    return path.suffix.lower() == ".csv" and not path.is_dir()
