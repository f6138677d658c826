# SPDX-License-Identifier: Apache-2.0
"""Topics: what is published arrives, as the quality of service says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Until = Callable[..., bool]


def test_a_message_arrives_unchanged(node: Any, until: Until) -> None:
    from sensor_msgs.msg import JointState

    got: list[Any] = []
    node.create_subscription(JointState, "unchanged", got.append, 10)
    publisher = node.create_publisher(JointState, "unchanged", 10)
    assert until(lambda: publisher.get_subscription_count() == 1, node)
    sent = JointState(name=["a", "b"], position=[1.0, 2.0], effort=[0.5])
    sent.header.frame_id = "base"
    publisher.publish(sent)
    assert until(lambda: got, node)
    assert got == [sent]


def test_an_encoded_message_arrives_as_it_was(node: Any, until: Until) -> None:
    from std_msgs.msg import String

    got: list[Any] = []
    node.create_subscription(String, "text", got.append, 10)
    publisher = node.create_publisher(String, "text", 10)
    assert until(lambda: publisher.get_subscription_count() == 1, node)
    encoded = b"\x00\x01\x00\x00\x02\x00\x00\x00a\x00"  # not of whole words
    publisher.publish(encoded)
    assert until(lambda: got, node)
    assert got == [String(data="a")]


def test_a_late_subscriber_gets_what_is_latched_and_no_more(node: Any, until: Until) -> None:
    from rclpy.qos import DurabilityPolicy, QoSProfile
    from std_msgs.msg import Int32

    latched = QoSProfile(depth=2, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = node.create_publisher(Int32, "latched", latched)
    for i in range(5):
        publisher.publish(Int32(data=i))
    late: list[int] = []
    volatile: list[int] = []
    node.create_subscription(Int32, "latched", lambda m: late.append(m.data), latched)
    node.create_subscription(Int32, "latched", lambda m: volatile.append(m.data), 10)
    assert until(lambda: len(late) >= 2 and publisher.get_subscription_count() == 2, node)
    publisher.publish(Int32(data=9))
    assert until(lambda: late[-1] == 9 and volatile, node)
    assert late == [3, 4, 9]
    assert volatile == [9]


def test_the_history_keeps_the_newest_messages(node: Any, until: Until) -> None:
    from std_msgs.msg import Int32

    got: list[int] = []
    node.create_subscription(Int32, "t", lambda m: got.append(m.data), 3)
    publisher = node.create_publisher(Int32, "t", 100)
    assert until(lambda: publisher.get_subscription_count() == 1, node)
    for i in range(10):
        publisher.publish(Int32(data=i))
    assert until(lambda: len(got) >= 3, node)
    assert got == [7, 8, 9]


def test_incompatible_policies_don_t_match_and_are_warned_of(
    node: Any, until: Until, capfd: pytest.CaptureFixture[str]
) -> None:
    from rclpy.qos import QoSProfile, ReliabilityPolicy
    from std_msgs.msg import Int32

    effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    publisher = node.create_publisher(Int32, "t", effort)
    node.create_subscription(Int32, "t", print, 10)
    matching = node.create_subscription(Int32, "t", print, effort)
    assert until(lambda: matching.get_publisher_count() == 1, node)
    assert publisher.get_subscription_count() == 1
    text = ""

    def warned() -> bool:
        nonlocal text
        text += capfd.readouterr().err
        return all(f"{what} incompatible QoS" in text for what in ("offering", "requesting"))

    assert until(warned, node)
    assert "Last incompatible policy: RELIABILITY" in text


def test_only_messages_of_the_topic_s_type_can_be_published(node: Any) -> None:
    from std_msgs.msg import Int32, String

    publisher = node.create_publisher(String, "t", 1)
    with pytest.raises(TypeError):
        publisher.publish(Int32())


def test_destroyed_entities_are_gone(node: Any, until: Until) -> None:
    from rclpy.exceptions import InvalidHandle
    from std_msgs.msg import Int32

    got: list[Any] = []
    publisher = node.create_publisher(Int32, "t", 1)
    subscription = node.create_subscription(Int32, "t", got.append, 1)
    assert until(lambda: publisher.get_subscription_count() == 1, node)
    assert node.destroy_subscription(subscription)
    assert until(lambda: publisher.get_subscription_count() == 0, node)
    publisher.publish(Int32())
    node.destroy_node()
    with pytest.raises(InvalidHandle):
        publisher.publish(Int32())
    assert not got


def test_endpoints_are_counted_in_the_whole_domain(node: Any, until: Until) -> None:
    from std_msgs.msg import Int32

    node.create_publisher(Int32, "t", 1)
    node.create_subscription(Int32, "t", print, 1)
    node.create_subscription(Int32, "t", print, 1)
    assert until(lambda: node.count_publishers("t") == 1 and node.count_subscribers("/t") == 2)


@pytest.mark.parametrize("qos", [-1, "10", None])
def test_a_wrong_quality_of_service_is_refused(node: Any, qos: Any) -> None:
    from std_msgs.msg import Int32

    with pytest.raises((TypeError, ValueError)):
        node.create_publisher(Int32, "t", qos)
