# SPDX-License-Identifier: Apache-2.0
"""A closed-chain leg is identified online, and samples that its loops refuse do no harm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainDynamics, ClosedChainRegression
from sysid_core.errors import DataError
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.online.gate import GateState
from sysid_core.online.left_out import RecentlyLeftOut
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.update import Update
from sysid_core.recording import Recording, Samples
from sysid_core.robot import Robot, load_robot
from sysid_core.validation import validate

RATE = 100.0  # [Hz]
CENTRE = np.array([0.0, 0.0, 0.3, -0.1, 0.0, 0.0])
SIZE = np.array([0.3, 0.3, 0.4, 0.4, 0.2, 0.2])
TOES = [4, 5]
BEYOND = 0.75  # [rad] of both toe motors, more than their rods reach


def motion(time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a motion (n, 6) of the motors within the linkage's reach."""
    q, v, a = np.zeros((3, len(time), 6))
    q += CENTRE
    for k in range(1, 4):
        w = 2.0 * np.pi * 0.4 * k
        phase = np.arange(6.0) * k
        phase[5] = phase[4] + np.pi  # the foot pitches, and hardly rolls
        angle = w * time[:, None] + phase
        q += SIZE / k * np.sin(angle)
        v += SIZE / k * w * np.cos(angle)
        a -= SIZE / k * w * w * np.sin(angle)
    return q, v, a


@pytest.fixture(scope="module")
def leg() -> Robot:
    return load_robot("digit_left_leg")


@pytest.fixture(scope="module")
def truth(leg: Robot) -> FloatArray:
    rng = np.random.default_rng(4)
    layout, x = leg.layout, leg.consistent_nominal.copy()
    motors = np.flatnonzero(leg.actuated)
    for term in ("viscous", "coulomb", "armature"):
        x[layout.term(term).start + motors] *= rng.uniform(0.5, 1.8, 6)
    x[layout.term("offset").start + motors] = rng.normal(0.0, 0.3, 6)
    return x


@pytest.fixture(scope="module")
def run(leg: Robot, truth: FloatArray) -> Samples:
    """Return eight seconds of the leg's motion with 0.05 N·m of noise on the torques."""
    time = np.arange(800) / RATE
    dynamics = ClosedChainDynamics(leg)
    dynamics.set_parameters(truth)
    q, v, a = motion(time)
    u = np.array([dynamics.torque(*state) for state in zip(q, v, a, strict=True)])
    u += 0.05 * np.random.default_rng(0).standard_normal(u.shape)
    arrays = np.full((4, len(time), len(leg.joint_names)), np.nan)
    arrays[:, :, leg.actuated] = q, v, a, u
    return Samples(time, *arrays)


def feed(identifier: OnlineIdentifier, samples: Samples) -> Iterator[Update]:
    for start in range(0, len(samples), 10):
        identifier.ingest(samples.select(slice(start, start + 10)))
        yield identifier.update()


def with_toes_beyond(leg: Robot, samples: Samples, where: slice | FloatArray) -> Samples:
    """Return samples whose toe encoders are off at some of them, and so are their torques."""
    position, effort = samples.position.copy(), samples.effort.copy()
    actuated = np.flatnonzero(leg.actuated)
    rows = np.arange(len(samples))[where][:, None]
    shaken = 1e-3 * np.random.default_rng(0).normal(size=(len(rows), len(TOES)))
    position[rows, actuated[TOES]] = BEYOND + shaken  # else it would be a frozen encoder
    effort[rows, actuated] += 5.0
    return replace(samples, position=position, effort=effort)


def recorded(leg: Robot, samples: Samples) -> Recording:
    position, velocity, effort = (
        values[:, leg.actuated] for values in (samples.position, samples.velocity, samples.effort)
    )
    return Recording(samples.time, leg.actuated_names, position, velocity, effort)


@pytest.mark.heavy
def test_late_efforts_of_a_leg_get_their_time(leg: Robot, run: Samples) -> None:
    late = run.effort.copy()
    late[2:] = run.effort[:-2]
    recording = recorded(leg, replace(run, effort=late))
    found = identify(leg, recording)
    assert found.signals.lag == pytest.approx(2.0 / RATE, abs=1e-3)
    stream = stream_settings_for(recording, leg)
    *_, last = replay(recording, leg, stream=stream)
    (told,) = (note for note in last.update.notes if note.kind == "effort_lag")
    assert "20 ms after their positions" in told.message


def test_the_leg_is_held_while_most_samples_are_left_out(leg: Robot, run: Samples) -> None:
    identifier = OnlineIdentifier(leg)
    *_, opened = feed(identifier, run.select(slice(0, 400)))
    assert opened.state is GateState.IDENTIFIED, opened.reasons
    assert not any("left out" in text for text in opened.warnings)

    part = run.select(slice(400, 600))
    spoiled = with_toes_beyond(leg, part, np.arange(200) % 4 != 0)
    *_, held = feed(identifier, spoiled)
    assert held.state is GateState.HOLDING
    assert "75 % of the newest samples cannot be used" in held.reasons[0]
    assert any("the loops do not close" in text for text in held.warnings)

    *_, back = feed(identifier, run.select(slice(600, 800)))
    assert back.state is GateState.IDENTIFIED, back.reasons
    assert not any("left out" in text for text in back.warnings)


def test_without_any_usable_sample_nothing_changes(leg: Robot, run: Samples) -> None:
    identifier = OnlineIdentifier(leg)
    *_, opened = feed(identifier, run.select(slice(0, 400)))
    used = opened.parameters.copy()
    updates = list(
        feed(identifier, with_toes_beyond(leg, run.select(slice(400, 600)), slice(None)))
    )
    assert updates[-1].state is GateState.HOLDING
    assert updates[-1].window_samples == opened.window_samples
    np.testing.assert_array_equal(updates[-1].parameters, used)


def test_before_the_gate_opens_nominal_parameters_stay(leg: Robot, run: Samples) -> None:
    identifier = OnlineIdentifier(leg)
    part = run.select(slice(0, 300))
    *_, last = feed(identifier, with_toes_beyond(leg, part, np.arange(300) % 4 != 0))
    assert last.state is GateState.FILLING
    assert not last.identified
    assert "cannot be used" in last.reasons[0]


def test_only_the_newest_samples_count(leg: Robot, run: Samples) -> None:
    regression = ClosedChainRegression(leg)
    recent = RecentlyLeftOut(50)
    beyond = with_toes_beyond(leg, run.select(slice(0, 50)), slice(None))
    recent.note(regression.rows(beyond).left_out)
    assert recent.share == 1.0
    for start in range(50, 100, 10):
        recent.note(regression.rows(run.select(slice(start, start + 10))).left_out)
    assert recent.share == 0.0
    assert recent.diagnostics == ()


@pytest.mark.heavy
def test_a_batch_says_what_was_left_out(leg: Robot, run: Samples) -> None:
    spoiled = with_toes_beyond(leg, run, slice(500, 560))

    found = identify(leg, recorded(leg, spoiled), IdentifyConfig(train=0.5))
    (text,) = (text for text in found.warnings if "left out" in text)
    assert "the loops do not close at their actuated positions" in text
    checked = validate(leg, recorded(leg, spoiled), leg.nominal, leg.consistent_nominal)
    assert text in checked.warnings

    lost = recorded(leg, with_toes_beyond(leg, run, slice(None)))
    with pytest.raises(DataError, match=r"0 usable rows .* the loops do not close"):
        identify(leg, lost)
    with pytest.raises(DataError, match="the loops do not close"):
        validate(leg, lost, leg.nominal, leg.consistent_nominal)
