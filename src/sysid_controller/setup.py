# SPDX-License-Identifier: Apache-2.0
"""Installs sysid_controller for pip and for colcon, which does not link pyproject.toml."""

import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

manifest = ET.parse(Path(__file__).resolve().parent / "package.xml")

setup(
    name="sysid_controller",
    version=manifest.findtext("version"),
    description=manifest.findtext("description"),
    license=manifest.findtext("license"),
    python_requires=">=3.10",
    packages=find_packages(include=["sysid_controller", "sysid_controller.*"]),
    package_data={"sysid_controller": ["py.typed"]},
    install_requires=[
        "numpy>=1.26",
        "osqp>=0.6.5",
        "pin>=3.0",
        "scipy>=1.10",
        "sysid_core",
        "sysid_ros",
    ],
    extras_require={"test": ["pytest"]},
    entry_points={
        "console_scripts": [
            "controller = sysid_controller.programs:controller",
            "player = sysid_controller.programs:player",
        ],
        "sysid.subcommands": [
            "calibrate = sysid_controller.cli:calibrate",
            "play = sysid_controller.cli:play",
        ],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sysid_controller"]),
        ("share/sysid_controller", ["package.xml"]),
    ],
)
