# SPDX-License-Identifier: Apache-2.0
"""The main job in a minute: an arm on a wrong model is identified live, then picks up a load.

Simulator, recorder, identifier, controller and reference run as separate processes over DDS,
started by ``sysid up``. This script only watches and asks: it holds the identifier still at
first, so that there is something to compare with, and attaches the payload midway.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sysid_embedded

sysid_embedded.install()

try:
    import rclpy  # a real one where there is one, else the embedded
except ImportError as missing:
    raise SystemExit(f"demo: {missing}; '.venv/bin/sysid doctor' says what to install") from None
from demo_nodes import Nodes  # noqa: E402
from demo_picture import draw  # noqa: E402
from demo_report import Span, report  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.markup import escape  # noqa: E402
from rich.table import Table  # noqa: E402
from std_srvs.srv import SetBool  # noqa: E402

from sysid_core.robot import Robot, load_robot  # noqa: E402
from sysid_msgs.msg import (  # noqa: E402
    DynamicParameters,
    IdentificationStatus,
    Payload,
    TrackingStatus,
)
from sysid_msgs.srv import AttachPayload, ExportModel, SaveBuffer  # noqa: E402
from sysid_ros.qos import latched  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
RESULTS = {
    *("bag", "bag_loaded", "bag_unloaded", "demo.json", "demo.png", "ground_truth.json"),
    *("identified", "live", "load", "log.txt"),
}
"""What a demo writes to its folder, and the next one deletes there."""
LOAD_MASS = 1.5
LOAD_COM = (0.02, 0.0, 0.06)
LOAD_INERTIA = (0.003, 0.0, 0.003, 0.0, 0.0, 0.003)


@dataclass
class Log:
    """What the demo saw, by topic, with times since the start [s]."""

    tracking: list[tuple[float, list[float], bool]] = field(default_factory=list)
    status: list[tuple[float, int, float, str]] = field(default_factory=list)
    payload: list[tuple[float, bool, float, float, tuple[float, float, float]]] = field(
        default_factory=list
    )
    parameters: DynamicParameters | None = None


@dataclass(frozen=True)
class Phase:
    """A named stretch of the demo [s]."""

    name: str
    start: float
    stop: float


PHASES = (
    Phase("wrong model", 2.0, 12.0),
    Phase("identified", 16.0, 26.0),
    Phase("load picked up", 26.0, 29.0),
    Phase("load identified", 31.0, 41.0),
    Phase("load put down", 45.0, 55.0),
)
RELEASE, PICK_UP, PUT_DOWN, END = 12.0, 26.0, 41.0, 55.0
SETTLED = 1.0  # [s] after which a load that was asked for is attached for sure


class Watcher(Node):
    """Records what the nodes publish and calls their services."""

    def __init__(self, nodes: Nodes) -> None:
        super().__init__("demo")
        self.nodes = nodes
        self.log, self.begin = Log(), float("inf")
        self.stamp = 0.0  # of the newest tracking message [s], by the simulation's clock
        self.create_subscription(TrackingStatus, "tracking", self._on_tracking, 100)
        self.create_subscription(IdentificationStatus, "status", self._on_status, 100)
        self.create_subscription(Payload, "payload", self._on_payload, 100)
        self.create_subscription(DynamicParameters, "parameters", self._on_parameters, latched())
        self.moving = self.ready = False

    @property
    def now(self) -> float:
        """Time since the motion began [s]."""
        return time.monotonic() - self.begin

    def _on_tracking(self, message: TrackingStatus) -> None:
        self.stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        self.moving |= message.state == TrackingStatus.TRACKING
        if self.now >= 0.0:
            row = (self.now, list(message.position_error), bool(message.identified))
            self.log.tracking.append(row)

    def _on_status(self, message: IdentificationStatus) -> None:
        self.ready = True
        if self.now >= 0.0:
            reason = message.reasons[0] if message.reasons else ""
            self.log.status.append((self.now, int(message.state), float(message.r2), reason))

    def _on_payload(self, message: Payload) -> None:
        if self.now >= 0.0:
            com = (message.com.x, message.com.y, message.com.z)
            row = (self.now, bool(message.attached), message.mass, message.mass_std, com)
            self.log.payload.append(row)

    def _on_parameters(self, message: DynamicParameters) -> None:
        self.log.parameters = message

    def ask(self, kind: Any, name: str, request: Any, timeout: float = 10.0) -> Any:
        """Call a service and return its answer; exits where it does not come."""
        client = self.create_client(kind, name)
        if not client.wait_for_service(timeout_sec=timeout):
            self.nodes.check()
            raise SystemExit(f"demo: service {name} is not there; see {self.nodes.log}")
        future = client.call_async(request)
        rclpy.spin_until_future_complete(self, future, timeout_sec=timeout)
        if future.result() is None:
            self.nodes.check()
            raise SystemExit(f"demo: service {name} did not answer; see {self.nodes.log}")
        return future.result()

    def watch_until(self, moment: float) -> None:
        """Go on watching until a time since the start [s]."""
        while self.now < moment:
            rclpy.spin_once(self, timeout_sec=0.05)
            self.nodes.check()


def attach(node: Watcher, mass: float) -> None:
    """Ask the simulator to attach a load; a mass of 0 takes it off."""
    request = AttachPayload.Request(mass=mass)
    request.com.x, request.com.y, request.com.z = LOAD_COM if mass else (0.0, 0.0, 0.0)
    request.inertia = list(LOAD_INERTIA) if mass else [0.0] * 6
    answer = node.ask(AttachPayload, "simulator/attach_payload", request)
    if not answer.success:
        raise SystemExit(f"demo: {answer.message}")


def play(node: Watcher, console: Console) -> tuple[Span, Span]:
    """Run the story from the first motion to the last; returns when it moved free and loaded."""
    deadline = time.monotonic() + 60.0
    while not (node.moving and node.ready):
        rclpy.spin_once(node, timeout_sec=0.1)
        node.nodes.check()
        if time.monotonic() > deadline:
            raise SystemExit(
                f"demo: the nodes did not start within a minute; see {node.nodes.log}"
            )
    node.ask(SetBool, "identifier/freeze", SetBool.Request(data=True))
    node.begin, start = time.monotonic(), node.stamp
    console.print("[bold] 0 s[/] the arm follows its reference with a wrong model")
    node.watch_until(RELEASE)
    node.ask(SetBool, "identifier/freeze", SetBool.Request(data=False))
    console.print(f"[bold]{RELEASE:2.0f} s[/] the identifier may publish what it learns")
    node.watch_until(PICK_UP)
    free = (start, node.stamp)
    attach(node, LOAD_MASS)
    console.print(f"[bold]{PICK_UP:2.0f} s[/] a load of {LOAD_MASS} kg is picked up")
    node.watch_until(PICK_UP + SETTLED)
    start = node.stamp
    node.watch_until(PUT_DOWN)
    loaded = (start, node.stamp)
    attach(node, 0.0)
    console.print(f"[bold]{PUT_DOWN:2.0f} s[/] the load is put down")
    node.watch_until(END)
    return free, loaded


def phase_rows(log: Log) -> list[dict[str, Any]]:
    """Return figures of each phase."""
    rows = []
    for phase in PHASES:
        errors = [e for t, e, _ in log.tracking if phase.start <= t < phase.stop]
        r2 = [value for t, _, value, _ in log.status if phase.start <= t < phase.stop]
        squares = [sum(v * v for v in error) for error in errors]
        rms = (sum(squares) / max(len(squares), 1)) ** 0.5
        rows.append(
            {
                "phase": phase.name,
                "start": phase.start,
                "stop": phase.stop,
                "rms": rms,
                "r2": sorted(r2)[len(r2) // 2] if r2 else float("nan"),
            }
        )
    return rows


def loads(log: Log) -> dict[str, float]:
    """Return when the load was noticed and its estimate before it was put down."""
    seen = [row for row in log.payload if PICK_UP <= row[0] < PUT_DOWN and row[1]]
    if not seen:
        return {}
    _, _, mass, std, (x, y, z) = seen[-1]
    noticed = seen[0][0] - PICK_UP
    return {"noticed_after": noticed, "mass": mass, "mass_std": std, "x": x, "y": y, "z": z}


def show(console: Console, log: Log, truth: dict[str, Any], out: Path) -> None:
    """Print the tables and write the picture and the figures."""
    rows, load = phase_rows(log), loads(log)
    table = Table(title="Tracking, phase by phase")
    for heading in ("phase", "time [s]", "tracking RMS [mrad]", "against wrong model", "R²"):
        table.add_column(escape(heading), justify="left" if heading == "phase" else "right")
    for row in rows:
        table.add_row(
            row["phase"],
            f"{row['start']:.0f}–{row['stop']:.0f}",
            f"{1e3 * row['rms']:.2f}",
            f"× {row['rms'] / rows[0]['rms']:.2f}",
            f"{row['r2']:.4f}" if row["r2"] == row["r2"] else "–",
        )
    console.print(table)
    identified = [t for t, state, *_ in log.status if state == IdentificationStatus.IDENTIFIED]
    opened = next((t for t in identified if t >= RELEASE), None)
    gate = "did not open" if opened is None else f"opened {opened - RELEASE:.1f} s after release"
    console.print(f"The gate {gate}.")
    if load:
        console.print(
            f"The load was noticed {load['noticed_after']:.1f} s after it was picked up: "
            f"[bold]{load['mass']:.3f} ± {load['mass_std']:.3f} kg[/] (true {LOAD_MASS:.3f}), "
            f"centre of mass {load['x']:.3f}, {load['y']:.3f}, {load['z']:.3f} m (true "
            + ", ".join(f"{v:.3f}" for v in LOAD_COM)
            + ")."
        )
    masses = Table(title=escape("Masses [kg]"))
    for heading in ("body", "URDF", "true", "identified", "±"):
        masses.add_column(heading, justify="left" if heading == "body" else "right")
    parameters = log.parameters
    if parameters is not None and len(parameters.inertial_std):
        for b, body in enumerate(parameters.bodies):
            masses.add_row(
                body,
                f"{truth['nominal'][body]:.2f}",
                f"{truth['true'][body]:.2f}",
                f"{parameters.inertial[10 * b]:.2f}",
                f"{parameters.inertial_std[10 * b]:.2f}",
            )
        console.print(masses)
    draw(log, PHASES, (RELEASE, PICK_UP, PUT_DOWN, END), LOAD_MASS, out / "demo.png")
    figures = {
        "phases": rows,
        "gate_opened_after": None if opened is None else opened - RELEASE,
        "payload": load,
        "payload_true": LOAD_MASS,
    }
    (out / "demo.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    console.print(f"Picture: {out / 'demo.png'}", soft_wrap=True)


def true_masses(path: Path, robot: Robot) -> dict[str, Any]:
    """Return true and nominal masses by body from the simulator's ground truth."""
    data = json.loads(path.read_text(encoding="utf-8"))
    nominal = {b: float(phi[0]) for b, phi in robot.layout.bodies_of(robot.nominal).items()}
    return {"true": {b: values[0] for b, values in data["bodies"].items()}, "nominal": nominal}


