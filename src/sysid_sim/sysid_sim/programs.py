# SPDX-License-Identifier: Apache-2.0
"""The programs of the package; each loads its node only once signals can end it cleanly."""

from functools import partial

from sysid_ros.program import run_program

__all__ = ["gazebo_relay", "reference", "simulator"]

gazebo_relay = partial(run_program, "sysid_sim.gazebo_relay")
reference = partial(run_program, "sysid_sim.reference_node")
simulator = partial(run_program, "sysid_sim.simulator_node")
