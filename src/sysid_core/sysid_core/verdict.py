# SPDX-License-Identifier: Apache-2.0
"""What about an identification is implausible, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import ModelError
from sysid_core.robot import Robot
from sysid_core.robot.plausibility import mass_factor
from sysid_core.scores import WORSE, Curve, Scores

__all__ = ["implausible_results", "require_explained", "require_uncontradicted"]

_FAR_OFF = -8.0
"""R² at which the nominal error is three times the torque: no friction that a URDF lacks does
that."""
_BEYOND_LIMIT = 1.5
"""Share of the effort limit that an identified model may predict where less was measured."""
_OVERFIT = 2.0
"""Ratio of held-out to learned errors from which the parts differ."""
_ODD_MASS = 1.3
"""Factor of the total mass that hardly any tool, cable or load makes."""
_CERTAIN = 3.0
"""Standard deviations by which a mass must lie beyond it."""
_UNITS = "check 'effort.gain' and the sign of its effort, or that the URDF is this robot's"


def implausible_results(
    robot: Robot,
    parameters: FloatArray,
    mass_std: float,
    train: Scores,
    held: Scores | None,
    curves: Sequence[Curve],
) -> Iterator[Diagnostic]:
    """Say what is implausible about identified parameters (p,) and what they predict.

    `mass_std` [kg] is the standard deviation of their total mass.
    """
    yield from _errors(train, held)
    judged = train if held is None else held
    for joint, r2 in zip(judged.joints, judged.r2_nominal, strict=True):
        if r2 < _FAR_OFF:
            message = f"the nominal model is far off its efforts, R² {r2:.3g}"
            yield Diagnostic("far_off", message, subject=joint, hint=_UNITS)
    for joint, r2 in zip(judged.joints, judged.r2_identified, strict=True):
        if r2 < 0.0:
            message = f"its efforts contradict the model, R² {r2:.2g} after identification"
            yield Diagnostic("contradiction", message, subject=joint, hint=_UNITS)
    yield from _beyond_limits(robot, curves)
    factor, mass = mass_factor(robot, parameters), float(parameters[robot.layout.masses].sum())
    doubt = _CERTAIN * mass_std * abs(factor / mass)
    if factor - doubt > _ODD_MASS or factor + doubt < 1.0 / _ODD_MASS:
        message = f"the identified total mass is {factor:.3g} times the description's"
        hint = "unless it carries a load, check effort.gain, the odometry and the URDF's masses"
        yield Diagnostic("total_mass", message, hint=hint)


def require_explained(judged: Scores, override: str) -> None:
    """Refuse a model that explains the torques of most joints by nothing, as nominal ones did.

    Raises
    ------
    ModelError
        If it errs by as much as the nominal model, and by more than the torques at most joints;
        `override` names what lets it pass.
    """
    if judged.improvement < WORSE and np.nanmedian(judged.r2_identified) < 0.0:
        raise ModelError(
            "the identified model explains the torques of most joints no better than none would "
            f"(median R² {np.nanmedian(judged.r2_identified):.2g}): check the efforts' unit and "
            "sign ('effort.gain'), the joints' order, and that the URDF is this robot's, or "
            f"{override}"
        )


def require_uncontradicted(found: Diagnostic | None, override: str) -> None:
    """Refuse a model of a robot that torques show to be described wrongly.

    Raises
    ------
    ModelError
        If something was found; `override` names what lets it pass.
    """
    if found is not None:
        raise ModelError(f"{found}, or {override}")


def _errors(train: Scores, held: Scores | None) -> Iterator[Diagnostic]:
    judged = train if held is None else held
    for j, joint in enumerate(judged.joints):
        nominal, identified = judged.rmse_nominal[j], judged.rmse_identified[j]
        if identified > nominal * WORSE:
            message = (
                "the identified model predicts worse than the nominal one "
                f"({identified:.3g} against {nominal:.3g} N·m)"
            )
            yield Diagnostic("worse", message, subject=joint)
        elif held is not None and identified > _OVERFIT * train.rmse_identified[j]:
            message = (
                f"held-out error is {identified:.3g} N·m against {train.rmse_identified[j]:.3g} "
                "N·m where it was learned: the parts differ in motion, or friction changes"
            )
            yield Diagnostic("held_out", message, subject=joint)


def _beyond_limits(robot: Robot, curves: Sequence[Curve]) -> Iterator[Diagnostic]:
    limits = dict(zip(robot.joint_names, robot.limits.effort, strict=True))
    for curve in curves:
        limit = float(limits.get(curve.joint, np.inf))
        predicted = float(np.abs(curve.identified).max(initial=0.0))
        measured = float(np.abs(curve.measured).max(initial=0.0))
        if predicted > _BEYOND_LIMIT * max(limit, measured):
            yield Diagnostic(
                "beyond_effort_limit",
                f"predicts up to {predicted:.3g} N·m, beyond its effort limit of {limit:.3g} N·m",
                subject=curve.joint,
                hint="lower --cutoff, or record a livelier motion",
            )
