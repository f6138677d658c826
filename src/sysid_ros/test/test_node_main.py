# SPDX-License-Identifier: Apache-2.0
"""A node's program ends cleanly when it is told to, and with one line where it cannot start."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys

import pytest

pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from sysid_core.errors import ParameterError
from sysid_ros.node_main import run_node

PROGRAM = """
import contextlib, importlib, sys
with contextlib.suppress(ImportError):
    importlib.import_module("sysid_embedded").install()
from rclpy.node import Node
from std_msgs.msg import Float64
from sysid_ros.node_main import run_node

class Busy(Node):
    def __init__(self):
        super().__init__("busy")
        self.topic = self.create_publisher(Float64, "numbers", 10)
        self.create_timer(0.001, self.publish)
    def publish(self):
        self.topic.publish(Float64(data=1.0))
        print("alive", flush=True)
    def destroy_node(self):
        self.topic.publish(Float64(data=2.0))  # the context still holds
        super().destroy_node()

sys.exit(run_node("busy", Busy, []))
"""

LIMIT = 60.0
"""Time limit [s] of a program's end; reached only where something is broken."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_node_cleanly(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "alive\n"
        child.send_signal(number)
        child.send_signal(number)  # launch repeats the signal that the terminal sent
        _, errors = child.communicate(timeout=LIMIT)
    assert child.returncode == 0, errors
    assert "Traceback" not in errors
    assert "exception" not in errors  # rclpy tells so of callbacks that ran into the end


CLOCKED = """
import contextlib, importlib, sys
with contextlib.suppress(ImportError):
    importlib.import_module("sysid_embedded").install()
from rclpy.clock import Clock as Wall, ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sysid_ros.node_main import run_node

class Clocked(Node):
    def __init__(self):
        follow = Parameter("use_sim_time", value=True)
        super().__init__("clocked", parameter_overrides=[follow])
        self.topic = self.create_publisher(Clock, "/clock", 1)
        self.step = 0
        self.create_timer(0.01, self.tick, clock=Wall(clock_type=ClockType.STEADY_TIME))
    def tick(self):
        self.step += 1
        message = Clock()
        message.clock.sec = 7 if self.step % 2 else -1
        self.topic.publish(message)
    def done(self):
        return self.step > 50 and self.get_clock().now().nanoseconds == 7 * 10**9

sys.exit(run_node("clocked", Clocked, [], done=Clocked.done))
"""


def test_a_clock_before_zero_does_not_end_a_node() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CLOCKED], capture_output=True, text=True, timeout=LIMIT
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr


RESIDENT = """
import contextlib, importlib
with contextlib.suppress(ImportError):
    importlib.import_module("sysid_embedded").install()
import numpy as np
from sysid_ros.node_main import return_freed_memory, trim_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
"""
SAVING = (
    RESIDENT
    + """
return_freed_memory()
before = resident()
for _ in range(5):
    parts = [np.ones(1_000_000), np.ones(500_000)]
    del parts
print(resident() - before)
"""
)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of another C library")
def test_large_arrays_are_given_back() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SAVING], capture_output=True, text=True, timeout=LIMIT
    )
    assert int(ended.stdout.split()[-1]) < 2_000_000, ended.stderr


GAPS = (
    RESIDENT
    + """
before = resident()
parts = [np.ones(512) for _ in range(10_000)]
parts = parts[::100]
with_gaps = resident() - before
trim_memory()
print(with_gaps, resident() - before)
"""
)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="of another C library")
def test_gaps_between_arrays_are_given_back() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", GAPS], capture_output=True, text=True, timeout=LIMIT
    )
    with_gaps, left = map(int, ended.stdout.split()[-2:])
    assert left < 5_000_000 < 30_000_000 < with_gaps, ended.stderr


def test_a_node_that_cannot_start_says_why_in_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)

    def make() -> None:
        raise ParameterError("rate must be finite, got nan")

    assert run_node("one", make, []) == 2
    assert capfd.readouterr().err.splitlines()[-1] == "one: rate must be finite, got nan"
    assert signal.getsignal(signal.SIGTERM) is before


def test_arguments_that_ros_does_not_know_end_in_a_line(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run_node("one", lambda: pytest.fail("made"), ["--ros-args", "-r", "x"]) == 2
    assert capfd.readouterr().err.splitlines()[-1].startswith("one: ")
