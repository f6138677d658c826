# SPDX-License-Identifier: Apache-2.0
"""The relays of Unitree's and Spot's messages: readings by name and in the base frame, or none."""
# ruff: noqa: E402 - these imports need the ROS that is looked for first

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from nav_msgs.msg import Odometry
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Empty

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.robot import load_robot
from sysid_msgs.msg import Contacts
from sysid_online import relay as relays
from sysid_online.spot_relay import SpotRelay
from sysid_online.unitree import ROBOTS, FootLoads, RobotClock, base_state
from sysid_online.unitree_relay import UnitreeRelay
from sysid_ros.fields import NANO, nanoseconds, seconds, stamp
from sysid_ros.plain import installed_type
from sysid_ros.sensors import joint_state_message, odometry_arrays, odometry_message

INTERFACES = Path(__file__).parent / "interfaces"
MOTORS = {"g1": 35, "go2": 20}
"""Length of a LowState's motor_state, unused motors included."""
BEGUN = 275
"""Messages until a robot's clock is known."""
FORWARD = np.array([0.3, -0.1, 0.05])


class Log(list[Any]):
    """Stands in for a publisher."""

    publish = list.append


def imu_state(quaternion: FloatArray, rate: Any = (0.1, 0.2, 0.3)) -> Any:
    """Return an IMUState; the quaternion is x, y, z, w here."""
    return SimpleNamespace(
        quaternion=np.roll(quaternion, 1),
        gyroscope=np.array(rate),
        accelerometer=np.array([0.0, 0.0, 9.81]),
    )


def low_state(model: str, tick: int, **changes: Any) -> Any:
    """Return a LowState whose motor k is at k, k/10 and −k."""
    motors = [SimpleNamespace(q=k, dq=0.1 * k, tau_est=-k) for k in range(MOTORS[model])]
    told = {
        "tick": tick,
        "motor_state": motors,
        "imu_state": imu_state(np.array([0.0, 0.0, 0.0, 1.0])),
        "foot_force": np.array([100, 0, 0, 100]),
    }
    if model == "g1":
        del told["foot_force"]
        told["mode_pr"] = 0
    return SimpleNamespace(**{**told, **changes})


