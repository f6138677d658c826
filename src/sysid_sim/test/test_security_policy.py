# SPDX-License-Identifier: Apache-2.0
"""The example policy for SROS 2 allows what an arm's nodes make, and nothing else."""

from __future__ import annotations

import importlib
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor the embedded runtime is here")

POLICY = Path(__file__).resolve().parents[3] / "config" / "sros2_policy.xml"
NODES = {
    "recorder": "sysid_online.recorder_node:RecorderNode",
    "identifier": "sysid_online.identifier_node:IdentifierNode",
    "controller": "sysid_controller.controller_node:ControllerNode",
    "reference": "sysid_sim.reference_node:ReferenceNode",
}
MAKERS = {
    "create_publisher": "topics publish",
    "create_subscription": "topics subscribe",
    "create_service": "services reply",
    "create_client": "services request",
}
EVERYWHERE = {"rosout", "parameter_events", "clock", "describe_parameters"} | {
    f"{verb}_{what}"
    for verb in ("get", "set", "list")
    for what in ("parameters", "parameters_atomically", "parameter_types", "type_description")
}
"""What rclpy makes for any node."""

if not POLICY.is_file():
    pytest.skip(f"{POLICY} is missing", allow_module_level=True)


def _full(name: str, node: str) -> str:
    return "/" + name.replace("~", node).lstrip("/")


def _allowed(node: str) -> dict[str, set[str]]:
    (profile,) = ElementTree.parse(POLICY).iterfind(f".//profile[@node='{node}']")
    return {
        f"{group.tag} {role}": {_full(str(own.text), node) for own in group}
        for group in profile
        for role in group.attrib
    }


@pytest.mark.parametrize("name", NODES)
def test_the_policy_is_what_a_node_needs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, set[str]] = defaultdict(set)

    def watch(owner: Any, method: str, kind: str, place: int) -> None:
        original = getattr(owner, method)

        def making(*args: Any, **named: Any) -> Any:
            if "_action/" not in args[place]:  # the embedded runtime's actions are services
                made[kind].add(_full(args[place], name))
            return original(*args, **named)

        monkeypatch.setattr(owner, method, making)

    for method, kind in MAKERS.items():
        watch(importlib.import_module("rclpy.node").Node, method, kind, 2)
    action = importlib.import_module("sysid_controller.trajectory_action")
    watch(action, "ActionServer", "actions execute", 2)
    module, kind = NODES[name].split(":")
    maker = getattr(importlib.import_module(module), kind)
    rclpy.init(args=["--ros-args", "-p", "robot:=panda"])
    try:
        maker().destroy_node()
    finally:
        rclpy.try_shutdown()
    for kind, names in _allowed(name).items():
        own = {each for each in names if each.rpartition("/")[2] not in EVERYWHERE}
        assert own == {e for e in made.pop(kind, set()) if e.rpartition("/")[2] not in EVERYWHERE}
    assert not {kind: own for kind, own in made.items() if own - {"/parameter_events", "/rosout"}}
