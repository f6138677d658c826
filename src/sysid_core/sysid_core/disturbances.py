# SPDX-License-Identifier: Apache-2.0
"""Names the parts of a recording whose torques the rest of it does not explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import MAD_TO_STD, BoolArray, FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.sums import Sums
from sysid_core.estimation.noise import weighted_sums
from sysid_core.gathering import Gathered

__all__ = ["Disturbed", "Span", "find_disturbances", "whereabouts"]

_FEWEST = 16
"""Stretches with rows from which one can stand out."""
_SHORTEST = 0.2  # [s] of a stretch: less may lie between two turns of a joint
_ROUNDS = 8  # In which what stands out loses its weight
_BOUND = 2.0
"""Ratio to the usual error from which a stretch counts less (Huber 1964)."""
_SPREAD = 0.4
"""Least standard deviation of log errors between stretches: speeds and postures differ."""
_APART = 4.5
"""Standard deviations by which a stretch stands out at two joints: a touch or a load acts on
several. The second joint of five real arms reaches 2.7, of simulated ones 4.1."""
_OF_SEVERAL = 9.0
"""The same at one joint of several: what elastic joints leave reaches 8."""
_ALONE = 6.0
"""The same where all rows are of one group, as on legs."""
_LEAST = 0.005
"""Share of a torque that errors count for at least: a simulation's are rounding."""
_NAMED = 4  # Parts that a message names
_LOOSE = 1e-9
"""Relative ridge that lets directions which nothing has shown be solved for."""


class Span(NamedTuple):
    """A part of a recording, in seconds after its first joint state."""

    source: int  # Number of the recording
    first: float
    last: float


class Disturbed(NamedTuple):
    """What is to be said, which samples are disturbed, and when that was."""

    said: tuple[Diagnostic, ...] = ()
    samples: IndexArray = np.zeros(0, dtype=np.intp)
    spans: tuple[Span, ...] = ()

    @staticmethod
    def of(
        said: Diagnostic, gathered: Gathered, edges: IndexArray, stretches: Sequence[int]
    ) -> Disturbed:
        """Return stretches between edges as disturbed.

        What is to be said has places `{where}` and `{option}` for when that was and how to leave
        it out.
        """
        spans = _spans(gathered, edges, stretches)
        where, option = _in_words(gathered, spans)
        message = said.message.replace("{where}", where)
        said = replace(said, message=message, hint=said.hint.replace("{option}", option))
        samples = np.concatenate([np.arange(*edges[[k, k + 1]]) for k in stretches])
        return Disturbed((said,), samples, tuple(spans))

    @property
    def left_out(self) -> tuple[Diagnostic, ...]:
        """What is to be said where these parts are left out."""
        hint = "if that belongs to the robot, learn from it by --disturbed kept"
        left = ": left out of what is learned"
        return tuple(replace(one, message=one.message + left, hint=hint) for one in self.said)

    def with_cause(self, others: Disturbed) -> Disturbed:
        """Return what is disturbed by the one or the other, which is the first one's cause."""
        caused = bool(len(self.samples)) and np.isin(self.samples, others.samples).mean() > 0.5
        samples = np.union1d(self.samples, others.samples)
        said = others.said if caused else self.said + others.said
        return Disturbed(said, samples, self.spans + others.spans)


def find_disturbances(
    parts: Sequence[Sums],
    edges: IndexArray,
    gathered: Gathered,
    noise_std: FloatArray,
    groups: Sequence[str],
) -> Disturbed:
    """Return which stretches were disturbed, touched or with another load, and what to say.

    A person who leans on an arm, or a load that it carries for a while, is learned as part of the
    robot. Each stretch's error is compared with those of all, by a model from which the stretches
    that stand out lose their weight.

    Parameters
    ----------
    parts : sequence of Sums
        Of the rows of each stretch.
    edges : (len(parts) + 1,)
        First sample of each, and the end of the last.
    noise_std : (G,) [N·m]
        By which the groups are weighed.
    """
    used = np.array([k for k, part in enumerate(parts) if part.count.any()], dtype=np.intp)
    length = np.ptp(gathered.batch.samples.time[: gathered.split]) / len(parts)
    if len(used) < _FEWEST or length < _SHORTEST:
        return Disturbed()
    excess = _excess([parts[k] for k in used], noise_std)
    spread = np.maximum(MAD_TO_STD * np.nanmedian(np.abs(excess), axis=0), _SPREAD)
    order = np.sort(np.nan_to_num(excess / spread, nan=-np.inf), axis=1)
    several = len(groups) > 1
    certain = order[:, -1] > (_OF_SEVERAL if several else _ALONE)
    if several:
        certain |= order[:, -2] > _APART
    apart = used[_reaching(certain, order[:, -1] > _APART)]
    if not len(apart):
        return Disturbed()
    rows = excess[np.isin(used, apart)]
    group = int(np.nanargmax(np.nanmax(rows, axis=0)))
    message = "torques do not fit the rest of the recording ({where}), at worst by "
    message += f"{np.exp(np.nanmax(rows)):.0f} times its usual error"
    hint = "if the robot slipped, was touched or carried a load there, leave that out by {option}"
    subject = groups[group] if several else ""
    said = Diagnostic("disturbed", message, subject=subject, hint=hint)
    return Disturbed.of(said, gathered, edges, apart.tolist())


