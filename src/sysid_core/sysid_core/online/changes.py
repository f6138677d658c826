# SPDX-License-Identifier: Apache-2.0
"""Tells whether a robot changed, and by what: a load, or the friction or gain of a joint."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import Regression
from sysid_core.online.innovations import Evidence, Innovations, Noise, solvable
from sysid_core.parameters import FRICTION_TERMS
from sysid_core.priors import default_prior

__all__ = [
    "CERTAIN",
    "SCALES",
    "Change",
    "ChangeTest",
    "Verdict",
    "describe",
    "is_usual",
    "log_odds",
]

_FALSE_ALARMS = 1.0 / 36000.0
"""Rate at which a robot that nothing happens to may be thought changed: once in 10 h [1/s]."""

_LOOKS = 10.0
"""Looks per second that are not the same look again: some windows, the shortest of 0.2 s [1/s]."""

CERTAIN = float(np.log(_LOOKS / _FALSE_ALARMS))
"""Log Bayes factor from which a change is certain. Where nothing changed, the mean of the Bayes
factor is one, so it exceeds A in one look of A at most (Ville 1939; Robbins 1970)."""

_CLEAR = 3.0
"""Log odds by which the likelier of two explanations must win: twenty to one."""

_RISE = 2.0
"""Factor by which errors must rise to be worth a word when nothing explains them [-]."""

_DEGREES = 50.0
"""Independent rows that the usual variance is as good as: errors are not Gaussian, and a motion
that is new has larger ones, so that a Student's distribution stands for them [-]."""

_GAIN_STD = 0.5
"""Change of a joint's gain thought likely, where there is one; a limp joint's is −1 [-]."""

SCALES = (1.0, 0.25)
"""Sizes of a load that are thought likely, as shares: a small one would drown in what a wide
prior costs [-]."""

_LIMP = 0.3
"""Share of its torque below which a joint that changed is called limp [-]."""


class Change(NamedTuple):
    """One explanation of the innovations."""

    kind: str  # ``payload``, ``friction``, ``gain`` or ``frictions`` (of all joints together)
    subject: str  # The joint; empty: none in particular
    columns: IndexArray  # (k,) its coefficients
    std: FloatArray  # (k,) their size that is thought likely


class Verdict(NamedTuple):
    """What the innovations of a window say; made only where something changed."""

    best: Change  # The likeliest explanation
    value: FloatArray  # (k,) its coefficients
    odds: float  # Its log Bayes factor against no change
    clear: bool  # Whether a load or a joint changed for certain: nothing else comes near it
    named: bool  # Whether it is also clear what of the joint changed

    @property
    def is_load(self) -> bool:
        """Whether a load came or went for certain."""
        return self.clear and self.best.kind == "payload"


def log_odds(explained: float, cost: float, square: float, count: float) -> float:
    """Return the log Bayes factor of what explains so much of the square of so many rows."""
    total = _DEGREES + square
    left = max(total - explained, _DEGREES)
    return 0.5 * (_DEGREES + count) * float(np.log(total / left)) - cost


def is_usual(square: FloatArray, count: FloatArray, noise: Noise) -> bool:
    """Tell whether errors of so many rows (G,), Σe² (G,) [N²·m²], are no larger than usual ones.

    Nothing is then found in them: that a model is not known for certain only explains more.
    """
    whole, rows = noise.independent(square, count)
    return log_odds(whole, 0.0, whole, rows) < CERTAIN


