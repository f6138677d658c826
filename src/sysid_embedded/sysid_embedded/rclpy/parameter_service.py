# SPDX-License-Identifier: Apache-2.0
"""The services by which others read and set a node's parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sysid_embedded.messages import message_class, service_class

from .exceptions import ParameterException
from .parameter import Parameter
from .qos import qos_profile_parameters

if TYPE_CHECKING:
    from .node import Node

__all__ = ["ParameterService"]

_SERVICES = (
    "describe_parameters",
    "get_parameter_types",
    "get_parameters",
    "list_parameters",
    "set_parameters",
    "set_parameters_atomically",
)


class ParameterService:
    """Answers for a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        for name in _SERVICES:
            stem = "".join(part.capitalize() for part in name.split("_"))
            node.create_service(
                service_class(f"rcl_interfaces/srv/{stem}"),
                f"~/{name}",
                getattr(self, f"_{name}"),
                qos_profile=qos_profile_parameters,
            )

    def _describe_parameters(self, request: Any, response: Any) -> Any:
        response.descriptors = self._each(request.names, self._node.describe_parameter)
        return response

    def _get_parameter_types(self, request: Any, response: Any) -> Any:
        parameters = self._each(request.names, self._node.get_parameter)
        response.types = [parameter.type_.value for parameter in parameters]
        return response

    def _get_parameters(self, request: Any, response: Any) -> Any:
        parameters = self._each(request.names, self._node.get_parameter)
        response.values = [parameter.get_parameter_value() for parameter in parameters]
        return response

    @staticmethod
    def _each(names: Sequence[str], get: Callable[[str], Any]) -> list[Any]:
        """Return what there is of each name; one unknown name leaves the whole answer empty."""
        try:
            return [get(name) for name in names]
        except ParameterException:
            return []

    def _list_parameters(self, request: Any, response: Any) -> Any:
        response.result = self._node.list_parameters(list(request.prefixes), request.depth)
        return response

    def _set_parameters(self, request: Any, response: Any) -> Any:
        for message in request.parameters:
            response.results.append(self._set([message]))
        return response

    def _set_parameters_atomically(self, request: Any, response: Any) -> Any:
        response.result = self._set(request.parameters)
        return response

    def _set(self, messages: list[Any]) -> Any:
        try:
            parameters = [Parameter.from_parameter_msg(message) for message in messages]
            return self._node.set_parameters_atomically(parameters)
        except (ParameterException, ValueError) as error:
            result = message_class("rcl_interfaces/msg/SetParametersResult")
            return result(successful=False, reason=str(error))
