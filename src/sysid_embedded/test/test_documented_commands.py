# SPDX-License-Identifier: Apache-2.0
"""The commands of README and docs: each parses, and those that can run are run.

Where a ROS 2 is sourced, launch files and commands run on it, else on the embedded runtime.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import sysid_embedded
from sysid_core.cli.main import _build_parser, main
from sysid_core.data import write_recording
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.recording import Recording
from sysid_core.robot import load_robot
from sysid_embedded.launch.reader import read
from sysid_embedded.launch.up import find_launch_file
from sysid_ros.plain import fill, import_type, read_values

TOP = Path(__file__).resolve().parents[3]
PAGES = [TOP / "README.md", TOP / "CONTRIBUTING.md", *sorted(TOP.glob("docs/**/*.md"))]
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
    text = path.read_text(encoding="utf-8").replace("\\\n", "")
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


def _launch(command: str) -> str:
    """Return the launch file and arguments of a command that starts nodes, else nothing."""
    words = _words(command)
    if words[:2] != ["sysid", "up"] or len(words) < 3 or "FILE" in words[2]:
        return ""
    return " ".join([Path(words[2]).name, *words[3:]])


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


def _write_bags(names: tuple[str, ...], robot: str = "my_robot.yaml") -> None:
    """Write what the robot's own model says of a motion, with a little noise."""
    loaded = load_robot(robot)
    rng = np.random.default_rng(0)
    time = np.arange(0.0, 6.0, 0.01)
    for number, name in enumerate(names):
        omega = np.array([2.0, 3.1, 2.3, 2.9, 2.1, 2.7])[: len(loaded.joint_names)] + number
        angle = time[:, None] * omega
        q, v, a = np.sin(angle), omega * np.cos(angle), -(omega**2) * np.sin(angle)
        torque = TreeDynamics(loaded).torques(q, v, a) + rng.normal(0.0, 0.05, q.shape)
        write_recording(Recording(time, loaded.joint_names, q, v, torque), Path(name))


# -- launch files, and the commands that are said to run beside them --------------------------

ON_ROS2 = not sysid_embedded.is_installed()
LIMIT_S = 120.0
BESIDE: dict[str, tuple[str, ...]] = {
    "arm.launch.yaml robot:=ur10": (
        "sysid param list",
        "ros2 lifecycle set /controller configure",
        'sysid call /controller/enable "{data: true}"',
        "sysid param set /controller bandwidth 15.0",
        "ros2 param set /controller bandwidth 15.0",
        "ros2 param describe /controller bandwidth",
    ),
    "sim.launch.yaml robot:=panda": (
        "sysid echo /status --once",
        "sysid watch",
        "sysid watch --namespace NS",
        "sysid echo /diagnostics",
    ),
    "solo12.launch.yaml": (
        "sysid call /simulator/attach_payload sysid_msgs/srv/AttachPayload "
        '"{mass: 1.0, com: {z: 0.06}}"',
    ),
    "go2.launch.yaml sim:=false": ("sysid param set /unitree_relay velocity_frame base",),
    "solo12.launch.yaml control:=true": (
        'sysid call /controller/enable std_srvs/srv/SetBool "{data: true}"',
    ),
}
"""Commands of the pages that run beside a launch file; ros2cli's need a ROS 2."""
UNTIL = {"sysid watch": " | ", "sysid echo /diagnostics": "---"}
"""What commands that run until they are interrupted print before."""
ELSEWHERE = {
    "sysid call /player/stop": "test_player_node.py",
    "sysid echo /payload": "silent until a load is found: test_system.py",
    "sysid call SERVICE [TYPE] [VALUES]": "the form alone",
    "sysid echo TOPIC --once --field NAME": "the form alone",
    "sysid pub TOPIC TYPE VALUES --once": "the form alone",
    "sysid echo /robot_description --once --field data": "needs a robot_state_publisher",
    'sysid pub reference trajectory_msgs/msg/JointTrajectory "$(cat sway/trajectory.yaml)" '
    "--once": "test_live_walk.py",
}
"""Commands for running nodes that are not run here, and why."""
RELAYED = {  # launch files that start relays, and what these take
    "g1.launch.yaml": "unitree_hg",
    "go2.launch.yaml sim:=false": "unitree_go",
    "spot.launch.yaml sim:=false relay:=true": "spot_msgs",
}
STAND_INS = TOP / "src" / "sysid_online" / "test" / "interfaces"
LAUNCHES = sorted({launch for _, command in COMMANDS if (launch := _launch(command))})
ALIKE = re.compile(r"(behaviour|joint_states|odom|imu|contacts|commands):=")
"""Arguments that start the same nodes with another motion or other topics."""


