# SPDX-License-Identifier: Apache-2.0
"""Parameters that a launch file gives to nodes, as parameter files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from .element import Element
from .substitutions import substitute

__all__ = ["parameter_files"]


def _write(values: dict[str, Any], folder: Path) -> Path:
    """Write parameters for whatever node gets the file."""
    path = folder / f"{len(list(folder.iterdir()))}.yaml"
    text = yaml.safe_dump({"/**": {"ros__parameters": values}}, sort_keys=False)
    path.write_text(text, encoding="utf-8")
    return path


def _values(item: Element) -> dict[str, Any]:
    """Return what one ``param`` with a name says, nested ones too."""
    name = item.text("name")
    nested = item.items("param")
    if not nested:
        kind = item.literal("type", "")
        value = item.value("value")
        return {name: item.text("value") if kind == "str" else value}
    values: dict[str, Any] = {}
    for inner in nested:
        values |= _values(inner)
    return {name: values}


def _from_file(item: Element, folder: Path) -> Path:
    path = Path(item.text("from"))
    if not path.is_file():
        raise item.error(f"names a parameter file that isn't there: {path}")
    if not item.flag("allow_substs", False):
        return path
    text = path.read_text(encoding="utf-8")
    copy = folder / f"{len(list(folder.iterdir()))}.yaml"
    copy.write_text(item.guard(lambda: substitute(text, item.scope)), encoding="utf-8")
    return copy


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
    files: list[Path] = []
    for item in node.items("param"):
        if "from" in item.content and "name" in item.content:
            raise item.error("has both 'name' and 'from'; use one")
        if "from" in item.content:
            files.append(_from_file(item, folder))
        else:
            files.append(_write(_values(item), folder))
    return files
