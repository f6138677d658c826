# SPDX-License-Identifier: Apache-2.0
"""Installs sysid_online for pip and for colcon, which does not link pyproject.toml."""

import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

manifest = ET.parse(Path(__file__).resolve().parent / "package.xml")

setup(
    name="sysid_online",
    version=manifest.findtext("version"),
    description=manifest.findtext("description"),
    license=manifest.findtext("license"),
    python_requires=">=3.10",
    packages=find_packages(include=["sysid_online", "sysid_online.*"]),
    package_data={"sysid_online": ["py.typed"]},
    install_requires=[
        "numpy>=1.26",
        "sysid_core",
        "sysid_ros",
    ],
    extras_require={"test": ["pytest"]},
    entry_points={
        "console_scripts": [
            "identifier = sysid_online.programs:identifier",
            "recorder = sysid_online.programs:recorder",
            "replay = sysid_online.programs:replay",
        ],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sysid_online"]),
        ("share/sysid_online", ["package.xml"]),
    ],
)
