# SPDX-License-Identifier: Apache-2.0
"""What moves too fast, too far or thrashes is named and brought to rest, and cannot thrash on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from sysid_controller.command import Command, ControlState, Publishers
from sysid_controller.controller import Controller
from sysid_controller.health import Health
from sysid_controller.safety_watch import SafetyStop, SafetyWatch
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.exchange import ParameterSet, TrajectoryPoints
from sysid_core.robot import Robot, load_robot

PERIOD = 0.002
HOME = np.array([0.0, -0.5, 0.0, -1.8, 0.0, 1.4, 0.6])
NONE = np.zeros(7)


@pytest.fixture
def watch(panda: Robot) -> SafetyWatch:
    return SafetyWatch(panda.joint_names, panda.limits)


def judged(
    watch: SafetyWatch, velocities: FloatArray, positions: npt.ArrayLike = -1.8
) -> list[str]:
    """Return the kinds of what the watch says of joint 4 at these velocities and positions."""
    places = np.broadcast_to(np.asarray(positions, dtype=float), len(velocities))
    kinds = []
    for k, speed in enumerate(velocities):
        velocity, position = NONE.copy(), HOME.copy()
        velocity[3] = speed
        position[3] = places[k]
        watch.measure(position, velocity, PERIOD * k)
        found = watch.judge(NONE, PERIOD, PERIOD * k, rejoined=False)
        kinds.append("" if found is None else found.kind)
    return kinds


def test_single_outliers_of_velocity_and_position_stop_nothing(watch: SafetyWatch) -> None:
    velocities = np.where(np.arange(60) % 6 == 5, 20.0, 0.3)
    positions = np.where(np.arange(60) % 12 == 8, -2.5, -1.8)
    assert set(judged(watch, velocities, positions)) == {""}


def test_overspeed_is_named_after_two_samples(watch: SafetyWatch) -> None:
    assert judged(watch, np.array([0.0, 0.0, 3.3, 3.3])) == ["", "", "", "overspeed"]


def test_a_velocity_sensor_that_lies_does_not_hide_a_joint_that_moves(watch: SafetyWatch) -> None:
    positions = -1.8 + 4.0 * PERIOD * np.arange(8)
    assert "overspeed" in judged(watch, np.zeros(8), positions)
    assert watch.velocity[3] == pytest.approx(4.0)


def test_a_joint_that_goes_on_beyond_its_range_is_named(watch: SafetyWatch) -> None:
    out = 0.128 + 0.001 * np.arange(5)  # its limit is -0.07
    kinds = judged(watch, np.full(5, 0.5), out)
    assert kinds[-1] == "out_of_range"
    watch.restart()
    assert set(judged(watch, np.full(5, -0.5), out[::-1])) == {""}  # it comes back


def test_thrashing_between_torque_limits_is_named(watch: SafetyWatch, panda: Robot) -> None:
    watch.measure(HOME, panda.limits.velocity, 0.0)
    kinds = set()
    for k in range(400):
        effort = panda.limits.effort * (-1.0) ** (k // 5)
        found = watch.judge(effort, PERIOD, PERIOD * k, rejoined=False)
        kinds.add("" if found is None else found.kind)
    assert kinds == {"", "power"}


def test_a_reference_that_starts_anew_again_and_again_is_named(watch: SafetyWatch) -> None:
    found = [watch.judge(NONE, PERIOD, 0.1 * k, rejoined=True) for k in range(5)]
    assert [f.kind for f in found if f is not None] == ["tracking"]


@pytest.mark.parametrize("delay", [0, 1, 2])
@pytest.mark.parametrize("lighter", [1.0, 2.0])
def test_the_stop_is_stable_with_delay_and_on_a_lighter_robot(
    panda: Robot, delay: int, lighter: float
) -> None:
    """v[k+1] = v[k] − dt M⁻¹ D v[k − delay] decays, whatever the configuration."""
    model = TreeDynamics(panda, 0.05)
    rng = np.random.default_rng(0)
    for _ in range(10):
        inertia = model.inertia(rng.uniform(*panda.sampling_range))
        stop = SafetyStop(panda.limits)
        stop.begin(Diagnostic("overspeed", "fast"), 0.0, inertia, PERIOD)
        past = [rng.normal(size=7) * 3.0] * (delay + 1)
        first = np.abs(past[-1]).max()
        mobility = lighter * np.linalg.inv(inertia)
        for _ in range(500):
            effort = stop.torque(NONE, HOME, past[-1 - delay], 0.0)
            past.append(past[-1] + PERIOD * mobility @ effort)
        assert np.abs(past[-1]).max() < 0.05 * first


def _stopped(panda: Robot, lag: int, seconds: float, noise: float = 0.0) -> FloatArray:
    """Brake joints of .1 kg·m² from twice their limits; return speeds (n, 7) in limits."""
    stop, rng = SafetyStop(panda.limits), np.random.default_rng(0)
    stop.begin(Diagnostic("overspeed", "fast"), 0.0, 0.1 * np.eye(7), PERIOD)
    limit, position = panda.limits.velocity, np.zeros(7)
    velocity = 2.0 * limit
    past = [(position, velocity)] * (lag + 1)
    speeds = []
    for k in range(round(seconds / PERIOD)):
        seen, moved = past[-1 - lag]
        seen = seen + noise * rng.normal(size=7)
        effort = stop.torque(np.zeros(7), seen, moved, PERIOD * k)
        velocity = velocity + 10.0 * PERIOD * np.clip(effort, -87.0, 87.0)
        position = position + PERIOD * velocity
        past.append((position, velocity))
        speeds.append(np.abs(velocity) / limit)
    return np.array(speeds)


def test_braking_that_drives_the_robot_is_let_go_of(panda: Robot) -> None:
    lag = round(0.05 / PERIOD)
    assert _stopped(panda, lag, 0.3).max() > 3.0  # late feedback drives these joints
    late = _stopped(panda, lag, 3.0)
    assert late[-1] == pytest.approx(late[round(0.7 / PERIOD)])  # they coast
    assert _stopped(panda, 0, 3.0)[-1].max() < 1e-3
    assert _stopped(panda, 0, 3.0, noise=0.01)[-1].max() < 0.3


def test_after_three_stops_within_a_minute_it_stays_stopped_until_it_is_enabled(
    panda: Robot,
) -> None:
    stop = SafetyStop(panda.limits)
    for begins, stays in ((0.0, False), (20.0, False), (50.0, True)):
        stop.begin(Diagnostic("overspeed", "fast"), begins, np.eye(7), PERIOD)
        stop.torque(NONE, HOME, NONE, begins)
        stop.torque(NONE, HOME, NONE, begins + 1.0)
        assert stop.over(begins + 1.0) is not stays
        assert not stop.over(begins + 0.4)
    assert "call ~/enable" in str(stop)
    stop.forget()
    assert stop.over(51.0)


def test_a_gap_in_the_joint_states_does_not_weaken_a_stop(watch: SafetyWatch) -> None:
    for k in range(50):
        watch.measure(HOME, NONE, PERIOD * k)
    watch.measure(HOME, NONE, 100.0)
    assert watch.interval < 3.0 * PERIOD


class Loop:
    """The controller closes the loop over a plant that can be thrown about."""

    def __init__(self, robot: Robot, truth: FloatArray) -> None:
        self.robot = robot
        self.controller = Controller(robot, ControllerConfig())
        self.plant = TreeDynamics(robot, 0.05)
        self.plant.set_parameters(truth)
        self.q, self.v, self.k = HOME.copy(), np.zeros(7), 0
        self.effort = NONE
        self.lost: int | None = None  # a joint whose drive repeats its last position
        self.seen = self.q

    @property
    def time(self) -> float:
        return PERIOD * self.k

    def tick(self, count: int) -> list[Command]:
        commands = []
        for _ in range(count):
            t, q, v = self.time, self.q.copy(), self.v.copy()
            if self.lost is not None:
                q[self.lost], v[self.lost] = self.seen[self.lost], 0.0
            self.seen = q
            self.controller.take_joint_states(self.robot.joint_names, q, v, t, t)
            command = self.controller.tick(t, t)
            for _ in range(4):  # the torque of the period before acts: a period of delay
                bias = self.plant.torque(self.q, self.v, NONE, self.v)
                acceleration = np.linalg.solve(self.plant.inertia(self.q), self.effort - bias)
                self.v = self.v + 0.25 * PERIOD * acceleration
                self.q = self.q + 0.25 * PERIOD * self.v
            self.effort = command.effort
            commands.append(command)
            self.k += 1
        return commands

    def offer(self, vector: FloatArray, revision: int) -> Diagnostic | None:
        robot = self.robot
        return self.controller.take_parameters(
            ParameterSet(robot.name, robot.model_hash, revision, self.time, True, vector)
        )


@pytest.fixture
def loop(panda: Robot) -> Loop:
    truth = panda.consistent_nominal.copy()
    truth[panda.layout.term("armature")] += 0.02
    truth[panda.layout.term("viscous")] += 0.1
    return Loop(panda, truth)


def test_a_robot_that_is_thrown_is_stopped_held_and_driven_again(loop: Loop) -> None:
    loop.tick(300)
    nominal = loop.controller.blend.parameters
    vector = loop.robot.consistent_nominal.copy()
    vector[loop.robot.layout.term("offset")] += 0.5
    assert loop.offer(vector, 1) is None
    loop.tick(600)
    loop.v = loop.v + np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 7.0])
    commands = loop.tick(100)
    assert commands[-1].state is ControlState.STOPPED
    assert "joint 'panda_joint7' moves at" in commands[-1].stopped
    assert (np.abs(loop.v) < 0.2).all()
    np.testing.assert_array_equal(loop.controller.blend.parameters, nominal)
    assert not loop.controller.blend.identified
    points = TrajectoryPoints(loop.robot.joint_names, None, np.array([1.0]), HOME[None])
    assert "the robot is stopped" in str(loop.controller.take_reference(points, loop.time))
    assert "the robot was stopped" in str(loop.offer(vector, 2))
    later = replace(points, start=loop.time, time=np.array([3.0]))
    assert loop.controller.take_reference(later, loop.time) is None
    commands = loop.tick(400)
    assert commands[-1].state is ControlState.TRACKING  # what came with a start in time
    assert commands[-1].stopped == ""
    assert (np.abs(loop.v) < loop.robot.limits.velocity).all()
    assert loop.controller.take_reference(points, loop.time) is None
    assert loop.offer(vector, 3) is not None
    loop.tick(5000)
    assert loop.offer(vector, 4) is None


@pytest.mark.parametrize("joint", [4, 6])
def test_a_joint_whose_drive_is_lost_in_a_motion_stops_the_robot(loop: Loop, joint: int) -> None:
    loop.tick(500)
    target = HOME + 0.6 * np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0, -1.0])
    points = TrajectoryPoints(loop.robot.joint_names, None, np.array([2.0]), target[None])
    assert loop.controller.take_reference(points, loop.time) is None
    loop.tick(500)
    loop.lost = joint
    commands = loop.tick(100)
    assert f"joint 'panda_joint{joint + 1}' has stood at" in commands[-1].stopped
    speeds = []
    for _ in range(20):
        loop.tick(50)
        speeds.append(abs(loop.v[joint]))
    assert max(speeds) < 1.5 * loop.robot.limits.velocity[joint]


def test_offsets_beyond_a_wrists_torque_are_refused_and_move_nothing(loop: Loop) -> None:
    loop.tick(300)
    hostile = loop.robot.consistent_nominal.copy()
    hostile[loop.robot.layout.term("offset")][4:] = 20.0
    assert "an offset of 20 N·m at joint 'panda_joint5'" in str(loop.offer(hostile, 1))
    loop.tick(500)
    assert loop.offer(loop.robot.consistent_nominal, 2) is None
    loop.tick(500)
    assert np.abs(loop.v).max() < 0.01


def test_a_second_controller_on_the_robot_waits_and_is_not_enabled(loop: Loop) -> None:
    controller, health = loop.controller, Health()
    controller.publishers = Publishers(commands=2)
    assert loop.tick(10)[-1].state is ControlState.WAITING
    assert "1 other publisher" in str(controller.set_enabled(True))
    found = {d.kind: d for d in health.report(controller, loop.time)}
    assert found["owners"].severity is Severity.ERROR
    controller.publishers = Publishers(references=2)
    assert loop.tick(10)[-1].state is ControlState.HOLDING
    found = {d.kind: d for d in health.report(controller, loop.time)}
    assert "2 publishers of references" in str(found["owners"])
    controller.publishers = Publishers(commands=2)  # who drives already goes on
    assert loop.tick(10)[-1].state is ControlState.HOLDING


def test_parameters_that_predict_worse_than_the_nominal_ones_are_dropped(loop: Loop) -> None:
    loop.tick(300)
    hostile = loop.robot.consistent_nominal.copy()
    hostile[loop.robot.layout.term("offset")][3] = 15.0
    assert loop.offer(hostile, 2**63) is None  # and nobody publishes better ones
    commands = loop.tick(200)
    assert not loop.controller.blend.identified
    assert "the torque of joint 'panda_joint4'" in str(loop.offer(hostile, 2**63))
    found = {d.kind: d for d in Health().report(loop.controller, loop.time)}
    assert "the torque of joint 'panda_joint4'" in str(found["parameters"])
    assert loop.controller.blend.barred(loop.time + 1.0) == ""
    commands += loop.tick(800)
    assert {command.state for command in commands} == {ControlState.HOLDING}
    assert np.abs(commands[-1].position_error).max() < 0.01


def test_a_load_that_no_model_knows_drops_no_parameters(loop: Loop) -> None:
    loop.tick(300)
    truth = loop.plant.parameters.copy()
    assert loop.offer(truth, 1) is None
    loaded = truth.copy()
    loop.robot.layout.inertias(loaded)[-1] *= 4.0
    loop.plant.set_parameters(loaded)
    loop.v = loop.v + 0.3
    loop.tick(1500)
    assert loop.controller.blend.identified


def test_a_joint_whose_speed_limit_is_a_placeholder_is_driven_slowly_and_watched(
    panda: Robot,
) -> None:
    name, other = panda.joint_names[3], panda.joint_names[2]
    description = replace(panda.description, limits={"velocity": {name: 1000.0, other: np.inf}})
    controller = Controller(load_robot(description), ControllerConfig())
    controller.take_joint_states(panda.joint_names, HOME, NONE, 0.0, 0.0)
    controller.tick(0.0, 0.0)
    (found,) = (f for f in Health().report(controller, 0.0) if f.kind == "limits")
    assert f"no velocity limit known, but assumed, for {other} (2), {name} (2)" in found.message
    quick = HOME + np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])
    points = TrajectoryPoints(panda.joint_names, None, np.array([0.2]), quick[None])
    assert f"'{name}' at" in str(controller.take_reference(points, 0.0))
    assert judged(controller.watch, np.full(3, 6.0))[-1] == "overspeed"


def test_a_joint_without_an_effort_limit_gets_one_that_is_told(panda: Robot) -> None:
    unknown = replace(
        panda.description, limits={"effort": dict.fromkeys(panda.joint_names, np.inf)}
    )
    config = ControllerConfig(kp=tuple([1e4] * 7), kd=tuple([1.0] * 7))
    controller = Controller(load_robot(unknown), config)
    controller.take_joint_states(panda.joint_names, HOME, NONE, 0.0, 0.0)
    controller.tick(0.0, 0.0)
    for k in range(1, 50):  # pushed aside
        t = 0.001 * k
        controller.take_joint_states(panda.joint_names, HOME + 0.1, NONE, t, t)
        assert (np.abs(controller.tick(t, t).effort) <= controller.limits.effort).all()
    known = panda.limits.effort.max()
    assert 0.2 * known < controller.limits.effort.max() < 5.0 * known
    (found,) = (f for f in Health().report(controller, 0.0) if f.kind == "limits")
    assert f"no effort limit known, but assumed, for {panda.joint_names[0]} (" in found.message
    offset = panda.consistent_nominal.copy()
    offset[panda.layout.term("offset")] = 2.0 * controller.limits.effort
    sent = ParameterSet(panda.name, controller.robot.model_hash, 1, 0.0, True, offset)
    assert "offset" in str(controller.take_parameters(sent))
