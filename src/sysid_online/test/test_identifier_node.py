# SPDX-License-Identifier: Apache-2.0
"""The identifier learns, publishes latched parameters, and does as its services are told."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.inertia import pseudo_inertia

Make = Callable[..., Any]


@pytest.fixture
def learned(graph: Make) -> Any:
    """Return a graph whose identifier has opened its gate."""
    g = graph("recorder", "identifier")
    g.play_until(g.identified)
    return g


def test_the_gate_opens_and_the_model_is_possible(learned: Any) -> None:
    first, last = learned.heard["parameters"][0], learned.newest("parameters")
    assert not first.identified
    assert last.revision > first.revision
    assert last.robot == "valkyrie_arm"
    assert last.model_hash == learned.motion.robot.model_hash
    assert last.r2 > 0.95
    layout = learned.motion.robot.layout
    assert tuple(last.bodies) == layout.bodies
    assert tuple(last.joints) == layout.joints
    inertias = np.asarray(last.inertial).reshape(-1, 10)
    assert (np.linalg.eigvalsh(pseudo_inertia(inertias))[:, 0] > 0.0).all()
    assert (np.asarray(last.viscous) >= 0.0).all()
    assert (np.asarray(last.coulomb) >= 0.0).all()
    assert learned.all_finite()


def test_silence_counts_by_the_clock_of_a_simulation(graph: Make) -> None:
    from rosgraph_msgs.msg import Clock

    from sysid_ros.fields import stamp

    g = graph("identifier", use_sim_time=True)
    identifier = g.nodes["identifier"]
    assert identifier._now() == 0.0  # it does not go yet
    clock = g.probe.create_publisher(Clock, "/clock", 10)
    g.until(lambda: clock.publish(Clock(clock=stamp(7.5))) or identifier._now() > 7.0)


def test_status_tells_states_and_reasons(learned: Any) -> None:
    states = [message.state for message in learned.heard["status"]]
    assert states[0] == 0
    learned.play_until(lambda: learned.newest("status").state == 2)
    for message in learned.heard["status"]:
        assert message.reasons
        assert list(message.joints) == list(learned.motion.robot.actuated_names)
        assert len(message.r2_joints) == len(message.joints)
    assert learned.newest("status").solve_time > 0.0


def test_moving_joints_get_friction_terms_and_lose_them_by_a_reset(graph: Make) -> None:
    from std_srvs.srv import Trigger

    from sysid_ros.identification import parameters_from_message

    g = graph("recorder", "identifier")
    motion = g.motion
    g.motion = replace(motion, effort=motion.effort + np.tanh(motion.velocity / 0.1))

    def bent() -> bool:
        heard = g.heard["parameters"]
        return bool(heard) and bool(np.any(heard[-1].sigmoid_scale))

    g.play_until(bent)
    assert g.newest("samples").cutoff > 0.0
    message = g.newest("parameters")
    assert message.identified
    offered = parameters_from_message(message, motion.robot)  # of whoever knows no such term
    assert offered.scales is not None
    assert offered.scales.any(axis=1).sum() > motion.robot.friction_scales.any(axis=1).sum()
    assert np.any(np.asarray(message.sigmoid) > 0.0)
    assert g.call(Trigger, "identifier/reset", Trigger.Request()).success
    g.until(lambda: not g.newest("parameters").identified)
    assert not np.any(g.newest("parameters").sigmoid_scale)
    assert g.all_finite()


def test_parameters_reach_one_who_comes_late(learned: Any) -> None:
    from rclpy.qos import DurabilityPolicy, QoSProfile

    from sysid_msgs.msg import DynamicParameters

    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    late = learned.listen("parameters", DynamicParameters, latched)
    learned.until(lambda: late)
    assert late[0].identified


def test_samples_wait_until_an_update_is_published_and_no_longer(graph: Make) -> None:
    g = graph("recorder", "identifier")
    node = g.nodes["identifier"]
    waited: dict[str, set[bool]] = {}

    def watched(name: str) -> Callable[..., Any]:
        method = getattr(node._identifier, name)

        def call(*given: Any, **named: Any) -> Any:
            waited.setdefault(name, set()).add(not node._idle.is_set())
            return method(*given, **named)

        return call

    for name in ("snapshot", "solve", "apply", "judge", "look"):
        setattr(node._identifier, name, watched(name))
    g.play_until(lambda: {"solve", "look"} <= waited.keys())
    assert waited == {
        "snapshot": {True},
        "solve": {True},
        "apply": {True},
        "judge": {False},
        "look": {False},
    }


def test_an_update_begins_with_samples_once_a_tick_and_without_them_at_the_next(
    graph: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sysid_msgs.msg import JointSamples

    node = graph("identifier").nodes["identifier"]
    node._timer.cancel()
    begun: list[None] = []
    monkeypatch.setattr(node._wake, "set", lambda: begun.append(None))
    node._due = False
    message = JointSamples(robot="valkyrie_arm", joint_names=list(node.robot.joint_names))
    counts = []
    for event in (node._on_tick, node._on_samples, node._on_samples, node._on_tick, node._on_tick):
        event(*([message] if event == node._on_samples else []))
        counts.append(len(begun))
    assert counts == [0, 1, 1, 1, 2]
    monkeypatch.undo()


def test_reset_goes_back_to_nominal_and_learns_again(learned: Any) -> None:
    from std_srvs.srv import Trigger

    assert learned.call(Trigger, "identifier/reset", Trigger.Request()).success
    learned.until(lambda: not learned.newest("parameters").identified)
    layout = learned.motion.robot.layout
    nominal = learned.motion.robot.nominal[layout.inertial]
    np.testing.assert_array_equal(learned.newest("parameters").inertial, nominal)
    learned.play_until(learned.identified)


def test_freezing_holds_the_parameters_and_thawing_lets_go(learned: Any) -> None:
    from std_srvs.srv import SetBool

    assert learned.call(SetBool, "identifier/freeze", SetBool.Request(data=True)).success
    learned.until(lambda: learned.newest("status").frozen)
    told = len(learned.heard["status"])
    learned.until(lambda: len(learned.heard["status"]) > told)  # also while nothing is solved
    count = len(learned.heard["parameters"])
    learned.play(2.0)
    assert len(learned.heard["parameters"]) == count
    assert learned.call(SetBool, "identifier/freeze", SetBool.Request(data=False)).success
    learned.play_until(lambda: len(learned.heard["parameters"]) > count)


def test_export_writes_the_model_in_use(learned: Any, tmp_path: Path) -> None:
    from sysid_msgs.srv import ExportModel

    request = ExportModel.Request(directory=str(tmp_path / "out"))
    answer = learned.call(ExportModel, "identifier/export", request)
    assert answer.success, answer.message
    assert Path(answer.urdf).read_text().startswith("<?xml")
    estimate = json.loads((tmp_path / "out" / "estimate.json").read_text())
    assert estimate["robot"] == "valkyrie_arm"
    assert estimate["method"] == "online"
    revisions = {m.revision: m for m in learned.heard["parameters"]}
    published = revisions[estimate["revision"]]
    values = np.concatenate([estimate["bodies"][body] for body in published.bodies])
    np.testing.assert_allclose(values, published.inertial)


def test_an_export_that_cannot_be_written_says_why(learned: Any, tmp_path: Path) -> None:
    from sysid_msgs.srv import ExportModel, SaveBuffer

    (tmp_path / "file").write_text("")
    folders = [str(tmp_path / "file" / "below"), "~nosuchuser/x", "a" * 5000, ""]
    embedded = sys.modules.get("sysid_embedded")
    # a string of rclpy ends before its first NUL
    if embedded is not None and embedded.is_installed():
        folders.append("x\0y")
    for folder in folders:
        for service, kind in (("identifier/export", ExportModel), ("recorder/save", SaveBuffer)):
            answer = learned.call(kind, service, kind.Request(directory=folder))
            assert not answer.success
            assert answer.message
            assert len(answer.message) < 300


def parameter(name: str, value: object) -> Any:
    from rclpy.parameter import Parameter

    return Parameter(name, value=value)


def test_a_threshold_can_be_changed_while_running(learned: Any) -> None:
    node = learned.nodes["identifier"]
    assert node.set_parameters([parameter("gate.min_determined", 1.0)])[0].successful
    learned.play_until(lambda: learned.newest("status").state == 3)
    assert "poor excitation" in learned.newest("status").reasons[0]
    assert node.set_parameters([parameter("gate.min_determined", 0.1)])[0].successful
    learned.play_until(lambda: learned.newest("status").state == 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gate.r2_threshold", 1.5),
        ("gate.r2_threshold", float("nan")),
        ("gate.r2_threshold", "high"),
        ("gate.r2_threshold", 0.04),  # in range, but below the hysteresis
        ("window", 0.0),
        ("window", float("inf")),
        ("solve_rate", 0.0),
        ("robot", "ur10"),
        ("method", "ols"),
    ],
)
def test_a_bad_value_is_refused_and_the_old_one_kept(
    graph: Make, name: str, value: object
) -> None:
    g = graph("identifier")
    node = g.nodes["identifier"]
    old = node.get_parameter(name).value
    result = node.set_parameters([parameter(name, value)])[0]
    assert not result.successful
    assert result.reason
    assert node.get_parameter(name).value == old


def test_parameters_can_be_set_over_the_graph(graph: Make) -> None:
    from rcl_interfaces.msg import Parameter, ParameterValue
    from rcl_interfaces.srv import SetParameters

    g = graph("identifier")
    value = ParameterValue(type=3, double_value=0.9)
    request = SetParameters.Request(parameters=[Parameter(name="gate.r2_threshold", value=value)])
    answer = g.call(SetParameters, "identifier/set_parameters", request)
    assert answer.results[0].successful
    assert g.nodes["identifier"].get_parameter("gate.r2_threshold").value == 0.9


def test_without_samples_diagnostics_ask_for_the_recorder(graph: Make) -> None:
    g = graph("identifier")
    g.until(lambda: g.diagnosed("identification", "is the recorder running?"))
    assert g.diagnostics["identification"][-1].level == b"\x01"


def test_samples_of_another_robot_are_refused_by_name(graph: Make) -> None:
    from sysid_msgs.msg import JointSamples

    g = graph("identifier")
    g.until(lambda: g.samples_in.get_subscription_count() > 1)
    g.samples_in.publish(JointSamples(robot="ur10"))
    g.until(lambda: g.diagnosed("identification", "samples of robot 'ur10' came"))
    assert g.heard["status"][-1].samples == 0


@pytest.mark.parametrize("field", ["time", "position", "velocity", "acceleration", "effort"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_spoiled_samples_are_counted_and_nothing_spoiled_comes_out(
    graph: Make, field: str, value: float
) -> None:
    from array import array

    from sysid_msgs.msg import JointSamples
    from sysid_ros.fields import stamp

    g = graph("identifier")
    g.until(lambda: g.samples_in.get_subscription_count() > 1)
    m, n = g.motion, 10
    message = JointSamples(robot="valkyrie_arm", joint_names=list(m.robot.joint_names))
    message.header.stamp = stamp(1.0)
    arrays = {
        "time": np.arange(1 - n, 1) / 100.0,
        "position": m.position[:n],
        "velocity": m.velocity[:n],
        "acceleration": m.velocity[:n],
        "effort": m.effort[:n],
    }
    arrays = {name: values.copy() for name, values in arrays.items()}
    arrays[field].flat[0] = value
    for name, values in arrays.items():
        setattr(message, name, array("d", values.tobytes()))
    g.samples_in.publish(message)
    g.until(lambda: any(status.rejected_samples == 1 for status in g.heard["status"]))
    g.heard["samples"].clear()  # those are the probe's own
    assert g.newest("status").samples == n - 1
    assert g.all_finite()


def test_gaps_between_samples_do_not_start_the_window_anew(graph: Make) -> None:
    """A walking robot's samples around its steps are left out."""
    from array import array

    from sysid_msgs.msg import JointSamples
    from sysid_ros.fields import stamp

    g = graph("identifier")
    g.until(lambda: g.samples_in.get_subscription_count() > 1)
    m, count = g.motion, 60
    for batch in range(count):
        steps = np.array([0, 1, 4]) if batch % 2 else np.array([0, 3, 4])
        rows = 10 * batch + 2 * steps  # the motion has 200 Hz, the samples 100
        message = JointSamples(robot="valkyrie_arm", joint_names=list(m.robot.joint_names))
        message.sequence = 3 * batch
        message.header.stamp = stamp(1.0 + 0.05 * batch + 0.04)
        arrays = {
            "time": (steps - 4) / 100.0,
            "position": m.position[rows],
            "velocity": m.velocity[rows],
            "acceleration": m.velocity[rows],
            "effort": m.effort[rows],
        }
        for name, values in arrays.items():
            setattr(message, name, array("d", values.tobytes()))
        g.samples_in.publish(message)
        g.until(lambda batch=batch: g.heard["status"] and g.newest("status").samples >= 3 * batch)
    g.until(lambda: g.newest("status").samples == 3 * count)
    assert g.newest("status").window_samples > 2 * count


