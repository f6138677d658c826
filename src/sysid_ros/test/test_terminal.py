# SPDX-License-Identifier: Apache-2.0
"""The terminal's verbs against a node of this process, on whichever runtime is there."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from sysid_core.cli.main import main
from sysid_core.errors import ParameterError
from sysid_ros.plain import fill, installed_type, message_text, plain, read_values
from sysid_ros.terminal.watch import WatchView

pytest.importorskip("rclpy")
STATUS = {"robot": "arm", "state": 2, "joints": ["a"], "r2_joints": [0.5]}


@pytest.fixture(scope="module")
def heard() -> Iterator[list[Any]]:
    """Run a node with a service, a parameter, a latched topic; give what it hears on another."""
    rclpy = importlib.import_module("rclpy")
    executors = importlib.import_module("rclpy.executors")
    qos = importlib.import_module("sysid_ros.qos")
    SetBool = importlib.import_module("std_srvs.srv").SetBool
    trajectory = importlib.import_module("trajectory_msgs.msg").JointTrajectory
    status_type = importlib.import_module("sysid_msgs.msg").IdentificationStatus
    got: list[Any] = []

    def answer(request: Any, response: Any) -> Any:
        response.success, response.message = bool(request.data), "so be it"
        return response

    rclpy.init(args=[])
    node = rclpy.create_node("server")
    node.create_service(SetBool, "~/enable", answer)
    node.declare_parameter("gain", 2.0)
    node.create_subscription(trajectory, "reference", got.append, 10)
    status = node.create_publisher(status_type, "status", qos.latched())
    status.publish(fill(status_type(), STATUS))
    executor = executors.SingleThreadedExecutor()
    executor.add_node(node)
    thread = threading.Thread(target=executor.spin)
    thread.start()
    yield got
    executor.shutdown()
    rclpy.try_shutdown()
    thread.join()


def test_call_finds_the_type_and_tells_no_by_its_status(
    heard: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["call", "/server/enable", "{data: true}"]) == 0
    assert capsys.readouterr().out == "{success: true, message: so be it}\n"
    assert main(["call", "server/enable", "std_srvs/srv/SetBool", "{data: false}"]) == 1


def test_echo_gets_what_was_published_before_it_came(
    heard: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["echo", "--once", "/status", "--field", "r2_joints"]) == 0
    assert capsys.readouterr().out == "[0.5]\n---\n"


def test_pub_waits_for_its_subscriber(heard: list[Any]) -> None:
    values = "{joint_names: [a], points: [{positions: [1], time_from_start: {sec: 3}}]}"
    assert main(["pub", "-1", "reference", "trajectory_msgs/msg/JointTrajectory", values]) == 0
    (point,) = heard[-1].points
    assert list(point.positions) == [1.0]
    assert point.time_from_start.sec == 3


def test_parameters_are_listed_set_and_refused(
    heard: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["param", "set", "/server", "gain", "3"]) == 0
    assert main(["param", "get", "server", "gain"]) == 0
    assert capsys.readouterr().out == "done\n3.0\n"
    assert main(["param", "list"]) == 0
    assert "/server:\n  gain\n" in capsys.readouterr().out
    assert main(["param", "set", "server", "gain", "much"]) == 2
    assert main(["param", "get", "server", "pain"]) == 2
    assert "no parameter 'pain'" in capsys.readouterr().err


def test_watch_prints_lines_without_a_terminal(
    heard: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "--for", "0.2"]) == 0
    assert "controller: silent | no payload" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["call", "/nowhere", "--timeout", "0"], "service '/nowhere' is not there; there are:"),
        (["echo", "/nowhere", "--timeout", "0"], "topic '/nowhere' is not there; there are:"),
        (["call", "/server/enable", "{date: true}"], "no field 'date'; there are: data"),
        (["call", "/server/enable", "{data: 3}"], "field 'data' is boolean"),
        (["call", "/server/enable", "{data"], "is not valid YAML"),
        (["pub", "/t", "std_msgs/msg/Nothing"], "no type 'std_msgs/msg/Nothing'"),
        (["pub", "/t", "Nothing"], "no type 'Nothing'"),
        (["pub", "/1a", "std_msgs/msg/Bool"], "nvalid topic name"),
        (["param", "get", "/$", "x", "--timeout", "0"], "nvalid service name"),
        (["pub", "/t", "std_msgs/msg/Bool", "-1", "--timeout", "0"], "nobody listens to '/t'"),
    ],
)
def test_what_is_wrong_is_one_line(
    heard: list[Any], words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_a_package_that_is_missing_is_named_with_what_brings_it() -> None:
    assert installed_type("std_srvs/srv/SetBool", "std-srvs").__name__ == "SetBool"
    with pytest.raises(
        ParameterError, match=r"^no_msgs is not .* ros-\$ROS_DISTRO-no-msgs, or wait$"
    ):
        installed_type("no_msgs/action/Wait", "no-msgs", ", or wait")


def test_plain_data_become_a_message_and_plain_again() -> None:
    messages = importlib.import_module("sysid_msgs.msg")
    text = "{names: [FL], active: [true], wrenches: [{force: {x: 1, z: -2.5}}]}"
    contacts = fill(messages.Contacts(), read_values(text))
    assert contacts.wrenches[0].force.z == -2.5
    again = fill(messages.Contacts(), read_values(message_text(plain(contacts))))
    assert again == contacts
    odometry = importlib.import_module("nav_msgs.msg").Odometry()
    odometry.pose.covariance = [0.5] * 36
    again = fill(type(odometry)(), read_values(message_text(plain(odometry))))
    assert list(again.pose.covariance) == [0.5] * 36


def test_numbers_of_a_fixed_array_must_be_as_many() -> None:
    request = importlib.import_module("sysid_msgs.srv").AttachPayload.Request()
    assert list(fill(request, {"inertia": [1, 2, 3, 4, 5, 6]}).inertia) == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ParameterError, match="field 'inertia'"):
        fill(request, {"inertia": [1, 2]})


def test_the_view_names_gate_torques_and_the_payloads_interval() -> None:
    messages = importlib.import_module("sysid_msgs.msg")
    view = WatchView(["FILLING", "NOMINAL", "IDENTIFIED"], ["DISABLED", "WAITING"])
    assert view.line() == "identifier: silent | controller: silent | no payload"
    view.status = fill(messages.IdentificationStatus(), STATUS)
    view.tracking = SimpleNamespace(
        state=1,
        identified=True,
        position_error=[-0.002],
        joint_names=["a"],
        effort=[3.0],
        warnings=["reference refused"],
    )
    view.payload = SimpleNamespace(attached=True, mass=2.0, mass_std=0.1)
    assert "gate IDENTIFIED" in view.line()
    assert "error 2.0 mrad, reference refused" in view.line()
    assert "payload 2.000 kg (95 %: 1.804 to 2.196)" in view.line()
    assert view.enabled
    assert not view.frozen
