# SPDX-License-Identifier: Apache-2.0
"""Motions of standing robots: the base moves by a Fourier series, all feet stay where they are."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_kinematics import BASE
from sysid_core.dynamics.open_tree import OpenTree
from sysid_core.dynamics.stance import StandingFeet
from sysid_core.errors import ModelError, ParameterError
from sysid_core.excitation.fourier import FourierMotion, States, random_motion
from sysid_core.excitation.limits import MotionLimits
from sysid_core.priors import default_prior, free_parameters
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot
from sysid_core.robot.strength import torque_scale

__all__ = ["StandingDesign", "StandingLimits", "StandingMotion", "WholeMotion", "differentiated"]

_SHIFT, _TILT = 0.5, 0.8
"""Farthest that the base goes to begin with: a share of its height, and an angle [rad]."""
_SHRINK, _SMALLEST = 0.85, 0.05
_FRICTION = 0.5  # Share of a foot's load that it may push sideways: floors hold at least that [-]
_FEWEST_FEET = 3
_RATE = 10.0  # Of the samples that motions are judged by [Hz]
_NOISE = 0.01  # Error of a torque, as a share of a joint's usual one [-]
_CHECK_RATE = 50.0
"""Rate at which the final motion is held against the limits [Hz]: ten times its frequencies."""
_STEP = 1e-3  # [s] of the differences


class WholeMotion(Protocol):
    """A motion of base and joints."""

    def times(self, rate: float) -> FloatArray:
        """Return the times (n,) [s] of the motion, both ends included, at about a rate [Hz]."""
        ...

    def whole(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return Pinocchio's q (n, nq), v and a (n, nv) at times (n,) [s]."""
        ...


