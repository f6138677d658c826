# SPDX-License-Identifier: Apache-2.0
"""Loads a node's module and runs it, so that signals end it cleanly from the first moment."""

import importlib
import os
import signal
import sys

from sysid_core.cli.subcommand import first_line
from sysid_core.threads import limit_threads

__all__ = ["run_program"]


def run_program(module: str) -> int:
    """Import a module and return the exit status of its ``main()``; 2 if it cannot be imported.

    While libraries load, which takes seconds, Ctrl-C and termination end the process at once:
    nothing has begun yet that must be ended in order.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    limit_threads()
    try:
        main = importlib.import_module(module).main
    except (ImportError, OSError) as error:  # OSError: a library that a package opens itself
        why = f"cannot be loaded: {first_line(error)}; 'sysid doctor' says what to install"
        print(f"{module} {why}", file=sys.stderr)
        return 2
    return int(main())
