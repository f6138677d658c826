# SPDX-License-Identifier: Apache-2.0
"""Reads a robot description's YAML and names the place of whatever is wrong in it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sysid_core.dynamics.friction import FRICTION
from sysid_core.errors import RobotError, UnreadableError, found_in
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.robot.description import (
    UNCOMPENSATED,
    Contact,
    DescribedEllipsoid,
    DescribedSignals,
    FrameOnLink,
    Loop,
    Mimic,
    PriorConfig,
    RobotDescription,
    Transmission,
)
from sysid_core.robot.known import AXES, LinearRelation, Relations, SameBodies
from sysid_core.untrusted import read_yaml
from sysid_core.values import (
    at_least,
    built,
    choice,
    items_of,
    mapping,
    mapping_of,
    number,
    numbers,
    positive,
    section,
    strings,
    text,
    vector,
)

__all__ = ["check_name", "parse_description", "read_description"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")  # Names of robots become names of files


_PERCENT = re.compile(r"±?\s*(\d+(?:\.\d*)?)\s*%")  # Of the nominal mass, to both sides


def check_name(name: str) -> None:
    """Check a robot's name.

    Raises
    ------
    RobotError
        If it cannot be that of a file.
    """
    if not _NAME.fullmatch(name):
        raise RobotError(
            f"'name' is {name[:60]!r}, but results are filed under it: give letters, digits, "
            "'_', '-' and '.', 100 at most, a letter or digit first"
        )


def _words(*known: str) -> Any:
    """Return the reader of a list of some words."""

    def read(value: Any, where: str) -> tuple[str, ...]:
        return tuple(choice(*known)(word, where) for word in strings(value, where))

    return read


def _numbers_or_one(value: Any, where: str) -> float | dict[str, float]:
    if isinstance(value, Mapping):
        return dict(mapping_of(number)(value, where))
    return number(value, where)


def _transmission(value: Any, where: str) -> Transmission:
    rows, side = items_of(items_of(number)), choice("auto", "joint", "motor")
    read = built(Transmission, joints=strings, matrix=rows, side=side)
    found: Transmission = read(value, where)
    if {len(found.joints)} != {len(found.matrix), *map(len, found.matrix)}:
        raise RobotError(f"'{where}.matrix' must be square, a row per joint")
    return found


_ON_LINK = {"link": text, "xyz": vector, "rpy": vector}
_FRAME = built(FrameOnLink, **_ON_LINK)
_LOOP = built(Loop, name=text, frame_a=_FRAME, frame_b=_FRAME, type=choice("point", "fixed"))
_CONTACT = {"name": text, "type": choice("point", "flat"), "radius": at_least(0.0)}


def _loop(value: Any, where: str) -> Any:
    return _LOOP({"name": where, **mapping(value, where)}, where)


def _contact(value: Any, where: str) -> Any:
    given = section(value, where, _CONTACT | _ON_LINK)
    frame = _FRAME({key: given.pop(key) for key in _ON_LINK if key in given}, where)
    whole = {"name": frame.link, "frame": frame, **given}
    return built(Contact, frame=lambda found, _: found, **_CONTACT)(whole, where)


def _mass_bound(value: Any, where: str) -> tuple[float, float] | float:
    if isinstance(value, str) and (share := _PERCENT.fullmatch(value.strip())):
        return positive(float(share.group(1)), where) / 100.0
    if not isinstance(value, list) or len(value) != 2:
        raise RobotError(f"'{where}' must be [minimum, maximum] in kg, or such as 10%")
    low, high = (number(v, where, 0.0) for v in value)
    if low >= high:
        raise RobotError(f"'{where}' must rise from minimum to maximum, got {value}")
    return low, high


def _total_mass(value: Any, where: str) -> tuple[float, float]:
    given = mapping(value, where)
    if given.keys() != {"value", "std"}:
        raise RobotError(f"'{where}' must have 'value' and 'std' in kg")
    mass, std = (positive(given[key], f"{where}.{key}") for key in ("value", "std"))
    return mass, std


def _limits(value: Any, where: str) -> dict[str, dict[str, float]]:
    kinds = {
        "effort": mapping_of(positive),
        "velocity": mapping_of(positive),
        "position": mapping_of(numbers(2)),
    }
    given = section(value, where, kinds)
    limits = {key: kinds[key](entry, f"{where}.{key}") for key, entry in given.items()}
    ranges = limits.pop("position", {})
    for k, kind in enumerate(("lower", "upper")):
        limits[kind] = {joint: pair[k] for joint, pair in ranges.items()}
    return limits


def _nominal_friction(value: Any, where: str) -> dict[str, float]:
    found = {}
    for term, entry in mapping(value, where).items():
        choice(*FRICTION_TERMS)(term, where)
        lower = FRICTION[FRICTION_TERMS.index(term)].lower
        found[term] = number(entry, f"{where}.{term}", lower)
    return found


def _pair(value: Any, where: str) -> SameBodies:
    bodies = strings(value, where)
    if len(bodies) != 2:
        raise RobotError(f"'{where}' must be a pair of two different bodies' names")
    return SameBodies(*bodies)


def _mirrored(value: Any, where: str) -> SameBodies:
    given = mapping(value, where)
    across = choice(*AXES)(given.get("across"), f"{where}.across")
    return _pair(given.get("bodies"), f"{where}.bodies")._replace(across=across)


def _linear(value: Any, where: str) -> LinearRelation:
    numbers = dict.fromkeys(("value", "std", "least", "most"), number)
    given = section(value, where, {"terms": mapping, **numbers})
    terms = mapping_of(number)(given.pop("terms", {}), f"{where}.terms")
    found = LinearRelation(terms, **{k: number(v, f"{where}.{k}") for k, v in given.items()})
    measured = given.keys() == {"value", "std"} and given["std"] > 0.0
    bounded = bool(given) and given.keys() <= {"least", "most"} and found.least < found.most
    if not terms or not (measured or bounded):
        raise RobotError(
            f"'{where}' must be {{terms: {{body.m: 1, joint.viscous: -2, …}}}} with 'value' and "
            "'std' above 0, or with 'least', 'most' or both, least below most"
        )
    return found


def _relations(value: Any, where: str) -> Relations:
    kinds = {"equal": _pair, "mirrored": _mirrored, "linear": _linear}
    given = section(value, where, kinds)
    found = {
        key: items_of(read)(given.get(key, []), f"{where}.{key}") for key, read in kinds.items()
    }
    return Relations(found["equal"] + found["mirrored"], found["linear"])


def _inertias(value: Any, where: str) -> tuple[str, ...] | str:
    return choice("all", "none")(value, where) if isinstance(value, str) else strings(value, where)


_PRIOR = built(
    PriorConfig,
    relative_std=positive,
    friction_relative_std=positive,
    offset_std=positive,
    confidence=mapping_of(positive),
)
_ELLIPSOID = built(DescribedEllipsoid, center=vector, semi_axes=numbers(3, positive))
_MIMIC = built(Mimic, joint=text, multiplier=number, offset=number)
_KEYS: Mapping[str, Any] = {
    "name": ("name", text),
    "urdf": ("urdf", text),
    "base": ("base", choice("fixed", "floating")),
    "gravity": ("gravity", vector),
    "tool_frame": ("tool_frame", text),
    "joints": {
        "actuated": ("actuated", strings),
        "passive": ("passive", strings),
        "locked": ("locked", mapping_of(number)),
        "mimic": ("mimic", mapping_of(_MIMIC)),
    },
    "names": ("names", mapping_of(text)),
    "effort": {
        "gain": ("effort_gain", _numbers_or_one),
        "gain_std": ("effort_gain_std", at_least(0.0)),
        "excludes": ("effort_excludes", _words("gravity", "friction")),
        "command_excludes": ("command_excludes", _words("gravity")),
        "transmission": ("transmission", _transmission),
        "position_offset": ("position_offset", mapping_of(number)),
    },
    "friction": {
        "terms": ("friction_terms", strings),
        "chosen": ("friction_chosen", mapping_of(mapping_of(positive))),
        "nominal": ("friction_nominal", mapping_of(_nominal_friction)),
        "coulomb_velocity": ("coulomb_velocity", at_least(0.0)),
    },
    "loops": ("loops", items_of(_loop)),
    "contacts": ("contacts", items_of(_contact)),
    "imu": ("imu", _FRAME),
    "identify": {"inertias": ("inertias", _inertias)},
    "prior": ("prior", _PRIOR),
    "ellipsoids": ("ellipsoids", mapping_of(_ELLIPSOID)),
    "bounds": {
        "mass": ("mass_bounds", mapping_of(_mass_bound)),
        "total_mass": ("total_mass", _total_mass),
    },
    "constraints": ("relations", _relations),
    "signals": ("signals", built(DescribedSignals, rate=positive, cutoff=positive)),
    "limits": ("limits", _limits),
}
"""Key → field of `RobotDescription` and reader, or the keys of a section."""


def _fields(value: Any, keys: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Return the fields of a description that a section gives."""
    found: dict[str, Any] = {}
    for key, entry in section(value, where, keys).items():
        place = f"{where}.{key}" if where else key
        if isinstance(keys[key], Mapping):
            found |= _fields(entry, keys[key], place)
        else:
            field, read = keys[key]
            found[field] = read(entry, place)
    return found


