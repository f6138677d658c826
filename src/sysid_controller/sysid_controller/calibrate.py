# SPDX-License-Identifier: Apache-2.0
"""``sysid calibrate ROBOT``: design, play, record, identify, validate, as commands in a row."""

import argparse
import contextlib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from sysid_controller.cli import PLAYING, flag
from sysid_core.errors import OutputError
from sysid_core.robot import load_robot
from sysid_ros.terminal.session import provide_rclpy

__all__ = ["end_process", "run"]

_COMMAND = (sys.executable, "-m", "sysid_core.cli.main")
_SHARE = 0.8
"""Of ranges, speeds and torques that motions use: they are designed with a model that is wrong."""
_WAIT = 60.0  # [s] in which a simulation has to start, on a busy computer, too
_END = 15.0  # [s] that a command or a simulation is given to end


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status: that of the command that failed, or 0."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    out: Path = args.out.expanduser()
    if out.exists() and any(out.iterdir()):
        raise OutputError(f"{out}: is not empty; choose another folder")
    out.mkdir(parents=True, exist_ok=True)
    robot = ["--robot", args.robot]
    robot_model = load_robot(args.robot)
    launch = "digit_leg" if robot_model.description.loops else "sim"
    if robot_model.floating:
        launch = "solo12"
    motions, bags = (out / "motion", out / "check_motion"), (out / "bag", out / "check_bag")
    for seed, (motion, share) in enumerate(zip(motions, (1.0, 0.5), strict=True), args.seed):
        words: list[object] = [args.robot, "--out", motion, "--seed", seed]
        words += ["--duration", share * args.duration, "--share", _SHARE, "--speed", _SHARE]
        status = _sysid("excite", *words)
        if status:
            return status
    with _simulation(args.robot, out, launch) if args.simulate else contextlib.nullcontext():
        learned: list[object] = []
        for motion, bag in zip(motions, bags, strict=True):
            status = _sysid("play", motion, *robot, "--out", bag, *learned, *_playing(args))
            learned = ["--learned", bag]
            if status:
                return status
    result = out / "result"
    return _sysid("identify", bags[0], *robot, "--train", 1.0, "--out", result) or _sysid(
        "validate", result / "estimate.json", bags[1], *robot
    )


def _playing(args: argparse.Namespace) -> list[object]:
    """Return the arguments that are passed on to ``sysid play``."""
    values = {name: getattr(args, name) for name in PLAYING}
    if args.simulate:
        values["wait"] = max(args.wait, _WAIT)
    words = [word for name, value in values.items() if value for word in (flag(name), value)]
    return [*words, "--namespace", args.namespace] if args.namespace else words


def _sysid(*words: object) -> int:
    """Show a command of sysid, run it and return its exit status."""
    texts = [str(word) for word in words]
    print(f"$ {shlex.join(['sysid', *texts])}", flush=True)
    command = subprocess.Popen([*_COMMAND, *texts])
    try:
        return command.wait()
    except BaseException as error:
        end_process(command, told=isinstance(error, KeyboardInterrupt))  # Ctrl-C reaches both
        raise


def end_process(process: subprocess.Popen[bytes], *, told: bool = False) -> None:
    """Let a process end in its own way, so that a robot which moves is stopped, not left.

    It is interrupted unless it was `told` already.
    """
    if not told:
        process.send_signal(signal.SIGINT)
    try:
        process.wait(_END)
    except subprocess.TimeoutExpired:
        if os.getpgid(process.pid) == process.pid:  # with the nodes that it started: ros2 launch
            os.killpg(process.pid, signal.SIGKILL)  # hears no SIGINT where it began by ignoring it
        else:
            process.kill()


@contextlib.contextmanager
def _simulation(robot: str, out: Path, launch: str) -> Iterator[None]:
    """Run a simulated robot with its controller; what it says goes to ``simulation.log``."""
    # the motions were designed with the nominal model, which must not change under them
    given = ["reference:=false", "identifier:=false"]
    given += ["control:=true"] if launch == "solo12" else []
    given += [f"robot:={robot}", f"ground_truth_file:={out / 'truth.json'}"]
    start = ["ros2", "launch", "sysid_bringup"]
    if provide_rclpy():
        start = [*_COMMAND, "up"]
    command = [*start, f"{launch}.launch.yaml", *given]
    with (out / "simulation.log").open("wb") as log:
        nodes = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            yield
        finally:
            end_process(nodes)
