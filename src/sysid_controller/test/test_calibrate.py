# SPDX-License-Identifier: Apache-2.0
"""The whole round on a simulated arm with a wrong model: design, play, identify, validate."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from player_world import HOME, World

from sysid_controller import calibrate
from sysid_controller.cli import _calibrate
from sysid_controller.player import Phase
from sysid_core.cli.main import main
from sysid_core.data.reading import read_recording
from sysid_core.data.write import write_recording
from sysid_core.excitation.motion_file import read_motion
from sysid_core.robot import Robot, load_robot
from sysid_sim.truth import draw_truth


class Commands:
    """The commands of a round; what is played moves an arm in this process, at its own pace."""

    def __init__(self, robot: Robot, blocked: int | None = None) -> None:
        self.robot, self.truth = robot, draw_truth(robot, 2)
        self.blocked = blocked
        self.given: list[list[str]] = []

    def __call__(self, *words: object) -> int:
        texts = [str(word) for word in words]
        self.given.append(texts)
        if texts[0] == "excite":
            return self._design(texts)
        return self._play(texts) if texts[0] == "play" else main(texts)

    def _design(self, texts: list[str]) -> int:
        """Write a motion in which every joint goes there and back at a pace of its own."""
        seed, length = (
            float(texts[texts.index(f"--{name}") + 1]) for name in ("seed", "duration")
        )
        pace = 2.0 * np.pi / length * np.roll([1.0, 2.0, 3.0, 1.0, 4.0, 2.0, 3.0], int(seed))
        points = []
        for t in np.linspace(0.0, length, 41):
            way, size = pace * t, 0.35 / pace**0.5
            point = {
                "positions": HOME + size * (1.0 - np.cos(way)),
                "velocities": size * pace * np.sin(way),
                "accelerations": size * pace**2 * np.cos(way),
            }
            after = {"sec": int(t), "nanosec": round(1e9 * (t - int(t)))}
            lists = {kind: values.tolist() for kind, values in point.items()}
            points.append({**lists, "time_from_start": after})
        file = Path(texts[texts.index("--out") + 1]) / "trajectory.yaml"
        file.parent.mkdir()
        names = list(self.robot.joint_names)
        file.write_text(json.dumps({"joint_names": names, "points": points}))
        return 0

    def _play(self, texts: list[str]) -> int:
        world = World(self.robot, self.truth, motion=read_motion(Path(texts[1])))
        if "--learned" in texts:
            world.player.learn(read_recording(texts[texts.index("--learned") + 1]))
        if self.blocked is not None:
            world.run(lambda: world.player.phase is Phase.PLAYING)
            world.run(lambda: bool(abs(world.v[self.blocked]) > 0.3))
            world.block(self.blocked)
        world.run(lambda: world.player.phase in (Phase.DONE, Phase.STOPPED), 60.0)
        write_recording(world.recording, Path(texts[texts.index("--out") + 1]))
        return 0 if world.player.phase is Phase.DONE else 1


def run(commands: Commands, out: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    parser = argparse.ArgumentParser()
    _calibrate(parser)
    monkeypatch.setattr(calibrate, "_sysid", commands)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    words = [commands.robot.name, "--out", str(out), "--duration", "5"]
    return calibrate.run(parser.parse_args(words))


@pytest.mark.heavy
def test_a_round_ends_with_a_model_that_holds_on_another_motion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = Commands(load_robot("panda"))
    assert run(commands, tmp_path / "round", monkeypatch) == 0
    verbs = [words[0] for words in commands.given]
    assert verbs == ["excite", "excite", "play", "play", "identify", "validate"]
    first, second = commands.given[2:4]
    assert "--learned" not in first
    assert second[second.index("--learned") + 1] == first[first.index("--out") + 1]
    result = tmp_path / "round" / "result"
    capsys.readouterr()
    assert main(["validate", str(result / "estimate.json"), commands.given[-1][2], "--json"]) == 0
    rmse: dict[str, Any] = json.loads(capsys.readouterr().out)["rmse"]
    # "at most half" is what an exciting motion is asked for
    assert sum(rmse["identified"]) < 0.5 * sum(rmse["nominal"])


def test_a_robot_that_is_blocked_ends_the_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = Commands(load_robot("panda"), blocked=1)
    assert run(commands, tmp_path / "round", monkeypatch) == 1
    assert commands.given[-1][0] == "play"


def test_what_a_deaf_process_started_ends_with_it() -> None:
    child = "import time; print('up', flush=True); time.sleep(20); print('left alone')"
    deaf = (
        "import signal, subprocess, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        f"subprocess.run([sys.executable, '-c', {child!r}])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", deaf], stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calibrate, "_END", 0.1)
        calibrate.end_process(process)
    assert process.stdout.read() == b""  # nobody holds the pipe any more
    process.wait(10.0)
