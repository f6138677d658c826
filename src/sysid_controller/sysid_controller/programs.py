# SPDX-License-Identifier: Apache-2.0
"""The programs of the package; each loads its node only once signals can end it cleanly."""

from functools import partial

from sysid_ros.program import run_program

__all__ = ["controller", "player"]

controller = partial(run_program, "sysid_controller.controller_node")
player = partial(run_program, "sysid_controller.player_node")
