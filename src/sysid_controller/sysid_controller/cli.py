# SPDX-License-Identifier: Apache-2.0
"""The subcommands ``sysid play`` and ``sysid calibrate``, as the ``sysid`` command finds them."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sysid_core.cli.arguments import add_number
from sysid_core.cli.subcommand import Subcommand
from sysid_core.settings import settings_of

__all__ = ["PLAYING", "calibrate", "flag", "play", "run_play"]


PLAYING = (
    *("target", "trajectory_controller", "joint_states"),
    *("speed", "approach_speed", "tolerance", "wait"),
)
"""Parameters of the player that both subcommands know."""
_FLAGS = {"target": "--to"}  # Of parameters whose name is not their flag


def flag(name: str) -> str:
    """Return the flag of one of the player's parameters."""
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")


def _add_playing(parser: argparse.ArgumentParser, names: Sequence[str] = PLAYING) -> None:
    """Declare parameters of the player, as its configuration describes them."""
    from sysid_controller.player_config import PlayerConfig

    for setting in settings_of(PlayerConfig):
        if setting.name not in names:
            continue
        options: dict[str, Any] = {"dest": setting.name, "default": setting.default}
        shown = "" if setting.default in ("", False) else f"; default: {setting.default}"
        options["help"] = f"{setting.description}{shown}".replace("%", "%%")
        if isinstance(setting.default, bool):
            options["action"] = "store_true"
        else:
            options["type"] = type(setting.default)
            options["choices"] = setting.choices or None
        parser.add_argument(flag(setting.name), **options)


def _play(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("motion", metavar="MOTION", help="what 'sysid excite' wrote")
    _add_playing(parser, (*PLAYING, "robot", "urdf_topic", "learned", "out", "dry_run"))
    parser.add_argument("-n", "--namespace", metavar="NS", default="", help="of the nodes")


def run_play(args: argparse.Namespace) -> int:
    """Run the player node in this process; return 1 if the robot was stopped midway."""
    from sysid_ros.terminal.session import provide_rclpy

    provide_rclpy()
    from sysid_controller.player_config import PlayerConfig
    from sysid_controller.player_node import main

    names = (setting.name for setting in settings_of(PlayerConfig))
    config = PlayerConfig(**{name: getattr(args, name) for name in names})
    namespace = args.namespace.strip("/")
    return main(["--ros-args", "-r", f"__ns:=/{namespace}"] if namespace else [], config)


play = Subcommand(
    "play an exciting motion: slowly to its start, then watched; stop with Ctrl-C, the service "
    "player/stop, or true on the topic stop",
    _play,
    "sysid_controller.cli:run_play",
)


def _calibrate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "robot", metavar="ROBOT", help="name of a known robot, or the path of its description"
    )
    parser.add_argument(
        "--out", metavar="DIR", type=Path, required=True, help="folder for motions, bags, result"
    )
    duration = "of the motion that is learned from; that to validate takes half as long"
    add_number(parser, "--duration", "S", duration, 20.0)
    add_number(parser, "--seed", "SEED", "of the motions", 0)
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="start a simulated robot with a wrong model, and stop it in the end",
    )
    _add_playing(parser)
    parser.add_argument("-n", "--namespace", metavar="NS", default="", help="of the nodes")


calibrate = Subcommand(
    "the whole round: design motions, play and record them, identify, validate",
    _calibrate,
    "sysid_controller.calibrate",
)
