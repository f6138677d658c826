# SPDX-License-Identifier: Apache-2.0
"""The programs of the package; each loads its node only once signals can end it cleanly."""

from functools import partial

from sysid_ros.program import run_program

__all__ = ["identifier", "recorder", "replay", "spot_relay", "unitree_relay"]

identifier = partial(run_program, "sysid_online.identifier_node")
recorder = partial(run_program, "sysid_online.recorder_node")
replay = partial(run_program, "sysid_online.replay_node")
spot_relay = partial(run_program, "sysid_online.spot_relay")
unitree_relay = partial(run_program, "sysid_online.unitree_relay")
