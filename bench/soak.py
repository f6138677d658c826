# SPDX-License-Identifier: Apache-2.0
"""Runs all nodes around a simulated arm and injects a fault every second: nothing may die.

The robot waits for its commands, so that a busy computer slows all down instead of its control:
times of recovery are the robot's. ``--seconds 3600`` is the long run.
"""

import contextlib
import math
import signal
import time
from collections import Counter
from typing import Any

import numpy as np

from bench.live import Usage, node_process
from bench.runner import Given, Result, run_benchmark, say, show_table
from bench.soak_faults import FAULTS, ROBOT, Probe

__all__ = ["run"]

NODES = {
    "simulator": "sysid_sim",
    "recorder": "sysid_online",
    "identifier": "sysid_online",
    "controller": "sysid_controller",
    "reference": "sysid_sim",
}
LONGEST_FAULT = 0.5  # Seconds that a fault lasts at most
PATIENCE = 120.0  # Seconds until the robot should follow its reference at first
WARM = 60.0
"""Seconds of the robot's time after which memory should be flat: the recorder's buffer is full."""


def _pause(probe: Probe, process: Any) -> None:
    """Stop a node's process for a while, as a machine that is too busy does."""
    process.send_signal(signal.SIGSTOP)
    probe.spin(float(probe.rng.uniform(0.1, LONGEST_FAULT)))
    process.send_signal(signal.SIGCONT)


def _recovery(probe: Probe, due: float, limit: float) -> float:
    """Return the robot's time [s] from which on it follows its reference until `due`."""
    from std_srvs.srv import SetBool

    begin = last = probe.now()
    end = time.monotonic() + limit
    while time.monotonic() < due or (not probe.follows() and time.monotonic() < end):
        if not probe.follows():
            last = probe.now()
            if probe.halted() and last - begin > 1.0:
                probe.call(SetBool, "controller/enable", data=True)  # as a user would
        probe.spin(0.05)
    return last - begin if probe.follows() else math.inf


def _start(stack: contextlib.ExitStack, rate: float) -> dict[str, Any]:
    own = {
        "simulator": ["publish_clock:=true", "lockstep:=0.01", f"rate:={rate}"],
        "reference": ["amplitude:=0.3", "speed:=0.2"],
    }
    processes = {}
    for name, package in NODES.items():
        settings = [f"robot:={ROBOT}", "use_sim_time:=" + str(name != "simulator").lower()]
        node = node_process(package, name, *settings, *own.get(name, []))
        processes[name] = stack.enter_context(node)
    return processes


def run(given: Given) -> Result:
    """Inject a fault every second and watch what comes of it."""
    counts: Counter[str] = Counter()
    slow: list[tuple[str, float]] = []
    with contextlib.ExitStack() as stack:
        probe = Probe(given.seed)
        stack.callback(probe.close)
        processes = _start(stack, given.rate)
        usage = {name: Usage(process.pid) for name, process in processes.items()}
        begin = time.monotonic()
        while probe.tracking is None or not probe.follows():
            probe.spin(0.2)
            ended = [name for name, process in processes.items() if process.poll() is not None]
            if ended or time.monotonic() - begin > PATIENCE:
                why = f"{', '.join(ended)} ended" if ended else "it does not follow its reference"
                raise SystemExit(f"bench.soak: the robot cannot be soaked: {why}")
        begin, flat = time.monotonic(), probe.now() + min(WARM, 0.2 * given.seconds)
        while time.monotonic() - begin < given.seconds:
            kind = str(probe.rng.choice([*FAULTS, "pause"]))
            due = time.monotonic() + 1.0
            if kind == "pause":
                _pause(probe, processes[str(probe.rng.choice([*NODES]))])
            else:
                FAULTS[kind](probe)
                probe.spin(0.1)
            counts[kind] += 1
            slow.append((kind, _recovery(probe, due, 30.0)))
            for name, process in processes.items():
                if process.poll() is None and probe.now() > flat:
                    usage[name].sample()
            if sum(counts.values()) % 30 == 0:
                say(f"{time.monotonic() - begin:.0f} s, {sum(counts.values())} faults")
        dead = [
            f"{name}, status {process.returncode}"
            for name, process in processes.items()
            if process.poll() is not None
        ]
    return _result(counts, slow, usage, dead)


def _growth(usage: Usage) -> float:
    """Return how much memory [MB] was added since buffers were full."""
    memory = usage.memory
    return float(np.median(memory[-5:]) - np.median(memory[:5])) if memory else math.nan


def _result(
    counts: Counter[str], slow: list[tuple[str, float]], usage: dict[str, Usage], dead: list[str]
) -> Result:
    worst = {kind: max(t for k, t in slow if k == kind) for kind in counts}
    growth = {name: _growth(one) for name, one in usage.items()}
    faults = show_table(
        "soak",
        ("fault", "cases", "longest recovery [s]"),
        ((kind, count, worst[kind]) for kind, count in counts.items()),
        ".3g",
    )
    nodes = show_table("", ("node", "growth [MB]"), growth.items(), ".2f")
    figures: dict[str, float] = {
        "live attacks": sum(counts.values()),
        "nodes that died": len(dead),
        "memory growth [MB]": max(growth.values()),
        "longest recovery [s]": max(worst.values()),
    }
    return Result(figures, {"dead": dead}, {"faults": faults, "nodes": nodes})


if __name__ == "__main__":
    run_benchmark(run, seconds=(600.0, "of faults"), rate=(1000.0, "of the robot [Hz]"))
