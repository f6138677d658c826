# SPDX-License-Identifier: Apache-2.0
"""Recordings in files: ROS 2 bags without ROS, and tables."""

from sysid_core.data.reading import read_recording
from sysid_core.data.table import write_csv

__all__ = ["read_recording", "write_csv"]
