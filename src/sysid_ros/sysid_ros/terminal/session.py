# SPDX-License-Identifier: Apache-2.0
"""A terminal's node, and what it asks of the graph: topics, services, their types."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points
from typing import Any

from sysid_core.errors import DataError, ParameterError

__all__ = ["Session", "open_session", "provide_rclpy"]

_LOOK = 0.05  # [s] between two looks at the graph


class Session:
    """A node with an executor in a context of its own, for one command."""

    def __init__(self, context: Any, node: Any, executor: Any) -> None:
        self.context, self.node, self._executor = context, node, executor

    def spin(self, seconds: float) -> None:
        """Run callbacks for a time, or until one was run."""
        self._executor.spin_once(timeout_sec=seconds)

    def until(self, look: Callable[[], Any], seconds: float) -> Any:
        """Run callbacks until something is found; return what was found last."""
        end = time.monotonic() + seconds
        while not (found := look()):
            if time.monotonic() > end or not self.context.ok():
                break
            self.spin(_LOOK)
        return found

    def full_name(self, name: str) -> str:
        """Return a name with its namespace."""
        return name if name.startswith("/") else f"/{name}"

    def ask(self, kind: Any, service: str, request: Any, timeout: float) -> Any:
        """Return a service's answer.

        Raises
        ------
        DataError
            If there is no such service or it does not answer in time.
        """
        answer = self.ask_all(kind, [service], request, timeout)[0]
        if isinstance(answer, DataError):
            raise answer
        return answer

    def ask_all(
        self, kind: Any, services: Sequence[str], request: Any, timeout: float
    ) -> list[Any]:
        """Return the answers of services of one type, asked at once; an error for each without."""
        clients = [self.node.create_client(kind, service) for service in services]
        try:
            self.until(lambda: all(client.service_is_ready() for client in clients), timeout)
            asked = [c.call_async(request) if c.service_is_ready() else None for c in clients]
            self.until(lambda: all(future.done() for future in asked if future), timeout)
            return [
                DataError(f"service '{service}' is not there: is its node running?")
                if future is None
                else future.result()
                if future.done()
                else DataError(f"service '{service}' did not answer within {timeout:g} s")
                for service, future in zip(services, asked, strict=True)
            ]
        finally:
            for client in clients:
                self.node.destroy_client(client)

    def topic_type(self, topic: str, timeout: float) -> str:
        """Return the type of a topic that somebody publishes.

        Raises
        ------
        DataError
            If nobody does in time.
        """
        infos = self.until(lambda: self.node.get_publishers_info_by_topic(topic), timeout)
        if infos:
            return str(infos[0].topic_type)
        raise DataError(_nowhere("topic", topic, self.node.get_topic_names_and_types()))

    def service_type(self, service: str, timeout: float) -> str:
        """Return the type of a service.

        Raises
        ------
        DataError
            If nobody offers it in time.
        """
        known = self.node.get_service_names_and_types
        kinds: list[str] | None = self.until(lambda: dict(known()).get(service), timeout)
        if kinds:
            return kinds[0]
        others = [(name, kinds) for name, kinds in known() if "rcl_interf" not in kinds[0]]
        raise DataError(_nowhere("service", service, others))


def _nowhere(what: str, name: str, known: Sequence[tuple[str, list[str]]]) -> str:
    names = ", ".join(sorted(other for other, _ in known)[:20])
    return f"{what} '{name}' is not there; there are: {names or 'none'} (ROS_DOMAIN_ID counts)"


def provide_rclpy() -> bool:
    """Have ``import rclpy`` find the embedded runtime where it finds no other; say whether so."""
    return any(point.load()() for point in entry_points(group="sysid.rclpy"))


@contextlib.contextmanager
def open_session(name: str) -> Iterator[Session]:
    """Start a node; where rclpy cannot be imported, the embedded runtime stands in.

    Raises
    ------
    ParameterError
        If the name of a topic or service is none.
    """
    os.environ.setdefault("ROS_PYTHON_CHECK_FIELDS", "1")  # else a wrong value ends the process
    provide_rclpy()
    from rclpy.context import Context
    from rclpy.exceptions import NameValidationException
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node

    context = Context()
    context.init(["--ros-args", "--log-level", "warn"])
    node = Node(name, context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        yield Session(context, node, executor)
    except NameValidationException as error:
        raise ParameterError(str(error)) from error
    finally:
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()
