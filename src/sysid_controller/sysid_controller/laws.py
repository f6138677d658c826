# SPDX-License-Identifier: Apache-2.0
"""Control laws that turn a reference, a measurement and a model into joint torques."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.select import Dynamics
from sysid_core.errors import ParameterError
from sysid_core.excitation.fourier import States
from sysid_core.robot.limits import Limits

__all__ = [
    "LAWS",
    "ComputedTorque",
    "ControlLaw",
    "FeedForward",
    "Gains",
    "LawOutput",
    "check_gains",
    "find_gains",
]

# Sampled feedback with a period of delay is stable to twice these, on a robot as the model says.
_MOST_DAMPING = 0.5  # [-] of the rate: derivative gain per inertia [1/s]
_MOST_BANDWIDTH = 0.25  # [-] of the rate: root of the proportional gain per inertia [rad/s]
# Nominal inertias may lack rotors; gains as weak as these are allowed whatever they say.
_FULL_TORQUE_ERROR = 0.1  # [rad] of position error that all of a joint's torque answers


class Gains(NamedTuple):
    """Proportional and derivative gains (na,), in the units of the law that uses them."""

    proportional: FloatArray
    derivative: FloatArray

    def feedback(self, error: FloatArray, rate: FloatArray) -> FloatArray:
        """Return ``K_p e + K_d ė`` (na,) for gains (na,) of each joint."""
        return self.proportional * error + self.derivative * rate

    def joined(self, other: Gains) -> Gains:
        """Return the sums of the gains."""
        return Gains(self.proportional + other.proportional, self.derivative + other.derivative)


class LawOutput(NamedTuple):
    """Torques (na,) [N·m]: the command, and the share of it that the model gives."""

    effort: FloatArray
    model: FloatArray


_NONE = Gains(np.zeros(1), np.zeros(1))


class ControlLaw:
    """Turns a desired motion and a measured state into torques; see `LAWS`.

    `inner` gains [1/s²; 1/s] are accelerations per error and go through the model, `outer` ones
    [N·m/rad; N·m·s/rad] are torques beside it. The model is looked at where the robot is, or
    `ahead`, where it should be. Friction is that of the desired velocity: what is compensated at
    the measured one is damping taken from the robot, and where the model has too much of it, the
    joint would run away.
    """

    def __init__(self, inner: Gains, outer: Gains, *, ahead: bool) -> None:
        self._inner, self._outer, self._ahead = inner, outer, ahead

    def __call__(
        self, dynamics: Dynamics, desired: States, position: FloatArray, velocity: FloatArray
    ) -> LawOutput:
        """Return the torques for a measured `position` [rad] and `velocity` [rad/s] (na,)."""
        error, rate = desired.position - position, desired.velocity - velocity
        acceleration = desired.acceleration + self._inner.feedback(error, rate)
        dynamics.friction.follow(desired.position)
        state = desired[:2] if self._ahead else (position, velocity)
        model = dynamics.torque(*state, acceleration, desired.velocity)
        return LawOutput(model + self._outer.feedback(error, rate), model)

    def feedback(self, inertia: FloatArray, error: FloatArray, rate: FloatArray) -> FloatArray:
        """Return the feedback torque (na,) [N·m] while the model gives none.

        `inertia` (na, na) [kg·m²] turns accelerations that gains ask for into torques.
        """
        torque = self._outer.feedback(error, rate)
        return torque + inertia @ self._inner.feedback(error, rate)


class ComputedTorque(ControlLaw):
    """``u = Y(q, q̇, q̈_d + K_d ė + K_p e) x`` (Kolathaya et al. eq. 37), gains in 1/s² and 1/s."""

    def __init__(self, gains: Gains) -> None:
        super().__init__(gains, _NONE, ahead=False)


class FeedForward(ControlLaw):
    """``u = W(q_d, q̇_d, q̈_d) θ + K_p e + K_d ė`` (Zhang et al. eq. 34).

    Open gains are accelerations per error, and go through the model: their part of K_p and K_d is
    M(q_d) times them. Diagonals of M would do no good there: they give coupled joints many times
    the bandwidth that was asked for, more than delays bear. Gains are [N·m/rad] and [N·m·s/rad],
    open ones [1/s²] and [1/s]; each is zero where the other is given.
    """

    def __init__(self, gains: Gains, open_gains: Gains = _NONE) -> None:
        super().__init__(open_gains, gains, ahead=True)


def _per_joint(values: tuple[float, ...], count: int, name: str) -> FloatArray:
    if len(values) not in (1, count):
        raise ParameterError(
            f"{name} must have 1 or {count} numbers, one per actuated joint, got {len(values)}"
        )
    return np.array(np.broadcast_to(np.asarray(values, dtype=float), count))


def find_gains(config: ControllerConfig, count: int) -> tuple[Gains, Gains]:
    """Return the gains that are given, zero where open, and the open ones, zero where given.

    Open ones follow from bandwidth ω and damping ratio ζ: ``ω²`` [1/s²] and ``2ζω`` [1/s].

    Raises
    ------
    ParameterError
        If the number of gains is neither one nor that of the joints.
    """
    omega, zeta = config.bandwidth, config.damping_ratio
    given = Gains(_per_joint(config.kp, count, "kp"), _per_joint(config.kd, count, "kd"))
    return given, Gains(
        np.where(given.proportional > 0.0, 0.0, omega**2),
        np.where(given.derivative > 0.0, 0.0, 2.0 * zeta * omega),
    )


def check_gains(
    config: ControllerConfig, joint_names: Sequence[str], inertia: FloatArray, limits: Limits
) -> None:
    """Refuse gains that no robot bears at the sampling rate.

    Those in torque are judged by what each joint feels of the nominal inertia (na, na) [kg·m²].

    Raises
    ------
    ParameterError
        If a gain is too large; the message names joint, gain and bound.
    """
    given, open_gains = find_gains(config, len(joint_names))
    most = Gains(
        np.full(len(joint_names), (_MOST_BANDWIDTH * config.rate) ** 2),
        np.full(len(joint_names), _MOST_DAMPING * config.rate),
    )
    _check_gains(joint_names, open_gains, most, "follow from bandwidth and damping_ratio")
    if config.mode == "feed_forward":
        felt = 1.0 / np.diag(np.linalg.inv(inertia))
        most = Gains(
            np.maximum(most.proportional * felt, limits.effort / _FULL_TORQUE_ERROR),
            np.maximum(most.derivative * felt, limits.effort / limits.velocity),
        )
    _check_gains(joint_names, given, most, "are set")


def _check_gains(joint_names: Sequence[str], gains: Gains, most: Gains, source: str) -> None:
    for name, values, bounds in zip(("kp", "kd"), gains, most, strict=True):
        if (values > bounds).any():
            j = int(np.argmax(values > bounds))
            raise ParameterError(
                f"{name} of {values[j]:.4g} for joint '{joint_names[j]}' is more than the "
                f"{bounds[j]:.4g} that its inertia bears at this rate; gains {source}"
            )


LAWS: Mapping[str, Callable[[ControllerConfig, int], ControlLaw]] = {
    "computed_torque": lambda *settings: ComputedTorque(Gains.joined(*find_gains(*settings))),
    "feed_forward": lambda *settings: FeedForward(*find_gains(*settings)),
}
"""Name of a law, which the setting `mode` chooses → its maker from settings and joint count."""
