# SPDX-License-Identifier: Apache-2.0
"""The programs of the package; each loads its node only once signals can end it cleanly."""

from __future__ import annotations

from sysid_ros.program import run_program

__all__ = ["gazebo_relay", "reference", "simulator"]


def gazebo_relay() -> int:
    """Run the Gazebo relay."""
    return run_program("sysid_sim.gazebo_relay")


def reference() -> int:
    """Run the reference node."""
    return run_program("sysid_sim.reference_node")


def simulator() -> int:
    """Run the simulator node."""
    return run_program("sysid_sim.simulator_node")
