# SPDX-License-Identifier: Apache-2.0
"""A simulated robot plays a motion on its feet, and stops where base or feet go astray."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from sysid_controller.controller import Controller
from sysid_controller.motion_plan import MotionPlanner
from sysid_controller.player import Phase, Player
from sysid_controller.player_config import PlayerConfig
from sysid_controller.settings import ControllerConfig
from sysid_core.dynamics.stance import stance_of
from sysid_core.errors import ParameterError
from sysid_core.exchange import TrajectoryPoints
from sysid_core.excitation.limits import motion_limits
from sysid_core.excitation.motion_file import JointMotion
from sysid_core.excitation.standing import StandingDesign
from sysid_core.robot import Robot, load_robot
from sysid_sim.simulation import Simulation, SimulationConfig
from sysid_sim.truth import draw_truth

PERIOD, WARM, LATE = 0.004, 0.2, 0.25


@cache
def solo12() -> Robot:
    return load_robot("solo12")


@cache
def sway() -> JointMotion:
    robot = solo12()
    design = StandingDesign(robot, motion_limits(robot, share=0.8, speed=0.8), 2.0, 2)
    motion = design.random(np.random.default_rng(1))
    time = motion.times(20.0)
    states = motion.states(time)
    return JointMotion(robot.joint_names, time, *states, robot.name, robot.model_hash)


class World:
    """Solo12 with a true model of its own, its controller and a player, tick by tick."""

    def __init__(self) -> None:
        robot, stance = solo12(), stance_of(solo12())
        start = np.concatenate([stance.pose, stance.joints])
        config = SimulationConfig(period=PERIOD)
        self.plant = Simulation(robot, draw_truth(robot, 1), config, start=start)
        settings = ControllerConfig(rate=1.0 / PERIOD, contact_control="projected")
        self.controller = Controller(robot, settings)
        self.player = Player(
            robot,
            sway(),
            PlayerConfig(wait=2.0),
        )
        self.feet = [contact.name for contact in robot.description.contacts]
        self.lifted, self.tilted, self.blind = -1, False, False
        self.delay, self.sent = 0.0, np.inf
        self.effort, self.fewest = np.zeros(12), len(self.feet)

    def run(self, until: float) -> None:
        """Go on until a time [s], or until the motion is over."""
        over = (Phase.DONE, Phase.STOPPED)
        while self.plant.time < until and self.player.phase not in over:
            self._tick(self.plant.time)

    def _tick(self, now: float) -> None:
        plant, controller, player = self.plant, self.controller, self.player
        names = solo12().joint_names
        position, velocity = plant.sense()
        pose, twist, active = plant.sense_base()
        assert controller.base is not None
        controller.base.take_odometry(pose, twist, now)
        controller.base.take_contacts(self.feet, active.tolist(), now, now)
        controller.take_joint_states(names, position, velocity, now, now)
        command = controller.tick(now, now)
        assert player.standing is not None
        told = pose.copy()
        if self.tilted:
            told[3:] = [np.sin(0.15), 0.0, 0.0, np.cos(0.15)]  # by 0.3 rad
        flags = [on and leg != self.lifted for leg, on in enumerate(active.tolist())]
        if now > WARM:
            if not self.blind:
                player.standing.take_base(told)
            player.standing.take_contacts(self.feet, flags, now)
            player.take_joint_states(names, position, velocity, self.effort, now)
            errors = (command.position_error, command.velocity_error)
            player.take_tracking(int(command.state), [], now, *errors)
            player.look(now, answered=True)
            self.fewest = min(self.fewest, sum(active))
        if player.phase is Phase.READY:
            plan = player.begin(dry_run=False)
            assert plan is not None, player.reason
            self.points, self.sent = TrajectoryPoints(names, None, *plan.points), now
        if now >= self.sent + self.delay:
            self.sent = np.inf
            assert controller.take_reference(self.points, now) is None
        self.effort = plant.step(command.output).effort


def test_a_motion_on_all_feet_is_played_to_its_end() -> None:
    world = World()
    world.run(20.0)
    assert world.player.phase is Phase.DONE, world.player.reason
    assert world.fewest == len(world.feet)


def test_a_motion_that_begins_late_is_played_to_its_end() -> None:
    """A busy computer delivers it late: what counts is where the joints are, not should be."""
    world = World()
    world.delay = 0.5
    world.run(20.0)
    assert world.player.phase is Phase.DONE, world.player.reason


@pytest.mark.parametrize("fault", ["lifted", "tilted"])
def test_a_foot_that_lifts_and_a_base_that_tilts_stop_it(fault: str) -> None:
    world = World()
    world.run(3.0)
    assert world.player.phase is Phase.PLAYING, world.player.reason
    setattr(world, fault, 2)
    world.run(world.plant.time + LATE)
    assert world.player.phase.name == "STOPPED"
    expected = f"'{world.feet[2]}' is not on the ground" if fault == "lifted" else "base is tilted"
    assert expected in world.player.reason


def test_without_odometry_nothing_moves() -> None:
    world = World()
    world.blind = True
    world.run(4.0)
    assert not world.player.moved
    assert "no odometry" in world.player.reason


def test_a_motion_that_would_drag_a_foot_is_refused() -> None:
    motion = sway()
    bent = motion.position + 0.2 * (np.arange(12) == 2) * (1.0 - np.cos(motion.time))[:, None]
    dragged = JointMotion(
        motion.joint_names, motion.time, bent, motion.velocity, motion.acceleration
    )
    with pytest.raises(ParameterError, match="would drag a foot by"):
        MotionPlanner(solo12(), dragged)
