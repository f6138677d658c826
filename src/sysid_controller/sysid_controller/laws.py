# SPDX-License-Identifier: Apache-2.0
"""Control laws that turn a reference, a measurement and a model into joint torques."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from sysid_controller.dynamics import Dynamics
from sysid_controller.settings import ControllerSettings
from sysid_core.errors import ParameterError
from sysid_core.recording import FloatArray

__all__ = [
    "ComputedTorque",
    "ControlLaw",
    "FeedForward",
    "Gains",
    "LawOutput",
    "Motion",
    "felt_inertia",
    "find_gains",
    "make_law",
]


class Motion(NamedTuple):
    """A desired motion of the actuated joints: (na,) [rad], [rad/s] and [rad/s²]."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


class Gains(NamedTuple):
    """Proportional and derivative gains (na,), in the units of the law that uses them."""

    proportional: FloatArray
    derivative: FloatArray


class LawOutput(NamedTuple):
    """Torques (na,) [N·m]: the command, and the share of it that the model gives."""

    effort: FloatArray
    model: FloatArray


class ControlLaw(Protocol):
    """Turns a desired motion and a measured state into torques."""

    gains: Gains

    def __call__(
        self, dynamics: Dynamics, desired: Motion, position: FloatArray, velocity: FloatArray
    ) -> LawOutput:
        """Return the torques for a measured `position` [rad] and `velocity` [rad/s] (na,)."""


class ComputedTorque:
    """``u = Y(q, q̇, q̈_d + K_d ė + K_p e) x`` (Kolathaya et al. eq. 37).

    Parameters
    ----------
    gains : Gains
        [1/s²] and [1/s].
    measured_sign : bool
        Coulomb friction takes the sign of the measured velocity instead of the desired one.
    """

    def __init__(self, gains: Gains, *, measured_sign: bool) -> None:
        self.gains = gains
        self.measured_sign = measured_sign

    def __call__(
        self, dynamics: Dynamics, desired: Motion, position: FloatArray, velocity: FloatArray
    ) -> LawOutput:
        """Return the torques for a measured `position` [rad] and `velocity` [rad/s] (na,)."""
        acceleration = (
            desired.acceleration
            + self.gains.derivative * (desired.velocity - velocity)
            + self.gains.proportional * (desired.position - position)
        )
        sign_velocity = velocity if self.measured_sign else desired.velocity
        torque = dynamics.torque(position, velocity, acceleration, sign_velocity)
        return LawOutput(torque, torque)


class FeedForward:
    """``u = W(q_d, q̇_d, q̈_d) θ + K_p e + K_d ė`` (Zhang et al. eq. 34).

    Parameters
    ----------
    gains : Gains
        [N·m/rad] and [N·m·s/rad].
    measured_sign : bool
        Coulomb friction takes the sign of the measured velocity instead of the desired one.
    """

    def __init__(self, gains: Gains, *, measured_sign: bool) -> None:
        self.gains = gains
        self.measured_sign = measured_sign

    def __call__(
        self, dynamics: Dynamics, desired: Motion, position: FloatArray, velocity: FloatArray
    ) -> LawOutput:
        """Return the torques for a measured `position` [rad] and `velocity` [rad/s] (na,)."""
        sign_velocity = velocity if self.measured_sign else desired.velocity
        model = dynamics.torque(*desired, sign_velocity)
        feedback = self.gains.proportional * (
            desired.position - position
        ) + self.gains.derivative * (desired.velocity - velocity)
        return LawOutput(model + feedback, model)


def _per_joint(values: tuple[float, ...], default: FloatArray, name: str) -> FloatArray:
    if len(values) not in (1, len(default)):
        raise ParameterError(
            f"{name} must have 1 or {len(default)} numbers, one per actuated joint, "
            f"got {len(values)}"
        )
    given = np.broadcast_to(np.asarray(values, dtype=float), default.shape)
    return np.where(given > 0.0, given, default)


def felt_inertia(inertia: FloatArray) -> FloatArray:
    """Return what each joint feels while the others are free to give way, ``1 / (M⁻¹)ⱼⱼ`` (na,).

    The diagonal of M is what it feels while they are locked, up to 30 times as much in an arm.
    Gains in proportion to that would give coupled joints several times the bandwidth that was
    asked for, more than delays bear.

    Parameters
    ----------
    inertia : (na, na) [kg·m²]
        Joint-space inertia M, rotors included.
    """
    felt: FloatArray = 1.0 / np.diag(np.linalg.inv(inertia))
    return felt


def find_gains(settings: ControllerSettings, inertia: FloatArray) -> Gains:
    """Return the gains of the chosen law.

    Open ones follow from bandwidth ω and damping ratio ζ: ``ω²`` and ``2ζω``, in feed forward
    times the inertia that each joint feels; see `felt_inertia`.

    Parameters
    ----------
    settings : ControllerSettings
    inertia : (na,) [kg·m²]
        What each joint typically feels.

    Raises
    ------
    ParameterError
        If the number of gains is neither one nor that of the joints.
    """
    scale = inertia if settings.mode == "feed_forward" else np.ones_like(inertia)
    omega, zeta = settings.bandwidth, settings.damping_ratio
    return Gains(
        _per_joint(settings.kp, omega**2 * scale, "kp"),
        _per_joint(settings.kd, 2.0 * zeta * omega * scale, "kd"),
    )


def make_law(settings: ControllerSettings, inertia: FloatArray) -> ControlLaw:
    """Return the control law that the settings choose; see `find_gains`."""
    gains = find_gains(settings, inertia)
    law = FeedForward if settings.mode == "feed_forward" else ComputedTorque
    return law(gains, measured_sign=settings.friction_velocity == "measured")
