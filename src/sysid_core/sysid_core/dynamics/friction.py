# SPDX-License-Identifier: Apache-2.0
"""The friction law: one table of terms, from which layout, columns, torque and priors follow.

A new term is a new entry of `FRICTION`. One that depends on more than `JointMotion` holds adds a
field there and its value in `OpenTree`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.presliding import deflected

__all__ = ["FRICTION", "FrictionLaw", "FrictionTerm", "JointMotion", "JointScale", "smooth_sign"]

_FRICTION_SHARE = 0.02
"""Friction thought likely where nobody gives any, as a share of the joint's torque scale [-]."""
_ARMATURE_SHARE = 0.1
"""The same for a rotor's inertia, as a share of the inertia that the joint moves [-]."""
_MOST_LOAD = 0.3
"""Most friction per load [-]: gears that lose more lock themselves when driven from outside."""
_ARMATURE_PER_TORQUE = 1e-3
"""Its least value per torque scale [s²]: strong motors have large rotors whatever they carry."""


class JointMotion(NamedTuple):
    """What friction terms depend on, in arrays (…, k) over joints or over coupled motors."""

    position: FloatArray  # [rad]
    velocity: FloatArray  # [rad/s]
    acceleration: FloatArray  # [rad/s²]
    sign: FloatArray  # [-] sign of the velocity, smoothed where the law says so
    load: FloatArray | float = 0.0  # [N·m] size of the torque that the rigid bodies need
    scale: FloatArray | float = 1.0  # [as the term's] where a term with a scale bends
    deflection: FloatArray | None = None
    """[-] of what gives way before a joint slides, -1 to 1; None: the joint slides."""


class JointScale(NamedTuple):
    """Usual size (nj,) of a joint's torque [N·m], speed [rad/s] and moved inertia [kg·m²]."""

    torque: FloatArray
    speed: FloatArray
    inertia: FloatArray


@dataclass(frozen=True)
class FrictionTerm:
    """One term of the friction law, linear in its parameter."""

    name: str
    unit: str
    column: Callable[[JointMotion], FloatArray] | None
    """Derivative of the torque with respect to the parameter, for a `JointMotion`; None: 1."""
    guess: Callable[[JointScale], FloatArray] | None
    """Likely size (nj,) for a `JointScale`, where nobody gives one; None: zero, within the
    description's `offset_std` of the torque scale."""
    # lower, upper: bounds of the parameter.
    lower: float = 0.0
    upper: float = np.inf
    dry: bool = False  # Whether it follows the sign of the velocity, which is unknown at rest
    coupling: Literal["none", "whole", "cross"] = "none"
    """What a motor that turns with several joints has of its own: ``none``, ``whole``, or
    ``cross`` where each joint's parameter holds the diagonal share already."""
    chosen: bool = False  # Whether only those joints have it for which it is chosen, with a scale
    scale_unit: str = "-"  # Unit of that scale; ``-``: it has none and is 1

    @property
    def resists(self) -> bool:
        """Whether it opposes motion by an amount that saturates with speed."""
        return self.dry or self.name == "sigmoid"


