# SPDX-License-Identifier: Apache-2.0
"""Recordings that one model is identified from: where they lie, and what is known of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from sysid_core.values import built, items_of, mapping, numbers, positive, strings, text, vector

__all__ = ["PART_ROWS", "KnownLoad", "Source", "parse_load", "read_sources"]

PART_ROWS = 40_000
"""Rows of a part, forty seconds at 1 kHz: more take more memory, less filter more overlaps."""


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
    without: tuple[tuple[float, ...], ...] = ()
    """First and last time [s], after its first joint state, of each part that is left out."""

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return self.data.source if isinstance(self.data, Recording) else str(self.data)

    def parts(self, robot: Robot, reach: float) -> Iterator[Part]:
        """Yield its parts, each with `reach` [s] of what lies around it.

        Raises
        ------
        DataError
            If it cannot be read, names contacts that the robot lacks, or is to be left out where
            it is not, or whole.
        """
        if isinstance(self.data, Recording):
            parts = cut(self.data, PART_ROWS, reach)
        else:
            parts = read_parts(self.data, joint_topic=self.topic, rows=PART_ROWS, reach=reach)
        origin: float | None = None
        length, left = 0.0, False
        for part in parts:
            recording = self._with_contacts(robot, part.recording)
            if len(recording):
                origin = float(recording.time[0]) if origin is None else origin
                time = recording.time - origin
                length = max(length, float(time.max()))
                for first, last in self.without:
                    recording = recording.select((time < first) | (time > last))
                    time = recording.time - origin
            if len(recording) > 1 or not self.without:  # one row is no part
                left = True
                yield part._replace(recording=recording, origin=origin or 0.0)
        if self.without and not (left and all(first <= length for first, _ in self.without)):
            raise DataError(
                "what is to be left out "
                + ("begins after its end" if left else "leaves nothing")
                + f": the recording lasts {length:.1f} s; give times in seconds after its start",
                source=self.name,
            )

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


def read_sources(
    paths: Sequence[Path],
    topic: str | None = None,
    without: Sequence[tuple[float, float]] = (),
) -> list[Source]:
    """Return the recordings that paths name: each a recording, or a YAML file that lists some.

    Such a file holds ``recordings``, a list of entries with ``data`` (a path, from the file's
    folder), and where wanted ``weight``, ``load`` (``body``, ``mass`` [kg], ``com`` [m]),
    ``contacts`` (names of those that hold throughout), ``topic`` and ``without`` (a list of
    pairs, start and end [s], of what is left out; of a single recording it may be given).

    Raises
    ------
    DataError
        If such a file has another form, or parts are to be left out of several recordings.
    """
    sources: list[Source] = []
    for path in paths:
        if path.suffix.lower() in (".yaml", ".yml"):
            sources += _listed(path, topic)
        else:
            sources.append(Source(path, topic=topic))
    if without:
        if len(sources) != 1:
            raise DataError(
                "--without belongs to one recording; of several give 'without: [[START, END]]' in "
                "the entry of a .yaml that lists them"
            )
        sources[0] = replace(sources[0], without=tuple(without))
    return sources


def _span(value: Any, where: str) -> tuple[float, ...]:
    first, last = numbers(2)(value, where)
    if not 0.0 <= first < last:
        raise UnreadableError(f"'{where}' must be a start and a later end [s], got {value!r:.60}")
    return first, last


def _listed(path: Path, topic: str | None) -> list[Source]:
    def data(value: Any, where: str) -> Path:
        return path.parent / Path(text(value, where)).expanduser()

    load = built(KnownLoad, body=text, mass=positive, com=vector)
    named = {"data": data, "weight": positive, "load": load, "contacts": strings, "topic": text}
    read = built(Source, without=items_of(_span), **named)

    def entry(value: Any, where: str) -> Source:
        found: Source = read({"data": value} if isinstance(value, str) else value, where)
        return replace(found, topic=found.topic or topic)

    try:
        content = mapping(read_yaml(existing(path)), "the file")
        sources = items_of(entry)(content.get("recordings"), "recordings")
        if not sources:
            raise UnreadableError("'recordings' lists none")
    except UnreadableError as error:
        raise DataError(f"{error}; mend it", source=str(path)) from error
    return list(sources)
