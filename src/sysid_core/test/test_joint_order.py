# SPDX-License-Identifier: Apache-2.0
"""Joints whose values are swapped, or of the other sense, are named from their torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.identification import IdentifyConfig, identify
from sysid_core.joint_order import JointOrder
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.settings import OnlineConfig
from sysid_core.recording import Recording
from sysid_core.robot import Robot
from sysid_core.signals.options import SignalConfig

CONFIG = IdentifyConfig(friction="described", signals=SignalConfig(cutoff=8.0))
SAID = "torques tell another order or sense of joints: "


def _recorded(
    recording: Recording,
    what: str,
    order: Sequence[int] = range(7),
    opposite: Sequence[int] = (),
) -> Recording:
    """Return what a driver gives whose joints come in another order, some of the other sense."""
    signs = np.ones(7)
    signs[list(opposite)] = -1.0
    if "positions" in what:
        recording = replace(recording, position=recording.position[:, order] * signs)
        if recording.velocity is not None:
            recording = replace(recording, velocity=recording.velocity[:, order] * signs)
    if "efforts" in what:
        assert recording.effort is not None
        recording = replace(recording, effort=recording.effort[:, order] * signs)
    return recording


def _named(texts: Sequence[str]) -> list[str]:
    return [text.removeprefix(SAID).split("; mend")[0] for text in texts if text.startswith(SAID)]


ELBOW_AND_NEXT = [0, 1, 2, 4, 3, 5, 6]


@pytest.mark.parametrize(
    ("what", "fault", "said"),
    [
        ("positions and efforts", {"opposite": [3]}, "{what} of {3} have the opposite sign"),
        ("positions", {"opposite": [1]}, "{what} of {1} have the opposite sign"),
        ("positions and efforts", {"order": ELBOW_AND_NEXT}, "{what} of {3} and {4} are swapped"),
        ("efforts", {"order": ELBOW_AND_NEXT}, "{what} of {3} and {4} are swapped"),
        ("positions", {"order": ELBOW_AND_NEXT}, "{what} of {3} and {4} are swapped"),
        pytest.param(
            "efforts",
            {"order": [6, 5, 4, 3, 2, 1, 0]},
            "{what} of {0} and {6}, {1} and {5}, {2} and {4} are swapped",
            marks=pytest.mark.heavy,
        ),
    ],
)
def test_what_is_mixed_up_is_named(
    lwr: Robot, lwr_recording: Recording, what: str, fault: dict[str, list[int]], said: str
) -> None:
    found = identify(lwr, _recorded(lwr_recording, what, **fault), CONFIG)
    assert _named(found.warnings) == [said.format(*lwr.joint_names, what=what)]
    others = "gravity acts", "torques are those of positions", "times what masses"
    assert not any(other in text for text in found.warnings for other in others)


def test_joints_that_are_as_described_are_not_named(lwr: Robot, lwr_recording: Recording) -> None:
    assert _named(identify(lwr, lwr_recording, CONFIG).warnings) == []


def test_one_effort_of_the_other_sign_is_its_joints_own_matter(
    lwr: Robot, lwr_recording: Recording
) -> None:
    found = identify(lwr, _recorded(lwr_recording, "efforts", opposite=[3]), CONFIG)
    assert _named(found.warnings) == []
    assert any(text.startswith(f"{lwr.joint_names[3]}: its efforts") for text in found.warnings)


@pytest.mark.heavy
def test_live_no_model_is_used_and_the_joints_are_told(
    lwr: Robot, lwr_recording: Recording
) -> None:
    mixed = _recorded(lwr_recording, "positions and efforts", order=ELBOW_AND_NEXT)
    stream = stream_settings_for(mixed, lwr)
    online = OnlineConfig(friction="described", low_pass="described")
    updates = [step.update for step in replay(mixed, lwr, stream=stream, online=online)]
    for update in updates[len(updates) // 2 :]:
        assert not update.identified
        assert [cause.kind for cause in update.causes] == ["joint_order"]


def test_an_order_is_said_in_the_names_of_its_joints() -> None:
    turned = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    order = JointOrder(("a", "b", "c"), np.eye(3), turned)
    assert _named([str(order.finding)]) == ["efforts are of b for a, minus c for b, a for c"]
