# SPDX-License-Identifier: Apache-2.0
"""Services: requests reach the server, answers reach the one who asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

Until = Callable[..., bool]
LIMIT_S = 10.0


def _negate(request: Any, response: Any) -> Any:
    response.success = not request.data
    return response


def test_an_answer_comes_back(node: Any, ros: Any) -> None:
    from std_srvs.srv import SetBool

    node.create_service(SetBool, "~/negate", _negate)
    client = node.create_client(SetBool, "/node/negate")
    assert client.wait_for_service(timeout_sec=LIMIT_S)
    for data in (True, False):
        future = client.call_async(SetBool.Request(data=data))
        ros.spin_until_future_complete(node, future, timeout_sec=LIMIT_S)
        assert future.result().success is not data


def test_a_coroutine_answers_once_what_it_awaits_is_done(node: Any, ros: Any) -> None:
    from rclpy.task import Future
    from std_srvs.srv import SetBool

    awaited = Future()

    async def answer(request: Any, response: Any) -> Any:
        response.message = await awaited
        return _negate(request, response)

    node.create_service(SetBool, "s", answer)
    client = node.create_client(SetBool, "s")
    assert client.wait_for_service(timeout_sec=LIMIT_S)
    future = client.call_async(SetBool.Request(data=False))
    ros.spin_until_future_complete(node, future, timeout_sec=0.2)
    assert not future.done()
    awaited.set_result("later")
    ros.spin_until_future_complete(node, future, timeout_sec=LIMIT_S)
    assert (future.result().success, future.result().message) == (True, "later")


def test_each_client_gets_its_own_answers(node: Any, ros: Any) -> None:
    from std_srvs.srv import SetBool

    node.create_service(SetBool, "s", _negate)
    clients = [node.create_client(SetBool, "s") for _ in range(2)]
    assert all(client.wait_for_service(timeout_sec=LIMIT_S) for client in clients)
    futures = [client.call_async(SetBool.Request(data=i == 0)) for i, client in enumerate(clients)]
    for future in futures:
        ros.spin_until_future_complete(node, future, timeout_sec=LIMIT_S)
    assert [future.result().success for future in futures] == [False, True]


@pytest.mark.embedded
def test_a_client_that_does_not_read_yet_holds_up_no_callback(
    node: Any, ros: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from std_srvs.srv import SetBool

    service = node.create_service(SetBool, "s", _negate)
    client = node.create_client(SetBool, "s")
    assert client.wait_for_service(timeout_sec=LIMIT_S)
    heard: list[bool] = []

    def hears(_: int) -> bool:  # nobody, until the callback has returned
        return bool(heard)

    monkeypatch.setattr(service, "_hears", hears)
    future = client.call_async(SetBool.Request(data=False))
    ros.spin_once(node, timeout_sec=LIMIT_S)
    assert not future.done()
    heard.append(True)
    ros.spin_until_future_complete(node, future, timeout_sec=LIMIT_S)
    assert future.result().success


@pytest.mark.embedded
def test_several_threads_may_ask_who_a_peer_is(ros: Any) -> None:
    from sysid_embedded.interfaces import find
    from sysid_embedded.qos_policies import QoSProfile, to_dds

    participant, kind = ros.get_default_context().participant, find("std_msgs/msg/String")
    reader = participant.reader("rt/peers", kind, to_dds(QoSProfile(depth=1)))
    writer = participant.writer("rt/peers", kind, to_dds(QoSProfile(depth=1)))
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda _: writer.matched(), range(1000)))
    finally:
        sys.setswitchinterval(usual)
    assert all(peers == found[-1] and len(peers) == 1 for peers in found)
    reader.close()
    writer.close()


def test_waiting_for_a_service_that_isn_t_there_ends(node: Any) -> None:
    from std_srvs.srv import Trigger

    client = node.create_client(Trigger, "absent")
    assert not client.service_is_ready()
    assert not client.wait_for_service(timeout_sec=0.05)


def test_an_error_in_the_server_comes_out_of_spin(node: Any, ros: Any) -> None:
    from std_srvs.srv import Trigger

    def fail(request: Any, response: Any) -> Any:
        raise ZeroDivisionError

    node.create_service(Trigger, "s", fail)
    client = node.create_client(Trigger, "s")
    assert client.wait_for_service(timeout_sec=LIMIT_S)
    future = client.call_async(Trigger.Request())
    with pytest.raises(ZeroDivisionError):
        ros.spin_until_future_complete(node, future, timeout_sec=LIMIT_S)


def test_wrong_types_are_refused(node: Any, ros: Any) -> None:
    from std_msgs.msg import Int32
    from std_srvs.srv import SetBool, Trigger

    client = node.create_client(Trigger, "s")
    with pytest.raises(TypeError):
        client.call_async(SetBool.Request())
    with pytest.raises(RuntimeError, match="might be a message"):
        node.create_service(Int32, "t", print)
    with pytest.raises(RuntimeError, match="might be a service"):
        node.create_publisher(Trigger, "t", 1)
    with pytest.raises(AttributeError):
        node.create_publisher(int, "t", 1)