FRICTION = (
    FrictionTerm(
        "viscous",
        "N·m·s/rad",
        lambda motion: motion.velocity,
        lambda scale: _FRICTION_SHARE * scale.torque / scale.speed,
        coupling="cross",
    ),
    FrictionTerm(
        "coulomb",
        "N·m",
        lambda motion: motion.sign,
        lambda scale: _FRICTION_SHARE * scale.torque,
        dry=True,
        coupling="whole",
    ),
    FrictionTerm(
        "armature",
        "kg·m²",
        lambda motion: motion.acceleration,
        lambda scale: np.maximum(
            _ARMATURE_SHARE * scale.inertia, _ARMATURE_PER_TORQUE * scale.torque
        ),
        coupling="cross",
    ),
    FrictionTerm("offset", "N·m", None, None, lower=-np.inf),
    FrictionTerm(
        "load",
        "-",
        lambda motion: motion.load * motion.sign,
        lambda scale: np.full_like(scale.torque, _FRICTION_SHARE),
        upper=_MOST_LOAD,
        dry=True,
        chosen=True,
    ),
    FrictionTerm(
        "sigmoid",
        "N·m",
        lambda motion: np.tanh(motion.velocity / motion.scale),
        lambda scale: _FRICTION_SHARE * scale.torque,
        chosen=True,
        scale_unit="rad/s",
    ),
    FrictionTerm(
        "stribeck",
        "N·m",
        lambda motion: np.exp(-((motion.velocity / motion.scale) ** 2)) * motion.sign,
        lambda scale: _FRICTION_SHARE * scale.torque,
        dry=True,
        chosen=True,
        scale_unit="rad/s",
    ),
    FrictionTerm(
        "presliding",
        "N·m",
        lambda motion: motion.sign if motion.deflection is None else motion.deflection,
        lambda scale: _FRICTION_SHARE * scale.torque,
        dry=True,
        chosen=True,
        scale_unit="rad",
    ),
    FrictionTerm(
        "spring",
        "N·m/rad",
        lambda motion: motion.position,
        None,
        lower=-np.inf,
        chosen=True,
    ),
)
"""``τ = Fc·sign(q̇) + Fv·q̇ + Ia·q̈ + β`` per joint (Zhang et al. eq. 7), and, for the joints that
it is chosen for, ``(μ·|τ_rigid| + Fs·exp(−(q̇/v_s)²))·sign(q̇) + Fσ·tanh(q̇/v_σ) + Fz·z``, with the
deflection z of what gives way before the joint slides.

Teeth are pressed together by the load (Hamon, Gautier & Garrec 2010); lubricant films make
friction fall (Stribeck, see Armstrong-Hélouvry et al. 1994) or rise smoothly with speed (Makkar et
al. 2005). After a joint turned around, its friction changes sign over some distance (Dahl 1968).
With no coefficient below zero, no term ever gives its joint more energy than it took.

A motor that turns with several joints adds, per coupling with direction d, Coulomb friction
``d·sign(dᵀq̇)`` and the off-diagonal share of its viscous friction and inertia (Gautier's TX40
model, as in Pham, Gautier & Poignet 1999).
"""

_COUPLED = tuple(term for term in FRICTION if term.coupling != "none")
_LOAD = [term.name for term in FRICTION].index("load")
_PRESLIDING = [term.name for term in FRICTION].index("presliding")


def smooth_sign(velocity: FloatArray, width: float) -> FloatArray:
    """Return sign(q̇) (…), smoothed as tanh(q̇/width) where `width` [rad/s] is above zero."""
    return np.sign(velocity) if width == 0.0 else np.tanh(velocity / width)


