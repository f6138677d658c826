# SPDX-License-Identifier: Apache-2.0
"""Corners of the meshes that a URDF names, where their files are there."""

import os
from contextlib import suppress
from pathlib import Path

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import UnreadableError
from sysid_core.untrusted import read_bytes

__all__ = ["read_mesh"]

_HEADER = 80  # Bytes before a binary STL's count of triangles
_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_CORNERS = {".stl": b"vertex", ".obj": b"v"}
"""First word of a corner's line in a text, by the file's suffix."""


def read_mesh(address: str, urdf: Path) -> FloatArray:
    """Return the corners (k, 3) of a mesh in STL or OBJ, in its own unit; none if unreadable.

    A ``package://`` is looked for in ``$AMENT_PREFIX_PATH`` and among the folders that the URDF
    lies in; other addresses are paths beside the URDF.
    """
    for path in _places(address, urdf):
        with suppress(UnreadableError, ValueError):
            points = _corners(read_bytes(path), _CORNERS[path.suffix.lower()])
            if np.isfinite(points).all():
                return points
    return np.zeros((0, 3))


def _places(address: str, urdf: Path) -> list[Path]:
    """Return where a mesh may lie that can be read."""
    scheme, _, rest = address.rpartition("://")
    if Path(rest).suffix.lower() not in _CORNERS:
        return []
    if scheme not in ("package", "model"):
        return [urdf.parent / rest]
    package, _, inside = rest.partition("/")
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    shares = [Path(prefix) / "share" / package for prefix in prefixes]
    around = [folder for folder in urdf.absolute().parents if folder.name == package]
    return [folder / inside for folder in (*shares, *around)]


def _corners(data: bytes, word: bytes) -> FloatArray:
    """Return the corners (k, 3) of a binary STL, else of a text's lines that begin with a word."""
    body = data[_HEADER + 4 :]
    count = int.from_bytes(data[_HEADER : _HEADER + 4], "little")
    if len(data) > _HEADER and len(body) == count * _TRIANGLE.itemsize:
        return np.frombuffer(body, _TRIANGLE)["corners"].reshape(-1, 3).astype(np.float64)
    lines = (line.split() for line in data.splitlines())
    return np.array([line[1:4] for line in lines if line[:1] == [word]], float).reshape(-1, 3)
