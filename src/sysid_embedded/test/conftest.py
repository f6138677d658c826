# SPDX-License-Identifier: Apache-2.0
"""A domain of its own for the tests, and helpers to wait without sleeping blindly."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import sysid_embedded

sysid_embedded.install()

# The tag keeps out everybody else on the machine, the number spreads the ports.
_TAG = uuid.uuid4().hex
os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["CYCLONEDDS_URI"] = (
    f"<CycloneDDS><Domain><Discovery><Tag>{_TAG}</Tag></Discovery></Domain></CycloneDDS>"
)

LIMIT_S = 10.0


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of tests that a real rclpy need not pass."""
    config.addinivalue_line("markers", "embedded: tells of the embedded runtime, not of rclpy")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """With a real rclpy, see whether it is as the other tests say."""
    if sysid_embedded.is_installed():
        return
    for item in items:
        if item.get_closest_marker("embedded"):
            item.add_marker(pytest.mark.skip(reason="a real rclpy is installed"))


@pytest.fixture
def ros() -> Iterator[Any]:
    """Return rclpy, initialised without arguments."""
    import rclpy

    rclpy.init(args=[])
    yield rclpy
    context = rclpy.get_default_context()
    rclpy.try_shutdown()
    # Nodes that a test has left over must not be seen by the next one.
    gc.collect()
    context.destroy()


@pytest.fixture
def until() -> Callable[..., bool]:
    """Return a function that spins nodes until a condition holds, or its time is up."""

    def spin(condition: Callable[[], Any], *nodes: Any, limit_s: float = LIMIT_S) -> bool:
        import rclpy

        executor = rclpy.get_global_executor()
        for node in nodes:
            executor.add_node(node)
        end = time.monotonic() + limit_s
        while not condition() and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.02)
        return bool(condition())

    return spin


@pytest.fixture
def node(ros: Any) -> Iterator[Any]:
    """Return a node."""
    made = ros.create_node("node")
    yield made
    made.destroy_node()


@pytest.fixture
def script() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that runs Python code with the embedded runtime in another process."""
    started: list[subprocess.Popen[str]] = []

    def run(code: str, *arguments: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", f"import sysid_embedded; sysid_embedded.install()\n{code}"]
            + list(arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(child)
        return child

    yield run
    for child in started:
        child.kill()
        child.communicate()


@pytest.fixture
def spinning(ros: Any) -> Iterator[Callable[[Any], None]]:
    """Return a function that spins a node in another thread until shutdown."""
    from rclpy.executors import ExternalShutdownException

    threads: list[threading.Thread] = []

    def spin(node: Any) -> None:
        with contextlib.suppress(ExternalShutdownException):
            ros.spin(node)

    def start(node: Any) -> None:
        threads.append(threading.Thread(target=spin, args=(node,)))
        threads[-1].start()

    yield start
    ros.try_shutdown()
    for thread in threads:
        thread.join(LIMIT_S)
        assert not thread.is_alive()
