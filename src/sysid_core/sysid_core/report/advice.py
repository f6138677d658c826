# SPDX-License-Identifier: Apache-2.0
"""What the findings of an identification ask the user to do next."""

import numpy as np

from sysid_core.arrays import BoolArray
from sysid_core.identification import Identification
from sysid_core.robot import Robot

__all__ = ["advice"]

_POOR_R2 = 0.8
_MUCH_PRIOR = 0.25
_ILL_CONDITIONED = 1e3


def advice(found: Identification, folder: str = "DIR") -> list[str]:
    """Return the next steps, the most urgent first."""
    steps = []
    judged = found.train if found.validation is None else found.validation
    estimate, robot = found.estimate, found.robot
    if float(np.min(estimate.consistency)) <= 0.0:
        steps.append(
            "Some bodies are impossible, so the model must not be simulated or controlled with: "
            "identify with --method entropic or sdp."
        )
    if found.validation is None:
        steps.append(
            "Nothing was held out, so nothing shows that the model predicts: identify with "
            "--train 0.7, or run 'sysid validate' on another recording."
        )
    worse = _named(judged.joints, judged.rmse_identified > judged.rmse_nominal)
    if worse:
        steps.append(
            f"The nominal model predicts {worse} better: record a motion that differs "
            "less from the one that the model is for, or trust the URDF more (prior.relative_std)."
        )
    poor = _named(judged.joints, judged.r2_identified < _POOR_R2)  # false for NaN
    if poor:
        steps.append(
            f"R² is below {_POOR_R2} at {poor}: look at the residuals. Steps at "
            "changes of direction mean friction beyond Coulomb and viscous; residuals that follow "
            "the torque mean a wrong effort gain; without any pattern, look for joints that are "
            "recorded under each other's names."
        )
    share = float(np.mean(estimate.determined < 0.5))
    # ill-conditioned by scales alone, as of a lift beside a wrist, needs no other motion
    lacking = share > 0.0 and estimate.condition > _ILL_CONDITIONED
    if not found.loads and (share > _MUCH_PRIOR or lacking):
        steps.append(
            f"The data leave {share:.0%} of the base parameters to the prior: record "
            f"{_motion(robot)}."
        )
    if found.signals.sensor_rate < 10.0 * found.signals.cutoff / 4.0:
        steps.append(
            f"Sensors at {found.signals.sensor_rate:.3g} Hz are slow for this motion: publish "
            "joint states at 100 Hz or more."
        )
    steps.append(
        f"Check the model on another recording: sysid validate {folder}/estimate.json DATA. Give "
        f"{folder}/identified.yaml to the nodes as their robot, and {robot.name}.urdf where a "
        "URDF is wanted; armature, offsets and further friction have no place in that."
    )
    return steps


def _named(joints: tuple[str, ...], chosen: BoolArray) -> str:
    return ", ".join(joint for joint, is_one in zip(joints, chosen, strict=True) if is_one)


def _motion(robot: Robot) -> str:
    """Return what to record to learn more."""
    if robot.floating:
        return (
            "more kinds of motion: swaying, tilting and turning over standing feet, other gaits "
            "and speeds, each foot lifted and swung"
        )
    if robot.passive.any() or robot.linked:
        return "a longer and quicker motion of all joints"
    return (
        f"an optimised trajectory ('sysid excite {robot.name}'), or a longer and quicker motion "
        "of all joints"
    )
