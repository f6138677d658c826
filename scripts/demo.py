# SPDX-License-Identifier: Apache-2.0
"""The main job in a minute: an arm on a wrong model is identified live, then picks up a load.

Simulator, recorder, identifier, controller and reference run as separate processes over DDS,
started by ``sysid up``. This script only watches and asks: it holds the identifier still at
first, so that there is something to compare with, and attaches the payload midway.
"""

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from demo_nodes import Nodes
from demo_picture import draw
from demo_report import Span, report
from rich.console import Console
from rich.markup import escape

from sysid_core.cli.console import named_table
from sysid_core.errors import SysidError
from sysid_core.robot import Robot, load_robot
from sysid_ros.plain import import_type
from sysid_ros.terminal.session import Session, open_session

ROOT = Path(__file__).resolve().parents[1]
RESULTS = {
    *("bag", "bag_loaded", "bag_unloaded", "demo.json", "demo.png", "ground_truth.json"),
    *("identified", "live", "load", "log.txt"),
}
"""What a demo writes to its folder, and the next one deletes there."""
LOAD_MASS = 1.5
LOAD_COM = (0.02, 0.0, 0.06)
LOAD_INERTIA = (0.003, 0.0, 0.003, 0.0, 0.0, 0.003)
TOPICS = {"tracking": "TrackingStatus", "status": "IdentificationStatus", "payload": "Payload"}


class Phase(NamedTuple):
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
Seen = dict[str, list[tuple[float, Any]]]  # Messages by topic, each with its time [s]


class Watcher:
    """Records what the nodes publish and calls their services."""

    def __init__(self, session: Session, nodes: Nodes) -> None:
        from sysid_ros.qos import latched

        self.session, self.nodes = session, nodes
        self.seen: Seen = {topic: [] for topic in TOPICS}
        self.newest: dict[str, Any] = {}
        self.begin = float("inf")
        for topic, name in TOPICS.items():
            kind, take = import_type(f"sysid_msgs/{name}", "msg"), partial(self._take, topic)
            session.node.create_subscription(kind, topic, take, 100)
        kind = import_type("sysid_msgs/DynamicParameters", "msg")
        take = partial(self.newest.__setitem__, "parameters")
        session.node.create_subscription(kind, "parameters", take, latched())

    @property
    def now(self) -> float:
        """Time since the motion began [s]."""
        return time.monotonic() - self.begin

    @property
    def stamp(self) -> float:
        """Time of the newest tracking message [s], by the simulation's clock."""
        stamp = self.newest["tracking"].header.stamp
        return float(stamp.sec + 1e-9 * stamp.nanosec)

    def _take(self, topic: str, message: Any) -> None:
        self.newest[topic] = message
        if self.now >= 0.0:
            self.seen[topic].append((self.now, message))

    def ask(self, kind: str, name: str, timeout: float = 10.0, **values: Any) -> None:
        """Call a service; exits where it does not answer, or answers no."""
        made = import_type(kind, "srv")
        try:
            answer = self.session.ask(made, f"/{name}", made.Request(**values), timeout)
        except SysidError as error:
            self.nodes.check()
            raise SystemExit(f"demo: {error}; see {self.nodes.log}") from error
        if not answer.success:
            raise SystemExit(f"demo: {answer.message}")

    def watch(self, until: Callable[[], bool]) -> None:
        """Go on watching until something holds."""
        while not until():
            self.session.spin(0.05)
            self.nodes.check()

    def attach(self, mass: float) -> None:
        """Ask the simulator to attach a load; a mass of 0 takes it off."""
        com = import_type("geometry_msgs/Vector3", "msg")(
            **dict(zip("xyz", LOAD_COM, strict=True))
        )
        load = {"mass": mass, "com": com, "inertia": list(LOAD_INERTIA)} if mass else {}
        self.ask("sysid_msgs/AttachPayload", "simulator/attach_payload", **load)


def play(watcher: Watcher, console: Console) -> tuple[Span, Span]:
    """Run the story from the first motion to the last; returns when it moved free and loaded."""
    deadline = time.monotonic() + 60.0

    def begun() -> bool:
        if time.monotonic() > deadline:
            log = watcher.nodes.log
            raise SystemExit(f"demo: the nodes did not start within a minute; see {log}")
        tracking = watcher.newest.get("tracking")
        moving = tracking is not None and tracking.state == tracking.TRACKING
        return moving and "status" in watcher.newest

    def watch_until(moment: float) -> None:
        watcher.watch(lambda: watcher.now >= moment)

    watcher.watch(begun)
    watcher.ask("std_srvs/SetBool", "identifier/freeze", data=True)
    watcher.begin, start = time.monotonic(), watcher.stamp
    console.print("[bold] 0 s[/] the arm follows its reference with a wrong model")
    watch_until(RELEASE)
    watcher.ask("std_srvs/SetBool", "identifier/freeze", data=False)
    console.print(f"[bold]{RELEASE:2.0f} s[/] the identifier may publish what it learns")
    watch_until(PICK_UP)
    free = (start, watcher.stamp)
    watcher.attach(LOAD_MASS)
    console.print(f"[bold]{PICK_UP:2.0f} s[/] a load of {LOAD_MASS} kg is picked up")
    watch_until(PICK_UP + SETTLED)
    start = watcher.stamp
    watch_until(PUT_DOWN)
    loaded = (start, watcher.stamp)
    watcher.attach(0.0)
    console.print(f"[bold]{PUT_DOWN:2.0f} s[/] the load is put down")
    watch_until(END)
    return free, loaded


