# SPDX-License-Identifier: Apache-2.0
"""How many threads a matrix may take: one, since matrices are small here.

Threads that wait for each other cost more than they bring: on a busy computer with two cores, the
Cholesky factor of a matrix of 130 rows took 17 ms with two threads and 1.1 ms with one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

__all__ = ["limit_threads", "one_thread"]

_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Read when numpy is imported."""


def limit_threads() -> None:
    """Let libraries take one thread unless told otherwise, in what is imported after this."""
    for library in _LIBRARIES:
        os.environ.setdefault(library, "1")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let matrices take one thread in a block, or in a function that this decorates.

    For programs that imported numpy without `limit_threads`, unless they were told otherwise.
    """
    pools = _pools()
    with nullcontext() if pools is None else pools.limit(limits=1):
        yield


@cache
def _pools() -> ThreadpoolController | None:
    """Return the libraries for matrices; None where somebody told how many threads to take."""
    if any(library in os.environ for library in _LIBRARIES):
        return None
    from threadpoolctl import ThreadpoolController  # takes a while, and commands need none

    return ThreadpoolController().select(user_api="blas")
