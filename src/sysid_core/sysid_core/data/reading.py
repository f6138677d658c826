# SPDX-License-Identifier: Apache-2.0
"""Reading a recording from whatever kind of file it lies in."""

from __future__ import annotations

from pathlib import Path

from sysid_core.data.bag import read_bag
from sysid_core.data.table import read_csv
from sysid_core.errors import DataError, UnreadableError
from sysid_core.recording import Recording
from sysid_core.untrusted import existing
from sysid_core.wording import one_line

__all__ = ["read_recording"]


def read_recording(path: str | Path, *, joint_topic: str | None = None) -> Recording:
    """Read a bag folder, an `.mcap`, a `.db3` (with or without metadata.yaml) or a `.csv`.

    Parameters
    ----------
    path : str or Path
    joint_topic : str, optional
        The topic of the joint states, if a bag has several; a table has no topics.

    Raises
    ------
    DataError
        In one line: what is wrong, where, and how to mend it.
    """
    try:
        target = existing(path)
    except UnreadableError as error:
        raise DataError(f"{error}; check the path", source=one_line(path)) from error
    if target.suffix.lower() == ".csv" and not target.is_dir():
        if joint_topic is not None:
            raise DataError(
                f"a table has no topics; leave out the topic '{joint_topic}'", source=str(target)
            )
        return read_csv(target)
    return read_bag(target, joint_topic=joint_topic)
