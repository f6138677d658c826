# SPDX-License-Identifier: Apache-2.0
"""Writes the nodes' parameter files and the tables in docs/nodes.md from their descriptions.

Run it after a parameter was added or changed; ``--check`` only tells which files are out of date.
"""

import argparse
import contextlib
import importlib
import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from sysid_core.settings import Setting, settings_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "nodes.md"

CONFIGS = {
    "recorder": "sysid_online.recorder_node:RecorderConfig",
    "identifier": "sysid_online.identifier_node:IdentifierConfig",
    "replay": "sysid_online.replay_node:ReplayConfig",
    "spot_relay": "sysid_online.relay:RelayConfig",
    "unitree_relay": "sysid_online.unitree_relay:UnitreeRelayConfig",
    "controller": "sysid_controller.controller_node:ControllerNodeConfig",
    "player": "sysid_controller.player_config:PlayerConfig",
    "simulator": "sysid_sim.simulator_config:SimulatorConfig",
    "reference": "sysid_sim.reference_node:ReferenceConfig",
}

_WIDTH = 95


def node_settings(node: str) -> tuple[Setting, ...]:
    """Return the parameters of a node."""
    module, name = CONFIGS[node].split(":")
    return settings_of(getattr(importlib.import_module(module), name))


def _limits(setting: Setting) -> str:
    """Return what a value has to be, in few words."""
    if setting.choices:
        return ", ".join(setting.choices)
    return "" if setting.range is None else "{:g} to {:g}".format(*setting.range)


def _value(setting: Setting) -> str:
    """Return the default as YAML."""
    default = setting.default
    return json.dumps(list(default) if isinstance(default, tuple) else default)


def parameter_file(node: str) -> str:
    """Return the text of a node's parameter file."""
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# Parameters of the {node} node at their defaults; written by "
        "scripts/document_parameters.py.",
        "/**:",
        "  ros__parameters:",
    ]
    groups: list[str] = []
    for setting in node_settings(node):
        *path, name = setting.name.split(".")
        if path and path != groups:
            lines.append(f"    {path[0]}:")
        groups = path
        indent = " " * (4 + 2 * len(path))
        notes = [_limits(setting), "fixed at the start" if setting.read_only else ""]
        noted = "; ".join(note for note in notes if note)
        text = f"{setting.description} ({noted})" if noted else setting.description
        mark = f"{indent}# "
        lines += textwrap.wrap(text, _WIDTH, initial_indent=mark, subsequent_indent=mark)
        lines.append(f"{indent}{name}: {_value(setting)}")
    return "\n".join(lines) + "\n"


def parameter_table(node: str) -> str:
    """Return the table of a node's parameters for the documentation."""
    lines = ["| parameter | default | allowed | what for |", "|---|---|---|---|"]
    for setting in node_settings(node):
        start = ". Fixed at the start" if setting.read_only else ""
        lines.append(
            f"| `{setting.name}` | `{_value(setting)}` | {_limits(setting)} | "
            f"{setting.description}{start} |"
        )
    return "\n".join(lines) + "\n"


def documented_page(text: str) -> str:
    """Return a page with the tables between its marks renewed."""
    end = "<!-- end -->"
    for node in CONFIGS:
        before, begin, rest = text.partition(f"<!-- parameters of {node} -->\n")
        if begin:
            text = f"{before}{begin}{parameter_table(node)}{end}{rest.partition(end)[2]}"
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or say which would change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if outdated")
    given = parser.parse_args(arguments)
    with contextlib.suppress(ImportError):  # without ROS 2 the embedded runtime stands in
        importlib.import_module("sysid_embedded").install()
    wanted = {ROOT / "config" / f"{node}.yaml": parameter_file(node) for node in CONFIGS}
    wanted[PAGE] = documented_page(PAGE.read_text(encoding="utf-8"))
    outdated = [
        path
        for path, text in wanted.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for path in outdated:
        print(f"{path.relative_to(ROOT)} {'is out of date' if given.check else 'written'}")
        if not given.check:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if given.check and outdated else 0


if __name__ == "__main__":
    sys.exit(main())
