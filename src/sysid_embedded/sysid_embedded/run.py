# SPDX-License-Identifier: Apache-2.0
"""``python -m sysid_embedded.run MODULE[:FUNCTION] [ARGUMENT …]``: runs a node's main function."""

import ctypes
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from sysid_core.cli.subcommand import first_line

from .errors import StartError
from .finder import install

__all__ = ["main"]

_USAGE = "usage: python -m sysid_embedded.run MODULE[:FUNCTION] [ARGUMENT ...]"


_DEBUG = "SYSID_DEBUG"
_WITH_PARENT = "--with-parent"
_PR_SET_PDEATHSIG = 1


def _end_with_parent() -> None:
    """Be interrupted when the parent process dies, however it dies (on Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the function of a module (default: ``main``) where rclpy may be the embedded one.

    Arguments are the module, then the node's own. Returns the function's exit status, else 0; 2,
    and one line on stderr, if the module or what it needs cannot be imported, or the runtime
    cannot start.
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
    try:
        loaded = importlib.import_module(module)
    except (ImportError, OSError) as error:  # OSError: a library that a package opens itself
        if os.environ.get(_DEBUG):
            raise
        why = f"cannot be loaded: {first_line(error)}; 'sysid doctor' says what to install"
        print(f"{module} {why}", file=sys.stderr)
        return 2
    try:
        result = getattr(loaded, function or "main")()
    except StartError as error:
        print(f"{module}: {error}", file=sys.stderr)
        return 2
    return result if isinstance(result, int) else 0


if __name__ == "__main__":
    sys.exit(main())
