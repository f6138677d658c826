# SPDX-License-Identifier: Apache-2.0
"""Diagnostics as a message, where they become text."""

from collections.abc import Mapping, Sequence

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from sysid_core.diagnostics import Diagnostic

__all__ = ["clock_fault", "diagnostics_message", "risen"]

_CLOCKS_APART = 0.5
"""Time [s] by which a driver's clock may differ from a node's: networks and slow starts."""


def clock_fault(node: Node, stamp: int | None = None) -> str:
    """Say what is wrong with a node's clock, given a stamp [ns] that comes now; or nothing."""
    now = int(node.get_clock().now().nanoseconds)
    simulated = bool(node.get_clock().ros_time_is_active)
    if simulated and now == 0:
        return "use_sim_time is set, but no /clock comes"
    apart = 1e-9 * ((stamp or now) - now)
    if abs(apart) < _CLOCKS_APART:
        return ""
    mend = "is /clock of another run?" if simulated else "set use_sim_time, or the driver's clock"
    return f"stamps are {apart:+.3g} s from this node's clock: {mend}"


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


def risen(counts: Mapping[str, int], before: Mapping[str, int]) -> list[str]:
    """Say which counts of faults rose, and by how much."""
    return [
        f"{count - before.get(fault, 0)} {fault.replace('_', ' ')}"
        for fault, count in counts.items()
        if count > before.get(fault, 0)
    ]
