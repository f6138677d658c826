# SPDX-License-Identifier: Apache-2.0
"""Where packages keep their shared files, and what their executables run.

A package or an executable that is not there raises `LaunchError`.
"""

import os
import sys
from importlib import metadata
from pathlib import Path

from ..errors import LaunchError

__all__ = ["executable", "executables", "root", "share"]

# The package that installs the top-level `launch` and `config` folders.
_BRINGUP = "sysid_bringup"


def root() -> Path | None:
    """Return the top of the source tree that this package belongs to, if it is in one."""
    top = Path(__file__).resolve().parents[4]
    return top if (top / "src" / "sysid_embedded").is_dir() else None


def share(package: str) -> Path:
    """Return the folder of a package's shared files.

    In the source tree it is the package's own folder, and for `sysid_bringup` the top; else where
    `AMENT_PREFIX_PATH` or the Python environment has it.

    Raises
    ------
    LaunchError
        If the package is nowhere.
    """
    top = root()
    if top is not None and (top / "src" / package).is_dir():
        return top if package == _BRINGUP else top / "src" / package
    prefixes = [*os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep), sys.prefix]
    for prefix in filter(None, prefixes):
        folder = Path(prefix) / "share" / package
        if folder.is_dir():
            return folder
    raise LaunchError(
        f"package '{package}' has no shared files here; look at its spelling, or install it."
    )


def executables(package: str) -> dict[str, str]:
    """Return the executables of an installed package: name to ``module:function``."""
    try:
        distribution = metadata.distribution(package)
    except metadata.PackageNotFoundError:
        raise LaunchError(
            f"package '{package}' is not installed; run 'make setup', or look at its spelling."
        ) from None
    scripts = distribution.entry_points.select(group="console_scripts")
    return {script.name: script.value for script in scripts}


def executable(package: str, name: str) -> list[str]:
    """Return the command that runs a package's executable."""
    found = executables(package)
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise LaunchError(f"package '{package}' has no executable '{name}'; it has: {known}.")
    return [sys.executable, "-m", "sysid_embedded.run", "--with-parent", found[name]]
