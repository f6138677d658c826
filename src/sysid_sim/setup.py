# SPDX-License-Identifier: Apache-2.0
"""Installs sysid_sim for pip and for colcon, which does not link pyproject.toml."""

import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

manifest = ET.parse(Path(__file__).resolve().parent / "package.xml")

setup(
    name="sysid_sim",
    version=manifest.findtext("version"),
    description=manifest.findtext("description"),
    license=manifest.findtext("license"),
    python_requires=">=3.10",
    packages=find_packages(include=["sysid_sim", "sysid_sim.*"]),
    package_data={"sysid_sim": ["py.typed"]},
    install_requires=[
        "mujoco>=3.3",
        "numpy>=1.26",
        "pin>=3.0",
        "rich>=12",
        "scipy>=1.10",
        "sysid_controller",
        "sysid_core",
        "sysid_ros",
    ],
    extras_require={"test": ["pytest"]},
    entry_points={
        "console_scripts": [
            "gazebo_relay = sysid_sim.programs:gazebo_relay",
            "gazebo_robot = sysid_sim.gazebo:main",
            "reference = sysid_sim.programs:reference",
            "simulator = sysid_sim.programs:simulator",
        ],
        "sysid.subcommands": [
            "simulate = sysid_sim.cli:simulate",
        ],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sysid_sim"]),
        ("share/sysid_sim", ["package.xml"]),
    ],
)
