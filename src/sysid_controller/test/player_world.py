# SPDX-License-Identifier: Apache-2.0
"""An arm with a true model, its controller and a player, tick by tick, for tests of motions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sysid_controller.controller import Controller
from sysid_controller.player import Phase, Player
from sysid_controller.player_config import PlayerConfig
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.exchange import TrajectoryPoints
from sysid_core.excitation.motion_file import JointMotion
from sysid_core.recording import Recording
from sysid_core.robot import Robot

__all__ = ["HOME", "PERIOD", "World", "sway"]

PERIOD, SUBSTEPS = 0.002, 4
HOME = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4, 0.6])


def sway(robot: Robot, reach: float = 0.4, period: float = 4.0) -> JointMotion:
    """Return a motion around `HOME` from rest to rest."""
    time = np.linspace(0.0, period, 81)
    w = 2.0 * np.pi / period
    shape = (1.0 - np.cos(w * time), w * np.sin(w * time), w**2 * np.cos(w * time))
    q, v, a = (reach * s[:, None] * np.ones(7) for s in shape)
    return JointMotion(robot.joint_names, time, HOME + q, v, a, robot.name, robot.model_hash)


class World:
    """An arm with a true model of its own, its controller, and a player, tick by tick."""

    def __init__(
        self,
        robot: Robot,
        truth: FloatArray,
        *,
        asks: bool = True,
        motion: JointMotion | None = None,
    ) -> None:
        self.plant = TreeDynamics(robot, 0.03)
        self.plant.set_parameters(truth)
        self.robot = robot
        self.controller = Controller(robot, ControllerConfig())
        self.player = Player(
            robot,
            sway(robot) if motion is None else motion,
            PlayerConfig(target="controller" if asks else "trajectory"),
        )
        self.q, self.v = HOME + 0.2, np.zeros(7)
        self.ticks = 0
        self.rows: list[tuple[float, FloatArray, FloatArray, FloatArray]] = []
        self.blocked: tuple[int, float] | None = None

    @property
    def time(self) -> float:
        return PERIOD * self.ticks

    def block(self, joint: int) -> None:
        """Have somebody hold a joint where it is, as hard as a wall."""
        self.blocked = joint, float(self.q[joint])

    def step(self) -> None:
        t, names = self.time, self.robot.joint_names
        self.controller.take_joint_states(names, self.q, self.v, t, t)
        command = self.controller.tick(t, t)
        self.player.take_joint_states(names, self.q, self.v, command.effort, t)
        self.player.take_tracking(
            int(command.state), [], t, command.position_error, command.velocity_error
        )
        self.player.look(t, answered=True)
        self.rows.append((t, self.q, self.v, command.effort))
        before = self.player.phase
        if before is Phase.READY:
            plan = self.player.begin(dry_run=False)
            assert plan is not None
            points = TrajectoryPoints(names, None, *plan.points)
            assert self.controller.take_reference(points, t) is None
        for _ in range(SUBSTEPS):
            force = command.effort - self.plant.torque(self.q, self.v, np.zeros(7), self.v)
            if self.blocked is not None:
                joint, where = self.blocked
                stiff = 4e4 * (where - self.q[joint]) - 400.0 * self.v[joint]
                force[joint] += self.plant.inertia(self.q)[joint, joint] * stiff
            self.v = self.v + PERIOD / SUBSTEPS * np.linalg.solve(
                self.plant.inertia(self.q), force
            )
            self.q = self.q + PERIOD / SUBSTEPS * self.v
        self.ticks += 1

    def run(self, until: Callable[[], bool], limit: float = 30.0) -> None:
        while not until():
            assert self.time < limit, self.player.phase
            self.step()

    def brake(self) -> None:
        none = TrajectoryPoints(self.robot.joint_names, None, np.zeros(0), np.zeros((0, 7)))
        assert self.controller.take_reference(none, self.time) is None

    @property
    def recording(self) -> Recording:
        """All joint states."""
        time, q, v, effort = (np.array(part) for part in zip(*self.rows, strict=True))
        return Recording(time, self.robot.joint_names, q, v, effort, source="player")
