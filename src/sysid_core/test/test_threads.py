# SPDX-License-Identifier: Apache-2.0
"""Matrices take one thread, also in programs that know nothing of it."""

from __future__ import annotations

import os
import subprocess
import sys

THREADS = """
import numpy
from threadpoolctl import threadpool_info
from sysid_core.threads import one_thread

def threads():
    return [library["num_threads"] for library in threadpool_info()]

before, (within, after) = threads(), (one_thread()(threads)(), threads())
assert before == after
print(within == [1] * len(before), within == before)
"""


def _told(**environment: str) -> list[str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    free = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-c", THREADS]
    run = subprocess.run(
        command, env={**free, **environment}, check=True, capture_output=True, text=True
    )
    return run.stdout.split()


def test_a_program_that_limits_nothing_has_one_thread_within() -> None:
    assert _told()[0] == "True"


def test_who_says_how_many_is_obeyed() -> None:
    assert _told(OPENBLAS_NUM_THREADS="3")[1] == "True"