def test_lost_samples_are_counted(graph: Make) -> None:
    g = graph("recorder", "identifier")
    g.play(2.0)
    g.until(lambda: g.heard["samples"])
    g.nodes["recorder"]._sequence += 7
    g.play_until(lambda: g.newest("status").lost_samples == 7)


def test_a_second_recorder_is_named_and_left_out(graph: Make) -> None:
    g = graph("recorder", "identifier")
    g.play(2.0)
    g.until(lambda: g.heard["samples"])
    another = g.newest("samples")
    another.sequence = 0

    def disturb() -> bool:
        g.samples_in.publish(another)
        return bool(g.diagnosed("identification", "another recorder"))

    g.play_until(disturb)
    g.play_until(g.identified)
    assert g.newest("status").lost_samples == 0


@pytest.mark.parametrize("step", [1e-12, 1e12, np.inf, np.nan, -1e300])
def test_samples_at_any_times_end_nothing(graph: Make, step: float) -> None:
    from array import array

    from sysid_msgs.msg import JointSamples

    node, rows = graph("identifier").nodes["identifier"], 30
    message = JointSamples(robot="valkyrie_arm", joint_names=list(node.robot.joint_names))
    zeros = array("d", bytes(8 * rows * len(message.joint_names)))
    for name in ("position", "velocity", "acceleration", "effort"):
        setattr(message, name, zeros)
    for sequence in (0, rows):
        message.sequence = sequence
        message.time = array("d", [step * row for row in range(rows)])
        node._on_samples(message)
    assert np.isfinite(node._filter.rate)
