# SPDX-License-Identifier: Apache-2.0
"""Whatever a file holds, its reader gives a result or one line of why not, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from sysid_core.data import read_recording
from sysid_core.errors import SysidError
from sysid_core.estimate_file import read_estimate
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.robot.description_reader import read_description
from sysid_core.robot.urdf import read_urdf
from sysid_core.untrusted import parse_xml, parse_yaml

pytest.importorskip("hypothesis", reason="hypothesis is not installed")
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

every = settings(
    derandomize=True,  # the same cases everywhere
    database=None,
    deadline=None,
    max_examples=50,
    suppress_health_check=list(HealthCheck),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(["2001-13-41", "9" * 400, "!!int x", "*a", "&a [*a]", "../x", "a\nb", "1:2"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.text(max_size=8), st.integers()), inner, max_size=4),
    ),
    max_leaves=8,
)
SECTIONS = [
    *("name", "urdf", "base", "gravity", "tool_frame", "joints", "names", "effort", "friction"),
    *("loops", "contacts", "imu", "identify", "prior", "ellipsoids", "bounds", "signals"),
    *("limits", "joints.locked", "effort.gain", "effort.transmission", "friction.nominal"),
    "friction.chosen",
    *("bounds.mass", "limits.position", "limits.effort", "prior.confidence", "signals.rate"),
]


def _tried(function: Callable[[], Any]) -> None:
    """Call a function; any error but sysid's own, or one of several lines, fails the test."""
    said = ""
    try:
        function()
    except SysidError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1


def _changed(document: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    """Return a document with another value at a dotted place."""
    first, _, rest = place.partition(".")
    if rest:
        inner = document.get(first)
        value = _changed(dict(inner) if isinstance(inner, dict) else {}, rest, value)
    return {**document, first: value}


@every
@given(st.one_of(st.text(), st.binary(), VALUES.map(lambda v: yaml.safe_dump(v))))
def test_any_yaml(text: str | bytes) -> None:
    _tried(lambda: parse_yaml(text))


@every
@given(st.binary(), st.text())
def test_any_xml(head: bytes, text: str) -> None:
    _tried(lambda: parse_xml(head))
    _tried(lambda: parse_xml(f"<robot><link name='{text}'/></robot>".encode("utf-8", "replace")))


@every
@given(st.sampled_from(SECTIONS), VALUES)
def test_any_value_anywhere_in_a_description(place: str, value: Any) -> None:
    good = {"name": "arm", "urdf": "arm.urdf"}
    _tried(lambda: parse_description(_changed(good, place, value)))


@pytest.fixture(scope="module")
def arm() -> Robot:
    return load_robot("ur10")


@every
@given(st.data())
def test_any_value_anywhere_in_a_robot_that_is_built(arm: Robot, data: Any) -> None:
    """What the reader lets pass, the robot itself refuses or bears."""
    source = arm.description.source
    assert source is not None
    document = yaml.safe_load(source.read_text(encoding="utf-8"))
    names = st.sampled_from([*arm.joint_names, *arm.layout.bodies, "x"])
    numbers = st.one_of(st.floats(), st.lists(st.floats(), min_size=2, max_size=2))
    value = data.draw(st.one_of(VALUES, st.dictionaries(names, st.one_of(numbers, names))))
    changed = _changed(document, data.draw(st.sampled_from(SECTIONS[2:])), value)
    _tried(lambda: Robot(parse_description(changed, source=source), arm.urdf))


@every
@given(st.binary(max_size=60), st.integers(0, 2000), st.integers(0, 60))
def test_a_urdf_with_other_bytes_in_it(arm: Robot, data: bytes, at: int, lost: int) -> None:
    text = arm.urdf.path.read_bytes()
    target = Path("x.urdf")
    target.write_bytes(text[:at] + data + text[at + lost :])
    _tried(lambda: read_urdf(target))


@every
@given(st.lists(st.lists(st.one_of(st.floats(), st.text(max_size=5)), max_size=4), max_size=6))
def test_any_table(rows: list[list[float | str]]) -> None:
    lines = ["time,a/position,a/effort", *(",".join(map(str, row)) for row in rows)]
    Path("x.csv").write_text("\n".join(lines), encoding="utf-8", errors="replace")
    _tried(lambda: read_recording("x.csv"))


@every
@given(st.text(max_size=300), st.sampled_from(["x", "x.csv", "x.mcap", "x.yaml"]))
def test_any_name(name: str, fallback: str) -> None:
    for path in (name, f"{name}.csv", f"{name}/{fallback}"):
        _tried(lambda path=path: read_recording(path))  # type: ignore[misc]
        _tried(lambda path=path: load_robot(path))  # type: ignore[misc]
        _tried(lambda path=path: read_estimate(path))  # type: ignore[misc]


@every
@given(st.sampled_from(["robot", "method", "bodies", "joints", "std"]), VALUES)
def test_any_value_anywhere_in_an_estimate(arm: Robot, place: str, value: Any) -> None:
    part = {
        "bodies": {body: [0.0] * 10 for body in arm.layout.bodies},
        "joints": {joint: {} for joint in arm.joint_names},
    }
    good = {"robot": "ur10", "model_hash": arm.model_hash, "method": "ols", **part, "std": part}
    with suppress(ValueError):  # what JSON cannot hold
        Path("estimate.json").write_text(json.dumps(_changed(good, place, value)))
        _tried(lambda: read_estimate("estimate.json").parameters(arm))


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.yaml").write_text("{}")
    _tried(lambda: read_description(Path("x.yaml")))
