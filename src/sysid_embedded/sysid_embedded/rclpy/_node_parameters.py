# SPDX-License-Identifier: Apache-2.0
"""The parameters of a node: declaring, reading, setting, describing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sysid_embedded.messages import message_class

from .exceptions import (
    InvalidParameterException,
    InvalidParameterTypeException,
    InvalidParameterValueException,
    ParameterAlreadyDeclaredException,
    ParameterNotDeclaredException,
    ParameterUninitializedException,
)
from .parameter import PARAMETER_SEPARATOR_STRING, Parameter, ParameterValue

__all__ = ["NodeParameters"]

ParameterDescriptor: Any = message_class("rcl_interfaces/msg/ParameterDescriptor")
ParameterEvent: Any = message_class("rcl_interfaces/msg/ParameterEvent")
SetParametersResult: Any = message_class("rcl_interfaces/msg/SetParametersResult")
ListParametersResult: Any = message_class("rcl_interfaces/msg/ListParametersResult")

_RELATIVE_TOLERANCE = 1e-6
_RECURSIVE = 0

OnSet = Callable[[list[Parameter]], Any]


class NodeParameters:
    """Base of a node that holds its parameters."""

    PARAM_REL_TOL = _RELATIVE_TOLERANCE

    def __init__(self, allow_undeclared_parameters: bool) -> None:
        self._parameters: dict[str, Parameter] = {}
        self._descriptors: dict[str, Any] = {}
        self._parameter_overrides: dict[str, Parameter] = {}
        self._allow_undeclared_parameters = allow_undeclared_parameters
        self._on_set_parameters_callbacks: list[OnSet] = []
        self._post_set_parameters_callbacks: list[OnSet] = []

    def _publish_parameter_event(self, event: Any) -> None:
        raise NotImplementedError

    def declare_parameter(
        self,
        name: str,
        value: Any = None,
        descriptor: Any = None,
        ignore_override: bool = False,
    ) -> Parameter:
        """Declare a parameter by its default or its type; an override from outside beats it."""
        entry: tuple[Any, ...] = (name, value, descriptor or ParameterDescriptor())
        if value is None and descriptor is None:
            entry = (name,)
        return self.declare_parameters("", [entry], ignore_override)[0]

    def declare_parameters(
        self,
        namespace: str,
        parameters: Iterable[tuple[Any, ...]],
        ignore_override: bool = False,
    ) -> list[Parameter]:
        """Declare several parameters: tuples of name, value or type, and descriptor."""
        declared: list[Parameter] = []
        descriptors: dict[str, Any] = {}
        for index, entry in enumerate(parameters):
            if not 1 <= len(entry) <= 3:
                raise TypeError(
                    f"Invalid parameter tuple length at index {index} in parameters list: "
                    f"{entry}; expecting length between 1 and 3"
                )
            parameter, descriptor = self._declaration(namespace, index, entry, ignore_override)
            declared.append(parameter)
            descriptors[parameter.name] = descriptor
        known = [parameter.name for parameter in declared if parameter.name in self._parameters]
        if known:
            raise ParameterAlreadyDeclaredException(known)
        for parameter in declared:
            result = self._set_atomically([parameter], descriptors, keep_unset=True)
            if not result.successful:
                if result.reason.startswith("Wrong parameter type"):
                    expected = Parameter.Type(descriptors[parameter.name].type).name
                    raise InvalidParameterTypeException(parameter, expected)
                raise InvalidParameterValueException(
                    parameter.name, parameter.value, result.reason
                )
        return [self._parameters[parameter.name] for parameter in declared]

    def _declaration(
        self, namespace: str, index: int, entry: tuple[Any, ...], ignore_override: bool
    ) -> tuple[Parameter, Any]:
        """Return the parameter and the descriptor that one entry declares."""
        name, second = entry[0], entry[1] if len(entry) > 1 else None
        descriptor = entry[2] if len(entry) > 2 else ParameterDescriptor()
        if not isinstance(name, str):
            raise TypeError(
                f"First element {name} at index {index} in parameters list is not a str."
            )
        name = f"{namespace}.{name}" if namespace else name
        if not name:
            raise InvalidParameterException(name)
        if not isinstance(descriptor, ParameterDescriptor):
            raise TypeError(
                f"Third element {descriptor} at index {index} in parameters list "
                "is not a ParameterDescriptor."
            )
        if len(entry) == 1:
            descriptor.dynamic_typing = True
        value = None if isinstance(second, Parameter.Type) else second
        if isinstance(value, ParameterValue):
            value = Parameter.from_parameter_msg(
                message_class("rcl_interfaces/msg/Parameter")(name=name, value=value)
            ).value
        if isinstance(second, Parameter.Type):
            if second is Parameter.Type.NOT_SET:
                raise ValueError(
                    f"Cannot declare parameter {{{name}}} as statically typed of type NOT_SET"
                )
            if descriptor.dynamic_typing:
                raise ValueError(
                    f"When declaring parameter {{{name}}} passing a descriptor with"
                    "`dynamic_typing=True` is not allowed when the parameter type is provided"
                )
            descriptor.type = second.value
        elif not descriptor.dynamic_typing:
            descriptor.type = Parameter.Type.from_parameter_value(value).value
            if descriptor.type == Parameter.Type.NOT_SET.value:
                raise ValueError(
                    "Cannot declare a statically typed parameter with default value "
                    "of type PARAMETER_NOT_SET"
                )
        if not ignore_override and name in self._parameter_overrides:
            value = self._parameter_overrides[name].value
        return Parameter(name, value=value), descriptor

    def has_parameter(self, name: str) -> bool:
        """Whether a parameter is declared."""
        return name in self._parameters

    def get_parameter(self, name: str) -> Parameter:
        """Return a parameter."""
        if name not in self._parameters:
            if self._allow_undeclared_parameters:
                return Parameter(name, Parameter.Type.NOT_SET, None)
            raise ParameterNotDeclaredException(name)
        parameter = self._parameters[name]
        if (
            parameter.type_ is Parameter.Type.NOT_SET
            and not self._descriptors[name].dynamic_typing
        ):
            raise ParameterUninitializedException(name)
        return parameter

    def get_parameters(self, names: Sequence[str]) -> list[Parameter]:
        """Return several parameters."""
        if not all(isinstance(name, str) for name in names):
            raise TypeError("All names must be instances of type str")
        return [self.get_parameter(name) for name in names]

    def get_parameter_or(self, name: str, alternative_value: Parameter | None = None) -> Parameter:
        """Return a parameter, or the alternative where it isn't declared or has no value."""
        if alternative_value is None:
            alternative_value = Parameter(name, Parameter.Type.NOT_SET)
        parameter = self._parameters.get(name, alternative_value)
        return alternative_value if parameter.type_ is Parameter.Type.NOT_SET else parameter

    def get_parameter_types(self, names: Sequence[str]) -> list[Parameter.Type]:
        """Return the types of several parameters."""
        return [
            self._parameters[name].type_
            if name in self._parameters
            else self.get_parameter(name).type_
            for name in names
        ]

    def get_parameter_type(self, name: str) -> Parameter.Type:
        """Return the type of a parameter."""
        return self.get_parameter_types([name])[0]

    def set_parameters(self, parameter_list: list[Parameter]) -> list[Any]:
        """Set parameters one by one; return a result for each."""
        return [self.set_parameters_atomically([parameter]) for parameter in parameter_list]

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> Any:
        """Set all parameters or none."""
        if not all(isinstance(parameter, Parameter) for parameter in parameter_list):
            raise TypeError(f"parameter must be instance of type '{Parameter!r}'")
        unknown = [p.name for p in parameter_list if p.name not in self._parameters]
        if unknown and not self._allow_undeclared_parameters:
            raise ParameterNotDeclaredException(unknown)
        return self._set_atomically(parameter_list, None)

    def _set_atomically(
        self,
        parameters: list[Parameter],
        descriptors: dict[str, Any] | None,
        keep_unset: bool = False,
    ) -> Any:
        """Check, ask the callbacks, set, tell; new descriptors make it a declaration."""
        applied = self._descriptors if descriptors is None else descriptors
        for parameter in parameters:
            if parameter.name in applied:
                result = self._check(parameter, applied[parameter.name], descriptors is None)
                if not result.successful:
                    return result
        for callback in self._on_set_parameters_callbacks:
            result = callback(parameters)
            if not result.successful:
                return result
        event = ParameterEvent()
        for parameter in parameters:
            message = parameter.to_parameter_msg()
            if not keep_unset and parameter.type_ is Parameter.Type.NOT_SET:
                event.deleted_parameters.append(message)
                self._parameters.pop(parameter.name, None)
                self._descriptors.pop(parameter.name, None)
                continue
            if descriptors is not None:
                self._descriptors[parameter.name] = descriptors[parameter.name]
            elif parameter.name not in self._descriptors:
                self._descriptors[parameter.name] = ParameterDescriptor(dynamic_typing=True)
            unset = self.get_parameter_or(parameter.name).type_ is Parameter.Type.NOT_SET
            (event.new_parameters if unset else event.changed_parameters).append(message)
            self._parameters[parameter.name] = parameter
        self._publish_parameter_event(event)
        for callback in self._post_set_parameters_callbacks:
            callback(parameters)
        return SetParametersResult(successful=True)

    def _check(self, parameter: Parameter, descriptor: Any, check_read_only: bool) -> Any:
        """Return whether a value fits a descriptor."""
        descriptor.name = parameter.name
        if check_read_only and descriptor.read_only:
            return _refused(f"Trying to set a read-only parameter: {parameter.name}.")
        unset = parameter.type_ is Parameter.Type.NOT_SET
        if descriptor.dynamic_typing:
            descriptor.type = parameter.type_.value
        elif unset and self.has_parameter(parameter.name):
            return _refused("Static parameter cannot be undeclared")
        elif not unset and parameter.type_.value != descriptor.type:
            return _refused(
                f"Wrong parameter type, expected '{Parameter.Type(descriptor.type)}'"
                f" got '{parameter.type_}'"
            )
        if parameter.type_ is Parameter.Type.INTEGER and descriptor.integer_range:
            return _check_integer(parameter, descriptor.integer_range[0])
        if parameter.type_ is Parameter.Type.DOUBLE and descriptor.floating_point_range:
            return _check_double(parameter, descriptor.floating_point_range[0])
        return SetParametersResult(successful=True)

    def list_parameters(self, prefixes: list[str], depth: int) -> Any:
        """Return the names below the prefixes, down to a depth (0: any)."""
        result = ListParametersResult()
        separator = PARAMETER_SEPARATOR_STRING

        def shallow(name: str) -> bool:
            return depth == _RECURSIVE or name.count(separator) < depth

        for name in self._parameters:
            below = [
                prefix
                for prefix in prefixes
                if name == prefix
                or (name.startswith(prefix + separator) and shallow(name[len(prefix) + 1 :]))
            ]
            if not below and (prefixes or not shallow(name)):
                continue
            result.names.append(name)
            prefix = name.rpartition(separator)[0]
            if prefix and prefix not in result.prefixes:
                result.prefixes.append(prefix)
        return result

    def describe_parameter(self, name: str) -> Any:
        """Return the descriptor of a parameter."""
        if name in self._descriptors:
            return self._descriptors[name]
        if self._allow_undeclared_parameters:
            return ParameterDescriptor()
        raise ParameterNotDeclaredException(name)

    def describe_parameters(self, names: Sequence[str]) -> list[Any]:
        """Return the descriptors of several parameters."""
        return [self.describe_parameter(name) for name in names]

    def add_on_set_parameters_callback(self, callback: OnSet) -> None:
        """Let a function refuse what is to be set."""
        self._on_set_parameters_callbacks.insert(0, callback)

    def add_post_set_parameters_callback(self, callback: OnSet) -> None:
        """Tell a function what was set."""
        self._post_set_parameters_callbacks.insert(0, callback)


