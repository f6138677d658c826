# SPDX-License-Identifier: Apache-2.0
"""Designs motions within a robot's limits that tell as much as possible about its parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.excitation.design import CHECK_RATE, Design, ExciteConfig
from sysid_core.excitation.fourier import FourierMotion, States
from sysid_core.excitation.information import Information
from sysid_core.excitation.limits import MotionLimits
from sysid_core.robot.model import Robot

__all__ = ["Excitation", "excite"]

_RATE = 50.0
"""Rate at which motions are compared [Hz]."""
_RANDOM = 15
"""Random motions that the result is compared with."""


@dataclass(frozen=True)
class Excitation:
    """A designed motion.

    Attributes
    ----------
    motion : FourierMotion
    limits : MotionLimits
    condition : float
        Condition number of the base regressor, columns scaled to unit norm.
    random_condition : float
        Median of the same for random motions within the same limits.
    sharpness : float
        By what factor parameters come out more exactly than from those (geometric mean over base
        parameters, median over motions).
    usage : dict[str, FloatArray]
        Largest share (nj,) [-] of each kind of limit that the motion uses.
    lowest : float [m]
        Least height of any joint's frame and of the tool.
    """

    motion: FourierMotion
    limits: MotionLimits
    condition: float
    random_condition: float
    sharpness: float
    usage: dict[str, FloatArray]
    lowest: float


def excite(
    robot: Robot,
    limits: MotionLimits,
    config: ExciteConfig | None = None,
    progress: Callable[[str, float], None] | None = None,
    *,
    earlier: Sequence[States] = (),
) -> Excitation:
    """Design an exciting motion: a Fourier series of greatest information within the limits.

    The determinant of the base regressor's information (D-optimality, Swevers et al. 1997), less a
    share of its condition number, is maximised from several random starts; what still leaves the
    limits afterwards is scaled down, so that the result always keeps them.

    Parameters
    ----------
    robot : Robot
    limits : MotionLimits
        Of the actuated joints.
    config : ExciteConfig, optional
    progress : callable, optional
    earlier : sequence of States
        Motions that were recorded already: this one is to tell what they did not.

    Raises
    ------
    ModelError
        If the robot's base floats.
    ParameterError
        If no motion fits the limits.
    """
    config = config or ExciteConfig()
    information = Information(robot, config.joints, apart=config.apart)
    for states in earlier:
        information.count(states)
    rng = np.random.default_rng(config.seed)
    design = Design(information, limits, config)
    compared = [design.random(rng) for _ in range(_RANDOM)]
    times = compared[0].times(_RATE)

    def merit(motion: FourierMotion) -> float:
        return information.merit(motion.states(times))

    ranked = sorted(compared, key=merit, reverse=True)
    steps, done = config.starts * config.iterations, 0

    def stepped(_: FloatArray) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress("optimising", min(done / steps, 1.0))

    best = ranked[0]
    for number in range(config.starts):
        done = number * config.iterations
        motion = design.improved(ranked[number % len(ranked)], stepped)
        if motion is not None and merit(motion) > merit(best):
            best = motion
    return _result(information, limits, best, compared)


def _result(
    information: Information,
    limits: MotionLimits,
    motion: FourierMotion,
    compared: list[FourierMotion],
) -> Excitation:
    states = motion.states(motion.times(CHECK_RATE))
    demands = information.demands(states)
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    usage = {
        "position": np.abs(states.position - middle).max(axis=0) / half,
        "velocity": np.abs(states.velocity).max(axis=0) / limits.velocity,
        "acceleration": np.abs(states.acceleration).max(axis=0) / limits.acceleration,
        "effort": np.abs(demands.torque).max(axis=0) / limits.effort,
    }
    lowest = float(demands.height.min()) if demands.height.size else np.nan
    found, *others = (m.states(m.times(_RATE)) for m in (motion, *compared))
    conditions = [information.condition(states) for states in others]
    sharper = [information.sharpness(found, states) for states in others]
    return Excitation(
        motion,
        limits,
        information.condition(found),
        float(np.median(conditions)),
        float(np.median(sharper)),
        usage,
        lowest,
    )
