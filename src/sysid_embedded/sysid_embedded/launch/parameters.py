# SPDX-License-Identifier: Apache-2.0
"""Parameters that a launch file gives to nodes, as parameter files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .element import Element

__all__ = ["parameter_files"]


def _write(values: dict[str, Any], folder: Path) -> Path:
    """Write parameters for whatever node gets the file."""
    path = folder / f"{len(list(folder.iterdir()))}.yaml"
    text = yaml.safe_dump({"/**": {"ros__parameters": values}}, sort_keys=False)
    path.write_text(text, encoding="utf-8")
    return path


def _named(item: Element) -> dict[str, Any]:
    kind = item.literal("type", "")
    value = item.value("value")
    return {item.text("name"): item.text("value") if kind == "str" else value}


def _from_file(item: Element) -> Path:
    path = Path(item.text("from"))
    if not path.is_file():
        raise item.error(f"names a parameter file that isn't there: {path}")
    return path


def parameter_files(node: Element, folder: Path) -> list[Path]:
    """Return the parameter files of a node, in the order in which later ones win.

    Parameters
    ----------
    node : Element
    folder : Path
        Where to write those that the launch file itself spells out.

    Raises
    ------
    LaunchError
        If a ``param`` makes no sense or its file isn't there.
    """
    return [
        _from_file(item) if "from" in item.content else _write(_named(item), folder)
        for item in node.items("param")
    ]
