# SPDX-License-Identifier: Apache-2.0
"""The commands of README and docs: each parses, and those that can run are run."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from sysid_core.cli.main import _build_parser, main
from sysid_core.data import write_recording
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.recording import Recording
from sysid_core.robot import load_robot
from sysid_embedded.launch.reader import read
from sysid_embedded.launch.up import find_launch_file
from sysid_ros.plain import fill, read_values
from sysid_ros.terminal.session import import_type

TOP = Path(__file__).resolve().parents[3]
PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted(TOP.glob("docs/*.md"))]
LAUNCH = [*sorted(TOP.glob("launch/*.yaml"))]
TWINS = {"ros2 service call": "sysid call", "ros2 topic echo": "sysid echo"}
URDF = """<robot name="my_robot"><link name="base"/>{links}</robot>"""
LINK = """
<link name="link{i}"><inertial><origin xyz="0 0 0.2"/><mass value="2"/>
<inertia ixx="0.05" iyy="0.05" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="joint{i}" type="revolute"><parent link="{parent}"/><child link="link{i}"/>
<origin xyz="0 0 0.4"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" velocity="3" effort="60"/></joint>"""


def _commands(path: Path) -> list[str]:
    """Return the commands of a page's code blocks and inline code, or of a file's comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".yaml":
        return re.findall(r"^#   ((?:sysid|ros2) .*?)(?:   .*)?$", text, re.MULTILINE)
    lines = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines()
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    if path.stem == "troubleshooting":  # its first column quotes messages
        prose = re.sub(r"^\|.*?[^\\]\|", "", prose, flags=re.MULTILINE)
    inline = re.findall(r"`((?:sysid|ros2)[ \n][^`]+)`", prose)
    found = [part for line in lines for part in line.split("&&")] + inline
    found = [" ".join(command.partition(" | ")[0].split()) for command in found]
    return [command for command in found if command.startswith(("sysid ", "ros2 "))]


def _words(command: str) -> list[str]:
    for ros2, own in TWINS.items():
        command = command.replace(ros2, own)
    words = shlex.split(command, comments=True)
    if words[:3] == ["ros2", "launch", "sysid_bringup"]:
        return ["sysid", "up", f"launch/{words[3]}", *words[4:]]
    return words


COMMANDS = sorted({(str(p.relative_to(TOP)), c) for p in (*PAGES, *LAUNCH) for c in _commands(p)})


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_a_documented_command_parses(
    page: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOP)
    words = _words(command)
    if words[0] != "sysid" or len(words) < 3 or re.fullmatch("[A-Z]+", words[1]):
        return  # ros2cli's own, or the bare name of a subcommand
    args = _build_parser(words[1])[0].parse_args(words[1:])
    if args.subcommand == "up" and "FILE" not in args.launch:
        _check_launch(args, tmp_path)
    if args.subcommand == "call" and "/srv/" in "".join(args.words):
        kind = import_type(args.words[0], "srv")
        fill(kind.Request(), read_values("".join(args.words[1:])))
    if args.subcommand == "pub" and "/msg/" in args.type and "$" not in args.values:
        fill(import_type(args.type, "msg")(), read_values(args.values))


def _check_launch(args: argparse.Namespace, folder: Path) -> None:
    given = dict(argument.split(":=") for argument in args.arguments)
    plan = read(find_launch_file(args.launch), given, folder, only_arguments=True)
    assert set(given) <= {argument.name for argument in plan.arguments}


def test_the_readmes_round_from_urdf_to_motion_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    links = "".join(LINK.format(i=i, parent=f"link{i - 1}" if i else "base") for i in range(2))
    Path("my_robot.urdf").write_text(URDF.format(links=links), encoding="utf-8")
    block = next(
        block
        for block in re.findall(r"```sh\n(.*?)```", PAGES[0].read_text(encoding="utf-8"), re.S)
        if "sysid init" in block
    )
    commands = [shlex.split(line, comments=True) for line in block.splitlines()]
    for words in commands:
        if words[:1] != ["sysid"] or words[1] == "play":  # which needs a robot
            continue
        assert main(words[1:]) == 0, " ".join(words)
        if words[1] == "init":
            _write_bags(("my_bag", "another_bag"))
        if words[1] == "identify":
            shutil.copytree("result", "last_week")


def _write_bags(names: tuple[str, ...]) -> None:
    """Write what the robot's own model says of a motion, with a little noise."""
    robot = load_robot("my_robot.yaml")
    rng = np.random.default_rng(0)
    time = np.arange(0.0, 6.0, 0.01)
    for number, name in enumerate(names):
        omega = np.array([2.0, 3.1]) + number
        angle = time[:, None] * omega
        q, v, a = np.sin(angle), omega * np.cos(angle), -(omega**2) * np.sin(angle)
        torque = TreeDynamics(robot).torques(q, v, a) + rng.normal(0.0, 0.05, q.shape)
        write_recording(Recording(time, robot.joint_names, q, v, torque), Path(name))
