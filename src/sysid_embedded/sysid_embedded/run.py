# SPDX-License-Identifier: Apache-2.0
"""``python -m sysid_embedded.run MODULE[:FUNCTION] [ARGUMENT …]``: runs a node's main function."""

from __future__ import annotations

import ctypes
import importlib
import signal
import sys
from collections.abc import Sequence

from .finder import install

__all__ = ["main"]

_USAGE = "usage: python -m sysid_embedded.run MODULE[:FUNCTION] [ARGUMENT ...]"


_WITH_PARENT = "--with-parent"
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Be interrupted when the parent process dies, however it dies (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the function of a module (default: ``main``) where rclpy may be the embedded one.

    Parameters
    ----------
    arguments : sequence of str, optional
        Module, then the node's own arguments. Default: the command line.

    Returns
    -------
    int
        Exit status: the function's if it returns one, else 0.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == [_WITH_PARENT]:
        _end_with_parent()
        del given[0]
    if not given or given[0] in ("-h", "--help"):
        print(_USAGE, file=sys.stderr)
        return 0 if given else 2
    module, _, function = given[0].partition(":")
    install()
    sys.argv = [module, *given[1:]]
    result = getattr(importlib.import_module(module), function or "main")()
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