def differentiated(
    model: pin.Model, configurations: Callable[[FloatArray], FloatArray], time: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return configurations (n, nq) at times (n,) [s], with their v and a (n, nv).

    These are NaN where any configuration is: the motion cannot be.
    """
    now = configurations(time)
    if not np.isfinite(now).all():
        return now, *np.full((2, len(now), model.nv), np.nan)
    before, after = (configurations(time + shift) for shift in (-_STEP, _STEP))
    gone, goes = (
        np.array([pin.difference(model, *pair) for pair in zip(*ends, strict=True)]) / _STEP
        for ends in ((before, now), (now, after))
    )
    return now, 0.5 * (gone + goes), (goes - gone) / _STEP


@dataclass(frozen=True)
class StandingMotion:
    """Joints that follow a base which shifts [m] and turns (roll, pitch, yaw [rad])."""

    feet: StandingFeet
    base: FourierMotion

    @property
    def period(self) -> float:
        """Length [s]."""
        return self.base.period

    @property
    def harmonics(self) -> int:
        """Number of harmonics of the base's motion."""
        return self.base.harmonics

    def times(self, rate: float) -> FloatArray:
        """Return the times (n,) [s] of one period, both ends included, at about a rate [Hz]."""
        return self.base.times(rate)

    def states(self, time: FloatArray) -> States:
        """Return the joints' motion at times (n,) [s]; NaN where the legs do not reach."""
        return States(*(part[:, -len(self.feet.stance.joints) :] for part in self.whole(time)))

    def whole(self, time: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return Pinocchio's q (n, nq), v and a (n, nv) of base and joints."""
        return differentiated(self.feet.kinematics.robot.model, self._configurations, time)

    def _configurations(self, time: FloatArray) -> FloatArray:
        move, start = self.base.states(time).position, self.feet.stance.pose
        turns = [pin.Quaternion(pin.rpy.rpyToMatrix(*angles)).coeffs() for angles in move[:, 3:]]
        return self.feet.configurations(np.hstack([start[:3] + move[:, :3], np.array(turns)]))


def _spread(robot: Robot) -> FloatArray:
    """Return how far parameters (p,) may lie from what is thought, one standard deviation."""
    prior, layout = default_prior(robot), robot.layout
    spread = prior.scalar_std * np.abs(prior.mean)
    spread[layout.term("offset")] = prior.scalar_std[layout.term("offset")]
    for body, std in zip(layout.bodies, prior.body_std, strict=True):
        phi = prior.mean[layout.body(body)]
        # RMS distance of the mass from the link's origin, by half the trace of its inertia
        radius = np.sqrt(0.5 * (phi[4] + phi[6] + phi[9]) / phi[0])
        spread[layout.body(body)] = std * phi[0] * radius ** np.repeat([0, 1, 2], [1, 3, 6])
    return np.where(free_parameters(robot), spread, 0.0)


class StandingLimits:
    """What joints, floor and feet bear of the motions of a standing robot.

    Raises
    ------
    ModelError
        If the robot does not stand on three legs or more, of three joints each.
    """

    def __init__(self, robot: Robot, limits: MotionLimits) -> None:
        if len(robot.description.contacts) < _FEWEST_FEET:
            raise ModelError(
                f"robot '{robot.name}' has a floating base and {len(robot.description.contacts)} "
                "feet: motions are designed for robots on a fixed base or on three feet and more"
            )
        self.robot, self.limits = robot, limits
        self.feet = StandingFeet(robot)
        self.tree = OpenTree(robot)

    def obstacle(self, motion: WholeMotion, rate: float) -> str:
        """Say what is in a motion's way; empty if nothing is."""
        q, v, a = motion.whole(motion.times(rate))
        if not np.isfinite(q).all():
            return "the reach of the legs"
        torque, forces = self.demands(q, v, a)
        for kind, shares in self._shares(q, v, a, torque).items():
            beyond = ~(shares <= 1.0)
            if beyond.any():
                return f"the {kind} limit of joint '{self.robot.actuated_names[beyond.argmax()]}'"
        sideways = np.linalg.norm(forces[:, :, :2], axis=2)
        slips = ~(sideways <= _FRICTION * forces[:, :, 2]).all(axis=0)
        if slips.any():
            return f"foot '{self.feet.kinematics.names[slips.argmax()]}', which lifts off or slips"
        return ""

    def demands(
        self, q: FloatArray, v: FloatArray, a: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return torques (n, na) [N·m], and the least forces (n, nc, 3) [N] that carry all."""
        kinematics, whole = self.feet.kinematics, self.tree.torques(q, v, a)
        every = np.ones(len(kinematics.names), dtype=bool)
        J = kinematics.held(q, every)
        JT = np.swapaxes(J, 1, 2)
        force = np.linalg.pinv(JT[:, :BASE]) @ whole[:, :BASE, None]
        torque = whole[:, BASE:] - (JT[:, BASE:] @ force)[..., 0]
        return torque[:, self.robot.actuated], force.reshape(len(q), -1, 3)

    def usage(self, motion: WholeMotion) -> tuple[dict[str, FloatArray], float]:
        """Return the largest share (na,) of each limit that a motion uses, and its least height.

        The latter [m] is that of any joint's frame above the ground.
        """
        q, v, a = motion.whole(motion.times(_CHECK_RATE))
        heights = []
        model, data = self.tree.model, self.tree.data
        for row in q:
            pin.forwardKinematics(model, data, row)
            heights.append(min(pose.translation[2] for pose in list(data.oMi)[1:]))
        return self._shares(q, v, a, self.demands(q, v, a)[0]), min(heights)

    def _shares(
        self, q: FloatArray, v: FloatArray, a: FloatArray, torque: FloatArray
    ) -> dict[str, FloatArray]:
        """Return the largest share (na,) of each limit that states and torques (n, na) use."""
        joints = self.robot.actuated
        parts = (part[:, -len(joints) :][:, joints] for part in (q, v, a))
        return self.limits.usage(States(*parts), torque)


class StandingDesign(StandingLimits):
    """Motions of a standing robot within the limits of its joints, floor and feet."""

    def __init__(
        self, robot: Robot, limits: MotionLimits, duration: float, harmonics: int
    ) -> None:
        super().__init__(robot, limits)
        self._duration, self._harmonics = duration, harmonics
        # names of the joints that move
        self.moving = tuple(robot.joint_names[k] for leg in self.feet.legs for k in leg)
        self._regression = ContactRegression(robot)
        noise = _NOISE * float(np.median(torque_scale(robot)))
        spread = self._regression.base.mapping * (_spread(robot) / noise)
        # (b, b) what is not known of the base parameters, in units of the noise
        self._unknown = spread @ spread.T

    def random(self, rng: np.random.Generator) -> StandingMotion:
        """Return a random motion, as large as the limits allow.

        Raises
        ------
        ParameterError
            If even a tiny one leaves them.
        """
        drawn = random_motion(BASE, self._duration, self._harmonics, rng)
        time = drawn.times(_RATE)
        height = self.feet.stance.height
        size = np.array([_SHIFT * height] * 3 + [_TILT] * 3) * rng.uniform(0.3, 1.0, BASE)
        drawn = drawn.scaled(size / np.abs(drawn.states(time).position).max(axis=0))
        # it begins where the robot stands
        drawn = replace(drawn, centre=drawn.centre - drawn.states(np.zeros(1)).position[0])
        share, reason = 1.0, ""
        while share > _SMALLEST:
            shrunk = replace(drawn.scaled(share), centre=share * drawn.centre)
            motion = StandingMotion(self.feet, shrunk)
            reason = self.obstacle(motion, _RATE) or self.obstacle(motion, _CHECK_RATE)
            if not reason:
                return motion
            share *= _SHRINK
        raise ParameterError(
            f"no motion of standing robot '{self.robot.name}' within the limits found; in the way "
            f"was {reason}"
        )

    def information(self, motion: StandingMotion) -> FloatArray:
        """Return ``I + M C`` (b, b): information of torques times prior covariance, in noise.

        A motion tells more where its determinant is larger (Chaloner & Verdinelli 1995).
        """
        time = motion.times(_RATE)
        q, v, a = motion.whole(time)
        joints = len(self.robot.joint_names)
        samples = Samples(
            time,
            q[:, -joints:],
            v[:, -joints:],
            a[:, -joints:],
            np.zeros((len(time), joints)),
            q[:, :7],
            v[:, :BASE],
            a[:, :BASE],
            np.ones((len(time), len(self.feet.kinematics.names)), dtype=bool),
        )
        (block,) = self._regression.rows(samples).blocks
        return np.asarray(
            np.eye(len(self._unknown)) + block.matrix.T @ block.matrix @ self._unknown
        )
