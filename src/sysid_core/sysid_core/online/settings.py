# SPDX-License-Identifier: Apache-2.0
"""Configuration of the online identifier."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.errors import ParameterError
from sysid_core.estimation import METHODS
from sysid_core.online.gate import GateConfig
from sysid_core.online.payload import PayloadConfig
from sysid_core.online.window import WindowConfig
from sysid_core.settings import check_config, group, parameter

__all__ = ["SCORED", "OnlineConfig"]

SCORED = 1.0
"""Span of the newest samples that prequential scores are taken over [s]."""

_BLOCKS = 20
"""Blocks that a window is kept in: a twentieth of the data leaves at a time."""


@dataclass(frozen=True)
class OnlineConfig:
    """Configuration of the online identifier.

    `sample_rate` [Hz] turns durations into counts; `cutoff` [Hz] is that of the low-pass that the
    samples went through, 0 where it is not known.
    """

    sample_rate: float = 100.0
    cutoff: float = 0.0
    method: str = parameter("entropic", "Estimator", choices=METHODS, read_only=True)
    window: float = parameter(
        2.0,
        "Span of informative samples that makes the window full [s]. A slow motion needs more "
        "to show all of the robot",
        range=(0.01, 3600.0),
    )
    memory: float = parameter(
        20.0,
        "Time in which data that left the window lose half their weight [s]; 0 forgets them at "
        "once. Less where the robot changes, more where it does not",
        range=(0.0, 86400.0),
    )
    still_velocity: float = parameter(
        0.02,
        "Rows of a joint that moves slower are left out, since stiction hides its friction "
        "[rad/s]; of a prismatic joint, its range stands for a turn",
        range=(0.0, 10.0),
    )
    friction: str = parameter(
        "chosen",
        "Friction terms: `chosen`, where data predict torque better with more than the robot "
        "description names (arms), or `described`",
        choices=("chosen", "described"),
        read_only=True,
    )
    low_pass: str = parameter(
        "chosen",
        "Low-pass behind that of the samples: `chosen`, lower, with efforts moved in time, where "
        "data then predict torque better (where the description names no cut-off; robots that "
        "walk keep theirs, and their efforts are moved), or `described`",
        choices=("chosen", "described"),
        read_only=True,
    )
    gate: GateConfig = group(GateConfig, "gate.")
    payload: PayloadConfig = group(PayloadConfig, "payload.")

    def __post_init__(self) -> None:
        check_config(self)
        if not (np.isfinite(self.sample_rate) and self.sample_rate > 0.0):
            raise ParameterError(f"sample_rate must be positive, got {self.sample_rate}")
        if not (np.isfinite(self.cutoff) and self.cutoff >= 0.0):
            raise ParameterError(f"cutoff must not be negative, got {self.cutoff}")

    def samples(self, duration: float) -> int:
        """Return the number of samples in a duration [s]."""
        return max(1, round(duration * self.sample_rate))

    @property
    def sliding_window(self) -> WindowConfig:
        """Configuration of the sliding window."""
        samples = self.samples(self.window)
        return WindowConfig(samples, min(_BLOCKS, samples), self.memory / self.window)
