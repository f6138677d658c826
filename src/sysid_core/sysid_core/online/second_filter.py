# SPDX-License-Identifier: Apache-2.0
"""Another low-pass behind the live stream's, chosen as recordings' cut-offs and lags are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.bandwidth import Ladder
from sysid_core.batch import GAP, Batch
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.errors import SysidError
from sysid_core.friction_choice import FrictionChoice
from sysid_core.online.settings import OnlineConfig
from sysid_core.posing import Posing
from sysid_core.recording import Recording, Samples
from sysid_core.signals.align import Aligned
from sysid_core.signals.chain import ChainConfig, Grid, filter_grid
from sysid_core.signals.cutoff import CutoffChoice, choose_cutoff
from sysid_core.signals.filters import support
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import effort_lag
from sysid_core.signals.rotation import continuous
from sysid_core.signals.synchronise import SynchroniseReport
from sysid_core.signals.timing import estimate_clock, split_at_gaps

__all__ = ["SecondFilter", "choose_filter", "leaves_enough", "rate_of"]

_WORTH = float(np.log(1.5))
"""Log ratio of errors by which a lower cut-off must predict better: it delays all samples."""
_KEPT = 0.7
"""Share of the samples that it must leave: contacts that come and go cut them into runs, of which
it takes the ends."""
_BESIDE = 2
"""Samples on either side that an interpolated one rests on."""


class SecondFilter:
    """Puts live samples through another low-pass, and their efforts at their positions' times.

    Samples come out later, once their neighbourhood is there, and the same however they come in.

    Parameters
    ----------
    choice : CutoffChoice
        The cut-off behind both low-passes, and the lag.
    rate, before : float [Hz]
        Of the samples, and the cut-off that they went through.

    Attributes
    ----------
    choice : CutoffChoice
    time : float [s]
        Of the newest sample that came out.
    """

    def __init__(self, choice: CutoffChoice, rate: float, before: float) -> None:
        self.choice, self._chain = choice, ChainConfig(rate, choice.cutoff, behind=before)
        beside = int(np.ceil(abs(choice.lag) * rate)) + _BESIDE if choice.lag else 0
        self._inner = slice(beside, -beside or None)
        self._reach = support(rate, self._chain.remaining) + beside
        # before, after: samples that others' efforts move by, with those that these rest on.
        self._before = int(np.ceil(max(-choice.lag, 0.0) * rate))
        self._after = int(np.ceil(max(choice.lag, 0.0) * rate)) + _BESIDE
        self._first = 0  # Of those that are held: comes out next
        self._held: Samples | None = None  # The newest, whose neighbourhood is not there yet
        self.time = -np.inf

    @property
    def diagnostics(self) -> Iterator[Diagnostic]:
        """What it does to the samples."""
        cutoff, before = self.choice.cutoff, self._chain.behind
        if cutoff < before:
            message = f"{cutoff:.3g} Hz predicts torque better than {before:.3g} Hz"
            hint = "samples pass another low-pass unless the description gives 'signals.cutoff'"
            yield Diagnostic("low_pass", message, hint=hint)
        if self.choice.lag:
            yield effort_lag(self.choice.lag)

    def push(self, samples: Samples) -> Samples:
        """Take in samples; return those that are complete."""
        parts = [samples.select(slice(0))]
        for run in split_at_gaps(samples.time, GAP / self._chain.rate):
            parts.append(self._filtered(samples.select(run)))
        out = Samples.concatenate(parts)
        if len(out):
            self.time = float(out.time[-1])
        return out

    def _filtered(self, run: Samples) -> Samples:
        held = self._held
        follows = held is not None and 0.0 < run.time[0] - held.time[-1] <= GAP / self._chain.rate
        if held is not None and follows:
            run = Samples.concatenate([held, run])
        if run.base_pose is not None and self.choice.cutoff >= self._chain.behind:
            return self._with_efforts_earlier(run, follows=follows)
        self._held = run.select(slice(max(0, len(run) - 2 * self._reach), None))
        if len(run) <= 2 * self._reach:
            return run.select(slice(0))
        grid = _grid(run)
        if self.choice.lag:
            grid = grid.with_efforts_earlier(self.choice.lag)
        joints, sensors = (
            {name: values[self._inner] for name, values in signals.items()}
            for signals in (grid.joints, grid.sensors)
        )
        return filter_grid(Grid(grid.time[self._inner], joints, sensors), self._chain).samples

    def _with_efforts_earlier(self, run: Samples, *, follows: bool) -> Samples:
        """Move the efforts alone: few samples are lost at the ends of a run."""
        first = self._first if follows else self._before
        last = max(first, len(run) - self._after)
        kept = max(0, last - self._before - _BESIDE)
        self._held, self._first = run.select(slice(kept, None)), last - kept
        moved = _grid(run).with_efforts_earlier(self.choice.lag).joints
        run = replace(run, effort=moved["effort"])
        if run.cut_off is not None:
            run = replace(run, cut_off=moved["cut_off"].astype(np.intp))
        return run.select(slice(first, last))


def _grid(samples: Samples) -> Grid:
    joints = {"position": samples.position, "effort": samples.effort}
    if samples.cut_off is not None:
        joints["cut_off"] = samples.cut_off.astype(np.float64)
    sensors: dict[str, FloatArray] = {}
    if samples.base_pose is not None and samples.base_twist is not None:
        pose, orientation = np.split(samples.base_pose, [3], axis=1)
        sensors["base"] = np.hstack([pose, continuous(orientation), samples.base_twist])
    if samples.base_acceleration is not None:
        sensors["base_acceleration"] = samples.base_acceleration
    if samples.contacts is not None:
        sensors["contacts"] = samples.contacts.astype(np.float64)
    if samples.wrenches is not None:
        sensors["wrenches"] = samples.wrenches.reshape(len(samples), -1)
    return Grid(samples.time, joints, sensors)


def choose_filter(
    regression: Regression,
    parts: Sequence[Samples],
    config: OnlineConfig,
    terms: FrictionChoice,
    lower: bool,
) -> CutoffChoice | None:
    """Choose a lower cut-off than live samples went through, or a lag of their efforts.

    Parameters
    ----------
    parts : sequence of Samples
        In the order in which they came.
    config : OnlineConfig
        With the samples' rate and cut-off.
    terms : FrictionChoice
        Which friction terms joints get.
    lower : bool
        Whether the cut-off may be lower, and not only the lag be found.

    Returns
    -------
    CutoffChoice or None
        None where neither clearly predicts better.
    """
    samples = Samples.concatenate(parts)

    def settle(_: Regression, batch: Batch) -> Regression:
        # those of another cut-off would be kept
        return terms(regression, batch)

    try:
        aligned = _aligned(regression, samples, config.cutoff)
        ladder = Ladder(aligned, 1.0, terms.still, settle, Posing(None, None).problem, _WORTH)
        choice = replace(aligned.choice, given=not lower)
        best, settled = ladder.choose(regression, choice)
    except (SysidError, np.linalg.LinAlgError):
        return None
    if not lower:
        best = replace(choice, lag=best.lag)
    elif regression.robot.floating and not leaves_enough(parts, config, best.cutoff):
        return None
    found = settled is not None and (best.cutoff < config.cutoff or best.lag != 0.0)
    return best if found else None


def leaves_enough(parts: Sequence[Samples], config: OnlineConfig, cutoff: float) -> bool:
    """Whether a lower cut-off [Hz] leaves most of live samples."""
    time = np.concatenate([part.time for part in parts])
    rate = estimate_clock(time).rate
    edges = 2 * support(rate, ChainConfig(rate, cutoff, behind=config.cutoff).remaining)
    runs = (run.stop - run.start for run in split_at_gaps(time, GAP / rate))
    return sum(max(0, run - edges) for run in runs) >= _KEPT * len(time)


def rate_of(parts: Sequence[Samples]) -> float:
    """Return the rate [Hz] of samples, which lie on one grid but for gaps."""
    return estimate_clock(np.concatenate([part.time for part in parts])).rate


def _aligned(regression: Regression, samples: Samples, cutoff: float) -> Aligned:
    """Return samples behind a low-pass at a cut-off [Hz] as a recording on one grid."""
    rate = rate_of([samples])
    grids = tuple(_grids(samples, rate))
    names = regression.robot.joint_names
    recording = Recording(samples.time, names, samples.position, effort=samples.effort)
    spectrum = choose_cutoff([grid.joints["position"] for grid in grids], rate)
    choice = replace(spectrum, cutoff=cutoff)
    return Aligned(
        grids,
        rate,
        rate,
        choice,
        recording,
        SignalConfig(),
        (),
        SynchroniseReport(),
        (),
        cutoff,
    )


def _grids(samples: Samples, rate: float) -> Iterator[Grid]:
    for run in split_at_gaps(samples.time, GAP / rate):
        yield _grid(samples.select(run))
