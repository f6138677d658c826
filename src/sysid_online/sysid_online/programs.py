# SPDX-License-Identifier: Apache-2.0
"""The programs of the package; each loads its node only once signals can end it cleanly."""

from __future__ import annotations

from sysid_ros.program import run_program

__all__ = ["identifier", "recorder", "replay"]


def identifier() -> int:
    """Run the identifier node."""
    return run_program("sysid_online.identifier_node")


def recorder() -> int:
    """Run the recorder node."""
    return run_program("sysid_online.recorder_node")


def replay() -> int:
    """Run the replay node."""
    return run_program("sysid_online.replay_node")
