# SPDX-License-Identifier: Apache-2.0
"""Reads ROS 2's YAML launch files into plans, as strictly as ROS 2 itself reads them."""

import os
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from sysid_core.errors import UnreadableError
from sysid_core.untrusted import read_yaml

from ..errors import LaunchError
from . import packages
from .element import Element
from .substitutions import Scope

__all__ = ["Argument", "Plan", "Process", "read"]


@dataclass(frozen=True)
class Argument:
    """An argument that a launch file declares."""

    name: str
    default: str | None
    description: str


@dataclass(frozen=True)
class Process:
    """A process to start."""

    name: str
    command: tuple[str, ...]
    environment: dict[str, str]


@dataclass
class Plan:
    """Everything that a launch file asks for, in order."""

    arguments: list[Argument] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)


@dataclass
class _State:
    """What holds at one place of a launch file."""

    scope: Scope
    namespace: str = ""


class _Reader:
    """Walks through launch files; `given` are the arguments of the command line."""

    def __init__(self, given: Mapping[str, str], scratch: Path, only_arguments: bool) -> None:
        self.given = dict(given)
        self.only_arguments = only_arguments
        self.plan = Plan()
        self.scratch = scratch
        self.handlers: dict[str, Callable[[Element, _State], None]] = {
            "arg": self.arg,
            "group": self.group,
            "let": self.let,
            "node": self.node,
            "push_ros_namespace": self.push_namespace,
        }

    def file(self, path: Path, state: _State) -> None:
        """Read a launch file."""
        if path.name.endswith((".py", ".xml")):
            raise LaunchError(f"{path}: only YAML launch files can be read without ROS 2.")
        try:
            root = read_yaml(path)
        except UnreadableError as error:
            raise LaunchError(f"{path}: {error}.") from error
        if not isinstance(root, dict) or list(root) != ["launch"]:
            raise LaunchError(f"{path}: a launch file holds one list, named 'launch'.")
        self.all(Element("launch", root["launch"] or [], state.scope), state)

    def all(self, parent: Element, state: _State) -> None:
        """Read the elements below another one."""
        for element in parent.children(state.scope):
            handler = self.handlers.get(element.kind)
            if handler is None:
                known = ", ".join(sorted(self.handlers))
                raise element.error(f"is not supported without ROS 2; these are: {known}")
            if element.condition():
                handler(element, state)
                element.finish()

    def arg(self, element: Element, state: _State) -> None:
        name = element.literal("name")
        default = element.text("default", None)
        description = element.literal("description", "")
        self.plan.arguments.append(Argument(name, default, description))
        if name in state.scope.variables:
            value = state.scope.variables[name]
        elif name in self.given:
            value = self.given[name]
        elif default is not None:
            value = default
        elif self.only_arguments:
            value = ""
        else:
            raise element.error(f"'{name}' has no default: give {name}:=VALUE")
        state.scope.variables[name] = value

    def let(self, element: Element, state: _State) -> None:
        state.scope.variables[element.text("name")] = element.text("value")

    def push_namespace(self, element: Element, state: _State) -> None:
        state.namespace = _below(state.namespace, element.text("namespace"))

    def group(self, element: Element, state: _State) -> None:
        self.all(element, deepcopy(state))

    def node(self, element: Element, state: _State) -> None:
        package, name = element.text("pkg"), element.text("exec")
        if self.only_arguments:
            element.ignore_all()
            return
        command = [*element.guard(lambda: packages.executable(package, name)), "--ros-args"]
        node_name = element.text("name", "")
        if node_name:
            command += ["-r", f"__node:={node_name}"]
        namespace = _below(state.namespace, element.text("namespace", ""))
        if namespace:
            command += ["-r", f"__ns:=/{namespace.strip('/')}"]
        for file in _parameter_files(element, self.scratch):
            command += ["--params-file", str(file)]
        for item in element.items("remap"):
            command += ["-r", f"{item.text('from')}:={item.text('to')}"]
        environment = dict(os.environ)
        for item in element.items("env"):
            environment[item.text("name")] = item.text("value")
        element.ignore("output")
        title = f"{name}-{1 + len(self.plan.processes)}"
        self.plan.processes.append(Process(title, tuple(command), environment))


def _below(namespace: str, name: str) -> str:
    """Return a namespace below another one; an absolute one stands for itself."""
    if name.startswith("/") or not namespace:
        return name
    return f"{namespace.rstrip('/')}/{name}" if name else namespace


def _write(values: dict[str, Any], folder: Path) -> Path:
    """Write parameters for whatever node gets the file."""
    path = folder / f"{len(list(folder.iterdir()))}.yaml"
    text = yaml.safe_dump({"/**": {"ros__parameters": values}}, sort_keys=False)
    path.write_text(text, encoding="utf-8")
    return path


def _named(item: Element) -> dict[str, Any]:
    kind = item.literal("type", "")
    value = item.value("value")
    return {item.text("name"): item.text("value") if kind == "str" else value}


def _from_file(item: Element) -> Path:
    path = Path(item.text("from"))
    if not path.is_file():
        raise item.error(f"names a parameter file that isn't there: {path}")
    return path


def _parameter_files(node: Element, folder: Path) -> list[Path]:
    """Return a node's parameter files, later ones win; those spelled out go into the folder."""
    return [
        _from_file(item) if "from" in item.content else _write(_named(item), folder)
        for item in node.items("param")
    ]


def read(
    path: Path, given: Mapping[str, str], scratch: Path, *, only_arguments: bool = False
) -> Plan:
    """Read a launch file, with launch arguments by name.

    The `scratch` folder gets the parameter files that the plan needs as long as it runs. If only
    arguments are looked for, none can be missing.

    Raises
    ------
    LaunchError
        If something is wrong or not supported; the message names the file and the element.
    """
    reader = _Reader(given, scratch, only_arguments)
    reader.file(path.resolve(), _State(Scope(path.resolve())))
    known = sorted({argument.name for argument in reader.plan.arguments})
    unknown = sorted(set(given) - set(known))
    if unknown:
        takes = ", ".join(known) or "none"
        raise LaunchError(f"{path}: there is no argument '{unknown[0]}'; it takes: {takes}.")
    return reader.plan
