# SPDX-License-Identifier: Apache-2.0
"""Diagnostics as a message, where they become text."""

from __future__ import annotations

from collections.abc import Sequence

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from sysid_core.diagnostics import Diagnostic

__all__ = ["diagnostics_message"]


def diagnostics_message(
    node: Node, hardware: str, diagnostics: Sequence[Diagnostic]
) -> DiagnosticArray:
    """Return a node's diagnostics now; each is named by the node and its kind."""
    message = DiagnosticArray()
    message.header.stamp = node.get_clock().now().to_msg()
    message.status = [
        DiagnosticStatus(
            level=bytes([diagnostic.severity]),
            name=f"{node.get_fully_qualified_name()}: {diagnostic.kind}",
            message=str(diagnostic),
            hardware_id=hardware,
            values=[KeyValue(key=key, value=value) for key, value in diagnostic.values.items()],
        )
        for diagnostic in diagnostics
    ]
    return message
