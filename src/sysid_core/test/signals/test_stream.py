# SPDX-License-Identifier: Apache-2.0
"""The streaming synchroniser: equal to the batch, bounded delay, every trouble counted."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.companion import CompanionStream
from sysid_core.signals.stream import StreamSynchroniser, UniformBatch
from sysid_core.signals.synchronise import Track, synchronise

RATE = 100.0


def _motion(time: np.ndarray) -> np.ndarray:
    return np.stack([np.sin(2.0 * time), np.cos(3.0 * time)], axis=1)


def _feed(
    stream: StreamSynchroniser, time: np.ndarray, values: np.ndarray, portion: int = 1
) -> UniformBatch:
    batches = [
        stream.push(time[i : i + portion], values[i : i + portion])
        for i in range(0, len(time), portion)
    ]
    batches.append(stream.reset())
    return UniformBatch(
        np.concatenate([batch.time for batch in batches]),
        np.concatenate([batch.values for batch in batches]),
        np.concatenate([batch.segment for batch in batches]),
        any(batch.reset for batch in batches),
    )


@pytest.mark.parametrize("portion", [1, 7, 1000])
def test_the_stream_equals_the_batch(portion: int) -> None:
    rng = np.random.default_rng(15)
    time = 1.7e9 + np.arange(600, dtype=np.float64) / RATE + rng.uniform(-0.2, 0.2, 600) / RATE
    values = _motion(time - 1.7e9) + 1e-3 * rng.standard_normal((600, 2))
    batch = synchronise([Track(time, values)], rate=RATE, timing="stamped").segments[0]
    stream = _feed(StreamSynchroniser(RATE, 2), time, values, portion)
    shared = min(len(batch.time), len(stream.time))
    assert shared >= 598
    np.testing.assert_allclose(stream.time[:shared], batch.time[:shared], atol=1e-6)
    np.testing.assert_allclose(stream.values[:shared], batch.values[0][:shared], atol=1e-6)


def test_a_sample_comes_out_one_received_sample_later() -> None:
    stream = StreamSynchroniser(RATE, 2)
    for k in range(200):
        out = stream.push(k / RATE, _motion(np.array([k / RATE])))
        if k >= 3:
            np.testing.assert_allclose(out.time, [(k - 1) / RATE], atol=1e-12)


def test_memory_is_bounded_and_the_grid_does_not_drift() -> None:
    stream = StreamSynchroniser(1000.0, 1)
    time = 1.7e9 + np.arange(20000, dtype=np.float64) * 1e-3
    last = 0.0
    for start in range(0, len(time), 100):
        out = stream.push(time[start : start + 100], np.zeros((100, 1)))
        last = out.time[-1]
    assert last == pytest.approx(time[-2], abs=1e-6)
    assert len(stream._times) <= 3


def test_every_trouble_is_counted_and_none_comes_out() -> None:
    time = np.arange(100, dtype=np.float64) / RATE
    values = _motion(time)
    sequence = [(t, v) for t, v in zip(time, values, strict=True)]
    sequence.insert(90, (1e6, values[0]))
    sequence.insert(80, (time[75], values[75]))
    sequence.insert(60, (time[60], np.array([np.nan, 0.0])))
    sequence.insert(50, (time[49] + 1e-4, values[49]))
    sequence.insert(40, (time[40] - 0.3 / RATE, np.array([50.0, 0.0])))
    sequence.insert(30, (time[30] - 0.3 / RATE, values[30] + 1.0))
    del sequence[20]
    stream = StreamSynchroniser(
        RATE, 2, upper=np.array([10.0, 10.0]), max_rate=np.array([20.0, 20.0])
    )
    stamps = np.array([t for t, _ in sequence])
    out = _feed(stream, stamps, np.array([v for _, v in sequence]))
    counts = stream.counts
    assert counts.received == len(sequence)
    assert counts.accepted == 99
    assert (counts.implausible, counts.late, counts.duplicate) == (3, 1, 1)
    assert (counts.not_finite, counts.lost, counts.gaps, counts.resets) == (1, 1, 0, 0)
    np.testing.assert_allclose(out.time, time, atol=1e-9)
    np.testing.assert_allclose(out.values, values, atol=2e-4)


def test_a_gap_starts_a_new_segment_and_is_not_filled() -> None:
    time = np.concatenate([np.arange(50), np.arange(80, 130)]) / RATE
    stream = StreamSynchroniser(RATE, 2)
    out = _feed(stream, time, _motion(time))
    assert (stream.counts.gaps, stream.counts.lost, stream.counts.resets) == (1, 30, 0)
    assert not out.reset
    np.testing.assert_allclose(out.time, time, atol=1e-9)
    np.testing.assert_array_equal(out.segment, np.repeat([0, 1], 50))


def test_a_bag_that_starts_over_is_a_reset() -> None:
    time = np.tile(np.arange(100, dtype=np.float64) / RATE, 3)
    stream = StreamSynchroniser(RATE, 2)
    out = _feed(stream, time, _motion(time), portion=10)
    assert stream.counts.resets == 2
    assert out.reset
    np.testing.assert_allclose(out.time, time, atol=1e-9)
    np.testing.assert_array_equal(out.segment, np.repeat([0, 1, 2], 100))


def test_a_real_jump_of_a_value_is_accepted_after_a_gap() -> None:
    time = np.arange(100, dtype=np.float64) / RATE
    values = np.where(time < 0.5, 0.0, 5.0)[:, np.newaxis]
    stream = StreamSynchroniser(RATE, 1, max_rate=np.array([1.0]))
    out = _feed(stream, time, values)
    assert stream.counts.gaps == 1
    assert out.values[-1, 0] == 5.0
    assert set(np.unique(out.values)) == {0.0, 5.0}


def test_bad_settings_and_shapes_are_refused() -> None:
    for rate in (0.0, np.nan, -1.0):
        with pytest.raises(ParameterError):
            StreamSynchroniser(rate, 1)
    with pytest.raises(ParameterError):
        StreamSynchroniser(RATE, 1, gap=1.0)
    with pytest.raises(ParameterError):
        StreamSynchroniser(RATE, 2, upper=np.zeros(3))
    with pytest.raises(DataError):
        StreamSynchroniser(RATE, 2).push(0.0, np.zeros(3))


def test_a_companion_is_read_at_the_times_of_the_first_stream() -> None:
    companion = CompanionStream(1, longest=0.1)
    assert companion.known_until == -np.inf
    for t in np.concatenate([np.arange(0.0, 1.0, 0.02), np.arange(1.5, 2.0, 0.02)]):
        assert companion.push(float(t), np.array([t**2]))
    assert companion.known_until == pytest.approx(1.96)
    asked = np.array([-0.1, 0.333, 0.99, 1.2, 1.731, 3.0])
    got = companion.at(asked)[:, 0]
    assert np.isnan(got[[0, 2, 3, 5]]).all()
    np.testing.assert_allclose(got[[1, 4]], asked[[1, 4]] ** 2, atol=1e-9)
    assert not companion.push(1.0, np.zeros(1))
    assert not companion.push(2.1, np.array([np.nan]))
    with pytest.raises(DataError):
        companion.push(2.2, np.zeros(2))
    companion.reset()
    assert np.isnan(companion.at(asked)).all()


def test_a_companion_forgets_what_is_older_than_its_horizon() -> None:
    companion = CompanionStream(1, longest=0.1, horizon=0.5, flags=True)
    for k in range(200):
        companion.push(k * 0.02, np.array([float(k % 2)]))
    assert np.isnan(companion.at(np.array([3.0]))).all()
    np.testing.assert_array_equal(companion.at(np.array([3.581, 3.599])), [[1.0], [0.0]])
    with pytest.raises(ParameterError):
        CompanionStream(1, longest=0.0)
