# SPDX-License-Identifier: Apache-2.0
"""Load on the live nodes: joint states of twelve joints at 1 kHz into recorder and identifier.

The nodes and the driver are processes of their own, on a real ROS 2 where there is one, else on
the embedded runtime. ``--seconds 600`` is the long run.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bench.arms import tree_urdf, wide_motion
from bench.runner import Given, Result, Table, processor_time, run_benchmark, show_rows
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.robot import Robot, load_robot

__all__ = ["Peer", "Usage", "node_process", "run"]

JOINTS, RATE = 12, 1000.0  # [-, Hz]
PERIOD = 10.0
BUFFERS_FULL = 90.0
"""Time [s] until the recorder's ring buffer of a minute is full for sure."""

SECONDS = 150.0
"""Long enough to see whether memory still grows."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
EMBEDDED = find_spec("rclpy") is None
"""Whether the embedded runtime has to stand in for rclpy."""


def write_robot(folder: Path) -> Path:
    """Write a synthetic tree as a robot description; returns its path."""
    (folder / "tree.urdf").write_text(tree_urdf(JOINTS, seed=JOINTS), encoding="utf-8")
    path = folder / "tree.yaml"
    path.write_text(
        f"name: tree\nurdf: tree.urdf\nbase: fixed\nsignals: {{rate: {RATE}, cutoff: 10.0}}\n",
        encoding="utf-8",
    )
    return path


def write_motion(robot: Robot, path: Path, seed: int) -> None:
    """Write one period of a random motion, with the torques of a robot a third heavier."""
    rng = np.random.default_rng(seed)
    time_ = np.arange(round(PERIOD * RATE)) / RATE
    q, v, a = wide_motion(robot, rng, PERIOD, share=0.3).states(time_)
    truth = robot.consistent_nominal.copy()
    robot.layout.inertias(truth)[:] *= 1.3
    truth[robot.layout.term("viscous")] += 0.5
    truth[robot.layout.term("coulomb")] += 0.3
    effort = TreeRegression(robot).full(q, v, a) @ truth
    np.savez(
        path,
        position=q + 1e-5 * rng.normal(size=q.shape),
        velocity=v + 1e-3 * rng.normal(size=q.shape),
        effort=effort + 0.05 * rng.normal(size=q.shape),
        names=np.array(robot.joint_names),
    )


def drive(motion: Path, seconds: float) -> int:
    """Publish the motion over and over, at its pace; prints the number of messages."""
    driver = Peer("driver")
    from builtin_interfaces.msg import Time
    from sensor_msgs.msg import JointState

    publisher = driver.node.create_publisher(JointState, "joint_states", 1000)
    with np.load(motion) as data:
        names = data["names"].tolist()
        rows = [data[key].tolist() for key in ("position", "velocity", "effort")]
    while publisher.get_subscription_count() == 0:
        time.sleep(0.05)
    time.sleep(1.0)  # discovery of both sides
    count, size, epoch = round(seconds * RATE), len(rows[0]), time.time()
    begin, late = time.perf_counter(), 0
    for i in range(count):
        due = begin + i / RATE
        wait = due - time.perf_counter()
        # where the machine held the driver up, it catches up at a pace that a network knows
        time.sleep(max(wait, 0.2 / RATE))
        late += int(wait < -0.01)
        message = JointState(name=names)
        message.position, message.velocity, message.effort = (row[i % size] for row in rows)
        stamp = round(1e9 * (epoch + i / RATE))
        message.header.stamp = Time(sec=stamp // 10**9, nanosec=stamp % 10**9)
        publisher.publish(message)
    time.sleep(1.0)
    print(json.dumps({"published": count, "late": late}), flush=True)
    driver.close()
    return 0


@contextlib.contextmanager
def _process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run Python with arguments; interrupt it at the end."""
    child = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        yield child
    finally:
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(5.0)
        child.kill()


def node_process(
    package: str, name: str, *settings: str
) -> contextlib.AbstractContextManager[subprocess.Popen[str]]:
    """Run a node of a package, with settings as ``robot:=panda``; interrupt it at the end."""
    runner: tuple[str, ...] = ("-c", f"from {package}.programs import {name}; {name}()")
    if EMBEDDED:
        runner = ("-m", "sysid_embedded.run", f"{package}.programs:{name}")
    return _process(*runner, "--ros-args", *(w for item in settings for w in ("-p", item)))


@dataclass
class Usage:
    """Processor time and memory of a process over time."""

    pid: int
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)

    def sample(self) -> None:
        """Read the process's processor time [s] and resident memory [MB] now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        self.wall.append(time.perf_counter())
        self.cpu.append(processor_time(self.pid))
        self.memory.append(pages * _PAGE / 1e6)

    def summary(self) -> dict[str, float | None]:
        """Return the share of a core, and how memory [MB] grows once all buffers are full."""
        wall, memory = np.array(self.wall), np.array(self.memory)
        full = wall > wall[0] + BUFFERS_FULL
        growth = None
        if full.sum() > 30:
            growth = 600.0 * float(np.polyfit(wall[full] - wall[0], memory[full], 1)[0])
        return {
            "cores": (self.cpu[-1] - self.cpu[0]) / float(wall[-1] - wall[0]),
            "memory_mb": float(memory[-1]),
            "growth_mb_per_10_minutes": growth,
        }


class Peer:
    """A node of this process among the others, in a domain that no other robot uses."""

    def __init__(self, name: str) -> None:
        os.environ.setdefault("ROS_DOMAIN_ID", str(1 + os.getpid() % 100))
        os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        if EMBEDDED:
            import sysid_embedded

            sysid_embedded.install()
        import rclpy

        rclpy.init(args=[])
        self._rclpy = rclpy
        self.node = rclpy.create_node(name)

    def spin(self, seconds: float) -> None:
        """Listen for a while of real time."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._rclpy.spin_once(self.node, timeout_sec=min(left, 0.05))

    def close(self) -> None:
        """Leave the graph."""
        self.node.destroy_node()
        self._rclpy.try_shutdown()


