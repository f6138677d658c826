# SPDX-License-Identifier: Apache-2.0
"""Settings of the batch signal pipeline."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Literal

from sysid_core.errors import ParameterError

__all__ = ["SignalConfig"]

_TIMINGS = ("auto", "stamped", "uniform")
_VELOCITIES = ("auto", "measured", "differentiated")


@dataclass(frozen=True)
class SignalConfig:
    """How recordings become samples; `None` leaves the choice to the data.

    Raises
    ------
    ParameterError
        If a value lies outside its range.
    """

    rate: float | None = None
    """[Hz] expected of the sensors, and of the uniform grid (a multiple of it if they are
    quicker); None: the sensors' own."""
    cutoff: float | None = None
    """[Hz] of the zero-phase low-pass that positions, velocities and efforts share."""
    gap: float = 5.0  # Longest interruption that is interpolated, in sampling periods
    timing: Literal["auto", "stamped", "uniform"] = "auto"
    """Whether to trust time stamps or the regular clock behind them."""
    velocity: Literal["auto", "measured", "differentiated"] = "auto"
    """Where velocities come from; accelerations are their derivative."""
    oversampling: float | None = 8.0
    """Samples are thinned to this multiple of the cut-off; None keeps all of them."""
    inertial: bool = True
    """Take a floating base's angular velocity and acceleration from its inertial sensor where one
    was recorded; else they come from the odometry alone."""

    def __post_init__(self) -> None:
        for name in ("rate", "cutoff"):
            value = getattr(self, name)
            _require(
                value is None or _SLOWEST <= value <= _FASTEST,
                name,
                f"between {_SLOWEST:g} and {_FASTEST:g} Hz",
                value,
            )
        if self.rate is not None and self.cutoff is not None:
            _require(
                self.cutoff < 0.5 * self.rate,
                "cutoff",
                f"below {0.5 * self.rate:g} Hz, half of the rate",
                self.cutoff,
            )
        _require(isfinite(self.gap) and self.gap >= 1.5, "gap", "at least 1.5 periods", self.gap)
        _require(self.timing in _TIMINGS, "timing", f"one of {_TIMINGS}", self.timing)
        _require(self.velocity in _VELOCITIES, "velocity", f"one of {_VELOCITIES}", self.velocity)
        _require(
            self.oversampling is None or (isfinite(self.oversampling) and self.oversampling >= 4),
            "oversampling",
            "at least 4, since the filter still passes a little at twice its cut-off",
            self.oversampling,
        )


_SLOWEST, _FASTEST = 1e-4, 1e7
"""Frequencies [Hz] of anything that a robot does or measures lie well between."""


def _require(holds: bool, name: str, range_: str, value: object) -> None:
    if not holds:
        raise ParameterError(f"signals: '{name}' must be {range_}, not {value!r}")
