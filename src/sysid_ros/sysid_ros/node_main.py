# SPDX-License-Identifier: Apache-2.0
"""Runs a node as a program: bad settings end with one line, signals end it cleanly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import rclpy
from rclpy.executors import (
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.node import Node

from sysid_core.errors import SysidError

__all__ = ["run_node"]

_LOOK = 0.1
"""Longest time [s] between two looks at whether a node is done."""

NodeT = TypeVar("NodeT", bound=Node)


def run_node(
    name: str,
    make: Callable[[], NodeT],
    args: Sequence[str] | None = None,
    *,
    threads: int = 1,
    done: Callable[[NodeT], bool] | None = None,
) -> int:
    """Make a node and spin it until it is done or told to stop.

    Parameters
    ----------
    name : str
        Of the program, for messages.
    make : callable
        Returns the node; raises `SysidError` if it cannot start.
    args : Sequence[str] or None
        Command line; None: the process's own.
    threads : int
        That callbacks run on.
    done : callable or None
        Says when a node has ended of itself; None: never.

    Returns
    -------
    int
        Exit status: 0, or 2 where the node could not start.
    """
    rclpy.init(args=None if args is None else list(args))
    try:
        node = make()
    except SysidError as error:
        print(f"{name}: {error}", file=sys.stderr)
        rclpy.try_shutdown()
        return 2
    executor = MultiThreadedExecutor(threads) if threads > 1 else SingleThreadedExecutor()
    executor.add_node(node)
    try:
        if done is None:
            executor.spin()
        else:
            while rclpy.ok() and not done(node):
                executor.spin_once(timeout_sec=_LOOK)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        with suppress(KeyboardInterrupt):  # launch repeats the signal that the terminal sent
            executor.shutdown()
            node.destroy_node()
            rclpy.try_shutdown()
    return 0