class ChangeTest:
    """Compares explanations of the innovations by their Bayes factors.

    A load of likely size (10,) adds to the base parameters what the map (b, 10) makes of it.
    """

    def __init__(self, regression: Regression, load_map: FloatArray, load_std: FloatArray) -> None:
        robot, layout = regression.robot, regression.layout
        actuated = np.flatnonzero(robot.actuated)
        prior = default_prior(robot)
        terms = [np.arange(layout.size)[layout.term(term)][actuated] for term in FRICTION_TERMS]
        friction = np.stack(terms, axis=1)
        free = np.abs(regression.base.mapping).sum(axis=0) > 0.0
        likely = prior.scalar_std.copy()
        likely[layout.nonnegative] *= prior.mean[layout.nonnegative]
        columns = regression.base.mapping[:, friction.ravel()]
        self._directions = np.hstack([load_map, columns])
        self._gains = regression.per_joint
        load = np.arange(len(load_std))
        self.changes = [Change("payload", "", load, scale * load_std) for scale in SCALES]
        first = len(load)
        width = friction.shape[1]
        for j, (joint, where) in enumerate(zip(robot.actuated_names, friction, strict=True)):
            usable = free[where] & (likely[where] > 0.0)
            index = first + width * j + np.flatnonzero(usable)
            self.changes.append(Change("friction", joint, index, likely[where[usable]]))
        every = np.concatenate([change.columns for change in self.changes[len(SCALES) :]])
        std = np.concatenate([change.std for change in self.changes[len(SCALES) :]])
        if self._gains:
            start = self._directions.shape[1]
            self.changes += [
                Change("gain", joint, np.array([start + j]), np.array([_GAIN_STD]))
                for j, joint in enumerate(robot.actuated_names)
            ]
        self.changes.append(Change("frictions", "", every, std))
        self._alike = []
        for width in {len(change.columns) for change in self.changes}:
            which = [i for i, change in enumerate(self.changes) if len(change.columns) == width]
            own = [self.changes[i] for i in which]
            stacked = np.stack([one.columns for one in own]), np.stack([one.std for one in own])
            self._alike.append((which, *stacked))

    @solvable("the test for changes")
    def __call__(self, innovations: Innovations) -> Verdict | None:
        """Judge the innovations of a window; None where nothing changed for certain."""
        size = innovations.square, innovations.count
        if log_odds(innovations.square, 0.0, *size) < CERTAIN:
            return None
        evidence = innovations.evidence(self._directions, gains=self._gains)
        odds = np.empty(len(self.changes))
        for which, columns, std in self._alike:
            each = zip(*evidence.explained_each(columns, std), strict=True)
            odds[which] = [log_odds(*one, *size) for one in each]
        first = int(np.argmax(odds))
        best = self.changes[first]
        ahead = [(odds[first] - o, c) for o, c in zip(odds, self.changes, strict=True)]
        rivals = [(lead, c) for lead, c in ahead if c[:2] != best[:2]]
        named = min(lead for lead, _ in rivals) >= _CLEAR
        elsewhere = [lead for lead, c in rivals if not best.subject or c.subject != best.subject]
        clear = bool(odds[first] >= CERTAIN and min(elsewhere) >= _CLEAR)
        if not (clear or innovations.square > _RISE**2 * innovations.count):
            return None
        return Verdict(best, _mean(evidence, best), float(odds[first]), clear, bool(named))


def _mean(evidence: Evidence, change: Change) -> FloatArray:
    own = evidence.select(change.columns)
    precision = own.information + np.diag(1.0 / change.std**2)
    return np.asarray(np.linalg.solve(precision, own.moment))


def describe(verdict: Verdict, *, lasting: bool) -> Diagnostic:
    """Name a change that is none of the load; its cause only where it lasts."""
    joint, kept = verdict.best.subject, "no payload explains the torque errors"
    kind = verdict.best.kind if verdict.clear and lasting else ""
    if kind and not verdict.named:
        message = f"its gain or its friction changed; {kept}"
        return Diagnostic("joint_changed", message, subject=joint, hint="look at the joint")
    if kind == "gain":
        left = 1.0 + float(verdict.value[0])
        if left < _LIMP:
            message = f"its torque is missing; {kept}"
            return Diagnostic("joint_limp", message, subject=joint, hint="look at its drive")
        message = f"its torque is {left:.2f} of what it was; {kept}"
        return Diagnostic("gain_changed", message, subject=joint, hint="look at its torque's gain")
    if kind == "friction":
        message = f"its friction changed; {kept}"
        return Diagnostic("friction_changed", message, subject=joint, hint="look at the joint")
    return Diagnostic(
        "torque_errors_rose",
        "the torque errors rose and no payload explains them",
        hint="look at friction, sensors and contacts",
    )
