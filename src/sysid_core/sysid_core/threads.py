# SPDX-License-Identifier: Apache-2.0
"""How many threads a matrix may take."""

from __future__ import annotations

import os

__all__ = ["limit_threads"]

_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Read when numpy is imported."""


def limit_threads() -> None:
    """Let libraries take one thread unless told otherwise, in what is imported after this.

    Matrices are small here: threads that wait for each other cost more than they bring.
    """
    for library in _LIBRARIES:
        os.environ.setdefault(library, "1")
