# SPDX-License-Identifier: Apache-2.0
"""Lets ``import rclpy`` and imports of message packages find the embedded runtime."""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from sysid_core.cli.subcommand import first_line

from . import interfaces

__all__ = ["install", "is_installed", "reason"]

_LOOK_ALIKE = Path(__file__).parent / "rclpy"
_FOLDERS = ("msg", "srv", "action")


class _InterfaceModule(ModuleType):
    """``<package>.msg``, ``srv`` or ``action``: its classes are made when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        package, folder = self.__name__.split(".")
        if name == "__all__":
            return list(interfaces.names(package, folder))
        if name not in interfaces.names(package, folder):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        # Late: 'sysid --help' imports this package, and messages take numpy.
        from .messages import action_class, message_class, service_class

        make = {"msg": message_class, "srv": service_class, "action": action_class}[folder]
        made = make(f"{package}/{folder}/{name}")
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return sorted((*super().__dir__(), *interfaces.names(*self.__name__.split("."))))


class _InterfaceLoader(Loader):
    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        kind = _InterfaceModule if "." in spec.name else ModuleType
        return kind(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module fills itself."""


class _Finder(MetaPathFinder):
    """Finds the look-alike and the message packages."""

    reason = ""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, rest = fullname.partition(".")
        if fullname == "rclpy":
            return importlib.util.spec_from_file_location(
                fullname,
                _LOOK_ALIKE / "__init__.py",
                submodule_search_locations=[str(_LOOK_ALIKE)],
            )
        if package not in interfaces.packages() or (rest and rest not in _FOLDERS):
            return None
        if rest and not interfaces.names(package, rest):
            return None
        return importlib.machinery.ModuleSpec(fullname, _InterfaceLoader(), is_package=not rest)


_finder = _Finder()


def _import_real() -> str:
    """Import a real rclpy; return why there is none, or nothing."""
    try:
        spec = importlib.util.find_spec("rclpy")
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return "rclpy is not installed"
    try:
        importlib.import_module("rclpy")
    except ImportError as error:
        for name in [name for name in sys.modules if name.split(".")[0] == "rclpy"]:
            del sys.modules[name]
        return f"rclpy at {spec.origin} cannot be imported here ({first_line(error)})"
    return ""


def install() -> bool:
    """Let the embedded runtime stand in for rclpy, unless a real one can be imported."""
    if is_installed():
        return True
    reason = _import_real()
    if not reason:
        return False
    _Finder.reason = reason
    # Now, while what it needs is not looked for by the finder itself.
    interfaces.packages()
    # Last, so that whatever is really installed wins; first where the real one is broken, because
    # its message packages are then as unusable as itself.
    if reason == "rclpy is not installed":
        sys.meta_path.append(_finder)
    else:
        sys.meta_path.insert(0, _finder)
    return True


def is_installed() -> bool:
    """Whether the embedded runtime stands in for rclpy in this process."""
    return _finder in sys.meta_path


def reason() -> str:
    """Return why it stands in."""
    return _Finder.reason
