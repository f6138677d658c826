# SPDX-License-Identifier: Apache-2.0
"""A simulated Go2 that trots, told in Unitree's messages, is identified through the relay."""
# ruff: noqa: E402 - these imports need the ROS that is looked for first

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="neither ROS 2 nor sysid_embedded is installed")

from std_msgs.msg import Empty

from sysid_core.arrays import FloatArray
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.recording import Recording
from sysid_core.signals.rotation import rotate_into_body
from sysid_core.signals.senders import Senders
from sysid_online import relay as relays
from sysid_online.unitree_relay import UnitreeRelay
from sysid_ros.fields import stamp
from sysid_ros.sensors import SENSOR_TOPICS, joint_batches
from sysid_sim.run import Run, run_scenario
from sysid_sim.scenarios import find_scenario

_ORDER = tuple(
    f"{leg}_{part}_joint" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")
)
_FEET = ("FR", "FL", "RR", "RL")
_RAW = 40.0  # What a foot that stands shows, of a unit of its own


def imu_state(quaternion: FloatArray, rate: FloatArray, force: FloatArray) -> Any:
    """Return an IMUState; the quaternion is x, y, z, w here."""
    return SimpleNamespace(quaternion=np.roll(quaternion, 1), gyroscope=rate, accelerometer=force)


def unitree_states(walk: Recording) -> Iterator[tuple[Any, Any]]:
    """Yield a LowState and a SportModeState for each row of a walk; sensors share its times."""
    base, imu, contacts = walk.base, walk.imu, walk.contacts
    assert base is not None
    assert imu is not None
    assert contacts is not None
    motors = [walk.joint_names.index(name) for name in _ORDER]
    feet = [contacts.names.index(name) for name in _FEET]
    back = base.orientation * (-1.0, -1.0, -1.0, 1.0)
    velocity = rotate_into_body(back, base.twist[:, :3])  # into the world
    rng = np.random.default_rng(1)
    forces = np.rint(_RAW * contacts.active[:, feet] + rng.uniform(0.0, 5.0, (len(back), 4)))
    assert walk.velocity is not None
    assert walk.effort is not None
    rows = np.stack([walk.position, walk.velocity, walk.effort], axis=-1)[:, motors]
    for k, row in enumerate(rows.astype(np.float32).astype(float)):
        motor_state = [SimpleNamespace(q=q, dq=dq, tau_est=tau) for q, dq, tau in row]
        unit = imu_state(base.orientation[k], imu.angular_velocity[k], imu.linear_acceleration[k])
        low = SimpleNamespace(
            tick=2 * (k + 1),
            motor_state=motor_state + [SimpleNamespace(q=0.0, dq=0.0, tau_est=0.0)] * 8,
            imu_state=unit,
            foot_force=forces[k],
        )
        own = imu_state(base.orientation[k], base.twist[k, 3:], np.zeros(3))
        yield (
            low,
            SimpleNamespace(
                stamp=stamp(2e-3 * k),
                imu_state=own,
                position=base.position[k],
                velocity=velocity[k],
            ),
        )


def held_up(count: int) -> FloatArray:
    """Return delays (count,) [s]: some messages wait for 5 to 40 ms, and those behind them."""
    rng = np.random.default_rng(2)
    delays = rng.exponential(3e-4, count)
    for first in np.flatnonzero(rng.random(count) < 0.01):
        wait = rng.uniform(5e-3, 40e-3)
        behind = wait - 1.85e-3 * np.arange(int(wait / 1.85e-3))[: count - first]
        part = slice(first, first + len(behind))
        delays[part] = np.maximum(delays[part], behind)
    return delays


class Log(list[Any]):
    """Stands in for a publisher."""

    publish = list.append


@cache
def walked() -> Run:
    """Return a trotting Go2, readings at 500 Hz."""
    trot = find_scenario("solo12_trot")
    return run_scenario(replace(trot, name="go2_trot", robot="go2", rate=500.0), duration=6.0)


@pytest.fixture
def relayed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Recording]]:
    """Return what makes a recording of what the relay publishes of the walk."""
    monkeypatch.setattr(relays, "installed_type", lambda *_: Empty)
    made = []

    def relay_walk(velocity_frame: str) -> Recording:
        rclpy.init(args=["--ros-args", "-p", f"velocity_frame:={velocity_frame}"])
        made.append(node := UnitreeRelay())
        node._joints, node._imu, node._odometry, node._contacts = logs = [Log() for _ in range(4)]
        walk = walked().recording
        arrivals = walk.time + held_up(len(walk.time))
        for arrival, (low, sport) in zip(arrivals, unitree_states(walk), strict=True):
            now = SimpleNamespace(nanoseconds=round(1e9 * arrival))
            clock = SimpleNamespace(now=partial(lambda now: now, now))
            monkeypatch.setattr(node, "get_clock", partial(lambda clock: clock, clock))
            node._on_low_state(low)
            node._on_odometry(sport)
        assert not node.left_out
        (joints,), _ = joint_batches(logs[0], Senders())
        sensors = dict(zip(("imu/data", "odom", "contacts"), logs[1:], strict=True))
        for topic in SENSOR_TOPICS:
            (one,), malformed = topic.recordings(sensors[topic.name])
            assert not malformed
            field = topic.reader.field
            joints = replace(joints, **{field: getattr(one, field)})
        return joints

    yield relay_walk
    for node in made:
        node.destroy_node()
    rclpy.try_shutdown()


def test_what_the_relay_publishes_is_the_walk(relayed: Callable[..., Recording]) -> None:
    walk, told = walked().recording, relayed("world")
    begun = len(walk) - len(told)  # messages before the relay knows the robot's clock
    assert begun < 330
    late = told.time - walk.time[begun:]
    assert late.mean() < 1e-3
    assert np.std(late) < 1e-4
    columns = [told.joint_names.index(name) for name in walk.joint_names]
    assert told.base is not None
    assert told.contacts is not None
    assert told.effort is not None
    assert walk.base is not None
    assert walk.contacts is not None
    assert walk.effort is not None
    shown = told.contacts.of(walk.contacts.names)
    assert shown is not None
    np.testing.assert_allclose(told.position[:, columns], walk.position[begun:], atol=1e-6)
    np.testing.assert_allclose(told.effort[:, columns], walk.effort[begun:], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(told.base.twist, walk.base.twist[begun:], atol=1e-9)
    np.testing.assert_allclose(told.base.position, walk.base.position[begun:], atol=1e-9)
    assert np.mean(shown.active == walk.contacts.active[begun:]) > 0.99


def _replayed(recording: Recording) -> tuple[Any, str]:
    robot, told = walked().robot, list[str]()
    settings = stream_settings_for(recording, robot)
    for step in replay(recording, robot, stream=settings, tell=told.extend):
        last = step.update
    return last, " ".join(told)


def test_the_identifier_takes_what_the_relay_publishes(
    relayed: Callable[..., Recording],
) -> None:
    last, told = _replayed(relayed("world"))
    run = walked()
    masses = run.robot.layout.masses
    mass, true = last.parameters[masses].sum(), run.truth[masses].sum()
    assert last.identified
    assert mass == pytest.approx(true, rel=0.02)
    assert "frame" not in told


def test_a_velocity_frame_that_is_wrong_is_told(relayed: Callable[..., Recording]) -> None:
    last, told = _replayed(relayed("base"))
    assert "given in the world frame" in told
    assert not last.identified
