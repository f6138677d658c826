# SPDX-License-Identifier: Apache-2.0
"""Reads a robot description's YAML and names the place of whatever is wrong in it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sysid_core.dynamics.friction import FRICTION
from sysid_core.errors import ParameterError, RobotError, UnreadableError, found_in
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.robot.description import (
    UNCOMPENSATED,
    Contact,
    DescribedSignals,
    Loop,
    PriorConfig,
    RobotDescription,
    Transmission,
)
from sysid_core.robot.known import parse_relations
from sysid_core.robot.yaml_values import Values
from sysid_core.untrusted import read_yaml

__all__ = ["check_name", "parse_description", "read_description"]

_SECTIONS = {
    "": "name urdf base gravity tool_frame joints names effort friction loops contacts imu "
    "identify prior ellipsoids bounds constraints signals limits",
    "joints": "actuated passive locked",
    "effort": "gain gain_std excludes command_excludes transmission position_offset",
    "effort.transmission": "joints matrix side",
    "friction": "terms chosen nominal coulomb_velocity",
    "imu": "link xyz rpy",
    "identify": "inertias",
    "prior": "relative_std friction_relative_std offset_std confidence",
    "bounds": "mass total_mass",
    "signals": "rate cutoff",
    "limits": "effort velocity position",
}
"""Section → its keys."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""Names of robots become names of files."""


_PERCENT = re.compile(r"±?\s*(\d+(?:\.\d*)?)\s*%")
"""Of the nominal mass, to both sides."""


def _transmission(read: Values) -> Transmission | None:
    section = read.section("effort.transmission")
    if not section:
        return None
    joints = read.strings(section.get("joints"), "effort.transmission.joints")
    rows = section.get("matrix")
    if not isinstance(rows, list) or any(
        not isinstance(row, list) or len(row) != len(joints) for row in rows
    ):
        raise RobotError("'effort.transmission.matrix' must be square, a row per joint")
    matrix = tuple(
        tuple(read.number(v, "effort.transmission.matrix") for v in row) for row in rows
    )
    side = read.choice(
        section.get("side", "auto"), "effort.transmission.side", ("auto", "joint", "motor")
    )
    if len(matrix) != len(joints):
        raise RobotError("'effort.transmission.matrix' must be square, a row per joint")
    return Transmission(joints, matrix, side)


def _loops(read: Values) -> tuple[Loop, ...]:
    loops = []
    for i, item in enumerate(read.items("loops")):
        where = f"loops[{i}]"
        if not isinstance(item, Mapping):
            raise RobotError(f"'{where}' must be a mapping with frame_a and frame_b")
        loops.append(
            Loop(
                str(item.get("name", where)),
                read.frame(item.get("frame_a"), f"{where}.frame_a"),
                read.frame(item.get("frame_b"), f"{where}.frame_b"),
                read.choice(item.get("type", "point"), f"{where}.type", ("point", "fixed")),
            )
        )
    return tuple(loops)


def _contacts(read: Values) -> tuple[Contact, ...]:
    contacts = []
    for i, item in enumerate(read.items("contacts")):
        where = f"contacts[{i}]"
        frame = read.frame(item, where)
        contacts.append(
            Contact(
                str(item.get("name", frame.link)),
                frame,
                read.choice(item.get("type", "point"), f"{where}.type", ("point", "flat")),
                read.number(item.get("radius", 0.0), f"{where}.radius", low=0.0),
            )
        )
    return tuple(contacts)


def _mass_bounds(read: Values) -> dict[str, tuple[float, float] | float]:
    bounds: dict[str, tuple[float, float] | float] = {}
    for body, pair in read.mapping(read.section("bounds").get("mass"), "bounds.mass").items():
        where = f"bounds.mass.{body}"
        if isinstance(pair, str) and (share := _PERCENT.fullmatch(pair.strip())):
            bounds[body] = read.positive(float(share.group(1)), where) / 100.0
            continue
        if not isinstance(pair, list) or len(pair) != 2:
            raise RobotError(f"'{where}' must be [minimum, maximum] in kg, or such as 10%")
        low, high = (read.number(v, where, low=0.0) for v in pair)
        if low >= high:
            raise RobotError(f"'{where}' must rise from minimum to maximum, got {pair}")
        bounds[body] = (low, high)
    return bounds


def _limits(read: Values) -> dict[str, dict[str, float]]:
    limits: dict[str, dict[str, float]] = {}
    for kind in ("effort", "velocity"):
        limits[kind] = read.numbers(read.section("limits").get(kind), f"limits.{kind}")
    position = read.mapping(read.section("limits").get("position"), "limits.position")
    for joint, pair in position.items():
        where = f"limits.position.{joint}"
        if not isinstance(pair, list) or len(pair) != 2:
            raise RobotError(f"'{where}' must be [lower, upper] in rad")
        limits.setdefault("lower", {})[joint] = read.number(pair[0], where)
        limits.setdefault("upper", {})[joint] = read.number(pair[1], where)
    return limits


def _total_mass(read: Values) -> tuple[float, float] | None:
    value = read.section("bounds").get("total_mass")
    if value is None:
        return None
    if not isinstance(value, Mapping) or set(value) != {"value", "std"}:
        raise RobotError("'bounds.total_mass' must have 'value' and 'std' in kg")
    return (
        read.positive(value["value"], "bounds.total_mass.value"),
        read.positive(value["std"], "bounds.total_mass.std"),
    )


