# SPDX-License-Identifier: Apache-2.0
"""Judges the newest samples by a model: are errors as usual, and is a load what changed."""

from __future__ import annotations

from dataclasses import replace

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.sums import Sums
from sysid_core.online.changes import CERTAIN, Verdict, is_usual
from sysid_core.online.colour import Colours
from sysid_core.online.innovations import Innovations, Noise
from sysid_core.online.payload import PayloadEstimator
from sysid_core.online.payload_estimate import PayloadEstimate
from sysid_core.online.payload_phases import Following
from sysid_core.online.update import ModelInUse

__all__ = ["innovations_of", "is_gone", "is_load", "judged", "with_load"]

_POSITIVE = 2.0
"""Standard deviations by which a load's mass must lie above zero [-]."""

_LEFT = 0.25
"""Share of what errors are above usual ones that a load may leave: its own friction and errors of
the gains took up to 0.17, and a change that is no load mostly leaves more [-]."""


def judged(
    estimator: PayloadEstimator, newest: Sums, model: ModelInUse, colours: Colours
) -> Verdict | None:
    """Say what changed; None where errors are as usual, or as large as a model's are at times."""
    noise, square = colours.used.noise(newest), newest.residual_square(model.base)
    if is_usual(square, newest.count, noise):
        return None
    verdict = estimator.test(innovations_of(newest, model, noise))
    if verdict is None or verdict.is_load or not colours.judging.holds(newest, square):
        return verdict
    return None


def is_load(found: PayloadEstimate, least: float, odds: float = CERTAIN) -> bool:
    """Return whether an estimate is of a load of at least so much mass [kg]."""
    heavy = found.mass > max(least, _POSITIVE * found.mass_std)
    return bool(heavy and found.odds >= odds and found.unexplained <= _LEFT)


def is_gone(estimator: PayloadEstimator, newest: Sums, carried: Following | None) -> bool:
    """Return whether samples are of the robot without a load that it carried."""
    if carried is None:
        return False
    model, noise, covariance = carried.empty
    robot = model.known.posterior[0], covariance, noise
    return estimator.is_gone(newest.statistics(), *robot, carried.load)


def with_load(estimator: PayloadEstimator, phase: Following, std: FloatArray) -> ModelInUse:
    """Return the robot with the load that is followed; `std` (p,) are the deviations to tell."""
    model = replace(phase.empty.model, std=std, identified=True)
    if not phase.attached:
        return model
    shift = estimator.base_shift(phase.load.parameters)
    return replace(
        model,
        parameters=estimator.add_to(model.parameters, phase.load.parameters),
        base=model.base + shift,
        known=model.known.moved(shift, estimator.base_doubt(phase.load)),
    )


def innovations_of(newest: Sums, model: ModelInUse, noise: Noise) -> Innovations:
    """Return the errors of a model on samples, and how far it is known."""
    return Innovations(newest.statistics(), *model.known.posterior, noise)
