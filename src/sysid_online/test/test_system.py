# SPDX-License-Identifier: Apache-2.0
"""The whole loop as processes, started by the launch file: any node may die and come back."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.robot import load_robot

LAUNCH = Path(__file__).parents[3] / "launch" / "sim.launch.yaml"
NODES = ("simulator", "recorder", "identifier", "controller", "reference")
ROBOT = "valkyrie_arm"
LIMIT = 60.0
"""Time limit of every wait [s]; reached only where something is broken."""
TRACKING, IDENTIFIED = 3, 2


def launch_command() -> list[str]:
    """Return the command that launches the loop: ros2 on a real ROS 2, else sysid."""
    arguments = [f"robot:={ROBOT}", "truth_seed:=2"]
    embedded = sys.modules.get("sysid_embedded")
    if embedded is not None and embedded.is_installed():
        code = "from sysid_core.cli.main import main; raise SystemExit(main())"
        return [sys.executable, "-c", code, "up", str(LAUNCH), *arguments]
    if shutil.which("ros2") is None:
        pytest.skip("ros2 is not on the path")
    return ["ros2", "launch", str(LAUNCH), *arguments]


def node_processes() -> dict[str, int]:
    """Return the process of every node of this test's domain, by name."""
    found = {}
    domain = f"ROS_DOMAIN_ID={os.environ['ROS_DOMAIN_ID']}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if domain not in (folder / "environ").read_bytes().split(b"\0"):
                continue
            for name in NODES:
                if f"__node:={name}".encode() in words:
                    found[name] = int(folder.name)
    return found


class Loop:
    """The launched processes, and a probe that checks every command and every number."""

    def __init__(self, log: Path) -> None:
        import rclpy
        from rclpy.qos import DurabilityPolicy, QoSProfile
        from std_msgs.msg import Float64MultiArray

        from sysid_msgs.msg import DynamicParameters, IdentificationStatus, TrackingStatus

        self.log = log.open("wb")
        self.limit = load_robot(ROBOT).limits.effort
        self.faults: list[str] = []
        self.commands = 0
        self.tracking: Any = None
        self.status: Any = None
        self.children: list[subprocess.Popen[bytes]] = []
        self._start(launch_command())
        rclpy.init(args=[])
        self.node = rclpy.create_node("probe")
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        listen = self.node.create_subscription
        listen(Float64MultiArray, "effort_controller/commands", self._on_command, 100)
        listen(TrackingStatus, "tracking", self._on_tracking, 100)
        listen(IdentificationStatus, "status", self._on_status, 100)
        listen(DynamicParameters, "parameters", self._on_parameters, latched)

    def _start(self, command: list[str]) -> None:
        self.children.append(
            subprocess.Popen(
                command,
                stdout=self.log,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
        )

    def _check(self, what: str, *arrays: Any) -> None:
        if not all(np.isfinite(np.asarray(values, dtype=float)).all() for values in arrays):
            self.faults.append(f"{what} holds numbers that are not finite")

    def _on_command(self, message: Any) -> None:
        self.commands += 1
        self._check("a command", message.data)
        if np.any(np.abs(message.data) > self.limit * (1.0 + 1e-9)):
            self.faults.append(f"the command {list(message.data)} is beyond the limits")

    def _on_tracking(self, message: Any) -> None:
        self.tracking = message
        self._check("tracking", message.position_error, message.effort, message.effort_model)

    def _on_status(self, message: Any) -> None:
        self.status = message
        self._check("status", message.r2_joints, message.rmse_joints, [message.r2])

    def _on_parameters(self, message: Any) -> None:
        self._check("parameters", message.inertial, message.viscous, message.offset)

    def until(self, condition: Callable[[], Any]) -> None:
        """Spin until a condition holds."""
        import rclpy

        end = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < end, self._situation()
            rclpy.spin_once(self.node, timeout_sec=0.05)

    def _situation(self) -> str:
        """Return what is known where a wait was in vain."""
        said = Path(self.log.name).read_text(errors="replace").splitlines()[-30:]
        status, tracking = self.status, self.tracking
        return "\n".join(
            [
                "the condition did not come about in time",
                f"processes: {node_processes()}",
                f"status: {status and (status.state, list(status.reasons), status.revision)}",
                f"tracking: {tracking and (tracking.state, list(tracking.warnings))}",
                *said,
            ]
        )

    def works(self) -> None:
        """Wait until the arm is tracked on a model that is still being identified."""
        self.tracking = self.status = None
        self.until(lambda: self.status is not None and self.status.state == IDENTIFIED)
        before = self.status.revision
        self.until(
            lambda: (
                self.status.revision > before
                and self.tracking is not None
                and self.tracking.state == TRACKING
                and self.tracking.identified
            )
        )
        assert not self.faults

    def kill(self, name: str) -> list[str]:
        """End a node as ``kill -9`` does; returns the command that started it."""
        self.until(lambda: name in node_processes())
        process = node_processes()[name]
        words = Path(f"/proc/{process}/cmdline").read_text().split("\0")[:-1]
        command = [self._kept(word) for word in words]
        os.kill(process, signal.SIGKILL)
        self.until(lambda: name not in node_processes())
        return command

    def _kept(self, word: str) -> str:
        """Return a copy's name for a parameter file: the launch removes its own when it ends."""
        if not word.endswith(".yaml"):
            return word
        copy = Path(self.log.name).with_name(Path(word).name)
        if not copy.exists():
            shutil.copy(word, copy)
        return str(copy)

    def close(self) -> None:
        """Stop everything, the gentle way first."""
        import rclpy

        self.node.destroy_node()
        rclpy.try_shutdown()
        for child in self.children:
            child.send_signal(signal.SIGINT)
        for child in self.children:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(10.0)
            child.kill()
        for process in node_processes().values():
            os.kill(process, signal.SIGKILL)
        self.log.close()


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")
    for package in ("sysid_sim", "sysid_controller"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    made = Loop(tmp_path_factory.mktemp("loop") / "log.txt")
    yield made
    made.close()


def test_the_launch_file_brings_up_a_loop_that_works(loop: Loop) -> None:
    loop.works()
    assert set(node_processes()) == set(NODES)
    assert loop.commands > 0


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("identifier", marks=pytest.mark.heavy),
        "recorder",
        "controller",
        pytest.param("reference", marks=pytest.mark.heavy),
        pytest.param("simulator", marks=pytest.mark.heavy),
    ],
)
def test_a_node_that_was_killed_comes_back(loop: Loop, name: str) -> None:
    command = loop.kill(name)
    loop._start(command)
    loop.works()


def test_all_killed_in_any_order_come_back_in_any_order(loop: Loop) -> None:
    rng = np.random.default_rng(0)
    commands = {name: loop.kill(name) for name in rng.permutation(NODES)}
    for name in rng.permutation(NODES):
        loop._start(commands[name])
    loop.works()
