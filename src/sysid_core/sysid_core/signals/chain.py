# SPDX-License-Identifier: Apache-2.0
"""The steps from signals on a uniform grid to samples, for recordings and live buffers alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.recording import ImuMounting, Samples
from sysid_core.signals.filters import Smoothed, smoothed, smoothed_value, support
from sysid_core.signals.inertial import Biases, Readings, inertial_motion
from sysid_core.signals.interpolation import hermite
from sysid_core.signals.motion import BaseMotion, base_motion, joint_motion
from sysid_core.signals.rotation import normalised

__all__ = [
    "ChainConfig",
    "Filtered",
    "Fused",
    "Grid",
    "filter_grid",
    "fuse",
    "fuse_whole",
]


class Grid(NamedTuple):
    """Signals on a uniform grid."""

    time: FloatArray  # (n,) [s]
    joints: Mapping[str, FloatArray]
    """Each (n, nj): `position`, and `velocity` and `effort` where measured, in joint order and SI
    units; `cut_off` as of `Samples`."""
    sensors: Mapping[str, FloatArray]
    """Each (n, nc) rows of the sensors that were there, by name; NaN where one was silent. What
    went through the chain already has its `base_acceleration`, too."""

    def without(self, name: str) -> Grid:
        """Return the grid less one sensor."""
        return self._replace(sensors={k: v for k, v in self.sensors.items() if k != name})

    def with_efforts_earlier(self, lag: float) -> Grid:
        """Return the grid with the efforts that were logged a time [s] later; the end holds."""
        if "effort" not in self.joints:
            return self
        moved = {"effort": hermite(self.time, self.joints["effort"], self.time + lag)}
        if (cut := self.joints.get("cut_off")) is not None:
            there = np.searchsorted(self.time, self.time + lag)
            moved["cut_off"] = cut[np.minimum(there, len(cut) - 1)]
        return self._replace(joints={**self.joints, **moved})


@dataclass(frozen=True)
class ChainConfig:
    """How signals on a grid become samples."""

    rate: float  # [Hz] of the grid
    cutoff: float  # [Hz] of the low-pass that all signals share
    # joints_measured, base_measured: take measured velocities where there are any, instead of
    # differentiated positions.
    joints_measured: bool = False
    base_measured: bool = True
    behind: float = np.inf  # [Hz] cut-off of a low-pass that the grid went through already

    @property
    def remaining(self) -> float:
        """Cut-off [Hz] of what is left to do, behind the other low-pass.

        One loses (f/cut-off)⁴ of a slow sine, so that fourth powers add up. What hardly anything
        is left of is no more than the finest low-pass: a fourth of the rate.
        """
        if np.isinf(self.behind):
            return self.cutoff
        left = max(self.cutoff**-4 - self.behind**-4, 0.0)
        return float(max(left**0.25, 4.0 / self.rate) ** -1)


class Filtered(NamedTuple):
    """Filtered samples with the odometry's motion, and what the inertial sensor read."""

    samples: Samples
    readings: Readings | None

    @staticmethod
    def concatenate(parts: Sequence[Filtered]) -> Filtered:
        """Join parts; readings of those that lack them are NaN."""
        samples = Samples.concatenate([part.samples for part in parts])
        readings = [
            part.readings or Readings(*np.full((3, len(part.samples), 3), np.nan))
            for part in parts
        ]
        return Filtered(samples, Readings(*map(np.concatenate, zip(*readings, strict=True))))

    def select(self, chosen: slice | BoolArray) -> Filtered:
        """Return the samples that a slice or a mask (n,) picks."""
        readings = self.readings
        if readings is not None:
            readings = Readings(*(values[chosen] for values in readings))
        return Filtered(self.samples.select(chosen), readings)


