# SPDX-License-Identifier: Apache-2.0
"""The batch pipeline from a recording to uniform, filtered, differentiated samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import DataError
from sysid_core.recording import ImuMounting, Samples
from sysid_core.signals.align import Aligned, imu_rate
from sysid_core.signals.chain import (
    ChainConfig,
    Grid,
    filter_grid,
    fuse_whole,
)
from sysid_core.signals.cutoff import CutoffChoice
from sysid_core.signals.filters import support
from sysid_core.signals.inertial import INSTEAD, too_slow
from sysid_core.signals.motion import velocity_agreement
from sysid_core.signals.synchronise import SynchroniseReport

__all__ = ["PrepareReport", "Prepared", "effort_lag", "filter_aligned", "use_measured"]

_MINIMUM_ROWS = 8


@dataclass(frozen=True)
class PrepareReport:
    """What was done to a recording."""

    # sensor_rate, rate, output_rate: [Hz] of the sensors, of the grid, of the samples.
    sensor_rate: float
    rate: float
    output_rate: float
    cutoff: float  # [Hz]
    cutoff_reason: str
    velocity: str  # `measured` or `differentiated`
    outliers: tuple[tuple[str, int], ...]
    """Joint and number of values that were replaced; joints without any are left out."""
    synchronisation: SynchroniseReport
    duration: float  # [s] of all samples together
    warnings: tuple[str, ...]
    lag: float = 0.0  # [s] see `CutoffChoice`


@dataclass(frozen=True)
class Prepared:
    """Samples of every uninterrupted stretch, and the report."""

    segments: tuple[Samples, ...]
    report: PrepareReport

    def samples(self) -> Samples:
        """Return all segments joined."""
        return Samples.concatenate(self.segments)


def filter_aligned(
    aligned: Aligned,
    choice: CutoffChoice,
    *,
    measured: bool | None = None,
) -> Prepared:
    """Low-pass and differentiate at one cut-off.

    `measured` says whether joints' velocities are those that were measured; None: as the
    configuration says.

    Raises
    ------
    DataError
        If no stretch is longer than the filter's edges.
    ParameterError
        If the cut-off does not fit the rate.
    """
    recording, options, rate = aligned.recording, aligned.config, aligned.rate
    warnings, grids = list(aligned.warnings), list(aligned.grids)
    if recording.imu is not None:
        trouble = too_slow(imu_rate(recording.imu), choice.cutoff)
        if trouble is not None:
            warnings.append(str(trouble))
            grids = [grid.without("imu") for grid in grids]
    if measured is None:
        measured = use_measured(aligned, choice.cutoff)
    if choice.lag:
        grids = [grid.with_efforts_earlier(choice.lag) for grid in grids]
        warnings.append(str(effort_lag(choice.lag)))
    base_measured = options.velocity != "differentiated"
    chain = ChainConfig(rate, choice.cutoff, measured, base_measured, aligned.behind)
    mounting = ImuMounting()
    if recording.imu is not None and recording.imu.mounting is not None:
        mounting = recording.imu.mounting
    grids = _long_enough(grids, chain, warnings)
    segments = [_fused(grid, chain, mounting, warnings) for grid in grids]
    report = PrepareReport(
        aligned.sensor_rate,
        rate,
        rate,
        choice.cutoff,
        choice.reason,
        "measured" if measured else "differentiated",
        aligned.outliers,
        aligned.synchronisation,
        sum(len(segment) for segment in segments) / rate,
        (*recording.warnings, *warnings),
        choice.lag,
    )
    return Prepared(tuple(segments), report)


def effort_lag(lag: float) -> Diagnostic:
    """Say that efforts are moved by a lag [s]."""
    side = "after" if lag > 0.0 else "before"
    message = f"efforts come {1e3 * abs(lag):.2g} ms {side} their positions"
    return Diagnostic("effort_lag", message, hint="they are moved by that")


def use_measured(aligned: Aligned, cutoff: float) -> bool:
    """Whether joints' velocities are to be the measured ones, at a cut-off [Hz].

    Raises
    ------
    DataError
        If the configuration asks for them and none were recorded.
    """
    grids, options = aligned.grids, aligned.config
    if options.velocity == "differentiated":
        return False
    if "velocity" not in grids[0].joints:
        if options.velocity == "measured":
            raise DataError("no velocities were recorded; use 'differentiated' velocities")
        return False
    if options.velocity == "measured":
        return True
    joints = max(grids, key=lambda grid: len(grid.time)).joints
    return velocity_agreement(
        joints["position"], joints["velocity"], aligned.rate, cutoff
    ).preferable


def _long_enough(grids: list[Grid], chain: ChainConfig, warnings: list[str]) -> list[Grid]:
    """Return the stretches that are long enough to filter."""
    edges = 2 * support(chain.rate, chain.remaining)
    least = edges + _MINIMUM_ROWS
    long = [grid for grid in grids if len(grid.time) >= least]
    short = [len(grid.time) for grid in grids if len(grid.time) < least]
    if short:
        longest = f"{max(short) / chain.rate:.2g} s"
        what = f"a stretch of {longest} is"
        if len(short) > 1:
            what = f"{len(short)} stretches between gaps, of {longest} at most, are"
        warnings.append(f"{what} too short to filter and left out")
    if not long:
        raise DataError(
            f"no uninterrupted stretch is longer than {edges / chain.rate:.2g} s, the edges of "
            "the filter; record for longer or raise the cut-off"
        )
    return long


def _fused(grid: Grid, chain: ChainConfig, mounting: ImuMounting, warnings: list[str]) -> Samples:
    """Filter a stretch and fuse its sensors, their biases learned from the whole of it before."""
    filtered = filter_grid(grid, chain)
    fused = fuse_whole(filtered, mounting, chain.rate)
    troubles = [str(one) for one in fused.diagnostics]
    silent = 0
    if filtered.readings is not None:
        silent = int(np.isnan(filtered.readings.specific_force).any(axis=1).sum())
    if silent > support(chain.rate, chain.cutoff):
        troubles.append(f"the IMU is silent for a part of the recording; {INSTEAD}")
    warnings += [text for text in troubles if text not in warnings]
    return fused.samples
