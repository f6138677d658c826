# SPDX-License-Identifier: Apache-2.0
"""Results that appear whole or not at all: folders and files written beside and then renamed."""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from sysid_core.errors import OutputError

__all__ = [
    "appearing",
    "as_plain",
    "json_text",
    "output_folder",
    "require_writable",
    "results_folder",
    "write_text",
]

_SHOWN = 60
"""Characters of a wrong name that a message repeats."""
_HINT = "choose another place, or mend its permissions and space"


def output_folder(text: str) -> Path:
    """Return the folder that a request names, `~` expanded.

    Raises
    ------
    OutputError
        If no folder can have that name.
    """
    try:
        folder = Path(text).expanduser()
        folder.lstat()  # a name with a null byte or beyond the system's length shows here
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        pass
    except (OSError, RuntimeError, ValueError) as error:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        why = error.strerror if isinstance(error, OSError) else error
        raise OutputError(f"{shown!a} cannot name a folder ({why}); give a path") from error
    if not text:
        raise OutputError("the folder's name is empty; give a path")
    return folder


def require_writable(folder: Path) -> None:
    """Check that files can be written to a folder, or that it can be made, without making it.

    Raises
    ------
    OutputError
        If they cannot.
    """
    folder = output_folder(str(folder))
    try:
        existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        raise OutputError(f"{folder}: cannot write there ({error.strerror}); {_HINT}") from error


@contextmanager
def results_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary folder whose files move into `folder` when everything went well.

    Files of the same names are replaced one by one, each at once; other files stay.

    Raises
    ------
    OutputError
        If something cannot be written.
    """
    folder = output_folder(str(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".sysid-", dir=folder))
    except OSError as error:
        raise OutputError(f"{folder}: cannot write there ({error.strerror}); {_HINT}") from error
    try:
        yield temporary
        for path in temporary.iterdir():
            if (folder / path.name).is_dir():
                raise OutputError(
                    f"{folder / path.name}: is a folder where a result goes; move it away"
                )
        for path in sorted(temporary.iterdir()):
            path.chmod(0o644)
            path.replace(folder / path.name)
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be written ({error.strerror or error}); {_HINT}"
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def appearing(target: Path, *, replace: bool = False) -> Iterator[Path]:
    """Give the path of an unfinished file or folder that takes the target's place when it is done.

    It has the target's name, in a folder beside it.

    Raises
    ------
    OutputError
        If it cannot be written, or something is there that is not to be replaced.
    """
    target = output_folder(str(target))
    if target.exists() and not replace:
        raise OutputError(f"{target}: exists already; choose another name or delete it")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".sysid-") as scratch:
            unfinished = Path(scratch) / target.name
            yield unfinished
            unfinished.replace(target)
    except OSError as error:
        raise OutputError(
            f"{target}: cannot be written ({error.strerror or error}); {_HINT}"
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write a file so that it appears whole or not at all.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    with appearing(path, replace=True) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def as_plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers that JSON lacks become None, dataclasses mappings."""
    if hasattr(value, "tolist"):  # NumPy's; without it the doctor prints, too
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {key: as_plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(entry) for entry in value]
    return value


def json_text(value: Any, indent: int | None = None) -> str:
    """Return what `as_plain` makes of a value as JSON text that ends its line."""
    return json.dumps(as_plain(value), indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
