# SPDX-License-Identifier: Apache-2.0
"""Installs sysid_core for pip and for colcon, which does not link pyproject.toml."""

import xml.etree.ElementTree as ET
from pathlib import Path

from setuptools import find_packages, setup

manifest = ET.parse(Path(__file__).resolve().parent / "package.xml")

setup(
    name="sysid_core",
    version=manifest.findtext("version"),
    description=manifest.findtext("description"),
    license=manifest.findtext("license"),
    python_requires=">=3.10",
    packages=find_packages(include=["sysid_core", "sysid_core.*"]),
    package_data={
        "sysid_core": ["py.typed", "data/definitions/*.msg", "report/*.css", "robot/*.yaml"]
    },
    install_requires=[
        "clarabel",
        "cvxpy>=1.4",
        "lz4>=4",
        "matplotlib>=3.5",
        "numpy>=1.26",
        "osqp>=0.6.5",
        "pin>=3.0",
        "plotly>=5.15",
        "PyYAML>=5.4",
        "rich>=12",
        "rosbags>=0.10",
        "scipy>=1.10",
        "zstandard>=0.18",
    ],
    extras_require={"dask": ["distributed>=2023.5"], "test": ["pytest"]},
    entry_points={
        "console_scripts": [
            "sysid = sysid_core.cli.main:main",
        ],
    },
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/sysid_core"]),
        ("share/sysid_core", ["package.xml"]),
    ],
)
