# SPDX-License-Identifier: Apache-2.0
"""Takes the definitions of sysid_msgs into wheels; all else stands in pyproject.toml."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DEFINITIONS = Path(__file__).resolve().parent.parent / "sysid_msgs"


class BuildWithDefinitions(build_py):
    """Builds the package with the files of its neighbour, which pip can't install."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        target = Path(self.build_lib) / "sysid_embedded" / "share" / "sysid_msgs"
        for folder in ("msg", "srv"):
            if (DEFINITIONS / folder).is_dir() and not self.editable_mode:
                shutil.copytree(DEFINITIONS / folder, target / folder, dirs_exist_ok=True)


setup(cmdclass={"build_py": BuildWithDefinitions})