def turned(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return an orientation, as a quaternion and as a matrix."""
    quaternion = rng.normal(size=4)
    quaternion /= np.linalg.norm(quaternion)
    return quaternion, pin.Quaternion(quaternion).matrix()


def sport_state(quaternion: FloatArray, velocity: FloatArray, **changes: Any) -> Any:
    told = {
        "stamp": stamp(1.0),
        "imu_state": imu_state(quaternion),
        "position": np.array([1.0, 2.0, 0.3]),
        "velocity": velocity,
    }
    return SimpleNamespace(**{**told, **changes})


# -- conversions -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["go2", "g1"])
def test_the_motors_are_all_joints_of_the_description(model: str) -> None:
    robot = load_robot(model)
    assert sorted(ROBOTS[model].joints) == sorted(robot.actuated_names)
    names = {contact.name for contact in robot.description.contacts}
    assert not ROBOTS[model].feet or set(ROBOTS[model].feet) == names


def test_the_motors_order_is_unitrees() -> None:
    go2, g1 = ROBOTS["go2"].joints, ROBOTS["g1"].joints
    assert [go2[k] for k in (0, 4, 8, 9)] == [
        *("FR_hip_joint", "FL_thigh_joint", "RR_calf_joint", "RL_hip_joint")
    ]
    assert {k: g1[k] for k in (0, 3, 11, 12, 14, 15, 18, 28)} == {
        0: "left_hip_pitch_joint",
        3: "left_knee_joint",
        11: "right_ankle_roll_joint",
        12: "waist_yaw_joint",
        14: "waist_pitch_joint",
        15: "left_shoulder_pitch_joint",
        18: "left_elbow_joint",
        28: "right_wrist_yaw_joint",
    }


def test_the_twist_is_the_velocity_turned_into_the_base() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        quaternion, rotation = turned(rng)
        state, velocity = sport_state(quaternion, rotation @ FORWARD), rotation @ FORWARD
        pose, twist = base_state(state, imu_state(quaternion), "world")
        np.testing.assert_allclose(twist, [*FORWARD, 0.1, 0.2, 0.3], atol=1e-12)
        np.testing.assert_allclose(pose, [1.0, 2.0, 0.3, *quaternion], atol=1e-12)
        np.testing.assert_allclose(base_state(state, None, "base")[1][:3], velocity)


def test_what_odometry_leaves_at_zero_is_the_low_states() -> None:
    quaternion, rotation = turned(np.random.default_rng(1))
    empty = imu_state(np.zeros(4), np.zeros(3))
    state = sport_state(quaternion, rotation @ FORWARD, imu_state=empty)
    pose, twist = base_state(state, imu_state(quaternion), "world")
    np.testing.assert_allclose(twist, [*FORWARD, 0.1, 0.2, 0.3], atol=1e-12)
    np.testing.assert_allclose(pose[3:], quaternion, atol=1e-12)


@pytest.mark.parametrize("unit", [0.2, 1.0, 30.0])
def test_feet_that_carry_load_stand_whatever_the_forces_unit(unit: float) -> None:
    rng, feet = np.random.default_rng(2), FootLoads()
    for step in range(6000):
        phase = (step / 250.0 + np.array([0.0, 0.5, 0.5, 0.0])) % 1.0
        stands = phase < 0.6
        load = 10.0 * np.where(stands, 4.0 / stands.sum(), 0.0)
        told = feet.standing(unit * (load + rng.uniform(0.0, 1.0, 4)), 0.5)
        assert told is not None
        if step > 250:  # a whole cycle
            np.testing.assert_array_equal(told, stands)
    none = FootLoads()
    assert none.standing(np.zeros(4), 0.5) is None


def _sent(told: FloatArray, delays: FloatArray, taken: FloatArray) -> FloatArray:
    """Return when messages were sent [s] by a robot's clock, without those before it is known."""
    clock = RobotClock()
    pairs = zip(told, taken + delays, strict=True)
    sent = [clock.sent(round(a * NANO), round(b * NANO)) for a, b in pairs]
    assert sent[:BEGUN] == [None] * BEGUN
    return np.array(sent[BEGUN:], dtype=float) / NANO


def test_held_up_messages_keep_their_times_apart() -> None:
    rng = np.random.default_rng(3)
    taken = np.arange(8000.0) * 2e-3
    delays = np.maximum(rng.exponential(2e-4, 8000), 1.0 - (taken + 1.0) % 3.0)  # 1 s long
    late = _sent(taken + 77.0, delays, taken) - taken[BEGUN:]
    assert (late >= delays.min() - 1e-9).all()
    assert np.ptp(late) < 1e-4


def test_a_robot_that_starts_again_is_followed() -> None:
    taken = np.arange(12000.0) * 2e-3
    delays = np.random.default_rng(3).exponential(2e-4, 12000)
    told = np.where(taken < 6.0, taken + 77.0, taken - 6.0)
    late = _sent(told, delays, taken) - taken[BEGUN:]
    assert np.ptp(late[:2600]) < 1e-4
    assert (late >= delays.min() - 1e-9).all()
    assert late.max() <= delays.max() + 1e-9
    assert np.ptp(late[8100:]) < 1e-4


@pytest.mark.parametrize("pace", [0.0, 0.5, 1000.0])
def test_a_robots_time_that_is_none_is_replaced_by_arrival(pace: float) -> None:
    taken = np.arange(6000.0) * 2e-3
    delays = np.random.default_rng(4).exponential(2e-4, 6000)
    sent = _sent(pace * taken, delays, taken)
    np.testing.assert_allclose(sent, (taken + delays)[BEGUN:], atol=1e-9)


# -- the nodes -----------------------------------------------------------------------------------


@pytest.fixture
def relay_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Return a maker of relays whose publishers are kept; they need no message packages."""
    made = []

    def make(kind: Any, *more: str) -> Any:
        monkeypatch.setattr(relays, "installed_type", lambda *_: Empty)
        rclpy.init(args=["--ros-args", *more])
        made.append(node := kind())
        for name in ("_joints", "_odometry", "_contacts", "_diagnostics"):
            setattr(node, name, Log())
        node._imu = Log()
        node._clocks = [SimpleNamespace(sent=lambda _, now: now)] * 2  # from the first message on
        return node

    yield make
    for node in made:
        node.destroy_node()
    rclpy.try_shutdown()


def _told(node: Any) -> Any:
    """Return what the diagnostics say now."""
    node._report()
    return node._diagnostics[-1].status[0]


@pytest.mark.parametrize("model", ["go2", "g1"])
def test_joint_states_hold_every_motor_by_name(model: str, relay_of: Callable[..., Any]) -> None:
    relay = relay_of(UnitreeRelay, "-p", f"model:={model}")
    relay._on_low_state(low_state(model, 2))
    (message,) = relay._joints
    assert dict(zip(message.name, message.position, strict=True)) == {
        name: k for k, name in enumerate(ROBOTS[model].joints)
    }
    np.testing.assert_allclose(message.velocity, 0.1 * np.array(message.position))
    np.testing.assert_allclose(message.effort, -np.array(message.position))
    (imu,) = relay._imu
    assert (imu.linear_acceleration.z, imu.angular_velocity.y, imu.orientation.w) == (9.81, 0.2, 1)
    assert imu.header.stamp == message.header.stamp
    if model == "g1":
        assert not relay._contacts
    else:
        assert list(relay._contacts[0].names) == ["FR", "FL", "RR", "RL"]
        assert list(relay._contacts[0].active) == [True, False, False, True]


def _with_motor(model: str, tick: int, **changes: float) -> Any:
    state = low_state(model, tick)
    vars(state.motor_state[3]).update(changes)
    return state


def test_what_is_no_reading_is_left_out_counted_and_told(relay_of: Callable[..., Any]) -> None:
    relay = relay_of(UnitreeRelay)
    nan = np.full(3, np.nan)
    faulty = {
        "numbers that are not finite": _with_motor("go2", 2, tau_est=np.nan),
        "fewer than 12 motors": low_state("go2", 4, motor_state=[]),
        "ankle motors A and B": low_state("go2", 6, mode_pr=1),
        "inertial readings that": low_state("go2", 8, imu_state=imu_state(np.zeros(4), nan)),
        "repeat the tick": low_state("go2", 8),
    }
    for k, (text, state) in enumerate(faulty.items(), 1):
        relay.attempt(relay._on_low_state, state)
        assert sum(relay.left_out.values()) == k
        assert text in _told(relay).message
        assert _told(relay).message == "relaying"  # once
    assert (len(relay._joints), len(relay._imu), len(relay._contacts)) == (1, 3, 4)
    for state in (sport_state(np.ones(4), nan), sport_state(np.zeros(4), FORWARD)):
        relay.attempt(relay._on_odometry, state)
    assert not relay._odometry
    assert "odometry without an orientation" in _told(relay).message
    relay._on_low_state(low_state("go2", 0))
    relay._on_low_state(low_state("go2", 0))  # nothing counts it: these are two states
    assert len(relay._joints) == 3
    relay._on_odometry(sport_state(np.array([0.0, 0.0, 0.0, 1.0]), FORWARD))
    assert len(relay._odometry) == 1


def test_the_velocitys_frame_changes_while_the_relay_runs(relay_of: Callable[..., Any]) -> None:
    relay = relay_of(UnitreeRelay)
    quaternion, rotation = turned(np.random.default_rng(6))
    relay._on_low_state(low_state("go2", 2))
    relay._on_odometry(sport_state(quaternion, rotation @ FORWARD))
    (done,) = relay.set_parameters([Parameter("velocity_frame", value="base")])
    assert done.successful
    assert relay.get_parameter("velocity_frame").value == "base"
    relay._on_odometry(sport_state(quaternion, FORWARD))
    for message in relay._odometry:
        np.testing.assert_allclose(odometry_arrays(message)[1][:3], FORWARD, atol=1e-12)


def test_silent_topics_are_told_by_name(
    relay_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    relay = relay_of(UnitreeRelay, "-p", "model:=g1", "-r", "lowstate:=/robot/lowstate")
    assert _told(relay).message == "relaying"
    later = time.monotonic() + 3.0
    monkeypatch.setattr(relays, "time", SimpleNamespace(monotonic=lambda: later))
    told = _told(relay)
    assert "nothing on '/robot/lowstate' for 3.0 s" in told.message
    assert "'/odommodestate'" in told.message
    assert told.level == b"\x02"


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *how: str) -> Any:
        return installed_type(f"no_{name}", *how)

    monkeypatch.setattr(relays, "installed_type", missing)
    for kind in (UnitreeRelay, SpotRelay):
        rclpy.init(args=[])
        with pytest.raises(
            ParameterError, match=r"is not installed: build it from github.*FOLDER"
        ):
            kind()
        rclpy.shutdown()


def test_spots_twist_is_turned_and_its_frames_are_kept(relay_of: Callable[..., Any]) -> None:
    relay = relay_of(SpotRelay)
    quaternion, rotation = turned(np.random.default_rng(5))
    rate = np.array([0.4, -0.2, 0.1])
    pose, twist = np.r_[1.0, 2.0, 3.0, quaternion], np.r_[rotation @ FORWARD, rotation @ rate]
    frames = {"frame": "spot/odom", "child_frame": "spot/body"}
    relay._on_odometry(odometry_message(stamp(7.0), pose, twist, **frames))
    (message,) = relay._odometry
    told_pose, told = odometry_arrays(message)
    np.testing.assert_allclose(told, [*FORWARD, *rate], atol=1e-12)
    np.testing.assert_allclose(told_pose, pose, atol=1e-12)
    assert (message.header.frame_id, message.child_frame_id) == ("spot/odom", "spot/body")
    assert seconds(message.header.stamp) == 7.0
    for bad in (np.zeros(7), np.full(7, np.nan)):
        relay.attempt(relay._on_odometry, odometry_message(stamp(7.1), bad, twist, **frames))
    assert len(relay._odometry) == 1
    assert sum(relay.left_out.values()) == 2


def test_spots_joints_lose_its_name_and_its_feet_get_theirs(relay_of: Callable[..., Any]) -> None:
    relay = relay_of(SpotRelay)
    names = ["spot/front_left_hip_x", "spot/rear_right_knee"]
    told = joint_state_message(names, stamp(2.0), np.ones(2), np.ones(2), np.arange(2.0))
    relay._on_joint_states(told)
    assert list(relay._joints[0].name) == ["front_left_hip_x", "rear_right_knee"]
    broken = joint_state_message(names, stamp(2.0), np.full(2, np.nan), np.ones(2), np.ones(2))
    relay.attempt(relay._on_joint_states, broken)
    now = relay.get_clock().now().nanoseconds
    sent = stamp(now / NANO - 0.05)
    pose = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    relay._on_odometry(odometry_message(sent, pose, np.zeros(6), frame="", child_frame=""))
    for contacts in ([1, 2, 2, 1], [1, 0, 2, 1], [1, 1]):
        feet = SimpleNamespace(states=[SimpleNamespace(contact=each) for each in contacts])
        relay.attempt(relay._on_feet, feet)
    (message,) = relay._contacts
    assert list(message.names) == ["FL", "FR", "HL", "HR"]
    assert list(message.active) == [True, False, False, True]
    apart = nanoseconds(message.header.stamp) - nanoseconds(sent)
    assert 0 <= apart <= relay.get_clock().now().nanoseconds - now
    assert len(relay._joints) == 1
    assert sum(relay.left_out.values()) == 3


def test_a_relay_does_not_hear_itself(relay_of: Callable[..., Any]) -> None:
    with pytest.raises(ParameterError, match="come in and go out on '/joint_states'"):
        relay_of(SpotRelay, "-r", "spot/joint_states:=/joint_states")


# -- on the wire ---------------------------------------------------------------------------------


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Return what imports message types: real ones, or on the embedded runtime stand-ins."""
    tables = []
    if "sysid_embedded" in rclpy.__file__:
        from sysid_embedded import interfaces

        tables += [interfaces._files, interfaces.packages, interfaces.names]
        monkeypatch.setenv("SYSID_INTERFACES", str(INTERFACES))
        for table in tables:
            table.cache_clear()

    def find(name: str) -> Any:
        try:
            return installed_type(name, "")
        except ParameterError as error:
            pytest.skip(str(error))

    yield find
    monkeypatch.undo()
    for table in tables:
        table.cache_clear()


def _as_message(message: Any, told: Any) -> Any:
    """Copy a stand-in's fields to a message."""
    for name, value in vars(told).items():
        field = getattr(message, name)
        if isinstance(value, SimpleNamespace):
            _as_message(field, value)
        elif isinstance(value, list):
            for one, of in zip(field, value, strict=True):
                _as_message(one, of)
        elif isinstance(value, np.ndarray):
            setattr(message, name, value.astype(np.asarray(field).dtype))
        else:
            setattr(message, name, type(field)(value) if isinstance(field, float) else value)
    return message


def _relayed(relay: Any, inputs: list[tuple[Any, str]], heard: dict[str, Any]) -> dict[str, Any]:
    """Publish messages again and again until the relay has answered on each topic."""
    probe = rclpy.create_node("probe")
    got: dict[str, Any] = {}
    for topic, kind in heard.items():
        probe.create_subscription(kind, topic, partial(got.setdefault, topic), 10)
    ways = [(probe.create_publisher(type(m), topic, 10), m) for m, topic in inputs]
    executor = SingleThreadedExecutor()
    for node in (probe, relay):
        executor.add_node(node)
    end = time.monotonic() + 60.0
    while set(got) != set(heard):
        assert time.monotonic() < end, f"only {sorted(got)} came"
        for publisher, message in ways:
            if hasattr(message, "tick"):
                message.tick += 2
            publisher.publish(message)
        for _ in range(10):  # more than comes of these, so that no queue grows
            executor.spin_once(timeout_sec=0.0005)
    executor.shutdown()
    probe.destroy_node()
    relay.destroy_node()
    return got


@pytest.mark.parametrize("model", ["go2", "g1"])
def test_unitrees_own_messages_are_relayed(model: str, messages: Callable[[str], Any]) -> None:
    robot = ROBOTS[model]
    low = messages(f"{robot.package}/msg/LowState")
    odometry = messages("unitree_go/msg/SportModeState")
    rclpy.init(args=["--ros-args", "-p", f"model:={model}"])
    try:
        inputs = [
            (_as_message(low(), low_state(model, 0)), "lowstate"),
            (_odometry_message(odometry), robot.odometry),
        ]
        heard = {"joint_states": JointState, "odom": Odometry, "imu/data": Imu}
        heard |= {"contacts": Contacts} if robot.feet else {}
        got = _relayed(UnitreeRelay(), inputs, heard)
    finally:
        rclpy.try_shutdown()
    assert tuple(got["joint_states"].name) == robot.joints
    np.testing.assert_array_equal(got["joint_states"].position, range(len(robot.joints)))
    np.testing.assert_allclose(odometry_arrays(got["odom"])[1][:3], FORWARD, rtol=1e-6)
    assert got["odom"].child_frame_id == robot.base


def _odometry_message(kind: Any) -> Any:
    state = sport_state(np.array([0.0, 0.0, 0.0, 1.0]), FORWARD)
    del state.stamp  # of a type of its own
    return _as_message(kind(), state)


def test_spots_own_messages_are_relayed(messages: Callable[[str], Any]) -> None:
    feet, foot = (messages(f"spot_msgs/msg/{kind}") for kind in ("FootStateArray", "FootState"))
    rclpy.init(args=[])
    try:
        states = feet(states=[foot(contact=contact) for contact in (1, 2, 2, 1)])
        pose = np.array([0.0, 0.0, 0.5, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
        odometry = odometry_message(
            stamp(1.0), pose, np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]), frame="", child_frame=""
        )
        joints = joint_state_message(["spot/a"], stamp(1.0), np.ones(1))
        inputs = [
            (states, "spot/status/feet"),
            (odometry, "spot/odometry"),
            (joints, "spot/joint_states"),
        ]
        kinds = {"joint_states": JointState, "odom": Odometry, "contacts": Contacts}
        got = _relayed(SpotRelay(), inputs, kinds)
    finally:
        rclpy.try_shutdown()
    assert list(got["joint_states"].name) == ["a"]
    np.testing.assert_allclose(odometry_arrays(got["odom"])[1][:3], [1.0, 0.0, 0.0], atol=1e-12)
