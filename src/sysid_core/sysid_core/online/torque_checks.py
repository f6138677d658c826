# SPDX-License-Identifier: Apache-2.0
"""Whether each joint's measured torque can be one: its sign, its scale, noise, standstill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.friction import FRICTION
from sysid_core.dynamics.statistics import Statistics
from sysid_core.estimation.problem import Problem
from sysid_core.online.innovations import STILL
from sysid_core.online.torque_scale import TOLERANCE, ScaleEvidence, ScalePosterior
from sysid_core.parameters import INERTIAL_TERMS

__all__ = [
    "FIT_ERROR",
    "GROSS",
    "TorqueChecks",
    "TorqueVerdict",
    "refusing",
    "stuck_torque",
    "worst",
    "wrong_scale",
]

FIT_ERROR = 0.02
"""Share of a torque that a model's error takes even where a joint's own model fits better [-]."""

_FRICTION_ERROR = 0.05
"""Share of dry friction that its least law misses over a motion, where a joint's own masses may
hide it: a fifth at low speed after Stribeck's curve, less at any other [-]."""

_LOOSE = 1e-6
"""Relative ridge that lets matrices of directions that nothing has shown be factorised [-]."""

_FEWEST = 5.0
"""Independent samples that a joint must have shown before it is judged."""

GROSS = 1.5
"""Factor that no torque constant is off by: another unit or gear is more. While the data cannot
tell such a scale from a tolerable one, it is not known [-]."""

_SHOWN = -1.0
"""Log odds of a wrong scale, against a tolerable one, below which a first model is adopted."""

_LIKELIER = 0.0
"""The same for a motion that does not show the scale: a wrong one must not be the likelier."""

_DOUBTFUL = 2.0
"""Log odds below which a scale is no more than a guess: seven to one."""

_RIVALS = 3.0
"""Log odds within which another joint is as likely to be the one that is wrong: twenty to one."""

_NAMED = float(np.log(100.0))
"""Log odds from which a scale is called wrong: once in a hundred times it is not (Ville 1939)."""

_CERTAIN = 6.0
"""Log odds from which a model in use is refused."""

_LEAST_SHARE = 0.25
"""Share of its usual torque that masses must predict for a joint, before its scale is judged: less
drowns in what a sensor or a gear may do [-]."""

_SCATTER = 0.8
"""Share of a torque's variance that no motion explains, from which on it is noise [-]."""

_LEAST_SCATTER = 0.1
"""Scatter below this share of the usual torque is no fault, whatever the motion explains [-]."""

_LEAST_FRICTION = 0.1
"""Share of a joint's torque that a friction with the wrong sign must reach to be believed: delays
between velocity and torque look like a little of it [-]."""

_FEEBLE = 1e-9
"""Share of a friction that its deviation is taken for at least, without noise [-]."""

_DEVIATIONS = 5.0
"""Standard deviations by which friction must be negative."""


class TorqueVerdict(NamedTuple):
    """What was found of one joint's torque."""

    finding: Diagnostic | None
    weight: float = -np.inf
    """Log odds of a wrong torque against a right one; inf where it is not one at all, −inf where
    nothing can be said."""
    faint: bool = False
    """Whether masses load the joint so little that this alone is no reason to refuse a model."""

    def unless(self, others: Sequence[str]) -> TorqueVerdict:
        """Return the verdict that says it may be the torque of one of other joints instead."""
        if self.finding is None or not others:
            return self
        names = " or ".join(f"{name}'s" for name in others)
        message = f"{self.finding.message}, unless {names} torque is wrong instead"
        return self._replace(finding=replace(self.finding, message=message))

    @property
    def shown(self) -> bool:
        """Whether the torque was shown to be right."""
        return bool(np.isfinite(self.weight)) and self.weight < _SHOWN


_FINE = TorqueVerdict(None)


def worst(verdicts: Mapping[int, TorqueVerdict]) -> int:
    """Return whose verdict weighs most: while one refuses, others cannot let a model pass."""
    return max(verdicts, key=lambda joint: verdicts[joint].weight)


def refusing(
    verdicts: Mapping[int, TorqueVerdict], *, in_use: bool, early: bool = False
) -> dict[int, TorqueVerdict]:
    """Return the verdicts that refuse an estimate.

    A wrong scale makes other joints look wrong, so only the likeliest is named, with those about
    as likely, and none where a torque is no measurement at all. It may be one that masses hardly
    load. Only a certainty ends a model that is in use; `early`, a scale that the data leave open
    may yet show.
    """
    least = _CERTAIN if in_use else _SHOWN if early else _LIKELIER
    found = {j: v for j, v in verdicts.items() if v.finding is not None and v.weight >= least}
    if all(verdict.faint for verdict in found.values()):
        return {}
    first = worst(found)
    most = found[first].weight
    if np.isinf(most):
        return {joint: verdict for joint, verdict in found.items() if verdict.weight == most}
    others = [v.finding for j, v in found.items() if j != first and v.weight > most - _RIVALS]
    return {first: found[first].unless(tuple(one.subject for one in others if one is not None))}


