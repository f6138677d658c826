# SPDX-License-Identifier: Apache-2.0
"""Elements of launch files: their attributes, with the types that ROS 2 demands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sysid_core.errors import UnreadableError
from sysid_core.untrusted import parse_yaml

from ..errors import LaunchError
from .substitutions import Scope, is_true, substitute

__all__ = ["Element"]

_Result = TypeVar("_Result")
_REQUIRED: Any = object()
_BRANCHES = ("group", "launch")


class Element:
    """An element of a launch file, or an item of a list below one."""

    def __init__(self, kind: str, content: Any, scope: Scope) -> None:
        self.kind = kind
        self.content = content
        self.scope = scope
        self._read: set[str] = set()
        self._items: list[Element] = []
        wanted = (dict, list) if kind in _BRANCHES else dict
        if not isinstance(content, wanted):
            raise self.error("must have attributes below it, one 'name: value' per line")

    def error(self, what: str) -> LaunchError:
        """Return an error that names the file and the element."""
        return LaunchError(f"{self.scope.file}: '{self.kind}' {what}.")

    def guard(self, function: Callable[[], _Result]) -> _Result:
        """Return a function's result; its errors get the file and the element."""
        try:
            return function()
        except LaunchError as error:
            raise self.error(f"can't be read: {str(error).rstrip('.')}") from error
        except RecursionError:
            raise self.error("nests substitutions too deeply") from None

    def children(self, scope: Scope) -> list[Element]:
        """Return the elements below, for a scope of their own."""
        content = self.content
        if isinstance(content, dict):
            self._read.add("children")
            content = content.get("children")
        if not isinstance(content, list):
            raise self.error("must have a list of elements, or one named 'children'")
        children = []
        for child in content:
            if not isinstance(child, dict) or len(child) != 1:
                raise self.error("must list elements with one key each, the kind of element")
            kind, inner = next(iter(child.items()))
            children.append(Element(kind, inner, scope))
        return children

    def condition(self) -> bool:
        """Whether ``if`` and ``unless`` let it be."""
        if isinstance(self.content, list):
            return True
        if "if" in self.content and "unless" in self.content:
            raise self.error("has both 'if' and 'unless'; use one")
        wanted = self.guard(lambda: is_true(self.text("if", "true")))
        unwanted = self.guard(lambda: is_true(self.text("unless", "false")))
        return wanted and not unwanted

    def _get(self, name: str, default: Any) -> Any:
        self._read.add(name)
        content = self.content if isinstance(self.content, dict) else {}
        if name not in content:
            if default is _REQUIRED:
                raise self.error(f"needs the attribute '{name}'")
            return default
        return content[name]

    def literal(self, name: str, default: Any = _REQUIRED) -> str:
        """Return an attribute's text as it stands."""
        value = self._get(name, default)
        if not isinstance(value, str):
            raise self.error(f"has {name}: {value!r}; ROS 2 wants text here, so quote it")
        return value

    def text(self, name: str, default: Any = _REQUIRED) -> Any:
        """Return an attribute's text, substituted; the default stays what it is."""
        if self._get(name, default) is default and default is not _REQUIRED:
            return default
        return self.guard(lambda: substitute(self.literal(name), self.scope))

    def value(self, name: str) -> Any:
        """Return any value; text with substitutions is read as YAML after them."""
        value = self._get(name, _REQUIRED)
        if not isinstance(value, str) or "$(" not in value:
            return value
        text = self.guard(lambda: substitute(value, self.scope))
        try:
            return parse_yaml(text)
        except UnreadableError:
            return text

    def items(self, name: str) -> list[Element]:
        """Return the items of a list of attributes."""
        content = self._get(name, [])
        if not isinstance(content, list) or not all(isinstance(item, dict) for item in content):
            raise self.error(f"must have a list below '{name}', its items with attributes")
        found = [Element(name, item, self.scope) for item in content]
        self._items += found
        return found

    def ignore(self, name: str) -> None:
        """Accept an attribute that changes nothing here."""
        self._read.add(name)

    def ignore_all(self) -> None:
        """Accept all attributes."""
        self._read |= set(self.content)

    def finish(self) -> None:
        """Complain of attributes that nobody has read."""
        for item in self._items:
            item.finish()
        left = [] if isinstance(self.content, list) else sorted(set(self.content) - self._read)
        if left:
            raise self.error(f"has an attribute '{left[0]}' that is not supported without ROS 2")
