# SPDX-License-Identifier: Apache-2.0
"""Launch files: what they come to, and what is wrong with them, is what ROS 2 would say."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from sysid_embedded.errors import LaunchError
from sysid_embedded.launch import packages
from sysid_embedded.launch.reader import Plan, Process, read
from sysid_embedded.launch.up import find_launch_file

Read = Callable[..., Plan]


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """Return a function that reads the text of a launch file."""

    def executables(package: str) -> dict[str, str]:
        if package != "pkg":
            raise LaunchError(f"package '{package}' is not installed")
        return {"talker": "pkg.talker:main"}

    monkeypatch.setattr(packages, "executables", executables)

    def run(text: str, given: dict[str, str] | None = None, **options: Any) -> Plan:
        file = tmp_path / "test.launch.yaml"
        file.write_text(textwrap.dedent(text))
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        return read(file, given or {}, scratch, **options)

    return run


def _names(plan: Plan) -> list[str]:
    """Return the names that the plan gives to nodes."""
    words = [word for process in plan.processes for word in process.command]
    return [word.removeprefix("__node:=") for word in words if word.startswith("__node:=")]


def _ros_arguments(process: Process) -> list[str]:
    command = list(process.command)
    return command[command.index("--ros-args") + 1 :]


def _parameters(process: Process) -> list[Any]:
    arguments = _ros_arguments(process)
    files = [b for a, b in pairwise(arguments) if a == "--params-file"]
    return [yaml.safe_load(Path(file).read_text()) for file in files]


def test_a_node_gets_its_name_namespace_remaps_and_arguments(launch: Read) -> None:
    (process,) = launch("""
        launch:
          - node:
              pkg: pkg
              exec: talker
              name: n
              namespace: /a
              output: screen
              remap:
                - {from: x, to: y}
        """).processes
    assert process.name == "talker-1"
    assert process.command[1:] == (
        *("-m", "sysid_embedded.run", "--with-parent", "pkg.talker:main"),
        *("--ros-args", "-r", "__node:=n", "-r", "__ns:=/a", "-r", "x:=y"),
    )


def test_parameters_become_files_and_keep_their_types(launch: Read, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("/**:\n  ros__parameters: {path: x}\n")
    (process,) = launch(
        """
        launch:
          - arg: {name: who, default: '2.5'}
          - arg: {name: folder}
          - node:
              pkg: pkg
              exec: talker
              param:
                - {name: number, value: 1}
                - {name: text, value: '1'}
                - {name: typed, value: $(var who)}
                - {name: list, value: [1.0, 2.0]}
                - {from: $(var folder)/p.yaml}
        """,
        {"folder": str(tmp_path)},
    ).processes
    values = [file["/**"]["ros__parameters"] for file in _parameters(process)]
    assert values == [
        {"number": 1},
        {"text": "1"},
        {"typed": 2.5},
        {"list": [1.0, 2.0]},
        {"path": "x"},
    ]


def test_groups_scope_namespaces_and_variables(launch: Read) -> None:
    plan = launch("""
    launch:
      - let: {name: v, value: outer}
      - group:
          - push_ros_namespace: {namespace: a}
          - let: {name: v, value: inner}
          - push_ros_namespace: {namespace: b}
          - node: {pkg: pkg, exec: talker, namespace: c, name: $(var v)}
          - node: {pkg: pkg, exec: talker, namespace: /c}
      - node: {pkg: pkg, exec: talker, name: $(var v)}
    """)
    first, second, last = plan.processes
    assert "__ns:=/a/b/c" in first.command
    assert "__ns:=/c" in second.command
    assert _ros_arguments(last) == ["-r", "__node:=outer"]
    assert _names(plan) == ["inner", "outer"]


def test_conditions_leave_things_out(launch: Read) -> None:
    plan = launch(
        """
        launch:
          - arg: {name: wanted, default: 'false'}
          - node: {pkg: pkg, exec: talker, name: a, if: $(var wanted)}
          - node: {pkg: pkg, exec: talker, name: b, unless: $(var wanted)}
          - group:
              unless: $(var wanted)
              children:
                - node: {pkg: pkg, exec: talker, name: c}
        """,
        {"wanted": "true"},
    )
    assert _names(plan) == ["a"]


def test_arguments_are_declared_with_defaults(launch: Read) -> None:
    text = """
    launch:
      - arg:
          name: robot
          default: panda
          description: which robot
      - arg: {name: needed}
      - node: {pkg: pkg, exec: talker, name: $(var robot)_$(var needed)}
    """
    assert _names(launch(text, {"needed": "x"})) == ["panda_x"]
    assert _names(launch(text, {"needed": "x", "robot": "ur10"})) == ["ur10_x"]
    shown = launch(text, only_arguments=True).arguments
    assert [(a.name, a.default) for a in shown] == [("robot", "panda"), ("needed", None)]
    with pytest.raises(LaunchError, match="give needed:=VALUE"):
        launch(text)
    with pytest.raises(LaunchError, match="no argument 'typo'; it takes: needed, robot"):
        launch(text, {"needed": "x", "typo": "1"})


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("launch: 1", "'launch' must have attributes"),
        ("nodes: []", "one list, named 'launch'"),
        ("launch: [", "not valid YAML"),
        ("launch:\n- composable_node: {pkg: x}", "'composable_node' is not supported"),
        ("launch:\n- node: {pkg: pkg}", "needs the attribute 'exec'"),
        ("launch:\n- node: {pkg: pkg, exec: nope}", "no executable 'nope'; it has: talker"),
        ("launch:\n- node: {pkg: nope, exec: x}", "'nope' is not installed"),
        ("launch:\n- node: {pkg: pkg, exec: talker, nam: x}", "attribute 'nam'"),
        ("launch:\n- node: {pkg: pkg, exec: talker, respawn: 'true'}", "attribute 'respawn'"),
        (
            "launch:\n- node: {pkg: pkg, exec: talker, param: [{value: 1}]}",
            "needs the attribute 'name'",
        ),
        ("launch:\n- node: {pkg: pkg, exec: talker, param: [{from: /no/file}]}", "/no/file"),
        ("launch:\n- arg: {name: a, default: 1.0}", "quote it"),
        ("launch:\n- group: {if: $(var a)}", "'group' can't be read: '$(var a)'"),
        (
            "launch:\n- group: {if: 'true', unless: 'true', children: []}",
            "both 'if' and 'unless'",
        ),
        ("launch:\n- include: {file: x.launch.yaml}", "'include' is not supported"),
        ("launch:\n- executable: {cmd: echo}", "'executable' is not supported"),
        ("launch:\n- timer: {period: 1.0, children: []}", "'timer' is not supported"),
        ("launch:\n- {let: {name: a}, arg: {name: b}}", "one key each"),
    ],
)
def test_faults_name_the_file_and_the_element(
    launch: Read, tmp_path: Path, text: str, what: str
) -> None:
    with pytest.raises(LaunchError) as caught:
        launch(text)
    message = str(caught.value)
    assert what in message
    assert message.startswith(str(tmp_path))
    assert "\n" not in message


def test_launch_files_are_found_by_path_or_told_of(tmp_path: Path) -> None:
    file = tmp_path / "a.launch.yaml"
    file.write_text("launch: []\n")
    assert find_launch_file(str(file)) == file
    assert find_launch_file(str(tmp_path / "a")) == file
    with pytest.raises(LaunchError, match="no_such_launch_file"):
        find_launch_file("no_such_launch_file")


def test_executables_of_installed_packages_are_known() -> None:
    with pytest.raises(LaunchError, match="no_such_package"):
        packages.executables("no_such_package")
    assert "pytest" in packages.executables("pytest")
    assert packages.executable("pytest", "pytest")[-1].startswith("pytest:")


def test_a_value_that_doubles_again_and_again_is_refused(launch: Read) -> None:
    double = "{let: {name: a, value: $(var a)$(var a)}}"
    text = f"launch: [{{arg: {{name: a, default: x}}}}, {', '.join([double] * 60)}]"
    with pytest.raises(LaunchError, match="more than 1000000 characters"):
        launch(text)


def test_what_nests_too_deeply_or_is_not_text_is_refused(launch: Read, tmp_path: Path) -> None:
    deep = "$(var " * 2000 + ")" * 2000
    with pytest.raises(LaunchError, match="nests substitutions too deeply"):
        launch(f"launch: [{{let: {{name: a, value: {deep}}}}}]")
    with pytest.raises(LaunchError, match="nested"):
        launch("launch: " + "[" * 5000)
    file = tmp_path / "bytes.launch.yaml"
    file.write_bytes(b"launch: \xff\xfe")
    with pytest.raises(LaunchError, match="not valid YAML"):
        read(file, {}, tmp_path)
