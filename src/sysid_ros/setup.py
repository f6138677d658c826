# SPDX-License-Identifier: Apache-2.0
"""Installs sysid_ros for pip and for colcon, which does not link pyproject.toml."""

import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

manifest = ET.parse(Path(__file__).resolve().parent / "package.xml")

setup(
    name="sysid_ros",
    version=manifest.findtext("version"),
    description=manifest.findtext("description"),
    license=manifest.findtext("license"),
    python_requires=">=3.10",
    packages=find_packages(include=["sysid_ros", "sysid_ros.*"]),
    package_data={"sysid_ros": ["py.typed"]},
    install_requires=[
        "PyYAML>=5.4",
        "numpy>=1.26",
        "rich>=12",
        "sysid_core",
    ],
    extras_require={"test": ["pytest"]},
    entry_points={
        "sysid.subcommands": [
            "call = sysid_ros.terminal.declarations:call",
            "echo = sysid_ros.terminal.declarations:echo",
            "param = sysid_ros.terminal.declarations:param",
            "pub = sysid_ros.terminal.declarations:pub",
            "watch = sysid_ros.terminal.declarations:watch",
        ],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sysid_ros"]),
        ("share/sysid_ros", ["package.xml"]),
    ],
)
