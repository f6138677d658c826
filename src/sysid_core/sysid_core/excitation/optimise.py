# SPDX-License-Identifier: Apache-2.0
"""Designs motions within a robot's limits that tell as much as possible about its parameters."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.estimate_file import EstimateFile
from sysid_core.excitation.design import CHECK_RATE, Design, ExciteConfig
from sysid_core.excitation.fourier import FourierMotion, States
from sysid_core.excitation.information import Information
from sysid_core.excitation.limits import MotionLimits
from sysid_core.excitation.standing import StandingDesign, StandingMotion
from sysid_core.robot.clearance import NOTHING
from sysid_core.robot.model import Robot

__all__ = ["Excitation", "excite"]

_RATE = 20.0  # Rate at which motions are compared [Hz]
_BANDWIDTH = 10.0
"""Of data whose cut-off is not known [Hz]; samples at twice of it are independent."""
_RANDOM = 15  # Random motions that the result is compared with
_STANDING = 40  # Random motions of a standing robot, of which the best is taken


@dataclass(frozen=True)
class Excitation:
    """A designed motion."""

    motion: FourierMotion | StandingMotion
    moving: tuple[str, ...]  # Joints that move
    limits: MotionLimits
    condition: float  # Condition number of the base regressor, columns scaled to unit norm
    random_condition: float  # Median of the same for random motions within the same limits
    sharpness: float
    """By what factor parameters come out more exactly than from those (geometric mean over base
    parameters, median over motions)."""
    usage: dict[str, FloatArray]  # Largest share (nj,) [-] of each limit that the motion uses
    lowest: float  # [m] least height of any joint's frame and of the tool


def excite(
    robot: Robot,
    limits: MotionLimits,
    config: ExciteConfig | None = None,
    progress: Callable[[str, float], None] | None = None,
    *,
    earlier: Sequence[States] = (),
    estimate: EstimateFile | None = None,
) -> Excitation:
    """Design an exciting motion: a Fourier series of greatest information within the limits.

    The geometric mean of the base parameters' variances is made as small as a search from several
    random starts finds it (cf. Swevers et al. 1997, who take the determinant); what still leaves
    the limits afterwards is scaled down, so that the result always keeps them. A robot that stands
    on its feet moves its base over them.

    Parameters
    ----------
    limits : MotionLimits
        Of the actuated joints.
    earlier : sequence of States
        Motions that were recorded already: this one is to tell what they did not.
    estimate : EstimateFile, optional
        What was identified already: this motion is to tell what that leaves open.

    Raises
    ------
    ModelError
        If the robot's base floats, and not over three feet or more.
    ParameterError
        If no motion fits the limits.
    """
    config = config or ExciteConfig()
    if robot.floating:
        if earlier or estimate is not None:
            raise ParameterError("a standing robot's motions are designed without earlier ones")
        return _excite_standing(robot, limits, config, progress)
    information = _known(robot, config, earlier, estimate)
    rng = np.random.default_rng(config.seed)
    design = Design(information, limits, config)
    compared = [design.random(rng) for _ in range(_RANDOM)]

    def gained(motion: FourierMotion) -> FloatArray:
        return information.gained(motion.states(motion.times(_RATE)))

    told = [gained(motion) for motion in compared]
    merits = [information.merit(M) for M in told]
    order = np.argsort(merits)[::-1]
    best, most, sharpest = compared[order[0]], merits[order[0]], told[order[0]]
    for motion in _improved(design, [compared[k] for k in order], progress):
        if information.merit(found := gained(motion)) > most:
            best, most, sharpest = motion, information.merit(found), found
    states = best.states(best.times(CHECK_RATE))
    return Excitation(
        best,
        tuple(robot.actuated_names[k] for k in information.moving),
        limits,
        information.condition(sharpest),
        float(np.median([information.condition(M) for M in told])),
        float(np.median([information.sharpness(sharpest, M) for M in told])),
        limits.usage(states, information.demands(states).torque),
        information.lowest(states),
    )


def _excite_standing(
    robot: Robot,
    limits: MotionLimits,
    config: ExciteConfig,
    progress: Callable[[str, float], None] | None,
) -> Excitation:
    """Return the best of some motions of a robot that stands on its feet."""
    if config.joints is not None or config.obstacles != NOTHING or config.focus != "all":
        raise ParameterError(
            "a standing robot moves all joints of its legs: leave out joints, obstacles and focus"
        )
    design = StandingDesign(robot, limits, config.duration, config.used_harmonics)
    rng, drawn = np.random.default_rng(config.seed), []
    for number in range(_STANDING):
        drawn.append(design.random(rng))
        if progress is not None:
            progress("drawing", (number + 1) / _STANDING)
    told = [design.information(motion) for motion in drawn]
    log_det = [float(np.linalg.slogdet(M)[1]) for M in told]
    conditions = [float(np.sqrt(np.linalg.cond(M))) for M in told]
    best = int(np.argmax(log_det))
    return Excitation(
        drawn[best],
        design.moving,
        limits,
        conditions[best],
        float(np.median(conditions)),
        float(np.exp(0.5 * (log_det[best] - np.median(log_det)) / len(told[best]))),
        *design.usage(drawn[best]),
    )


def _improved(
    design: Design, starts: Sequence[FourierMotion], progress: Callable[[str, float], None] | None
) -> Iterator[FourierMotion]:
    """Yield what the search makes of one start after another, where it finds a motion."""
    steps, done = design.starts * design.iterations, 0

    def stepped(_: FloatArray) -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress("optimising", min(done / steps, 1.0))

    for number in range(design.starts):
        done = number * design.iterations
        motion = design.improved(starts[number % len(starts)], stepped)
        if motion is not None:
            yield motion


def _known(
    robot: Robot, config: ExciteConfig, earlier: Sequence[States], estimate: EstimateFile | None
) -> Information:
    """Return the information that there is before the motion."""
    information = Information(robot, config.joints, config.obstacles, config.focus)
    if estimate is not None:
        bandwidth = estimate.cutoff or _BANDWIDTH
        information.count_estimate(estimate.bare(robot), 2.0 * bandwidth * config.duration)
    for states in earlier:
        information.count(states)
    return information
