# SPDX-License-Identifier: Apache-2.0
"""The reference node: publishes an exciting trajectory, or a sway over the feet, without end."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory

from sysid_ros.fields import stamp
from sysid_ros.node_main import run_node
from sysid_ros.parameters import chosen_robot, declare
from sysid_sim.messages import trajectory_message
from sysid_sim.node_settings import REFERENCE, ReferencePlan

__all__ = ["ReferenceNode", "main"]

_NANO = 1e-9


class ReferenceNode(Node):
    """Publishes pieces of a trajectory, each before its forerunner ends.

    That of an arm or leg is periodic and excites all its joints; a quadruped sways over its feet.

    A piece begins `lead` after it is published, so that a controller that was away meanwhile,
    or starts late, has time to get to where it begins; pieces overlap by half their length.
    """

    def __init__(self) -> None:
        super().__init__("reference")
        values = declare(self, REFERENCE)
        self._plan = ReferencePlan.of(values)
        self.robot = chosen_robot(values)
        self._trajectory = self._plan.trajectory(self.robot)
        self._publisher = self.create_publisher(JointTrajectory, "reference", 10)
        self._points = int(np.ceil(2.0 * self._plan.publish_period / self._plan.spacing)) + 1
        self._begin: float | None = None
        self._last = -np.inf
        self.create_timer(min(0.1, self._plan.publish_period), self._publish)
        self.get_logger().info(
            f"robot '{self.robot.name}' is to sway over its feet"
            if self.robot.floating
            else f"exciting robot '{self.robot.name}' with a period of "
            f"{self._plan.excitation.period:g} s"
        )

    def _publish(self) -> None:
        now = _NANO * float(self.get_clock().now().nanoseconds)
        if now == 0.0:  # simulated time has not begun
            return
        if self._begin is None or now < self._last:  # the first call, or time jumped back
            self._begin = now + self._plan.start_delay
            self._last = -np.inf
        if now < self._begin or now - self._last < self._plan.publish_period - 1e-3:
            return
        self._last = now
        # Pieces share their points, so that they agree to the last digit where they overlap.
        spacing = self._plan.spacing
        first = np.ceil((now - self._begin) / spacing)
        phase = spacing * (first + np.arange(self._points))
        # Stamped with now: the time until the first point is what there is to get there.
        after = self._begin + self._plan.lead + phase - now
        message = trajectory_message(
            self.robot.actuated_names, stamp(now), after, self._trajectory.at(phase)
        )
        self._publisher.publish(message)


def main(args: Sequence[str] | None = None) -> int:
    """Run the reference node."""
    return run_node("reference", ReferenceNode, args)


if __name__ == "__main__":
    sys.exit(main())
