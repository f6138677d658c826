# SPDX-License-Identifier: Apache-2.0
"""``sysid play MOTION``: runs the player node in this process."""

from __future__ import annotations

import argparse

from sysid_controller.player_config import PlayerConfig
from sysid_core.settings import settings_of
from sysid_ros.terminal.session import provide_rclpy

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status: 1 if the robot was stopped midway."""
    provide_rclpy()
    from sysid_controller.player_node import main

    names = (setting.name for setting in settings_of(PlayerConfig))
    config = PlayerConfig(**{name: getattr(args, name) for name in names})
    namespace = args.namespace.strip("/")
    remaps = ["-r", f"__ns:=/{namespace}"] if namespace else []
    return main(["--ros-args", *remaps] if remaps else [], config)
