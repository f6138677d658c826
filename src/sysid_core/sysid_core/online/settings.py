# SPDX-License-Identifier: Apache-2.0
"""Settings of the online identifier."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sysid_core.errors import ParameterError
from sysid_core.estimation import EstimatorOptions
from sysid_core.online.gate import GateSettings
from sysid_core.online.payload import PayloadSettings
from sysid_core.online.window import WindowSettings

__all__ = ["OnlineSettings"]


@dataclass(frozen=True)
class OnlineSettings:
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
    gate : GateSettings
    payload : PayloadSettings
    """

    sample_rate: float = 100.0
    window: float = 2.0
    memory: float = 20.0
    r2_window: float = 1.0
    still_velocity: float = 0.02
    correlation: float = 4.0
    method: str = "entropic"
    gate: GateSettings = field(default_factory=GateSettings)
    payload: PayloadSettings = field(default_factory=PayloadSettings)

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
        EstimatorOptions(method=self.method)

    def samples(self, duration: float) -> int:
        """Return the number of samples in a duration [s]."""
        return max(1, round(duration * self.sample_rate))

    @property
    def window_settings(self) -> WindowSettings:
        """Settings of the sliding window."""
        samples = self.samples(self.window)
        return WindowSettings(samples, min(20, samples), self.memory / self.window)
