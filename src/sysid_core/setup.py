# SPDX-License-Identifier: Apache-2.0
"""Installs sysid_core for colcon and pip; all else stands in pyproject.toml and package.xml."""

import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).parent

manifest = ET.parse(HERE / "package.xml")

# colcon cannot read python_requires from pyproject.toml, and old and new setuptools disagree on
# how a license is written there.
setup(
    version=manifest.findtext("version"),
    license=manifest.findtext("license"),
    python_requires=">=3.10",
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sysid_core"]),
        ("share/sysid_core", ["package.xml"]),
    ],
)
