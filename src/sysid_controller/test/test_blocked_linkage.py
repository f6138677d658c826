# SPDX-License-Identifier: Apache-2.0
"""Whoever holds a joint of a closed-chain leg in the way of a motion is let go."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_controller.controller import Controller
from sysid_controller.player import Phase, Player
from sysid_controller.player_config import PlayerConfig
from sysid_controller.settings import ControllerConfig
from sysid_core.exchange import TrajectoryPoints
from sysid_core.excitation.motion_file import JointMotion
from sysid_core.robot import load_robot
from sysid_sim.simulation import Simulation, SimulationConfig
from sysid_sim.truth import draw_truth

PERIOD, WARM = 0.002, 0.5
"""Time [s] between ticks, and until the controller holds the leg in place of its brakes."""


@pytest.mark.parametrize("joint", [1, 3])
def test_a_blocked_joint_of_a_leg_stops_it_within_a_fifth_of_a_second(joint: int) -> None:
    robot = load_robot("digit_left_leg")
    names, active = robot.actuated_names, robot.actuated
    plant = Simulation(robot, draw_truth(robot, 0), SimulationConfig(period=PERIOD))
    home = plant.sense()[0][active]
    time, pace = np.linspace(0.0, 4.0, 81), 0.5 * np.pi
    shape = (1 - np.cos(pace * time), pace * np.sin(pace * time), pace**2 * np.cos(pace * time))
    q, v, a = (0.25 * s[:, None] * (np.arange(len(names)) == joint) for s in shape)
    motion = JointMotion(names, time, home + q, v, a, robot.name, robot.model_hash)
    controller = Controller(robot, ControllerConfig(mode="feed_forward"))
    player = Player(
        robot,
        motion,
        PlayerConfig(),
    )
    effort, blocked = np.zeros(len(names)), np.inf
    while player.phase is not Phase.STOPPED and plant.time < blocked + 0.2:
        now, (position, velocity) = plant.time, (part[active] for part in plant.sense())
        controller.take_joint_states(names, position, velocity, now, now)
        command = controller.tick(now, now)
        if now > WARM:
            player.take_joint_states(names, position, velocity, effort, now)
            errors = (command.position_error, command.velocity_error)
            player.take_tracking(int(command.state), [], now, *errors)
            player.look(now, answered=True)
        if player.phase is Phase.READY:
            plan = player.begin(dry_run=False)
            assert plan is not None
            points = TrajectoryPoints(names, None, *plan.points)
            assert controller.take_reference(points, now) is None
        if player.phase is Phase.PLAYING and abs(velocity[joint]) > 0.3 and blocked == np.inf:
            blocked = now
            friction = plant.truth[robot.layout.term("coulomb")].copy()
            friction[np.flatnonzero(active)[joint]] += 20.0 * robot.limits.effort[active][joint]
            plant.plant.set_friction(friction)
        assert now < 10.0, player.phase
        effort = plant.step(command.output).effort[active]
    assert player.phase is Phase.STOPPED
    assert blocked < plant.time, player.reason
    assert "is it blocked" in player.reason
