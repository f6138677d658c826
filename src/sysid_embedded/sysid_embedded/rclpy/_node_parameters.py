# SPDX-License-Identifier: Apache-2.0
"""The parameters of a node: declaring, reading, setting, describing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sysid_embedded.messages import message_class, service_class

from .exceptions import ParameterException
from .parameter import Parameter
from .qos import qos_profile_parameters

if TYPE_CHECKING:
    from .node import Node

__all__ = ["NodeParameters", "ParameterService"]

ParameterDescriptor: Any = message_class("rcl_interfaces/msg/ParameterDescriptor")
ParameterEvent: Any = message_class("rcl_interfaces/msg/ParameterEvent")
SetParametersResult: Any = message_class("rcl_interfaces/msg/SetParametersResult")
ListParametersResult: Any = message_class("rcl_interfaces/msg/ListParametersResult")

# A value this close to an end of its range, which a file may have rounded, is within it.
_RELATIVE_TOLERANCE = 1e-6

OnSet = Callable[[list[Parameter]], Any]


class NodeParameters:
    """Base of a node that holds its parameters; each keeps the type of its default."""

    def __init__(self) -> None:
        self._parameters: dict[str, Parameter] = {}
        self._descriptors: dict[str, Any] = {}
        self._parameter_overrides: dict[str, Any] = {}
        self._on_set_parameters_callbacks: list[OnSet] = []
        self._post_set_parameters_callbacks: list[OnSet] = []

    def _publish_parameter_event(self, event: Any) -> None:
        raise NotImplementedError

    def declare_parameter(self, name: str, value: Any, descriptor: Any = None) -> Parameter:
        """Declare a parameter by its default; an override from outside beats it.

        Raises
        ------
        ParameterException
            If it was declared before, the override is of another type, or the value does not fit
            the descriptor.
        """
        if name in self._parameters:
            raise ParameterException(f"Parameter(s) already declared: {name}")
        default = Parameter(name, value=value)
        if default.type_ is Parameter.Type.NOT_SET:
            raise ValueError(f"parameter '{name}' needs a default, which gives its type")
        descriptor = descriptor or ParameterDescriptor()
        descriptor.name, descriptor.type = name, default.type_.value
        parameter = Parameter(name, value=self._parameter_overrides.get(name, value))
        if parameter.type_ is not default.type_:
            raise ParameterException(
                f"Trying to set parameter '{name}' to '{parameter.value}' of type "
                f"'{parameter.type_.name}', expecting type '{default.type_.name}': {name}"
            )
        reason = _misfit(parameter, descriptor) or self._refusal([parameter])
        if reason:
            raise ParameterException(
                f"Invalid parameter value ({parameter.value}) for parameter. Reason: {reason}: "
                f"{name}"
            )
        self._descriptors[name] = descriptor
        self._parameters[name] = parameter
        self._tell([parameter], ParameterEvent(new_parameters=[parameter.to_parameter_msg()]))
        return parameter

    def get_parameter(self, name: str) -> Parameter:
        self._check_declared(name)
        return self._parameters[name]

    def _check_declared(self, name: str) -> None:
        if name not in self._parameters:
            raise ParameterException(f"Invalid access to undeclared parameter(s): {name}")

    def set_parameters(self, parameter_list: list[Parameter]) -> list[Any]:
        return [self.set_parameters_atomically([parameter]) for parameter in parameter_list]

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> Any:
        """Set all parameters or, where one does not fit or is refused, none of them."""
        for parameter in parameter_list:
            descriptor = self.describe_parameter(parameter.name)
            reason = _misfit(parameter, descriptor)
            if descriptor.read_only:
                reason = f"Trying to set a read-only parameter: {parameter.name}."
            if reason:
                return SetParametersResult(successful=False, reason=reason)
        reason = self._refusal(parameter_list)
        if reason:
            return SetParametersResult(successful=False, reason=reason)
        self._parameters |= {parameter.name: parameter for parameter in parameter_list}
        changed = [parameter.to_parameter_msg() for parameter in parameter_list]
        self._tell(parameter_list, ParameterEvent(changed_parameters=changed))
        return SetParametersResult(successful=True)

    def _refusal(self, parameters: list[Parameter]) -> str:
        """Return why a callback refuses values, or nothing."""
        for callback in self._on_set_parameters_callbacks:
            result = callback(parameters)
            if not result.successful:
                return result.reason or "refused"
        return ""

    def _tell(self, parameters: list[Parameter], event: Any) -> None:
        self._publish_parameter_event(event)
        for callback in self._post_set_parameters_callbacks:
            callback(parameters)

    def list_parameters(self, prefixes: list[str], depth: int) -> Any:
        result = ListParametersResult()

        def shallow(name: str) -> bool:
            return depth == 0 or name.count(".") < depth

        for name in self._parameters:
            below = [
                prefix
                for prefix in prefixes
                if name == prefix
                or (name.startswith(f"{prefix}.") and shallow(name[len(prefix) + 1 :]))
            ]
            if not below and (prefixes or not shallow(name)):
                continue
            result.names.append(name)
            prefix = name.rpartition(".")[0]
            if prefix and prefix not in result.prefixes:
                result.prefixes.append(prefix)
        return result

    def describe_parameter(self, name: str) -> Any:
        self._check_declared(name)
        return self._descriptors[name]

    def add_on_set_parameters_callback(self, callback: OnSet) -> None:
        self._on_set_parameters_callbacks.insert(0, callback)

    def add_post_set_parameters_callback(self, callback: OnSet) -> None:
        self._post_set_parameters_callbacks.insert(0, callback)


def _misfit(parameter: Parameter, descriptor: Any) -> str:
    """Return why a value does not fit a descriptor, or nothing."""
    expected = Parameter.Type(descriptor.type)
    if parameter.type_ is not expected:
        return f"Wrong parameter type, expected '{expected}' got '{parameter.type_}'"
    for limits in (*descriptor.integer_range, *descriptor.floating_point_range):
        low, high, value = limits.from_value, limits.to_value, parameter.value
        if any(value == end or _close(value, end) for end in (low, high)):
            continue
        # Written so that NaN is out of range.
        if not low < value < high:
            return (
                f"Parameter {parameter.name} out of range. Min: {low}, Max: {high}, value: {value}"
            )
    return ""


def _close(a: float, b: float) -> bool:
    """Whether two numbers, unless they are integers, are equal but for rounding."""
    return isinstance(a, float) and math.isclose(a, b, rel_tol=_RELATIVE_TOLERANCE)


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
