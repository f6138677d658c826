# SPDX-License-Identifier: Apache-2.0
"""The entry point of ``sysid``: picks the subcommand, puts every failure in one line."""

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NoReturn

from sysid_core.cli.subcommand import find_subcommands
from sysid_core.errors import SysidError
from sysid_core.threads import limit_threads

__all__ = ["main"]

_BAD_INPUT = 2
_INTERNAL = 70
_INTERRUPTED = 130
_DEBUG = "SYSID_DEBUG"


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line instead of printing the usage."""

    late_epilog: Callable[[], str] | None = None

    def format_help(self) -> str:
        if self.late_epilog is not None:
            self.epilog = self.late_epilog()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        self.exit(_BAD_INPUT, f"{self.prog}: {message} (see '{self.prog} --help')\n")


def _version() -> str:
    try:
        return version("sysid_core")
    except PackageNotFoundError:
        return "unknown"


def _build_parser(wanted: str | None) -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    subcommands, troubles = find_subcommands(wanted)
    if not subcommands:
        raise SysidError(_cannot_load(troubles[0]))
    parser = _Parser(
        prog="sysid",
        description="Identification of robot dynamics from bags, tables and live robots.",
        epilog="'sysid SUBCOMMAND --help' explains a subcommand.",
    )
    parser.add_argument("--version", action="version", version=f"sysid {_version()}")
    actions = parser.add_subparsers(
        dest="subcommand", metavar="SUBCOMMAND", required=True, parser_class=_Parser
    )
    for name, subcommand in subcommands.items():
        sub = actions.add_parser(
            name,
            help=subcommand.help,
            description=subcommand.help,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.late_epilog = subcommand.epilog
        subcommand.add_arguments(sub)
        sub.set_defaults(run=subcommand.run)
    return parser, troubles


def _cannot_load(what: str) -> str:
    return f"{what}; 'sysid doctor' says what to install, 'make setup' installs it"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _run(arguments: Sequence[str]) -> int:
    wanted = next((a for a in arguments if not a.startswith("-")), None)
    parser, troubles = _build_parser(wanted)
    for trouble in troubles:
        print(f"sysid: warning: {trouble}", file=sys.stderr)
    args = parser.parse_args(arguments)
    return int(args.run(args))


def _is_numerical(error: Exception) -> bool:
    numpy = sys.modules.get("numpy")  # imported only where something is computed
    singular = numpy is not None and isinstance(error, numpy.linalg.LinAlgError)
    return singular or isinstance(error, OverflowError)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    0: done; 1: done, and the answer is no; 2: bad input, one line on stderr says what to mend;
    70: an error in sysid itself; 130: interrupted.
    """
    limit_threads()
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # numpy's; what matters is told
            status = _run(given)
        sys.stdout.flush()
        return status
    except SysidError as error:
        print(f"sysid: {_one_line(error)}", file=sys.stderr)
        return _BAD_INPUT
    except ImportError as error:  # a subcommand imports what it needs when it runs
        if os.environ.get(_DEBUG):
            raise
        print(f"sysid: {_cannot_load(_one_line(error))}", file=sys.stderr)
        return _BAD_INPUT
    except KeyboardInterrupt:
        print("sysid: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:  # the reader, e.g. head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError as error:
        print(f"sysid: needs more memory than there is ({_one_line(error)})", file=sys.stderr)
        return _BAD_INPUT
    except Exception as error:
        if _is_numerical(error):
            print(
                f"sysid: the numbers of robot or data are too large, too small or too alike to "
                f"compute with ({_one_line(error)}); check their units",
                file=sys.stderr,
            )
            return _BAD_INPUT
        if isinstance(error, OSError) and error.filename is not None:  # a path of the user's
            print(f"sysid: {error.filename}: {error.strerror}", file=sys.stderr)
            return _BAD_INPUT
        if os.environ.get(_DEBUG):
            raise
        print(
            f"sysid: internal error ({type(error).__name__}: {_one_line(error)}); please report "
            f"it with the output of the same command after 'export {_DEBUG}=1'",
            file=sys.stderr,
        )
        return _INTERNAL


if __name__ == "__main__":
    sys.exit(main())
