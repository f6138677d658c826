# SPDX-License-Identifier: Apache-2.0
"""Feeds the command spoiled files, bombs, bad arguments and random robots, and counts what breaks.

Each case runs in a process of its own kind: one that has everything imported and takes cases until
one of them ends it. It may end with status 0, 1 or 2, and at 2 says so in one line; it may take
5 s of processor time and 1 GiB of memory, and may write nowhere but where it was told to.
"""

import contextlib
import json
import os
import random
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.fault_cases import Corpus, arguments, bomb, prepare, spoiled_file
from bench.fault_robots import random_robot
from bench.runner import Given, Result, processor_time, run_benchmark, say, show_table
from sysid_core.cli.main import main as command
from sysid_core.errors import SysidError

__all__ = ["KINDS", "Verdict", "run"]

MEMORY = 1 << 30
PROCESSOR = 5.0  # Seconds of processor time that a case may take
WALL = 30.0  # Seconds after which a case that does nothing is taken to hang

KINDS: dict[str, Callable[[Corpus, Path, random.Random], list[str]]] = {
    "spoiled files": spoiled_file,
    "bombs and special files": bomb,
    "arguments": arguments,
    "random robots and data": random_robot,
}


class Verdict(NamedTuple):
    """What came of a case."""

    kind: str
    seed: int
    words: list[str]  # The command
    status: int | None  # None: it did not end by itself
    fault: str
    """``crash``, ``hang``, ``memory``, ``wrote outside``, ``status``, ``lines``, or nothing."""
    said: str  # The last of what it said


def execute(words: list[str]) -> int:
    """Run one command in this process; return its status."""
    if words[0] in ("LAUNCH", "PARAMETERS"):
        from sysid_embedded.launch.reader import read
        from sysid_embedded.params_yaml import parse_file

        try:
            with tempfile.TemporaryDirectory() as scratch:
                path = Path(words[1])
                read(path, {}, Path(scratch)) if words[0] == "LAUNCH" else parse_file(path)
        except SysidError as error:
            print(error, file=sys.stderr)
            return 2
        return 0
    try:
        return command(words)
    except SystemExit as ended:  # argparse
        return ended.code if isinstance(ended.code, int) else 2


def _snapshot(sandbox: Path) -> set[tuple[str, int, int]]:
    """Return name, size and time of all files that no case may change."""
    found = set()
    for path in sandbox.rglob("*"):
        if sandbox / "case" not in (path, *path.parents):
            state = path.lstat()
            found.add((str(path), state.st_size, state.st_mtime_ns))
    return found


def _judge(status: int, said: str, changed: bool) -> str:
    lines = [line for line in said.splitlines() if line and not line.startswith("warning:")]
    if changed:
        return "wrote outside"
    if "more memory than there is" in said:
        return "memory"
    if status not in (0, 1, 2):
        return "status"
    return "lines" if status == 2 and len(lines) != 1 else ""


def _work(jobs: list[tuple[str, int]], corpus: Corpus, sandbox: Path, report: int) -> None:
    """Take cases one after the other in a forked process and report each on a pipe."""
    said = (sandbox.parent / "said.txt").open("w+b", buffering=0)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.dup2(said.fileno(), 2)
    os.environ["HOME"] = str(sandbox / "home")
    os.environ["MPLCONFIGDIR"] = str(sandbox.parent)  # matplotlib keeps its fonts there
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before = _snapshot(sandbox)
    for kind, seed in jobs:
        folder = sandbox / "case"
        os.chdir(sandbox)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        os.chdir(folder)
        words = KINDS[kind](corpus, folder, random.Random(f"{kind} {seed}"))
        os.write(report, json.dumps({"words": words}).encode() + b"\n")
        said.seek(0)
        said.truncate()
        try:
            status = execute(words)
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            status = 70
        sys.stderr.flush()
        said.seek(0)
        text = said.read(20_000).decode("utf-8", errors="replace")
        after = _snapshot(sandbox)
        fault = _judge(status, text, after != before)
        before = after
        found = {"status": status, "fault": fault, "said": text[-300:]}
        os.write(report, json.dumps(found).encode() + b"\n")


