# SPDX-License-Identifier: Apache-2.0
"""Takes version, description and licence from package.xml; all else stands in setup.cfg."""

import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import setup

manifest = ET.parse(Path(__file__).resolve().parent / "package.xml")

setup(
    python_requires=">=3.10",  # of setup.cfg, colcon cannot read it
    **{key: manifest.findtext(key) for key in ("version", "description", "license")},
)
