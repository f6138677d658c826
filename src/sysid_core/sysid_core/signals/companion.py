# SPDX-License-Identifier: Apache-2.0
"""Reading a second live stream, such as odometry or contacts, at the times of the first one."""

from __future__ import annotations

from collections import deque

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.interpolation import hermite, nearest

__all__ = ["CompanionStream"]

_NODES_BEFORE = 3
"""Samples before the first wanted time that its interpolation may rest on."""


class CompanionStream:
    """Keeps the recent samples of a stream and interpolates them where it is asked to.

    Parameters
    ----------
    channels : int
    longest : float [s]
        Longest interruption that is interpolated.
    horizon : float [s]
        Age at which samples are forgotten.
    flags : bool
        Take the nearest sample instead of interpolating.

    Raises
    ------
    ParameterError
        If the interruption or the horizon is not positive.
    """

    def __init__(
        self, channels: int, *, longest: float, horizon: float = 2.0, flags: bool = False
    ) -> None:
        if not (longest > 0.0 and horizon >= longest):
            raise ParameterError(
                f"the horizon ({horizon} s) must be no less than the longest interruption "
                f"({longest} s), and that positive"
            )
        self.channels = channels
        self._longest = longest
        self._horizon = horizon
        self._flags = flags
        self._rows: deque[tuple[float, FloatArray]] = deque()

    @property
    def known_until(self) -> float:
        """Time [s] up to which values are final; −∞ before the first two samples."""
        if len(self._rows) < 2:
            return -np.inf
        # The newest interval's cubic may still change with the next sample; flags may not.
        return self._rows[-1 if self._flags else -2][0]

    def reset(self) -> None:
        """Forget all samples, as when time goes back."""
        self._rows.clear()

    def push(self, time: float, values: FloatArray) -> bool:
        """Take one sample; return whether it was used.

        Samples that are not finite, or not younger than the last one, are left out.

        Raises
        ------
        DataError
            If the number of values is wrong.
        """
        row = np.array(values, dtype=np.float64)
        if row.shape != (self.channels,):
            raise DataError(f"a sample has shape {row.shape}, expected {(self.channels,)}")
        if not (np.isfinite(time) and np.isfinite(row).all()):
            return False
        if self._rows and time <= self._rows[-1][0]:
            return False
        self._rows.append((time, row))
        while time - self._rows[0][0] > self._horizon:
            self._rows.popleft()
        return True

    def at(self, time: FloatArray) -> FloatArray:
        """Return the values (m, channels) at times (m,) [s]; NaN in gaps and where unknown."""
        time = np.asarray(time, dtype=np.float64)
        result = np.full((len(time), self.channels), np.nan)
        if not self._rows or not len(time):
            return result
        rows = self._since(float(time.min()))
        nodes = np.array([stamp for stamp, _ in rows])
        values = np.array([row for _, row in rows])
        right = np.searchsorted(nodes, time)
        inside = (time >= nodes[0]) & (time <= nodes[-1])
        right = np.clip(right, 1, max(len(nodes) - 1, 1))
        if len(nodes) > 1:
            on_node = np.isin(time, nodes)
            inside &= on_node | (nodes[right] - nodes[right - 1] <= self._longest)
        interpolate = nearest if self._flags else hermite
        result[inside] = interpolate(nodes, values, time[inside])
        return result

    def _since(self, time: float) -> list[tuple[float, FloatArray]]:
        """Return the samples from a time [s] on, and those before it that its slope needs."""
        recent: list[tuple[float, FloatArray]] = []
        before = 0
        for sample in reversed(self._rows):
            recent.append(sample)
            before += sample[0] < time
            if before == _NODES_BEFORE:
                break
        return recent[::-1]