def _lines(pid: int, pipe: int) -> Iterator[Any]:
    """Yield what a worker reports; None when it hangs or has ended."""
    rest = b""
    began, since = processor_time(pid), time.monotonic()
    while True:
        if select.select([pipe], [], [], 0.25)[0]:
            portion = os.read(pipe, 1 << 16)
            if not portion:
                yield "ended"
                return
            *lines, rest = (rest + portion).split(b"\n")
            for line in lines:
                yield json.loads(line)
            began, since = processor_time(pid), time.monotonic()
        elif processor_time(pid) - began > PROCESSOR or time.monotonic() - since > WALL:
            yield "hang"
            return


def run_cases(jobs: list[tuple[str, int]], corpus: Corpus, sandbox: Path) -> Iterator[Verdict]:
    """Run cases in forked processes and yield what came of each."""
    jobs = list(jobs)
    while jobs:
        pipe, report = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(pipe)
            with contextlib.suppress(BaseException):
                _work(jobs, corpus, sandbox, report)
            os._exit(0)
        os.close(report)
        words: list[str] = []
        for found in _lines(pid, pipe):
            if isinstance(found, str):
                if jobs and (found == "hang" or words):
                    fault = "hang" if found == "hang" else "crash"
                    yield Verdict(*jobs.pop(0), words, None, fault, "")
                elif jobs:
                    raise SystemExit("bench.faults: a worker ended before its first case")
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                break
            if "words" in found:
                words = found["words"]
            else:
                yield Verdict(*jobs.pop(0), words, **found)
                words = []
        os.close(pipe)
        os.waitpid(pid, 0)


def run(given: Given) -> Result:
    """Run all cases and count what broke."""
    counts = {
        "spoiled files": given.files,
        "bombs and special files": given.bombs,
        "arguments": given.arguments,
        "random robots and data": given.robots,
    }
    jobs = [(kind, given.seed + k) for kind, count in counts.items() for k in range(count)]
    faults: Counter[tuple[str, str]] = Counter()
    refused: Counter[str] = Counter()
    bad: list[Verdict] = []
    with tempfile.TemporaryDirectory(prefix="sysid-faults-") as name:
        sandbox = Path(name) / "sandbox"
        (sandbox / "corpus").mkdir(parents=True)
        (sandbox / "home").mkdir()
        with Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null):
            corpus = prepare(sandbox / "corpus", command)
        for k, verdict in enumerate(run_cases(jobs, corpus, sandbox), start=1):
            refused[verdict.kind] += verdict.status == 2
            if verdict.fault:
                faults[verdict.kind, verdict.fault] += 1
                bad.append(verdict)
                say(f"{verdict.fault}: {verdict.words!r:.300}\n    {verdict.said[-200:]!r}")
            if k % 500 == 0:
                say(f"{k} of {len(jobs)} cases, {len(bad)} at fault")
    return _result(counts, refused, faults, bad)


_FAULTS = ("crash", "hang", "memory", "wrote outside", "status", "lines")


def _result(
    counts: dict[str, int],
    refused: Counter[str],
    faults: Counter[tuple[str, str]],
    bad: list[Verdict],
) -> Result:
    rows = [
        (kind, count, refused[kind], *(faults[kind, fault] for fault in _FAULTS))
        for kind, count in counts.items()
    ]
    headings = ("kind", "cases", "refused", *_FAULTS)
    table = show_table("faults", headings, rows)
    figures: dict[str, float] = {
        "files, arguments and robots": sum(counts.values()),
        **{f"faults: {fault}": sum(v.fault == fault for v in bad) for fault in _FAULTS},
    }
    return Result(figures, {"faults": [v._asdict() for v in bad]}, {"faults": table})


if __name__ == "__main__":
    run_benchmark(
        run,
        files=(5000, "spoiled ones"),
        bombs=(300, "and special files"),
        arguments=(1000, "of bad commands"),
        robots=(2000, "random ones"),
    )