def _reaching(certain: BoolArray, likely: BoolArray) -> BoolArray:
    """Return what is certain (n,), and what is likely beside it: parts begin within a stretch."""
    run = np.cumsum(np.diff(likely, prepend=False) != 0)
    return certain | (likely & np.isin(run, run[certain & likely]))


def whereabouts(
    gathered: Gathered, edges: IndexArray, stretches: Sequence[int]
) -> tuple[str, str]:
    """Return when stretches between edges were, in words, and the option that leaves them out."""
    return _in_words(gathered, _spans(gathered, edges, stretches))


def _spans(gathered: Gathered, edges: IndexArray, stretches: Sequence[int]) -> list[Span]:
    """Return when stretches between edges were, those that follow each other as one."""
    spans = []
    for _, run in groupby(enumerate(stretches), lambda pair: pair[1] - pair[0]):
        own = [k for _, k in run]
        spans.append(_span(edges[own[0]], edges[own[-1] + 1] - 1, gathered))
    return spans


def _in_words(gathered: Gathered, spans: Sequence[Span]) -> tuple[str, str]:
    """Return when parts were, in words, and the option that leaves them out."""
    names = gathered.names
    if len(names) > 1:
        each = (f"{start:.1f} to {end:.1f} s of {names[which]}" for which, start, end in spans)
        return ", ".join(each), "'without' in the entry of a .yaml that lists the recordings"
    option = " ".join(f"--without {start:.1f}:{end:.1f}" for _, start, end in spans)
    where = ", ".join(f"{start:.1f} to {end:.1f} s" for _, start, end in spans)
    if len(spans) > _NAMED:  # the option tells each
        where = f"{len(spans)} times from {spans[0][1]:.1f} to {spans[-1][2]:.1f} s"
    return where, option


def _excess(parts: Sequence[Sums], noise_std: FloatArray) -> FloatArray:
    """Return the log errors (n, G) of stretches above the median's; NaN without rows.

    They are zero for groups that too few stretches show.
    """
    count = np.array([part.count for part in parts])
    power = np.sum([part.square for part in parts], axis=0) / np.maximum(count.sum(axis=0), 1.0)
    seen, least = count > 0.0, np.maximum(_LEAST**2 * power, 1e-300)
    weights, share = 1.0 / np.maximum(noise_std, 1e-150) ** 2, np.ones(len(parts))
    for _ in range(_ROUNDS):
        gram, moment = weighted_sums(Sums.total(parts, share).statistics(), weights)
        size = np.sqrt(np.diagonal(gram))
        size = np.where(size > 0.0, size, 1.0)
        scaled = gram / size / size[:, None]
        scaled.flat[:: len(scaled) + 1] += _LOOSE
        base_vector = np.linalg.solve(scaled, moment / size) / size
        squares = np.array([part.residual_square(base_vector) for part in parts])
        mean = np.maximum(squares / np.maximum(count, 1.0), least)
        logs = np.where(seen, 0.5 * np.log(mean), np.nan)
        logs[:, seen.sum(axis=0) < _FEWEST] = 0.0
        excess: FloatArray = logs - np.nanmedian(logs, axis=0)
        beyond = np.nanmax(excess, axis=1) - np.log(_BOUND)
        share = np.exp(-2.0 * np.maximum(beyond, 0.0))
    return excess


def _span(first: int, last: int, gathered: Gathered) -> Span:
    """Return when samples were, from first to last."""
    which, time = int(gathered.source[first]), gathered.batch.samples.time
    own = np.flatnonzero(gathered.source == which)
    start, last = time[own[0]] - gathered.lead[which], min(last, int(own[-1]))
    # outwards to the tenths that are printed, so that no disturbed sample is left
    begin, end = np.floor(10.0 * (time[first] - start)), np.ceil(10.0 * (time[last] - start))
    return Span(which, float(begin) / 10.0, float(end) / 10.0)
