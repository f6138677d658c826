# SPDX-License-Identifier: Apache-2.0
"""The batch pipeline recovers known motions, keeps both sides in phase, and reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from sysid_core.errors import DataError, ParameterError
from sysid_core.recording import BaseRecording, Recording
from sysid_core.signals.align import align
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import Prepared, filter_aligned

RATE = 200.0
NAMES = ("a", "b")
OMEGA = np.array([2.0, 3.0])


def _recording(seconds: float = 20.0, noise: float = 0.0) -> Recording:
    rng = np.random.default_rng(17)
    time = np.arange(int(seconds * RATE)) / RATE
    position = np.sin(OMEGA * time[:, np.newaxis])
    acceleration = -(OMEGA**2) * position
    effort = 3.0 * acceleration + 1.5 * OMEGA * np.cos(OMEGA * time[:, np.newaxis])
    return Recording(
        time=time,
        joint_names=NAMES,
        position=position + noise * rng.standard_normal(position.shape),
        velocity=OMEGA * np.cos(OMEGA * time[:, np.newaxis]),
        effort=effort + 100 * noise * rng.standard_normal(position.shape),
    )


def prepare(recording: Recording, options: SignalConfig | None = None) -> Prepared:
    aligned = align(recording, options or SignalConfig())
    return filter_aligned(aligned, aligned.choice)


def _exact(time: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    phase = OMEGA * time[:, np.newaxis]
    return np.sin(phase), OMEGA * np.cos(phase), -(OMEGA**2) * np.sin(phase)


@pytest.mark.parametrize("velocity", ["measured", "differentiated", "auto"])
def test_a_known_motion_is_recovered(velocity: str) -> None:
    options = SignalConfig(cutoff=30.0, velocity=velocity)  # type: ignore[arg-type]
    samples = prepare(_recording(), options).samples()
    exact = _exact(samples.time)
    torque = 3.0 * exact[2] + 1.5 * exact[1]
    got = (samples.position, samples.velocity, samples.acceleration, samples.effort)
    inside = slice(200, -200)
    # The filter takes about (f/fc)^4 ≈ 1e-7 off at 0.5 Hz; every sample has its whole support.
    for values, expected in zip(got, (*exact, torque), strict=True):
        np.testing.assert_allclose(values[inside], expected[inside], atol=1e-5)
        np.testing.assert_allclose(values, expected, atol=1e-2)


@pytest.mark.parametrize("described", [8.0, 40.0])
def test_a_described_cutoff_gives_way_to_sensors_that_are_slower_than_the_log(
    described: float,
) -> None:
    recording = _recording(noise=1e-4)
    held = np.arange(len(recording)) // 5 * 5
    slow = replace(recording.select(held), time=recording.time)
    aligned = align(slow, SignalConfig(), described)
    assert aligned.sensor_rate == pytest.approx(RATE / 5, rel=0.02)
    assert aligned.choice.given
    assert aligned.choice.cutoff == pytest.approx(min(described, RATE / 20), rel=0.02)
    assert len(filter_aligned(aligned, aligned.choice).samples()) > 0
    assert align(slow, SignalConfig(cutoff=5.0), described).choice.cutoff == 5.0


def test_least_squares_on_noisy_samples_finds_the_parameters() -> None:
    samples = prepare(_recording(60.0, noise=1e-4)).samples()
    for joint in range(2):
        regressor = np.column_stack([samples.acceleration[:, joint], samples.velocity[:, joint]])
        found = np.linalg.lstsq(regressor, samples.effort[:, joint], rcond=None)[0]
        np.testing.assert_allclose(found, [3.0, 1.5], rtol=2e-3)


def test_both_sides_see_the_same_filter() -> None:
    # A torque that is exactly linear in noisy positions stays so after filtering.
    recording = _recording(noise=1e-3)
    recording = replace(recording, effort=7.0 * recording.position, velocity=None)
    samples = prepare(recording).samples()
    np.testing.assert_allclose(samples.effort, 7.0 * samples.position, atol=1e-9)


def test_a_gap_gives_two_segments_with_trimmed_edges() -> None:
    recording = _recording()
    kept = (recording.time < 8.0) | (recording.time > 9.0)
    recording = replace(
        recording,
        time=recording.time[kept],
        position=recording.position[kept],
        velocity=None,
        effort=None,
    )
    prepared = prepare(recording, SignalConfig(cutoff=10.0))
    first, second = prepared.segments
    assert first.time[-1] <= 8.0 - 0.1
    assert second.time[0] >= 9.0 + 0.1
    assert prepared.report.synchronisation.gaps == 1
    assert np.isnan(first.effort).all()
    np.testing.assert_allclose(second.acceleration, _exact(second.time)[2], atol=1e-2)


def test_outliers_and_full_turns_are_mended_and_reported() -> None:
    recording = _recording()
    position = recording.position.copy()
    position[1000, 0] += 3.0
    position[:, 1] = (position[:, 1] + 1.5 + np.pi) % (2 * np.pi) - np.pi - 2.0
    wrapped = (4.0 * np.sin(OMEGA[1] * recording.time) + np.pi) % (2 * np.pi) - np.pi
    position[:, 1] = wrapped
    prepared = prepare(
        replace(recording, position=position, velocity=None), SignalConfig(cutoff=15.0)
    )
    assert prepared.report.outliers == (("a", 1),)
    assert any("b wraps" in warning for warning in prepared.report.warnings)
    samples = prepared.samples()
    assert np.abs(samples.velocity[:, 1]).max() < 4.0 * OMEGA[1] * 1.01
    np.testing.assert_allclose(samples.position[:, 0], _exact(samples.time)[0][:, 0], atol=2e-3)


def test_a_delayed_velocity_is_not_trusted() -> None:
    recording = _recording()
    assert recording.velocity is not None
    late = np.roll(recording.velocity, 10, axis=0)
    report = prepare(replace(recording, velocity=late)).report
    assert report.velocity == "differentiated"
    assert any("velocities lag positions by" in text for text in report.warnings)
    assert not any("lag" in text for text in prepare(recording).report.warnings)


def test_measured_velocities_are_preferred_where_positions_are_noisy() -> None:
    assert prepare(_recording(noise=1e-3)).report.velocity == "measured"


def test_joints_that_are_not_measured_stay_unknown() -> None:
    recording = _recording()
    position, effort = recording.position.copy(), np.array(recording.effort)
    position[:, 1] = effort[:, 1] = np.nan
    samples = prepare(
        replace(recording, position=position, effort=effort, velocity=None)
    ).samples()
    assert np.isnan(samples.acceleration[:, 1]).all()
    np.testing.assert_allclose(
        samples.acceleration[:, 0], _exact(samples.time)[2][:, 0], atol=1e-2
    )


@pytest.mark.parametrize("measured", [True, False])
def test_a_floating_base_gets_twist_and_acceleration_in_its_own_frame(measured: bool) -> None:
    recording = _recording()
    time = recording.time
    position = np.stack([np.sin(time), np.cos(time), 0.1 * time], axis=1)
    world_velocity = np.stack([np.cos(time), -np.sin(time), np.full_like(time, 0.1)], axis=1)
    yaw_rate = 0.7
    attitude = Rotation.from_rotvec(np.outer(time, [0.0, 0.0, yaw_rate]))
    body_velocity = attitude.apply(world_velocity, inverse=True)
    twist = np.hstack([body_velocity, np.tile([0.0, 0.0, yaw_rate], (len(time), 1))])
    base = BaseRecording(time, position, attitude.as_quat(), twist)
    options = SignalConfig(cutoff=15.0, velocity="measured" if measured else "differentiated")
    samples = prepare(replace(recording, base=base), options).samples()
    # In the body frame the velocity turns at 1 + 0.7 rad/s.
    angle = -(1.0 + yaw_rate) * samples.time
    expected = np.stack([np.cos(angle), np.sin(angle), np.full_like(angle, 0.1)], axis=1)
    derivative = -(1.0 + yaw_rate) * np.stack(
        [-np.sin(angle), np.cos(angle), np.zeros_like(angle)], axis=1
    )
    assert samples.base_twist is not None
    assert samples.base_acceleration is not None
    assert samples.base_pose is not None
    np.testing.assert_allclose(samples.base_twist[:, :3], expected, atol=1e-4)
    np.testing.assert_allclose(samples.base_twist[:, 5], yaw_rate, atol=1e-5)
    np.testing.assert_allclose(samples.base_acceleration[:, :3], derivative, atol=1e-2)
    np.testing.assert_allclose(samples.base_acceleration[:, 3:], 0.0, atol=1e-2)
    np.testing.assert_allclose(np.linalg.norm(samples.base_pose[:, 3:], axis=1), 1.0, atol=1e-12)


def test_a_rate_below_the_sensors_does_not_alias() -> None:
    recording = _recording()
    # 98 Hz would show as 2 Hz on a grid of 100 Hz.
    buzz = 0.1 * np.sin(2 * np.pi * 98.0 * recording.time)[:, np.newaxis]
    noisy = replace(recording, effort=np.asarray(recording.effort) + buzz)
    options = SignalConfig(rate=100.0, cutoff=10.0)
    prepared = prepare(noisy, options)
    clean = prepare(recording, options).samples()
    assert prepared.report.rate == pytest.approx(RATE)
    assert any("expected" in warning for warning in prepared.report.warnings)
    np.testing.assert_allclose(prepared.samples().effort, clean.effort, atol=1e-3)


def test_spoiled_values_are_missing_values() -> None:
    recording = _recording()
    effort = np.array(recording.effort)
    effort[100:104, 0] = [1e30, -1e300, np.inf, np.nan]
    samples = prepare(replace(recording, effort=effort), SignalConfig(cutoff=15.0)).samples()
    expected = prepare(recording, SignalConfig(cutoff=15.0)).samples()
    # The cubic that bridges four samples of 5 ms is off by milli-newton-metres.
    np.testing.assert_allclose(samples.effort, expected.effort, atol=5e-3)


def test_what_cannot_be_prepared_is_refused() -> None:
    with pytest.raises(DataError, match="record for longer"):
        prepare(_recording(0.5), SignalConfig(cutoff=2.0))
    with pytest.raises(ParameterError, match="half of the sampling rate"):
        prepare(_recording(), SignalConfig(cutoff=150.0))
    with pytest.raises(DataError, match="differentiated"):
        prepare(replace(_recording(), velocity=None), SignalConfig(velocity="measured"))


@pytest.mark.parametrize(
    "setting",
    [
        {"rate": 0.0},
        {"rate": np.nan},
        {"cutoff": -1.0},
        {"rate": 10.0, "cutoff": 5.0},
        {"gap": 1.0},
        {"timing": "guess"},
        {"velocity": "guess"},
        {"oversampling": 1.0},
    ],
)
def test_settings_out_of_range_are_refused_by_name(setting: dict[str, object]) -> None:
    with pytest.raises(ParameterError, match=list(setting)[-1]):
        SignalConfig(**setting)  # type: ignore[arg-type]


def test_time_in_milliseconds_is_noticed() -> None:
    recording = _recording()
    assert not any("seconds" in text for text in prepare(recording).report.warnings)
    slow = prepare(replace(recording, time=1e3 * recording.time))
    assert any("is the time in seconds?" in text for text in slow.report.warnings)


def test_a_sensor_slower_than_the_log_is_named() -> None:
    recording = _recording()
    rows = np.arange(len(recording.time)) // 10 * 10
    held = replace(recording, position=recording.position[rows], velocity=None)
    warnings = prepare(held, SignalConfig(cutoff=3.0)).report.warnings
    assert any("position is updated at" in text for text in warnings)
    assert not any("updated at" in text for text in prepare(recording).report.warnings)
