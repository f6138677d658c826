# SPDX-License-Identifier: Apache-2.0
"""``sysid play MOTION``: runs the player node in this process."""

from __future__ import annotations

import argparse

from sysid_ros.terminal.session import provide_rclpy

__all__ = ["run"]


def run(args: argparse.Namespace) -> int:
    """Run the subcommand and return its exit status: 1 if the robot was stopped midway."""
    provide_rclpy()
    from sysid_controller.player_node import PlayerConfig, main

    config = PlayerConfig(
        motion=str(args.motion),
        robot=args.robot,
        target=args.to,
        speed=args.speed,
        tolerance=args.tolerance,
        effort_tolerance=args.effort_tolerance,
        wait=args.wait,
        out="" if args.out is None else str(args.out),
        dry_run=args.dry_run,
    )
    namespace = args.namespace.strip("/")
    remaps = ["-r", f"__ns:=/{namespace}"] if namespace else []
    return main(["--ros-args", *remaps] if remaps else [], config)
