# SPDX-License-Identifier: Apache-2.0
"""The cut-off follows the motion's band, the noise and the sensor's rate."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.errors import DataError
from sysid_core.signals.cutoff import choose_cutoff
from sysid_core.signals.differences import differentiate
from sysid_core.signals.filters import low_pass

RATE = 200.0
TIME = np.arange(6000) / RATE


def _swing(frequency: float, noise: float = 1e-5) -> np.ndarray:
    rng = np.random.default_rng(16)
    phases = np.array([0.0, 1.0, 2.0])
    motion = np.sin(2 * np.pi * frequency * TIME[:, np.newaxis] + phases)
    return np.asarray(motion + noise * rng.standard_normal(motion.shape))


@pytest.mark.parametrize("frequency", [0.5, 1.0, 2.0])
def test_the_motion_and_its_harmonics_pass(frequency: float) -> None:
    choice = choose_cutoff([_swing(frequency)], RATE)
    # The band is known to one bin of a four-second spectrum, 0.25 Hz, and the window's lobe.
    assert frequency <= choice.motion_band <= frequency + 0.75
    assert 5 * frequency <= choice.cutoff <= 12 * (frequency + 0.75)
    assert f"{choice.cutoff:.3g} Hz" in choice.reason


def test_more_noise_lowers_the_cutoff_but_never_below_the_motion() -> None:
    quiet = choose_cutoff([_swing(1.0, 1e-6)], RATE)
    cutoffs = [choose_cutoff([_swing(1.0, noise)], RATE).cutoff for noise in (0.01, 0.1)]
    assert quiet.cutoff > cutoffs[0] > cutoffs[1] > 1.0


def test_noise_makes_up_its_share_of_the_acceleration_at_the_cutoff() -> None:
    choice = choose_cutoff([_swing(1.0, 0.05)], RATE)
    noise = low_pass(
        0.05 * np.random.default_rng(18).standard_normal(len(TIME)), RATE, choice.cutoff
    )
    share = np.std(differentiate(noise, 1 / RATE, derivative=2)) / ((2 * np.pi) ** 2 / np.sqrt(2))
    # An ideal filter would give 0.1; a real one passes some more above its cut-off.
    assert 0.08 < share < 0.16


def test_a_slow_sensor_limits_the_cutoff() -> None:
    choice = choose_cutoff([_swing(2.0)], RATE, sensor_rate=30.0)
    assert choice.cutoff == pytest.approx(0.25 * 30.0)
    assert "sensor" in choice.reason


def test_columns_without_values_and_short_segments_do_not_matter() -> None:
    swing = _swing(1.0)
    with_hole = np.column_stack([swing, np.full(len(swing), np.nan)])
    choice = choose_cutoff([with_hole, with_hole[:20]], RATE)
    assert choice.cutoff == pytest.approx(choose_cutoff([swing], RATE).cutoff)


def test_a_robot_at_rest_gets_the_widest_filter() -> None:
    assert choose_cutoff([np.zeros((2000, 2))], RATE).cutoff == pytest.approx(50.0)


def test_a_record_too_short_for_a_spectrum_is_refused() -> None:
    with pytest.raises(DataError, match="record for longer"):
        choose_cutoff([np.zeros((10, 2))], RATE)


@pytest.mark.parametrize("noise", [1e-3, 1e-2])
def test_a_joint_at_rest_whose_encoder_is_noisy_has_no_band(noise: float) -> None:
    swing = _swing(1.0, 1e-3)
    still = noise * np.random.default_rng(19).standard_normal((len(swing), 2))
    choice = choose_cutoff([np.column_stack([swing, still])], RATE)
    assert choice.motion_band == pytest.approx(choose_cutoff([swing], RATE).motion_band)