def _refused(reason: str) -> Any:
    return SetParametersResult(successful=False, reason=reason)


def _check_integer(parameter: Parameter, limits: Any) -> Any:
    low, high = sorted((limits.from_value, limits.to_value))
    value = parameter.value
    if value in (low, high):
        return SetParametersResult(successful=True)
    if not low < value < high:
        return _refused(
            f"Parameter {parameter.name} out of range. Min: {low}, Max: {high}, value: {value}"
        )
    if limits.step != 0 and (value - low) % limits.step != 0:
        return _refused(
            f"The parameter value for {parameter.name} is not a valid step. "
            f"Min: {low}, max: {high}, value: {value}, step: {limits.step}"
        )
    return SetParametersResult(successful=True)


def _check_double(parameter: Parameter, limits: Any) -> Any:
    low, high = sorted((limits.from_value, limits.to_value))
    value = parameter.value

    def close(a: float, b: float) -> bool:
        return math.isclose(a, b, rel_tol=_RELATIVE_TOLERANCE)

    if close(value, low) or close(value, high):
        return SetParametersResult(successful=True)
    # Written so that NaN is out of range.
    if not low < value < high:
        return _refused(
            f"Parameter {parameter.name} out of range Min: {low}, Max: {high}, value: {value}"
        )
    if limits.step != 0.0:
        nearest = low + round((value - low) / limits.step) * limits.step
        if not close(nearest, value):
            return _refused(
                f"The parameter value for {parameter.name} is not close enough to a valid step. "
                f"Min: {low}, max: {high}, value: {value}, step: {limits.step}"
            )
    return SetParametersResult(successful=True)
