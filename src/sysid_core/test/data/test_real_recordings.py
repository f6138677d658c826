# SPDX-License-Identifier: Apache-2.0
"""Recordings of real robots are read the same from every file format and can be prepared."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from sysid_core.data import read_recording, summarise
from sysid_core.recording import Recording
from sysid_core.signals.align import align
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import Prepared, filter_aligned

DATA = Path(os.environ.get("SYSID_DATA", Path(__file__).parents[5] / "shared" / "data"))


def prepare(recording: Recording, options: SignalConfig | None = None) -> Prepared:
    aligned = align(recording, options or SignalConfig())
    return filter_aligned(aligned, aligned.choice)


def _file(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is missing")
    return path


@pytest.mark.parametrize(
    ("database", "folder", "rate", "joints"),
    [
        ("ur10/ur10_exciting_trajectory.db3", "ur10/mcap", 125.0, 6),
        ("panda/panda_exciting_trajectory.db3", "panda/mcap", 30.0, 7),
    ],
)
def test_a_real_bag_reads_the_same_from_all_formats(
    database: str, folder: str, rate: float, joints: int
) -> None:
    bare = read_recording(_file(database))
    for other in (
        read_recording(_file(folder)),
        read_recording(next(_file(folder).glob("*.mcap"))),
    ):
        assert other.joint_names == bare.joint_names
        np.testing.assert_allclose(other.position, bare.position, atol=1e-7)
        np.testing.assert_allclose(np.diff(other.time), np.diff(bare.time), atol=1e-6)
    summary = summarise(bare)
    assert len(summary.joints) == joints
    assert all(joint.missing == () for joint in summary.joints)
    assert summary.streams[0].rate == pytest.approx(rate, rel=1e-3)


@pytest.mark.parametrize("name", ["ur10/mcap", "panda/mcap"])
def test_a_real_bag_can_be_prepared_without_settings(name: str) -> None:
    recording = read_recording(_file(name))
    prepared = prepare(recording)
    samples = prepared.samples()
    assert prepared.report.duration > 0.9 * (recording.time[-1] - recording.time[0])
    for values in (samples.position, samples.velocity, samples.acceleration, samples.effort):
        assert np.isfinite(values).all()
    assert recording.velocity is not None
    # The measured velocities are another sensor's word on the same motion.
    differentiated = prepare(recording, SignalConfig(velocity="differentiated")).samples()
    error = np.std(differentiated.velocity - samples.velocity, axis=0)
    assert np.all(error < 0.1 * np.std(samples.velocity, axis=0))


def test_stamps_of_a_controller_cycle_are_trusted() -> None:
    rows = np.loadtxt(_file("ur10e/ur-20_02_19_14harm50sec.csv"), delimiter=",")[195:4966]
    names = tuple(f"joint_{number}" for number in range(6))
    recording = Recording(rows[:, 0], names, rows[:, 1:7], rows[:, 7:13], rows[:, 13:19])
    report = prepare(recording).report
    # The logger skips whole cycles of 2 ms, so intervals differ and stamps say when.
    assert report.synchronisation.jitter > 5e-4
    assert report.synchronisation.timing == "stamped"
    assert report.synchronisation.gaps == 0
