# SPDX-License-Identifier: Apache-2.0
"""Settings of the online identifier."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sysid_core.errors import ParameterError
from sysid_core.estimation import estimator
from sysid_core.online.gate import GateConfig
from sysid_core.online.payload import PayloadConfig
from sysid_core.online.window import WindowConfig

__all__ = ["OnlineConfig"]


@dataclass(frozen=True)
class OnlineConfig:
    """Settings of the online identifier.

    Attributes
    ----------
    sample_rate : float [Hz]
        Rate of the samples; turns durations into sample counts.
    window : float [s]
        Span of informative samples that makes the window full.
    memory : float [s]
        Time in which data that left the window lose half their weight; 0 forgets them at once.
    r2_window : float [s]
        Span of the newest samples that prequential scores are taken over.
    still_velocity : float [rad/s]
        Rows of a joint that moves slower are left out: stiction hides their friction.
    correlation : float [-]
        Number of samples that count as one independent observation.
    method : str
        Estimator.
    gate : GateConfig
    payload : PayloadConfig
    """

    sample_rate: float = 100.0
    window: float = 2.0
    memory: float = 20.0
    r2_window: float = 1.0
    still_velocity: float = 0.02
    correlation: float = 4.0
    method: str = "entropic"
    gate: GateConfig = field(default_factory=GateConfig)
    payload: PayloadConfig = field(default_factory=PayloadConfig)

    def __post_init__(self) -> None:
        for name in ("sample_rate", "window", "r2_window"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value > 0.0):
                raise ParameterError(f"{name} must be positive, got {value}")
        for name in ("memory", "still_velocity"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0.0):
                raise ParameterError(f"{name} must be finite and not negative, got {value}")
        if not (np.isfinite(self.correlation) and self.correlation >= 1.0):
            raise ParameterError(f"correlation must be at least 1, got {self.correlation}")
        estimator(self.method)

    def samples(self, duration: float) -> int:
        """Return the number of samples in a duration [s]."""
        return max(1, round(duration * self.sample_rate))

    @property
    def window_settings(self) -> WindowConfig:
        """Settings of the sliding window."""
        samples = self.samples(self.window)
        return WindowConfig(samples, min(20, samples), self.memory / self.window)