class Watcher(Peer):
    """Listens to what the nodes say of themselves."""

    def __init__(self) -> None:
        super().__init__("watcher")
        from diagnostic_msgs.msg import DiagnosticArray

        from sysid_msgs.msg import IdentificationStatus

        self.recorder: dict[str, str] = {}
        self.status: Any = None
        self.solve: list[float] = []
        self.node.create_subscription(IdentificationStatus, "status", self._on_status, 100)
        self.node.create_subscription(DiagnosticArray, "diagnostics", self._on_diagnostics, 100)

    def _on_status(self, message: Any) -> None:
        self.status = message
        self.solve.append(1e3 * message.solve_time)

    def _on_diagnostics(self, message: Any) -> None:
        for status in message.status:
            if status.name.endswith("joint states"):
                self.recorder = {pair.key: pair.value for pair in status.values}


def measure(seconds: float, seed: int) -> dict[str, Any]:
    """Run driver, recorder and identifier; returns what came of it."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        description = write_robot(folder)
        write_motion(load_robot(str(description)), folder / "motion.npz", seed)
        watcher = Watcher()
        stack.callback(watcher.close)
        nodes = {
            node: stack.enter_context(node_process("sysid_online", node, f"robot:={description}"))
            for node in ("recorder", "identifier")
        }
        watcher.spin(1.0)
        while watcher.status is None or not watcher.recorder:
            watcher.spin(0.1)
            for node, process in nodes.items():
                if process.poll() is not None:
                    raise SystemExit(f"bench.live: the {node} ended with {process.returncode}")
        usage = {node: Usage(process.pid) for node, process in nodes.items()}
        motion = str(folder / "motion.npz")
        driver = stack.enter_context(_process("-m", "bench.live", "drive", motion, str(seconds)))
        while driver.poll() is None:
            watcher.spin(1.0)
            for one in usage.values():
                one.sample()
        watcher.spin(2.5)  # until the counts of the last messages are told
        driven = json.loads(driver.stdout.read()) if driver.stdout else {}
        return _summary(watcher, usage, driven)


def _summary(watcher: Watcher, usage: dict[str, Usage], driven: dict[str, int]) -> dict[str, Any]:
    told, status = watcher.recorder, watcher.status
    return {
        "runtime": "embedded" if EMBEDDED else "rclpy",
        **driven,
        **{key: int(told.get(key, 0)) for key in ("received", "accepted", "lost")},
        "samples": int(status.samples),
        "samples_lost": int(status.lost_samples),
        "identified": int(status.state) == 2,
        "r2": float(status.r2),
        "solves": len(watcher.solve),
        "solve_ms": {
            "p50": float(np.percentile(watcher.solve, 50)),
            "p99": float(np.percentile(watcher.solve, 99)),
            "max": float(np.max(watcher.solve)),
        },
        "nodes": {node: one.summary() for node, one in usage.items()},
    }


def _figures(result: dict[str, Any]) -> dict[str, float]:
    nodes: dict[str, dict[str, Any]] = result["nodes"]
    growth = [n["growth_mb_per_10_minutes"] for n in nodes.values()]
    unheard = result["published"] - result["accepted"]
    return {
        "messages and samples lost": unheard + result["lost"] + result["samples_lost"],
        "cores": sum(n["cores"] for n in nodes.values()),
        "solve p99 [ms]": result["solve_ms"]["p99"],
        **({} if None in growth else {"memory growth [MB in ten minutes]": max(growth)}),
    }


def _tables(result: dict[str, Any]) -> dict[str, Table]:
    rows = [
        {
            "node": node,
            "cores": usage["cores"],
            "memory [MB]": usage["memory_mb"],
            "growth [MB in 10 min]": usage["growth_mb_per_10_minutes"],
        }
        for node, usage in result["nodes"].items()
    ]
    nodes = show_rows(f"nodes, {result['runtime']} runtime", rows, ".3g")
    counts = ("published", "late", "received", "accepted", "lost", "samples", "samples_lost")
    row = {
        **{name: result[name] for name in counts},
        "R²": result["r2"],
        **{f"solve {name} [ms]": value for name, value in result["solve_ms"].items()},
    }
    title = "joint states, those late by more than 10 ms, and samples"
    return {"nodes": nodes, "messages": show_rows(title, [row], ".6g")}


def run(given: Given) -> Result:
    """Load the nodes and watch them."""
    result = measure(given.seconds, given.seed)
    return Result(_figures(result), result, _tables(result))


if __name__ == "__main__":
    if sys.argv[1:2] == ["drive"]:  # the process of its own that publishes
        path, seconds = sys.argv[2:]
        sys.exit(drive(Path(path), float(seconds)))
    run_benchmark(run, seconds=(SECONDS, "of load"))
