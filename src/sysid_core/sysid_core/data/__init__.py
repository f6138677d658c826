# SPDX-License-Identifier: Apache-2.0
"""Recordings in files: ROS 2 bags without ROS, and tables."""

from sysid_core.data.reading import read_parts, read_recording
from sysid_core.data.summary import JointSummary, RecordingSummary, StreamSummary, summarise
from sysid_core.data.table import write_csv
from sysid_core.data.write import recorded_messages, write_recording

__all__ = [
    "JointSummary",
    "RecordingSummary",
    "StreamSummary",
    "read_parts",
    "read_recording",
    "recorded_messages",
    "summarise",
    "write_csv",
    "write_recording",
]