def _settle_excludes(given: dict[str, Any]) -> None:
    """Say what commands exclude, and refuse gravity that no model can put back."""
    excludes = given.get("effort_excludes", ())
    both = tuple(name for name in excludes if name == "gravity")
    commands = given.setdefault("command_excludes", both)
    tied = any(given.get(key) for key in ("loops", "passive", "mimic"))
    free = given.get("base") == "floating" or tied
    if "gravity" in (*excludes, *commands) and free:
        raise RobotError("gravity can be excluded of arms only: a fixed base, no passive joint")


def _settle_friction(given: dict[str, Any]) -> None:
    """Say which terms of friction are identified, and refuse those that cannot be."""
    compensated = "friction" in given.get("effort_excludes", ())
    usual = UNCOMPENSATED if compensated else RobotDescription.friction_terms
    for term in given.setdefault("friction_terms", usual):
        choice(*usual)(term, "friction.terms")
    special = [term.name for term in FRICTION if term.chosen and not compensated]
    for joint, scales in given.get("friction_chosen", {}).items():
        for term in scales:
            choice(*special)(term, f"friction.chosen.{joint}")


def parse_description(data: Mapping[str, Any], *, source: Path | None = None) -> RobotDescription:
    """Build a robot description from parsed YAML.

    Raises
    ------
    RobotError
        If a key is unknown or a value is not of its kind; the message names the place.
    """
    with found_in(source or "robot description"):
        try:
            given = _fields(data, _KEYS)
            for key in ("name", "urdf"):
                if key not in given:
                    raise UnreadableError(f"'{key}' is missing: add it at the top of the file")
            check_name(given["name"])
            _settle_excludes(given)
            _settle_friction(given)
        except UnreadableError as error:
            raise RobotError(str(error)) from error
        return RobotDescription(**given, source=source, given=dict(data))


def read_description(path: Path) -> RobotDescription:
    """Read a robot description from a YAML file.

    Raises
    ------
    RobotError
        If the file cannot be read, is no YAML, or does not describe a robot.
    """
    try:
        data = read_yaml(path)
    except UnreadableError as error:
        raise RobotError(str(error), source=str(path)) from error
    return parse_description(data, source=path)