def phase_rows(seen: Seen) -> list[dict[str, Any]]:
    """Return figures of each phase."""
    rows = []
    for phase in PHASES:
        errors, r2 = (
            [message for t, message in seen[topic] if phase.start <= t < phase.stop]
            for topic in ("tracking", "status")
        )
        squares = [sum(v * v for v in message.position_error) for message in errors]
        rms = (sum(squares) / max(len(squares), 1)) ** 0.5
        middle = sorted(float(message.r2) for message in r2)[len(r2) // 2] if r2 else float("nan")
        rows.append(
            {
                "phase": phase.name,
                "start": phase.start,
                "stop": phase.stop,
                "rms": rms,
                "r2": middle,
            }
        )
    return rows


def loads(seen: Seen) -> dict[str, float]:
    """Return when the load was noticed and its estimate before it was put down."""
    found = [row for row in seen["payload"] if PICK_UP <= row[0] < PUT_DOWN and row[1].attached]
    if not found:
        return {}
    last, com = found[-1][1], found[-1][1].com
    return {
        "noticed_after": found[0][0] - PICK_UP,
        "mass": last.mass,
        "mass_std": last.mass_std,
        "x": com.x,
        "y": com.y,
        "z": com.z,
    }


def gate_opening(seen: Seen) -> float | None:
    """Return how long after the release identified parameters were in use [s]."""
    opened = (t for t, m in seen["status"] if t >= RELEASE and m.state == m.IDENTIFIED)
    first = next(opened, None)
    return None if first is None else first - RELEASE


def show(console: Console, watcher: Watcher, truth: dict[str, Any], out: Path) -> None:
    """Print the tables and write the picture and the figures."""
    seen = watcher.seen
    rows, load, opened = phase_rows(seen), loads(seen), gate_opening(seen)
    headings = ("phase", "time [s]", "tracking RMS [mrad]", "against wrong model", "R²")
    table = named_table("Tracking, phase by phase", *headings)
    for row in rows:
        table.add_row(
            row["phase"],
            f"{row['start']:.0f}–{row['stop']:.0f}",
            f"{1e3 * row['rms']:.2f}",
            f"× {row['rms'] / rows[0]['rms']:.2f}",
            f"{row['r2']:.4f}" if row["r2"] == row["r2"] else "–",
        )
    console.print(table)
    gate = "did not open" if opened is None else f"opened {opened:.1f} s after release"
    console.print(f"The gate {gate}.")
    if load:
        console.print(
            f"The load was noticed {load['noticed_after']:.1f} s after it was picked up: "
            f"[bold]{load['mass']:.3f} ± {load['mass_std']:.3f} kg[/] (true {LOAD_MASS:.3f}), "
            f"centre of mass {load['x']:.3f}, {load['y']:.3f}, {load['z']:.3f} m (true "
            + ", ".join(f"{v:.3f}" for v in LOAD_COM)
            + ")."
        )
    masses = named_table(escape("Masses [kg]"), "body", "URDF", "true", "identified", "±")
    parameters = watcher.newest.get("parameters")
    if parameters is not None and len(parameters.inertial_std):
        for b, body in enumerate(parameters.bodies):
            known = (truth["nominal"][body], truth["true"][body])
            learned = (parameters.inertial[10 * b], parameters.inertial_std[10 * b])
            masses.add_row(body, *(f"{value:.2f}" for value in (*known, *learned)))
        console.print(masses)
    draw(seen, PHASES, (RELEASE, PICK_UP, PUT_DOWN, END), LOAD_MASS, out / "demo.png")
    figures = {
        "phases": rows,
        "gate_opened_after": opened,
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
    truth, log = out / "ground_truth.json", out / "log.txt"
    up = (sys.executable, "-m", "sysid_core.cli.main", "up", str(ROOT / "launch/sim.launch.yaml"))
    arguments = (f"robot:={given.robot}", f"truth_seed:={given.seed}")
    console.print(
        f"Starting simulator, recorder, identifier, controller; log: {log}", soft_wrap=True
    )
    with (
        Nodes((*up, *arguments, f"ground_truth_file:={truth}"), log) as nodes,
        open_session("demo") as session,
    ):
        watcher = Watcher(session, nodes)
        try:
            spans = play(watcher, console)
            watcher.ask("sysid_msgs/ExportModel", "identifier/export", directory=str(out / "live"))
            bag = str(out / "bag")
            watcher.ask("sysid_msgs/SaveBuffer", "recorder/save", 60.0, directory=bag)
        except KeyboardInterrupt:
            return 130
    robot = load_robot(given.robot)
    show(console, watcher, true_masses(truth, robot), out)
    report(console, out, robot, *spans)
    return 0


if __name__ == "__main__":
    sys.exit(main())