class FrictionLaw:
    """The friction of one robot's joints and coupled motors.

    Parameters (pf,) are in the layout's order: grouped by term over the joints, then by term over
    the couplings.

    Parameters
    ----------
    directions : (nc, nj) [-]
        Speed of every coupled motor per speed of the joints.
    width : float [rad/s]
        Width of the smoothed sign; 0: the sign itself.
    scales : (len(FRICTION), nj), optional
        Of each term and joint, 0 where a joint lacks the term. None: joints have all terms but
        those that are to be chosen.
    """

    def __init__(
        self, directions: FloatArray, width: float, scales: FloatArray | None = None
    ) -> None:
        self.directions, self.width = directions, width
        nc, nj = directions.shape
        # Of the motion that friction follows, as `follow` was told
        self._followed: FloatArray | None = None
        self._deflection = np.zeros(nj)
        if scales is None:
            usual = np.array([float(not term.chosen) for term in FRICTION])
            scales = np.repeat(usual[:, None], nj, axis=1)
        self.set_parameters(np.zeros(len(FRICTION) * nj + len(_COUPLED) * nc), scales)

    def set_parameters(self, parameters: FloatArray, scales: FloatArray | None = None) -> None:
        """Use the friction part (pf,) of a parameter vector from now on, and other scales."""
        nc, nj = self.directions.shape
        if scales is not None:
            self._has = scales > 0.0
            # nothing changes more sharply with the speed than the sign does
            sharpest = [[self.width if t.scale_unit == "rad/s" else 0.0] for t in FRICTION]
            self._scales = np.where(self._has, np.maximum(scales, sharpest), 1.0)
        split = len(FRICTION) * nj
        joints = parameters[:split].reshape(len(FRICTION), nj).copy()
        couplings = parameters[split:].reshape(len(_COUPLED), nc).copy()
        # only terms that are not zero cost time in a control loop
        self._constant: FloatArray = np.zeros(nj)
        self._joints: list[tuple[FrictionTerm, FloatArray, FloatArray]] = []
        joints *= self._has
        self._distance = np.where(joints[_PRESLIDING], self._scales[_PRESLIDING], 0.0)
        for term, value, scale in zip(FRICTION, joints, self._scales, strict=True):
            if term.column is None:
                self._constant += value
            elif value.any():
                self._joints.append((term, value, scale))
        squares = self.directions**2
        self._couplings = [
            (term.column, value, value @ squares if term.coupling == "cross" else None)
            for term, value in zip(_COUPLED, couplings, strict=True)
            if term.column is not None and value.any()
        ]
        self._inertia: FloatArray | None = None

    @property
    def depends_on_load(self) -> bool:
        """Whether a joint's friction depends on its load."""
        return bool(self._has[_LOAD].any())

    @property
    def distance(self) -> FloatArray:
        """Distance (nj,) [rad] over which presliding friction changes; 0 without any."""
        return self._distance

    def follow(self, position: FloatArray) -> None:
        """Go on with a motion to positions (nj,) [rad], from where the last call left it.

        Presliding friction is then that of the motion where `torque` is given `sliding`.
        """
        if self._followed is not None and self._distance.any():
            own = np.where(self._distance > 0.0, self._distance, 1.0)
            self._deflection = deflected(self._deflection, position - self._followed, own)
        self._followed = position.copy()

    def resistance(self, velocity: FloatArray, rigid: FloatArray) -> FloatArray:
        """Return how much (…, nj) [N·m] dry friction resists sliding at a speed and load.

        That is all friction that opposes motion, whatever its direction, but the viscous one.
        """
        still = np.zeros_like(velocity)
        motion = JointMotion(still, np.abs(velocity), still, np.ones_like(velocity), np.abs(rigid))
        size = still
        for term, value, scale in self._joints:
            if term.resists and term.column is not None:
                size = size + value * term.column(motion._replace(scale=scale))
        return size

    @property
    def inertia(self) -> FloatArray:
        """Inertia (nj, nj) [kg·m²] of the rotors: the torque per acceleration."""
        if self._inertia is None:
            unit = np.eye(self.directions.shape[1])
            still = np.zeros_like(unit)
            self._inertia = self.torque(still, still, unit) - self.torque(still, still, still)
        return self._inertia

    def _motors(self, joints: JointMotion) -> JointMotion:
        position, velocity, acceleration = (part @ self.directions.T for part in joints[:3])
        sign = smooth_sign(velocity, self.width)
        return JointMotion(position, velocity, acceleration, sign)

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        sliding: FloatArray | None = None,
        rigid: FloatArray | float = 0.0,
        deflection: FloatArray | None = None,
    ) -> FloatArray:
        """Return the friction torque (…, nj) [N·m] of a motion (…, nj).

        `sliding` (…, nj) [rad/s] is the velocity that friction sees, by default `velocity`;
        `rigid` (…, nj) [N·m] is what the rigid bodies need; `deflection` (…, nj) [-] that of
        presliding friction, by default of joints that slide or of the motion that is followed.
        """
        turning = velocity if sliding is None else sliding
        if deflection is None and sliding is not None and self._followed is not None:
            deflection = self._deflection
        sign = smooth_sign(turning, self.width)
        joints = JointMotion(
            position, turning, acceleration, sign, np.abs(rigid), deflection=deflection
        )
        torque = self._constant
        for term, value, scale in self._joints:
            if term.column is not None:
                torque = torque + value * term.column(joints._replace(scale=scale))
        if self._couplings:
            motors = self._motors(joints)
            for column, value, own in self._couplings:
                torque = torque + (value * column(motors)) @ self.directions
                if own is not None:
                    torque -= own * column(joints)
        return torque if self._joints else np.broadcast_to(torque, velocity.shape)

    def columns(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        rigid: FloatArray | float = 0.0,
        deflection: FloatArray | None = None,
    ) -> FloatArray:
        """Return the friction part F (n, nj, pf) of the regressor: ``τ = F x[friction]``."""
        sign = smooth_sign(velocity, self.width)
        motion = JointMotion(
            position, velocity, acceleration, sign, np.abs(rigid), deflection=deflection
        )
        nc, nj = self.directions.shape
        split, joints = len(FRICTION) * nj, np.arange(nj)
        F = np.zeros((len(velocity), nj, split + len(_COUPLED) * nc))
        for k, (term, has) in enumerate(zip(FRICTION, self._has, strict=True)):
            if has.any():
                scaled = motion._replace(scale=self._scales[k])
                column = 1.0 if term.column is None else term.column(scaled)
                F[:, joints, k * nj + joints] = np.where(has, column, 0.0)
        if not nc:
            return F
        motors = self._motors(motion)
        for k, term in enumerate(_COUPLED):
            if term.column is None:
                continue
            part = term.column(motors)[:, None, :] * self.directions.T
            if term.coupling == "cross":
                part -= term.column(motion)[:, :, None] * self.directions.T**2
            start = split + k * nc
            F[:, :, start : start + nc] = part
        return F
