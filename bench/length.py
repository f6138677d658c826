# SPDX-License-Identifier: Apache-2.0
"""Memory and cost per sample of long recordings, and whether workers give one process's result."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.arms import wide_motion
from bench.runner import Given, Result, run_benchmark, say, show_rows
from sysid_core.arrays import FloatArray
from sysid_core.data import write_recording
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.recording import Recording
from sysid_core.robot import load_robot

__all__ = ["run"]

_ROBOT = "panda"
_RATE = 1000.0
_BLOCK = 20_000
_DECODE = (
    "import sys; from sysid_core.data import read_parts\n"
    "for part in read_parts(sys.argv[1], rows=40000, reach=2.5): pass"
)
"""What reading alone costs, in the parts that `identify` reads."""


class _Cost(NamedTuple):
    """Processor time [s] and largest memory [MB] of a process."""

    seconds: float
    memory: float


def _recording(minutes: float, seed: int) -> Recording:
    """Return a recording of an arm with friction, of noisy joint states."""
    robot, rng = load_robot(_ROBOT), np.random.default_rng(seed)
    joints = len(robot.joint_names)
    motion = wide_motion(robot, rng, 20.0, speed=0.6)
    time = np.arange(round(minutes * 60.0 * _RATE)) / _RATE
    truth = robot.consistent_nominal.copy()
    for term, value in (("viscous", 2.0), ("coulomb", 1.5)):
        truth[robot.layout.term(term)] = value
    tree = OpenTree(robot, parameters=truth)
    q, v, tau = (np.empty((len(time), joints)) for _ in range(3))
    for start in range(0, len(time), _BLOCK):
        block = slice(start, start + _BLOCK)
        states = motion.states(time[block])
        q[block], v[block], tau[block] = *states[:2], tree.torques(*states)
    for values, noise in ((q, 1e-5), (v, 1e-3), (tau, 0.05)):
        values += noise * rng.normal(size=values.shape)
    return Recording(time, robot.joint_names, q, v, tau)


def _cost(*command: str) -> _Cost:
    """Run Python with arguments and return what it took."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{' '.join(command)} ended with status {status}")
    return _Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024.0)


def _identify(data: Sequence[Path], out: Path, *more: str) -> _Cost:
    command = ["-m", "sysid_core.cli.main", "identify", *map(str, data), "--robot", _ROBOT]
    return _cost(*command, "--out", str(out), "--no-report", *more)


def _parameters(out: Path) -> FloatArray:
    found = json.loads((out / "estimate.json").read_text(encoding="utf-8"))
    return np.concatenate([np.array(values) for values in found["bodies"].values()])


def _difference(out: Path, other: Path) -> float:
    one, two = _parameters(out), _parameters(other)
    return float(np.abs(one - two).max() / np.abs(one).max())


def _against_dask(data: Sequence[Path], alone: Path, out: Path) -> float | None:
    if find_spec("distributed") is None:
        say("Dask is not installed: pip install 'sysid_core[dask]'")
        return None
    from distributed import LocalCluster

    start: Any = LocalCluster
    with start(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        _identify(data, out, "--scheduler", cluster.scheduler_address)
    return _difference(alone, out)


def run(given: Given) -> Result:
    """Measure a long recording, a shorter one, and two recordings by several workers."""
    samples = given.minutes * 60.0 * _RATE
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bags = [folder / "long", folder / "one", folder / "two"]
        for seed, (bag, minutes) in enumerate(
            zip(bags, (given.minutes, 0.2 * given.minutes, 0.1 * given.minutes), strict=True)
        ):
            say(f"simulating {minutes:g} min")
            write_recording(_recording(minutes, given.seed + seed), bag)
        reading = _cost("-c", _DECODE, str(bags[0]))
        long, short = (_identify([bag], folder / f"{bag.name}-out") for bag in bags[:2])
        pair, alone = bags[1:], folder / "alone"
        _identify(pair, alone)
        _identify(pair, folder / "workers", "--workers", "2")
        two = _difference(alone, folder / "workers")
        dask = _against_dask(pair, alone, folder / "dask")
    beyond = 1e6 * (long.seconds - reading.seconds) / samples
    costs = {"reading": reading, "identify": long, f"identify, {0.2 * given.minutes:g} min": short}
    rows = [
        {"": what, "processor time [s]": cost.seconds, "memory [MB]": cost.memory}
        for what, cost in costs.items()
    ]
    title = f"{given.minutes:g} min of {_ROBOT} at {_RATE:g} Hz"
    table = show_rows(title, rows, ".3g")
    figures = {
        "memory [MB]": long.memory,
        "beyond reading [µs a sample]": beyond,
        "two processes against one": two,
    }
    if dask is not None:
        figures["Dask against one process"] = dask
    return Result(figures, {}, {"length": table})


if __name__ == "__main__":
    run_benchmark(run, minutes=(10.0, "of the long recording"))
