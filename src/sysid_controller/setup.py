# SPDX-License-Identifier: Apache-2.0
"""Installs the package where colcon and ament look for it."""

from setuptools import find_packages, setup

PACKAGE = "sysid_controller"

setup(
    name=PACKAGE,
    version="0.1.0",
    packages=find_packages(include=[PACKAGE, f"{PACKAGE}.*"]),
    package_data={PACKAGE: ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{PACKAGE}"]),
        (f"share/{PACKAGE}", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    zip_safe=True,
    maintainer="sysid maintainers",
    maintainer_email="maintainers@users.noreply.github.com",
    description="Model-based joint control with parameters identified online.",
    license="Apache-2.0",
    entry_points={
        "console_scripts": ["controller_node = sysid_controller.controller_node:main"],
    },
)