def _nodes_of(launch: str) -> tuple[str, ...]:
    """Return of a launch file and its arguments what decides about the nodes."""
    return tuple(sorted(word for word in launch.split() if not ALIKE.match(word)))


RUN = list({_nodes_of(launch): launch for launch in sorted(LAUNCHES, key=len)}.values())
RUN += [launch for launch in BESIDE if launch not in RUN]
"""The longest of those that start the same nodes, and those with commands beside them."""
FIRST = {launch.split()[0]: launch for launch in (*reversed(RUN), *BESIDE)}
RUN_EACH = [
    pytest.param(launch, marks=() if launch in (*FIRST.values(), *BESIDE) else pytest.mark.heavy)
    for launch in RUN
]
"""Further ones of a launch file take long."""


def test_every_command_for_running_nodes_is_run_beside_some() -> None:
    run = {command for commands in BESIDE.values() for command in commands}
    asked = {command.partition(" # ")[0].strip() for _, command in COMMANDS}
    asked = {c for c in asked if re.match("sysid (call|echo|param|pub|watch) ", c)}
    assert set(BESIDE) <= set(LAUNCHES)
    assert asked - run <= set(ELSEWHERE)


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Let what is started hear Ctrl-C, which a shell has programs in its background ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def daemon() -> Iterator[None]:
    """Stop the daemon that ros2cli's commands start in the tests' domain."""
    yield
    if ON_ROS2 and shutil.which("ros2"):
        subprocess.run(["ros2", "daemon", "stop"], timeout=LIMIT_S, check=False)


@contextmanager
def _running(words: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command, see that nothing of it failed, and interrupt it as Ctrl-C would."""
    with log.open("wb") as out:
        started = subprocess.Popen(words, stdout=out, stderr=out, start_new_session=True)
    try:
        yield started
        said = log.read_text(errors="replace")
        assert started.poll() is None, said
        assert not re.search(r"Traceback|process has died|ended with", said), said
        started.send_signal(signal.SIGINT)
        started.wait(LIMIT_S)  # a busy computer may have its nodes killed before they are ready
    finally:
        if started.poll() is None:
            os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def _run(command: str, folder: Path) -> None:
    """Run a command to its end, or until it has printed what `UNTIL` says."""
    words = shlex.split(command)
    if words[0] == "sysid":
        words = [sys.executable, "-m", "sysid_core.cli.main", *words[1:]]
    awaited = next((text for start, text in UNTIL.items() if command.startswith(start)), None)
    if awaited is None:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return
    log = folder / "said.txt"
    with _running(words, log) as started:
        end = time.monotonic() + LIMIT_S
        while awaited not in log.read_text() and time.monotonic() < end:
            assert started.poll() is None, log.read_text()
            time.sleep(0.1)
    assert awaited in log.read_text()


@pytest.mark.usefixtures("daemon", "interrupts")
@pytest.mark.parametrize("launch", RUN_EACH)
def test_a_documented_launch_file_runs_with_the_commands_beside_it(
    launch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    monkeypatch.setenv("SYSID_INTERFACES", str(STAND_INS))
    monkeypatch.chdir(tmp_path)
    if "gazebo" in launch:
        pytest.skip("test_gazebo.py and docs/gazebo.md tell of Gazebo")
    for begin, package in RELAYED.items():
        if ON_ROS2 and launch.startswith(begin) and find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    if "BAG" in launch:
        _write_bags(("BAG",), "ur10")
    file, *given = launch.replace(":=TOPIC", ":=robot/topic").split()
    start = ["ros2", "launch", "sysid_bringup", file, *given]
    if not ON_ROS2:
        start = [sys.executable, "-m", "sysid_core.cli.main", "up", str(TOP / "launch" / file)]
        start += given
    with _running(start, tmp_path / "log.txt"):
        _run(f"sysid echo /status --once --timeout {LIMIT_S}", tmp_path)
        for command in BESIDE.get(launch, ()):
            if ON_ROS2 or command.startswith("sysid"):
                _run(command, tmp_path)
