# SPDX-License-Identifier: Apache-2.0
"""Writes the report of an identification into a folder."""

from __future__ import annotations

from pathlib import Path

from sysid_core.files import write_text
from sysid_core.identification import Identification
from sysid_core.report.page import page

__all__ = ["write_report"]


def write_report(found: Identification, folder: Path, *, source: str = "") -> None:
    """Write ``report.html``, which needs no other file.

    Parameters
    ----------
    found : Identification
    folder : Path
    source : str
        Name of the recording, for the heading.

    Raises
    ------
    OutputError
        If a file cannot be written.
    """
    write_text(folder / "report.html", page(found, source))