def _prior(read: Values) -> PriorConfig:
    section, default = read.section("prior"), PriorConfig()
    confidence = read.numbers(section.get("confidence"), "prior.confidence")
    for body, value in confidence.items():
        read.positive(value, f"prior.confidence.{body}")
    return PriorConfig(
        confidence=confidence,
        **{
            key: read.positive(section.get(key, getattr(default, key)), f"prior.{key}")
            for key in ("relative_std", "friction_relative_std", "offset_std")
        },
    )


def _friction(read: Values, compensated: bool) -> dict[str, Any]:
    section = read.section("friction")
    usual = list(UNCOMPENSATED if compensated else RobotDescription.friction_terms)
    terms = read.strings(section.get("terms", usual), "friction.terms")
    for term in terms:
        read.choice(term, "friction.terms", usual)
    special = [term.name for term in FRICTION if term.chosen and not compensated]
    chosen = {}
    for joint, scales in read.mapping(section.get("chosen"), "friction.chosen").items():
        where = f"friction.chosen.{joint}"
        chosen[joint] = read.numbers(scales, where)
        for term, scale in chosen[joint].items():
            read.choice(term, where, special)
            read.positive(scale, f"{where}.{term}")
    nominal = {}
    for joint, values in read.mapping(section.get("nominal"), "friction.nominal").items():
        where = f"friction.nominal.{joint}"
        nominal[joint] = read.numbers(values, where)
        for term, value in nominal[joint].items():
            read.choice(term, where, FRICTION_TERMS)
            lower = FRICTION[FRICTION_TERMS.index(term)].lower
            read.number(value, f"{where}.{term}", low=lower)
    return {
        "friction_terms": terms,
        "friction_chosen": chosen,
        "friction_nominal": nominal,
        "coulomb_velocity": read.number(
            section.get("coulomb_velocity", 0.0), "friction.coulomb_velocity", low=0.0
        ),
    }


def _effort(read: Values) -> dict[str, Any]:
    section = read.section("effort")
    gain = section.get("gain")
    excludes = read.strings(section.get("excludes") or [], "effort.excludes")
    both = [name for name in excludes if name == "gravity"]
    commands = read.strings(section.get("command_excludes", both), "effort.command_excludes")
    for name in excludes:
        read.choice(name, "effort.excludes", ("gravity", "friction"))
    for name in commands:
        read.choice(name, "effort.command_excludes", ("gravity",))
    free = read.data.get("base") == "floating" or read.items("loops")
    if "gravity" in (*excludes, *commands) and (free or read.section("joints").get("passive")):
        raise RobotError("gravity can be excluded of arms only: a fixed base, no passive joint")
    offset = read.numbers(section.get("position_offset"), "effort.position_offset")
    return {
        "effort_gain": read.number(gain, "effort.gain")
        if isinstance(gain, (int, float))
        else read.numbers(gain, "effort.gain"),
        "effort_gain_std": read.number(section.get("gain_std", 0.05), "effort.gain_std", low=0.0),
        "effort_excludes": excludes,
        "command_excludes": commands,
        "position_offset": offset,
        "transmission": _transmission(read),
    }


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


def parse_description(data: Mapping[str, Any], *, source: Path | None = None) -> RobotDescription:
    """Build a robot description from parsed YAML.

    Raises
    ------
    RobotError
        If a key is unknown or a value is not of its kind; the message names the place.
    """
    with found_in(source or "robot description"):
        if not isinstance(data, Mapping):
            raise RobotError("a robot description must be a mapping")
        read = Values(data, _SECTIONS)
        for key in ("name", "urdf"):
            if not isinstance(data.get(key), str):
                raise RobotError(f"'{key}' is missing: add it at the top of the file")
        check_name(data["name"])
        joints, effort = read.section("joints"), _effort(read)
        try:
            relations = parse_relations(read.section("constraints"))
        except ParameterError as error:
            raise RobotError(str(error)) from error
        inertias = read.section("identify").get("inertias", "all")
        rates = {
            key: None if value is None else read.positive(value, f"signals.{key}")
            for key, value in read.section("signals").items()
        }
        actuated = joints.get("actuated")
        return RobotDescription(
            name=data["name"],
            urdf=data["urdf"],
            source=source,
            base=read.choice(data.get("base", "fixed"), "base", ("fixed", "floating")),
            gravity=read.vector(data.get("gravity", (0.0, 0.0, -9.81)), "gravity"),
            tool_frame=data.get("tool_frame"),
            actuated=None if actuated is None else read.strings(actuated, "joints.actuated"),
            passive=read.strings(joints.get("passive") or [], "joints.passive"),
            locked=read.numbers(joints.get("locked"), "joints.locked"),
            names={k: str(v) for k, v in read.mapping(data.get("names"), "names").items()},
            loops=_loops(read),
            contacts=_contacts(read),
            imu=None if data.get("imu") is None else read.frame(data["imu"], "imu"),
            inertias=(
                read.choice(inertias, "identify.inertias", ("all", "none"))
                if isinstance(inertias, str)
                else read.strings(inertias, "identify.inertias")
            ),
            prior=_prior(read),
            ellipsoids=read.mapping(data.get("ellipsoids"), "ellipsoids"),
            mass_bounds=_mass_bounds(read),
            relations=relations,
            total_mass=_total_mass(read),
            signals=DescribedSignals(**rates),
            limits=_limits(read),
            **_friction(read, "friction" in effort["effort_excludes"]),
            **effort,
        )


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
