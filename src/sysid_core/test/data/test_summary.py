# SPDX-License-Identifier: Apache-2.0
"""A summary counts what is in a recording and names what is not."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.data import summarise
from sysid_core.recording import ContactRecording, Recording


def test_troubles_of_the_time_stamps_are_counted() -> None:
    ticks = np.concatenate([np.arange(100), [100, 100], np.arange(102, 200), np.arange(230, 300)])
    ticks[[50, 51]] = ticks[[51, 50]]
    ticks = np.concatenate([ticks, np.arange(80)])
    values = np.sin(ticks * 0.01)[:, np.newaxis]
    values[5] = np.nan
    (stream,) = summarise(Recording(ticks * 0.01, ("a",), values)).streams
    assert stream.count == len(ticks)
    assert stream.rate == pytest.approx(100.0)
    assert (stream.duplicates, stream.late, stream.resets) == (1, 1, 1)
    assert (stream.gaps, stream.lost, stream.not_finite) == (1, 1, 1)
    assert stream.longest_gap == pytest.approx(0.31)


def test_what_is_missing_is_named() -> None:
    time = np.arange(100, dtype=np.float64) * 0.01
    position = np.column_stack([np.sin(time), np.ones(100)])
    effort = np.column_stack([np.cos(time), np.full(100, np.nan)])
    contacts = ContactRecording(time, ("foot",), np.ones((100, 1), dtype=bool))
    summary = summarise(Recording(time, ("a", "b"), position, None, effort, contacts=contacts))
    assert [joint.moves for joint in summary.joints] == [True, False]
    assert summary.joints[1].missing == ("velocity", "effort")
    text = "; ".join(summary.missing)
    for part in ("no velocity of any joint", "no effort of b", "no motion of b", "no odometry"):
        assert part in text
    assert "no contacts" not in text
    assert [stream.name for stream in summary.streams] == ["joint states", "contacts"]


def test_a_single_row_has_no_rate() -> None:
    (stream,) = summarise(Recording(np.zeros(1), ("a",), np.zeros((1, 1)))).streams
    assert np.isnan(stream.rate)
    assert stream.duration == 0.0
