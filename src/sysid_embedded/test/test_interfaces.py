# SPDX-License-Identifier: Apache-2.0
"""Definitions: their text is read as ROS 2 reads it, and hashed as ROS 2 hashes it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rosbags.typesys import Stores, get_typestore

from sysid_embedded import interfaces
from sysid_embedded.errors import DefinitionError
from sysid_embedded.interfaces import FieldType, find, names, packages, parse, type_hash

STORE = get_typestore(Stores.ROS2_JAZZY)
# rosbags hashes a char as IDL's char; ROS 2 makes it an unsigned byte before it hashes.
WITH_CHAR = ("rmw_dds_common/msg/", "service_msgs/msg/", "std_msgs/msg/Char")
STANDARD = sorted(
    name for name in STORE.fielddefs if "/msg/" in name and not name.startswith(WITH_CHAR)
)


def test_fields_have_the_types_that_the_text_gives() -> None:
    text = """
    # a comment
    std_msgs/Header header   # another
    float64[] a
    float64[3] b
    float64[<=4] c
    string<=8 d
    Other[] e
    int32 f
    bool[] g
    """
    fields = {field.name: field for field in parse(text, "pkg/msg/Name").fields}
    assert fields["header"].type == FieldType("std_msgs/msg/Header")
    assert fields["a"].type == FieldType("float64", "sequence")
    assert fields["b"].type == FieldType("float64", "array", 3)
    assert fields["c"].type == FieldType("float64", "sequence", 4)
    assert fields["d"].type == FieldType("string", string_bound=8)
    assert fields["e"].type == FieldType("pkg/msg/Other", "sequence")
    assert fields["f"].type == FieldType("int32")
    assert fields["g"].type == FieldType("bool", "sequence")


def test_constants_are_typed() -> None:
    definition = parse("uint8 A=0x1F\nstring B='x'\nfloat64 C=1\nbyte D=2\nbool E=true", "p/msg/N")
    assert definition.constants == {"A": 31, "B": "x", "C": 1.0, "D": b"\x02", "E": True}


def test_an_empty_definition_gets_the_member_that_ros_gives_it() -> None:
    (field,) = parse("# nothing", "p/msg/Empty").fields
    assert field.name == "structure_needs_at_least_one_member"


def test_a_line_that_is_no_field_is_refused() -> None:
    with pytest.raises(DefinitionError, match="p/msg/N"):
        parse("int32 a\n??", "p/msg/N")


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(DefinitionError, match="no_such/msg/Thing"):
        find("no_such/msg/Thing")


def test_the_project_s_own_messages_are_found() -> None:
    assert "DynamicParameters" in names("sysid_msgs", "msg")
    assert set(names("sysid_msgs", "srv")) >= {"AttachPayload", "ExportModel", "SaveBuffer"}
    assert find("sysid_msgs/srv/AttachPayload_Request").fields[0].name == "frame"


def test_the_packages_that_nodes_use_are_there() -> None:
    assert packages() >= {
        "builtin_interfaces",
        "diagnostic_msgs",
        "geometry_msgs",
        "nav_msgs",
        "rcl_interfaces",
        "rosgraph_msgs",
        "sensor_msgs",
        "std_msgs",
        "std_srvs",
        "sysid_msgs",
        "trajectory_msgs",
    }


@pytest.mark.parametrize("name", STANDARD)
def test_type_hashes_equal_those_of_rosbags(name: str) -> None:
    assert type_hash(find(name)) == STORE.hash_rihs01(name)


@pytest.mark.parametrize(
    ("name", "start"),
    [
        # As the ROS 2 Jazzy packages record them.
        ("sensor_msgs/msg/JointState", "a13ee3a330e346c9d87b5aa18d24e116"),
        ("geometry_msgs/msg/Quaternion", "8a765f66778c8ff7c8ab94afcc590a2e"),
        ("rmw_dds_common/msg/ParticipantEntitiesInfo", "91a0593bacdcc50ea9bdcf849a938b12"),
        ("std_srvs/srv/Trigger_Response", "2d946c21e2fc3f1e9ca6986a8191d85f"),
        ("rcl_interfaces/srv/SetParameters_Request", "130d46386b7e84ea9ecf60608a4d83cb"),
    ],
)
def test_type_hashes_equal_those_of_ros(name: str, start: str) -> None:
    assert type_hash(find(name)).startswith(f"RIHS01_{start}")


def test_packages_in_named_folders_are_found_and_replace_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package, text in (("robot_msgs", "Part part"), ("std_srvs", "int8 wrong")):
        folder = tmp_path / "some" / package / "msg"
        folder.mkdir(parents=True)
        (folder / "State.msg").write_text(text)
        (folder / "Part.msg").write_text("float32[2] q\nbuiltin_interfaces/Time stamp")
    (tmp_path / "some" / "std_srvs" / "srv").mkdir()
    (tmp_path / "some" / "std_srvs" / "srv" / "Empty.srv").write_text("int8 wrong\n---\n")
    tables = (interfaces._files, packages, names)
    monkeypatch.setenv("SYSID_INTERFACES", f"{tmp_path / 'none'}{os.pathsep}{tmp_path / 'some'}")
    for table in tables:
        table.cache_clear()
    try:
        assert "robot_msgs" in packages()
        assert names("robot_msgs", "msg") == ("Part", "State")
        (field,) = find("robot_msgs/msg/State").fields
        assert find(field.type.base).fields[0].type == FieldType("float32", "array", 2)
        assert type_hash(find("robot_msgs/msg/State")).startswith("RIHS01_")
        assert find("std_srvs/srv/Empty_Request").fields[0].name != "wrong"
    finally:
        monkeypatch.undo()
        for table in tables:
            table.cache_clear()