class TorqueChecks:
    """Judges the torques of joints from the statistics of their rows.

    Parameters
    ----------
    problem, tool
        See `ScaleEvidence`.
    """

    def __init__(self, problem: Problem, tool: FloatArray) -> None:
        self._scales = ScaleEvidence(problem, tool)
        self._usual = self._scales.usual
        self._speed = _places(problem, "viscous")
        self._dry = _places(problem, "coulomb")
        resisting = [term.name for term in FRICTION if term.resists or term.name == "viscous"]
        self._friction_terms = np.array([_places(problem, name) for name in resisting])
        self._constant = _places(problem, "offset")
        bodies = len(INERTIAL_TERMS) * len(problem.layout.bodies)
        self._inertial = problem.base.columns < bodies
        self.groups = problem.groups

    def judge(
        self, statistics: Statistics, correlation: FloatArray, joints: Sequence[int]
    ) -> dict[int, TorqueVerdict]:
        """Judge the torques of some joints; `correlation` (G,) is the rows' colour."""
        if not joints:
            return {}
        errors = np.array([self._own_error(statistics, g) for g in range(len(self.groups))])
        errors = np.maximum(errors, (STILL * self._usual) ** 2)
        return {
            joint: self._judge(statistics, errors, correlation, joint)
            if statistics.count[joint] >= _FEWEST * correlation[joint]
            else _FINE
            for joint in joints
        }

    def _own_error(self, statistics: Statistics, joint: int) -> float:
        """Return the mean square error [N²·m²] to expect of a joint's own model of any scale."""
        gram, count = statistics.gram[joint], float(statistics.count[joint])
        seen = np.flatnonzero(np.diagonal(gram) > 0.0)
        if count == 0.0 or not len(seen):
            return 0.0
        block, moment = gram[np.ix_(seen, seen)], statistics.moment[joint][seen]
        block.flat[:: len(seen) + 1] *= 1.0 + _LOOSE
        _, own, failed = lapack.dposv(block.T, moment, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("a joint's own model is singular")
        rest = max(float(statistics.square[joint] - moment @ own), 0.0)
        dry = float((own**2 * np.diagonal(gram)[seen])[seen == self._dry[joint]].sum())
        square = FIT_ERROR**2 * float(statistics.square[joint]) + _FRICTION_ERROR**2 * dry
        return (rest + square) / count

    def _judge(
        self, statistics: Statistics, errors: FloatArray, correlation: FloatArray, joint: int
    ) -> TorqueVerdict:
        usual, count = float(self._usual[joint]), statistics.count[joint]
        constant = self._constant[joint]
        mean = statistics.moment[joint][constant] / count if constant >= 0 else 0.0
        size = float(statistics.square[joint]) / count
        variance = max(size - mean**2, 0.0)
        if variance < (STILL * usual) ** 2:
            return stuck_torque(self.groups[joint], variance**0.5, STILL * usual)
        found = self._scales.posterior(statistics, 1.0 / (errors * correlation), joint)
        verdict = self._verdict(found, statistics, joint, variance, size)
        if verdict.finding is None:
            return verdict
        # what the likeliest scale leaves over is the model's own error, with which scales are
        # compared again: friction that no model has must not pass for one, by either errors
        left = found.residual_square(statistics, joint) / np.maximum(statistics.count, 1.0)
        errors = np.maximum(errors, left)
        found = self._scales.posterior(statistics, 1.0 / (errors * correlation), joint)
        again = self._verdict(found, statistics, joint, variance, size)
        return min(verdict, again, key=lambda either: either.weight)

    def _verdict(
        self,
        found: ScalePosterior,
        statistics: Statistics,
        joint: int,
        variance: float,
        size: float,
    ) -> TorqueVerdict:
        name, usual, g = self.groups[joint], float(self._usual[joint]), found.best
        count, gram = statistics.count[joint], statistics.gram[joint]
        rest = found.own_square(statistics, joint)
        explained = 1.0 - rest / (variance * count)
        friction, std = self._friction(found, gram, joint, float(count))
        scatter = (max(1.0 - explained, 0.0) * variance) ** 0.5
        mute = found.outside(0.0, 0.0) < _DOUBTFUL
        if mute and explained < 1.0 - _SCATTER and scatter > _LEAST_SCATTER * usual:
            return _noise(name, scatter, explained)
        wrong = _FINE
        if friction < -max(_LEAST_FRICTION * size**0.5, _DEVIATIONS * std):
            wrong = _driving(name, friction, std)
        rigid = np.where(self._inertial, found.others, 0.0)
        predicted = float(np.sqrt(max(rigid @ gram @ rigid, 0.0) / count))
        rigid = np.where(self._inertial, found.mean, 0.0)
        shown = max(float(rigid @ gram @ rigid), 0.0) * g**2
        # errors of accelerations lower a scale, at most by the share that they leave unexplained
        # (Frisch 1934: direct and reverse regression hold the true slope between them)
        least = shown / max(shown + rest, 1e-300) / TOLERANCE
        faint = predicted < _LEAST_SHARE * max(usual, size**0.5)
        odds = found.outside(least, TOLERANCE)
        if odds < 0.0:
            odds = found.outside(min(least, 1.0 / GROSS), GROSS)
        harm = 0.0 if faint else (GROSS - 1.0) * predicted
        if odds < _DOUBTFUL and harm < found.missed:
            return wrong if wrong.finding else TorqueVerdict(None, odds)  # not worth a wait
        scaled = _scaled(name, found, odds)._replace(faint=faint)
        if wrong.finding and faint:
            return wrong
        return max(wrong, scaled, key=lambda verdict: verdict.weight)

    def _friction(
        self, found: ScalePosterior, gram: FloatArray, joint: int, count: float
    ) -> tuple[float, float]:
        """Return the mean torque [N·m] of friction against the motion, and its deviation."""
        along = self._speed[joint]
        if along < 0:
            return 0.0, 1.0
        terms = self._friction_terms[:, joint]
        terms = terms[terms >= 0]
        power = np.zeros(len(found.plain))
        power[terms] = gram[along, terms] / np.sqrt(max(gram[along, along] * count, 1e-300))
        return float(power @ found.plain), found.information.deviation(power)


def _places(problem: Problem, term: str) -> list[int]:
    """Return the base parameter that each group's term is, −1 where it is none."""
    layout = problem.layout
    place = problem.base.places(np.arange(layout.size)[layout.term(term)])
    where = dict(zip(layout.joints, place.tolist(), strict=True))
    return [where.get(name, -1) for name in problem.groups]


def stuck_torque(name: str, size: float, threshold: float) -> TorqueVerdict:
    """Return the verdict on a torque that varies by a size [N·m], below a threshold [N·m]."""
    message = f"the torque varies by {size:.1e} N·m while the joint moves, below {threshold:.1e}"
    hint = "check that the driver publishes this joint's effort"
    return TorqueVerdict(Diagnostic("torque_stuck", message, subject=name, hint=hint), np.inf)


def _noise(name: str, scatter: float, explained: float) -> TorqueVerdict:
    message = (
        f"the motion explains {100.0 * max(explained, 0.0):.0f} % of the torque's variance, "
        f"below {100.0 * (1.0 - _SCATTER):.0f} %; {scatter:.2g} N·m are noise"
    )
    hint = "check the sensor, its cable and its joint's place in the message"
    return TorqueVerdict(Diagnostic("torque_noise", message, subject=name, hint=hint), np.inf)


def _driving(name: str, friction: float, std: float) -> TorqueVerdict:
    message = f"friction would drive the joint with {-friction:.2g} ± {std:.1g} N·m, above 0"
    hint = "turn the sign of this joint's effort gain"
    finding = Diagnostic("torque_sign", message, subject=name, hint=hint)
    deviations = friction / max(std, _FEEBLE * abs(friction))
    return TorqueVerdict(finding, 0.5 * deviations**2)


def _scaled(name: str, found: ScalePosterior, odds: float) -> TorqueVerdict:
    low, high = found.range
    if odds < _NAMED:
        message = (
            f"the torque is {low:.2g} to {high:.2g} times what masses and the other joints say, "
            f"not yet known to {1.0 / TOLERANCE:.2g} to {TOLERANCE:.2g}"
        )
        hint = "move this joint and its neighbours on, more widely"
        return TorqueVerdict(Diagnostic("scale_unknown", message, subject=name, hint=hint), odds)
    span = f" ({low:.2g} to {high:.2g})"
    return TorqueVerdict(wrong_scale(name, found.best, span, certain=not low < 1.0 < high), odds)


def wrong_scale(name: str, scale: float, span: str = "", *, certain: bool = True) -> Diagnostic:
    """Name a joint whose torque is so many times what it should be; `span` says how surely.

    It is not `certain` where other scales on both sides of one are as likely.
    """
    kind, cure = "torque_scale", f"divide this joint's effort gain by {scale:.2g}"
    if scale < 0.0:
        kind, cure = "torque_sign", "turn the sign of this joint's effort gain"
    said = f"{scale:.2g}{span}" if certain else f"likeliest {scale:.2g}"
    message = (
        f"the torque is {said} times what masses and the other joints say, outside "
        f"{1.0 / TOLERANCE:.2g} to {TOLERANCE:.2g}"
    )
    hint = f"check its unit, then {cure if certain else 'its sensor'}"
    return Diagnostic(kind, message, subject=name, hint=hint)
