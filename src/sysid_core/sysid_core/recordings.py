# SPDX-License-Identifier: Apache-2.0
"""Recordings that one model is identified from: where they lie, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.data import read_parts
from sysid_core.errors import DataError, UnreadableError
from sysid_core.inertia import from_mass_com_inertia
from sysid_core.recording import ContactRecording, Part, Recording, cut
from sysid_core.robot.model import Robot
from sysid_core.untrusted import existing, read_yaml

__all__ = ["PART_ROWS", "KnownLoad", "Source", "parse_load", "read_sources"]

PART_ROWS = 40_000
"""Rows of a part, forty seconds at 1 kHz: more take more memory, less filter more overlaps."""
_KEYS = {"data", "weight", "load", "contacts", "topic"}
_LOAD_KEYS = {"body", "mass", "com"}


@dataclass(frozen=True)
class KnownLoad:
    """A point mass that a body carries throughout a recording."""

    body: str
    mass: float  # [kg]
    com: tuple[float, float, float]  # [m] in the body's joint frame

    def parameters(self, robot: Robot) -> FloatArray:
        """Return what it adds to the parameter vector (p,) of a robot.

        Raises
        ------
        DataError
            If the robot has no such body, or the load is heavier than the robot.
        """
        layout = robot.layout
        if self.body not in layout.bodies:
            raise DataError(
                f"a load is on '{self.body}'; the bodies of robot '{robot.name}' are "
                f"{', '.join(layout.bodies)}"
            )
        own = float(robot.nominal[layout.masses].sum())
        if self.mass > own:
            raise DataError(
                f"a load of {self.mass:g} kg is heavier than robot '{robot.name}' itself "
                f"({own:.3g} kg), which no robot carries; give it in kg"
            )
        added = np.zeros(layout.size)
        com = np.array(self.com)
        added[layout.body(self.body)] = from_mass_com_inertia(self.mass, com, np.zeros((3, 3)))
        return added


@dataclass(frozen=True)
class Source:
    """One recording, read or yet in its file, and what is known of it."""

    data: Path | Recording
    weight: float = 1.0
    """[-] by which its rows count; 1: each sample counts as much as any other recording's."""
    load: KnownLoad | None = None  # What the robot carries in it beyond itself
    contacts: tuple[str, ...] | None = None
    """Contacts that hold throughout, where none were recorded."""
    topic: str | None = None  # Of the joint states, if a bag has several

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.data.source if isinstance(self.data, Recording) else str(self.data)

    def parts(self, robot: Robot, reach: float) -> Iterator[Part]:
        """Yield its parts, each with `reach` [s] of what lies around it.

        Raises
        ------
        DataError
            If it cannot be read, or names contacts that the robot lacks.
        """
        if isinstance(self.data, Recording):
            parts = cut(self.data, PART_ROWS, reach)
        else:
            parts = read_parts(self.data, joint_topic=self.topic, rows=PART_ROWS, reach=reach)
        for part in parts:
            yield part._replace(recording=self._with_contacts(robot, part.recording))

    def _with_contacts(self, robot: Robot, recording: Recording) -> Recording:
        if self.contacts is None:
            return recording
        names = tuple(contact.name for contact in robot.description.contacts)
        unknown = sorted(set(self.contacts) - set(names))
        if unknown:
            raise DataError(
                f"contacts name {unknown}; those of robot '{robot.name}' are {', '.join(names)}",
                source=self.name,
            )
        held = np.array([name in self.contacts for name in names])
        active = np.tile(held, (len(recording), 1))
        return replace(recording, contacts=ContactRecording(recording.time, names, active))


def parse_load(text: str) -> tuple[KnownLoad, bool]:
    """Return the load that ``BODY=MASS[,X,Y,Z]`` states, and whether that has its centre of mass.

    Without one it is taken at the origin of the body's joint frame.

    Raises
    ------
    DataError
        If the text has another form.
    """
    body, _, numbers = text.partition("=")
    try:
        mass, *com = (float(number) for number in numbers.split(","))
    except ValueError:
        mass, com = np.nan, []
    if not (body and 0.0 < mass < np.inf and len(com) in (0, 3) and np.isfinite(com).all()):
        raise DataError(f"--load is BODY=MASS[,X,Y,Z] in kg and m, not '{text}'")
    x, y, z = com or (0.0, 0.0, 0.0)
    return KnownLoad(body, mass, (x, y, z)), bool(com)


def read_sources(paths: Sequence[Path], topic: str | None = None) -> list[Source]:
    """Return the recordings that paths name: each a recording, or a YAML file that lists some.

    Such a file holds ``recordings``, a list of entries with ``data`` (a path, from the file's
    folder), and where wanted ``weight``, ``load`` (``body``, ``mass`` [kg], ``com`` [m]),
    ``contacts`` (names of those that hold throughout) and ``topic``.

    Raises
    ------
    DataError
        If such a file has another form.
    """
    sources: list[Source] = []
    for path in paths:
        if path.suffix.lower() in (".yaml", ".yml"):
            sources += _listed(path, topic)
        else:
            sources.append(Source(path, topic=topic))
    return sources


def _listed(path: Path, topic: str | None) -> list[Source]:
    try:
        content = read_yaml(existing(path))
    except UnreadableError as error:
        raise DataError(f"{error}; mend it", source=str(path)) from error
    entries = content.get("recordings") if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries:
        raise DataError("needs a list 'recordings' of entries with 'data'", source=str(path))
    return [_entry(path, number, entry, topic) for number, entry in enumerate(entries, 1)]


def _entry(path: Path, number: int, entry: Any, topic: str | None) -> Source:
    def fail(what: str) -> DataError:
        return DataError(f"recordings, entry {number}: {what}", source=str(path))

    if isinstance(entry, str):
        entry = {"data": entry}
    if not isinstance(entry, dict) or not isinstance(entry.get("data"), str):
        raise fail("needs 'data', the path of a recording")
    if unknown := sorted(map(str, set(entry) - _KEYS)):
        raise fail(f"does not know {unknown}; it may have {', '.join(sorted(_KEYS))}")
    weight = entry.get("weight", 1.0)
    if not _is_number(weight) or not 0.0 < weight < np.inf:
        raise fail("'weight' must be a positive number")
    contacts = entry.get("contacts")
    if contacts is not None and not (
        isinstance(contacts, list) and all(isinstance(name, str) for name in contacts)
    ):
        raise fail("'contacts' must be a list of contacts' names")
    chosen = entry.get("topic", topic)
    if chosen is not None and not isinstance(chosen, str):
        raise fail("'topic' must be a name")
    load = entry.get("load")
    if load is not None and not _is_load(load):
        raise fail("'load' needs 'body', 'mass' above 0 [kg] and 'com', three numbers [m]")
    return Source(
        path.parent / Path(entry["data"]).expanduser(),
        float(weight),
        None if load is None else KnownLoad(load["body"], load["mass"], tuple(load["com"])),
        None if contacts is None else tuple(contacts),
        chosen,
    )


def _is_load(load: Any) -> bool:
    if not isinstance(load, Mapping) or set(load) != _LOAD_KEYS:
        return False
    com = load["com"]
    return (
        isinstance(load["body"], str)
        and _is_number(load["mass"])
        and 0.0 < load["mass"] < np.inf
        and isinstance(com, list)
        and len(com) == 3
        and all(_is_number(value) and np.isfinite(value) for value in com)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
