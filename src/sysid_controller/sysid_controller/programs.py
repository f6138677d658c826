# SPDX-License-Identifier: Apache-2.0
"""The programs of the package; each loads its node only once signals can end it cleanly."""

from __future__ import annotations

from sysid_ros.program import run_program

__all__ = ["controller", "player"]


def controller() -> int:
    """Run the controller node."""
    return run_program("sysid_controller.controller_node")


def player() -> int:
    """Run the player node."""
    return run_program("sysid_controller.player_node")
