# SPDX-License-Identifier: Apache-2.0
"""ROS 2 or its embedded runtime, on a domain of its own."""

from __future__ import annotations

import contextlib
import importlib
import os

try:
    importlib.import_module("rclpy")
except ImportError:
    with contextlib.suppress(ImportError):  # the tests that need ROS say so when they skip
        importlib.import_module("sysid_embedded").install()

os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 100)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["ROS_PYTHON_CHECK_FIELDS"] = "1"  # as the terminal's commands set it