def main() -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--robot", default="panda", help="name of an arm (default: panda)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the true parameters")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "demo")
    given = parser.parse_args()
    console = Console()
    out = given.out.resolve()
    others = sorted({path.name for path in out.iterdir()} - RESULTS) if out.is_dir() else []
    if others or (out.exists() and not out.is_dir()):
        parser.error(f"{out} is not a folder of a demo's results alone; give an empty folder")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    os.environ.setdefault("ROS_DOMAIN_ID", str(20 + os.getpid() % 80))
    truth = out / "ground_truth.json"
    up = [
        sys.executable,
        "-m",
        "sysid_core.cli.main",
        "up",
        str(ROOT / "launch/sim.launch.yaml"),
        f"robot:={given.robot}",
        f"truth_seed:={given.seed}",
        f"ground_truth_file:={truth}",
    ]
    log = out / "log.txt"
    console.print(
        f"Starting simulator, recorder, identifier, controller; log: {log}", soft_wrap=True
    )
    with Nodes(up, log) as nodes:
        rclpy.init()
        node = Watcher(nodes)
        try:
            spans = play(node, console)
            live = ExportModel.Request(directory=str(out / "live"))
            node.ask(ExportModel, "identifier/export", live)
            bag = SaveBuffer.Request(directory=str(out / "bag"))
            node.ask(SaveBuffer, "recorder/save", bag, timeout=60.0)
        except KeyboardInterrupt:
            return 130
        finally:
            node.destroy_node()
            rclpy.try_shutdown()
    robot = load_robot(given.robot)
    show(console, node.log, true_masses(truth, robot), out)
    report(console, out, robot, *spans)
    return 0


if __name__ == "__main__":
    sys.exit(main())
