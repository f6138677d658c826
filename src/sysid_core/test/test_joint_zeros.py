# SPDX-License-Identifier: Apache-2.0
"""A joint whose zero is off is named, with about by how much; a tilted robot's are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.identification import IdentifyConfig, identify
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.settings import OnlineConfig
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot
from sysid_core.signals.options import SignalConfig

CONFIG = IdentifyConfig(friction="described", signals=SignalConfig(cutoff=8.0))
ELBOW = 3  # of the seven joints


def _read_from(recording: Recording, joint: int, degrees: float) -> Recording:
    position = recording.position.copy()
    position[:, joint] += np.radians(degrees)
    return replace(recording, position=position)


def _named(texts: tuple[str, ...]) -> list[tuple[str, float]]:
    """Return the joints that are named, and the angles [°]."""
    said = [text for text in texts if "torques are those of positions" in text]
    return [
        (joint, float(angle.rstrip("°")))
        for text in said
        for joint, angle in zip(
            text.split(": ")[0].split(", "),
            text.split("about ")[1].split(" from")[0].split(", "),
            strict=True,
        )
    ]


@pytest.mark.parametrize(("joint", "degrees"), [(1, 2.0), (ELBOW, -10.0)])
def test_a_joint_whose_zero_is_off_is_named_with_the_angle(
    lwr: Robot, lwr_recording: Recording, joint: int, degrees: float
) -> None:
    found = identify(lwr, _read_from(lwr_recording, joint, degrees), CONFIG)
    ((name, angle),) = _named(found.warnings)
    assert name == lwr.joint_names[joint]
    assert angle == pytest.approx(-degrees, rel=0.3)
    assert not any("gravity acts" in text for text in found.warnings)


def test_joints_whose_zeros_are_off_together_are_named_with_their_angles(
    lwr: Robot, lwr_recording: Recording
) -> None:
    """Turned against each other, two hide: what hangs on both hangs as before."""
    off = _read_from(_read_from(lwr_recording, 1, 5.0), ELBOW, 5.0)
    named = dict(_named(identify(lwr, off, CONFIG).warnings))
    names = lwr.joint_names[1], lwr.joint_names[ELBOW]
    assert {name: named.pop(name) for name in names} == pytest.approx(
        dict.fromkeys(names, -5.0), rel=0.3
    )
    assert all(abs(angle) < 2.0 for angle in named.values())


def test_joints_that_count_as_described_are_not_named(
    lwr: Robot, lwr_recording: Recording
) -> None:
    assert _named(identify(lwr, lwr_recording, CONFIG).warnings) == []


def test_a_tilt_is_not_taken_for_a_zero(
    lwr: Robot, make_recording: Callable[..., Recording]
) -> None:
    ramp = load_robot(replace(lwr.description, gravity=(0.0, 1.70, -9.66)))
    recording = make_recording(ramp, lwr.consistent_nominal * 1.1, duration=10.0, noise=0.3)
    found = identify(lwr, recording, CONFIG)
    assert found.gravity is not None
    assert _named(found.warnings) == []


@pytest.mark.parametrize("degrees", [10.0, pytest.param(60.0, marks=pytest.mark.heavy)])
def test_a_zero_is_told_live_and_no_other_joint_is_blamed(
    lwr: Robot, lwr_recording: Recording, degrees: float
) -> None:
    turned = _read_from(lwr_recording, ELBOW, degrees)
    stream = stream_settings_for(turned, lwr)
    online = OnlineConfig(friction="described", low_pass="described")
    updates = [step.update for step in replay(turned, lwr, stream=stream, online=online)]
    ((name, angle),) = _named(updates[-1].warnings)
    assert name == lwr.joint_names[ELBOW]
    assert angle == pytest.approx(-degrees, rel=0.3)
    for update in updates[len(updates) // 2 :]:
        assert not any(cause.kind.startswith(("torque_", "scale_")) for cause in update.causes)