class Fused(NamedTuple):
    """Samples with the best motion of the base."""

    samples: Samples
    biases: Biases  # As learned until the last sample
    used: int  # Samples whose motion is the inertial sensor's
    diagnostic: Diagnostic | None  # Why the sensor was not used at last
    doubt: Diagnostic | None  # What it says of the odometry where it was

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What someone should mend."""
        return tuple(one for one in (self.diagnostic, self.doubt) if one is not None)


def filter_grid(grid: Grid, config: ChainConfig, *, every: int = 1) -> Filtered:
    """Filter every signal alike and differentiate.

    Returns
    -------
    Filtered
        Every `every`-th of those ``n - 2 support(rate, remaining)`` samples whose neighbourhood is
        complete.
    """
    cutoff = config.remaining
    edge = support(config.rate, cutoff)
    inner = slice(edge, len(grid.time) - edge, every)

    def smooth(values: FloatArray) -> Smoothed:
        return smoothed(values, config.rate, cutoff, every=every)

    def smooth_value(values: FloatArray) -> FloatArray:
        return smoothed_value(values, config.rate, cutoff, every=every)

    velocity = grid.joints.get("velocity") if config.joints_measured else None
    motion = joint_motion(
        smooth(grid.joints["position"]), None if velocity is None else smooth(velocity)
    )
    effort = np.full(motion.position.shape, np.nan)
    if "effort" in grid.joints:
        effort = smooth_value(grid.joints["effort"])
    samples = Samples(
        grid.time[inner], motion.position, motion.velocity, motion.acceleration, effort
    )
    if (cut := grid.joints.get("cut_off")) is not None:
        samples = replace(samples, cut_off=_cut_off(cut, edge)[::every])
    if (base := grid.sensors.get("base")) is not None:
        filtered = smooth(base)
        moved = base_motion(filtered, measured=config.base_measured)
        pose = np.hstack([filtered.value[:, :3], normalised(filtered.value[:, 3:7])])
        acceleration = moved.acceleration
        if (known := grid.sensors.get("base_acceleration")) is not None:
            acceleration = smooth_value(known)
        samples = replace(
            samples, base_pose=pose, base_twist=moved.twist, base_acceleration=acceleration
        )
    if (wrenches := grid.sensors.get("wrenches")) is not None:
        flat = smooth_value(wrenches)
        samples = replace(samples, wrenches=flat.reshape(len(flat), -1, 6))
    if (flags := grid.sensors.get("contacts")) is not None:
        samples = replace(samples, contacts=flags[inner] > 0.5)
    readings = None
    if (imu := grid.sensors.get("imu")) is not None and base is not None:
        filtered = smooth(imu)
        readings = Readings(filtered.value[:, :3], filtered.first[:, :3], filtered.value[:, 3:])
    return Filtered(samples, readings)


def _cut_off(cut: FloatArray, edge: int) -> IndexArray:
    """Return for the inner samples what they rest on, that reach so many beyond themselves."""
    if not cut.any():
        return np.zeros((len(cut) - 2 * edge, cut.shape[1]), dtype=np.intp)
    so_far = np.cumsum(np.pad(cut > 0.0, ((1, 0), (0, 0))), axis=0, dtype=np.intp)
    rests = so_far[2 * edge + 1 :] > so_far[: -2 * edge - 1]
    return rests.astype(np.intp) + (cut[edge : len(cut) - edge] > 1.0)


def fuse(filtered: Filtered, mounting: ImuMounting, biases: Biases, rate: float) -> Fused:
    """Take the base's motion from the inertial sensor where that agrees with the odometry."""
    samples, readings = filtered
    pose, twist, acceleration = samples.base_pose, samples.base_twist, samples.base_acceleration
    if readings is None or pose is None or twist is None or acceleration is None:
        return Fused(samples, biases, 0, None, None)
    odometry = BaseMotion(twist, acceleration)
    found = inertial_motion(readings, pose[:, 3:], odometry, mounting, biases, rate)
    samples = replace(
        samples,
        base_pose=np.hstack([pose[:, :3], found.orientation]),
        base_twist=found.motion.twist,
        base_acceleration=found.motion.acceleration,
    )
    used = int(found.used.sum())
    return Fused(samples, found.biases, used, found.diagnostic, found.doubt)


def fuse_whole(filtered: Filtered, mounting: ImuMounting, rate: float) -> Fused:
    """Fuse a stretch as `fuse` does, with biases that were learned from the whole of it before."""
    return fuse(filtered, mounting, fuse(filtered, mounting, Biases(), rate).biases, rate)
