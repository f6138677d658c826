# SPDX-License-Identifier: Apache-2.0
"""The part of rclpy's API that the project's nodes use; imported as ``rclpy``."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sysid_embedded import finder

from . import context as _context
from . import exceptions
from . import executors as _executors
from . import logging as _logging
from . import node as _node
from .context import Context, get_default_context, ok, try_shutdown
from .parameter import Parameter
from .signals import SignalHandlerOptions, install_signal_handlers, uninstall_signal_handlers
from .task import Future

__all__ = [
    "Context",
    "Future",
    "Parameter",
    "create_node",
    "exceptions",
    "get_default_context",
    "get_global_executor",
    "init",
    "ok",
    "shutdown",
    "spin",
    "spin_once",
    "spin_until_future_complete",
    "try_shutdown",
]

_global_executors: list[_executors.SingleThreadedExecutor] = []


def init(
    *,
    args: list[str] | None = None,
    context: Context | None = None,
    signal_handler_options: SignalHandlerOptions = SignalHandlerOptions.ALL,
) -> None:
    """Start; the arguments default to the command line.

    Raises
    ------
    RuntimeError
        If it is called twice, or the arguments or the environment make no sense.
    """
    is_default = context is None
    context = get_default_context() if context is None else context
    context.init(args)
    if is_default and signal_handler_options is SignalHandlerOptions.ALL:
        install_signal_handlers(context)
    _logging.get_logger("sysid_embedded").info(
        f"{finder.reason()}: the embedded runtime stands in, in domain {context.get_domain_id()}"
    )


def get_global_executor() -> _executors.SingleThreadedExecutor:
    if not _global_executors:
        executor = _executors.SingleThreadedExecutor()
        _global_executors.append(executor)
        executor.context.on_shutdown(_global_executors.clear)
    return _global_executors[0]


def shutdown(*, context: Context | None = None) -> None:
    _context.shutdown(context=context)
    if context is None:
        uninstall_signal_handlers()


def create_node(node_name: str, **options: Any) -> _node.Node:
    return _node.Node(node_name, **options)


@contextmanager
def _running(node: _node.Node) -> Iterator[_executors.SingleThreadedExecutor]:
    """Let the global executor run a node's callbacks meanwhile."""
    executor = get_global_executor()
    executor.add_node(node)
    try:
        yield executor
    finally:
        executor.remove_node(node)


def spin_once(node: _node.Node, *, timeout_sec: float | None = None) -> None:
    with _running(node) as executor:
        executor.spin_once(timeout_sec=timeout_sec)


def spin(node: _node.Node) -> None:
    with _running(node) as executor:
        executor.spin()


def spin_until_future_complete(
    node: _node.Node, future: Future, *, timeout_sec: float | None = None
) -> None:
    with _running(node) as executor:
        executor.spin_until_future_complete(future, timeout_sec)
