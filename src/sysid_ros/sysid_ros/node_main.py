# SPDX-License-Identifier: Apache-2.0
"""Runs a node as a program: bad settings end with one line, signals end it cleanly."""

import ctypes
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions

from sysid_core.errors import ParameterError, SysidError
from sysid_core.wording import one_line

__all__ = ["return_freed_memory", "run_node", "trim_memory"]

_LOOK = 0.1  # Longest time [s] between two looks at whether a node is done or was told to stop
_QUIET = 5.0  # Least time [s] between two warnings of messages that cannot be read
_THRESHOLDS = (-3, -1)  # ``M_MMAP_THRESHOLD`` and ``M_TRIM_THRESHOLD`` of glibc's ``malloc.h``
_LARGE = 1 << 20  # Bytes of what is given back

_RCLPY = Path(rclpy.__file__).parent

NodeT = TypeVar("NodeT", bound=Node)


def run_node(
    name: str,
    make: Callable[[], NodeT],
    args: Sequence[str] | None = None,
    *,
    done: Callable[[NodeT], bool] | None = None,
) -> int:
    """Make a node and spin it until it is `done` or told to stop; 2 if it cannot start, else 0.

    The program's name is for messages; the command line is by default the process's own.
    """
    with _stop_signals() as stopped:
        try:
            _init(args)
            node = make()
        except SysidError as error:
            print(f"{name}: {error}", file=sys.stderr)
            rclpy.try_shutdown()
            return 2
        executor = SingleThreadedExecutor()
        executor.add_node(node)
        try:
            while rclpy.ok() and not stopped.is_set() and not (done is not None and done(node)):
                _spin(executor, node)
        except ExternalShutdownException:
            pass
        finally:
            executor.shutdown()
            node.destroy_node()
            rclpy.try_shutdown()
    return 0


def return_freed_memory() -> None:
    """Have the C library give large arrays back when they are freed, however many were before.

    glibc keeps as much as the largest array that was ever freed, up to 32 MB: once its buffer was
    saved, the recorder stayed 20 MB larger (mallopt(3), dynamic adjustment of the threshold).
    For nodes that take large arrays seldom: each costs the system's time to clear its pages.
    """
    with suppress(AttributeError, OSError):  # another C library
        library = ctypes.CDLL(None)
        for threshold in _THRESHOLDS:
            library.mallopt(threshold, _LARGE)


def trim_memory() -> None:
    """Give the pages back that the C library's heap holds between what is in use.

    Aligned blocks of changing size leave gaps that glibc does not fill again (malloc_trim(3)).
    For events that a user causes: it takes about a millisecond.
    """
    with suppress(AttributeError, OSError):  # another C library
        ctypes.CDLL(None).malloc_trim(0)


def _spin(executor: SingleThreadedExecutor, node: Node) -> None:
    """Run what is due next; a message that rclpy itself cannot read is passed over.

    Such is a ``/clock`` before zero, which raises in the time source of any node that follows it.
    """
    try:
        executor.spin_once(timeout_sec=_LOOK)
    except ValueError as error:
        called = traceback.extract_tb(error.__traceback__)[1:]
        if not all(Path(frame.filename).is_relative_to(_RCLPY) for frame in called):
            raise
        node.get_logger().warning(
            f"a message cannot be read: {one_line(error)}", throttle_duration_sec=_QUIET
        )


def _init(args: Sequence[str] | None) -> None:
    """Start rclpy; what it says of arguments and the middleware becomes one line."""
    try:
        rclpy.init(
            args=None if args is None else list(args),
            signal_handler_options=SignalHandlerOptions.NO,
        )
    except RuntimeError as error:
        raise ParameterError(one_line(error)) from error


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """Turn Ctrl-C and termination into a flag, however often they come.

    The context stays valid meanwhile, so that what a callback is about to publish does not fail.
    """
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {
        number: signal.signal(number, lambda *_: stopped.set())
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
