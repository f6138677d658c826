# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a joint's torque, how certain that is, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic

__all__ = ["FINE", "GAINS", "Scales", "TorqueVerdict", "found_in", "stuck", "wrong_torques"]

_TOLERANCE = 1.25
"""Factor by which a torque may be off its scale: torque constants are known to some 10 %, while
other units or a gear that was forgotten are off by more [-]."""

_SUSPECT = 3.0
"""Log-likelihood by which a wrong scale must be likelier than any tolerable one before a first
model is refused: good torques of simulated arms stay below."""

_CERTAIN = 12.0
"""The same before a model in use is refused: rotors that a description leaves out reach 6."""

_LEAST_SHARE = 0.25
"""Share of its usual torque that the other joints must predict for a joint, before its scale is
judged: less drowns in what a sensor or a gear may do [-]."""

_SCATTER = 0.8
"""Share of a torque's variance that no motion explains, from which on it is noise [-]."""

_LEAST_SCATTER = 0.1
"""Scatter below this share of the usual torque is no fault, whatever the motion explains [-]."""

_LEAST_FRICTION = 0.1
"""Share of a joint's torque that a friction with the wrong sign must reach to be believed: delays
between velocity and torque look like a little of it [-]."""

_DEVIATIONS = 5.0
"""Standard deviations by which friction must be negative."""

GAINS = np.concatenate([-np.geomspace(50.0, 0.02, 71), [0.0], np.geomspace(0.02, 50.0, 71)])
"""Scales that are compared; neighbours differ by 12 %, less than what is tolerated."""


class TorqueVerdict(NamedTuple):
    """What was found of one joint's torque.

    Attributes
    ----------
    finding : Diagnostic or None
    weight : float
        Log-likelihood against a torque that is right; inf where it is not one at all.
    """

    finding: Diagnostic | None
    weight: float = 0.0


FINE = TorqueVerdict(None)


class Scales(NamedTuple):
    """How likely a joint's torque is at every scale.

    Attributes
    ----------
    likelihood : (m,)
        Its logarithm at `GAINS`.
    predicted : float [N·m]
        Root mean square of the torque that the other joints predict, less own columns.
    friction : float [N·m]
        Mean torque that friction takes along the motion, at the likeliest scale.
    friction_std : float [N·m]
    explained : float [-]
        Share of the torque's variance.
    """

    likelihood: FloatArray
    predicted: float
    friction: float
    friction_std: float
    explained: float

    @property
    def best(self) -> float:
        """The likeliest scale."""
        return float(GAINS[np.argmax(self.likelihood)])

    @property
    def range(self) -> tuple[float, float]:
        """Scales that are as good as certain to hold the true one between them."""
        near = GAINS[self.likelihood > self.likelihood.max() - _CERTAIN]
        return float(near.min()), float(near.max())

    @property
    def against_none(self) -> float:
        """By how much the likeliest scale is likelier than none at all."""
        return float(self.likelihood.max() - self.likelihood[GAINS == 0.0].max())

    @property
    def against(self) -> float:
        """By how much the likeliest scale is likelier than any tolerable one."""
        tolerable = (GAINS >= 1.0 / _TOLERANCE) & (GAINS <= _TOLERANCE)
        return float(self.likelihood.max() - self.likelihood[tolerable].max())


def wrong_torques(
    verdicts: Mapping[int, TorqueVerdict], *, in_use: bool
) -> tuple[Diagnostic, ...]:
    """Return what refuses an estimate; `in_use`: whether a model is, which only a certainty ends.

    A wrong scale makes other joints look wrong, so only the likeliest is named, and none where a
    torque is no measurement at all.
    """
    least = _CERTAIN if in_use else _SUSPECT
    found = [v for v in verdicts.values() if v.finding is not None and v.weight >= least]
    worst = max((verdict.weight for verdict in found), default=0.0)
    return tuple(v.finding for v in found if v.finding is not None and v.weight == worst)


def found_in(
    name: str, scales: Scales, variance: float, size: float, usual: float
) -> TorqueVerdict:
    """Return what the scales of a joint's torque show.

    Parameters
    ----------
    name : str
    scales : Scales
    variance, size : float [N²·m²]
        Of the torque about its mean, and its mean square.
    usual : float [N·m]
        Usual torque of the joint.
    """
    scatter = (max(1.0 - scales.explained, 0.0) * variance) ** 0.5
    mute = scales.against_none < _SUSPECT and scales.friction < 2.0 * scales.friction_std
    if mute and scales.explained < 1.0 - _SCATTER and scatter > _LEAST_SCATTER * usual:
        return _noise(name, scatter, scales.explained)
    level = max(_LEAST_FRICTION * size**0.5, _DEVIATIONS * scales.friction_std)
    if scales.friction < -level:
        return _driving(name, scales)
    return _scaled(name, scales, usual)


def stuck(name: str, size: float, threshold: float) -> TorqueVerdict:
    """Return that a torque varies by no more than `size` [N·m]."""
    return TorqueVerdict(
        Diagnostic(
            "torque_stuck",
            f"the torque varies by {size:.1e} N·m while the joint moves, below {threshold:.1e}",
            subject=name,
            hint="check that the driver publishes this joint's effort",
        ),
        np.inf,
    )


def _noise(name: str, scatter: float, explained: float) -> TorqueVerdict:
    return TorqueVerdict(
        Diagnostic(
            "torque_noise",
            f"the motion explains {100.0 * max(explained, 0.0):.0f} % of the torque's variance, "
            f"below {100.0 * (1.0 - _SCATTER):.0f} %; {scatter:.2g} N·m are noise",
            subject=name,
            hint="check the sensor, its cable and its joint's place in the message",
        ),
        np.inf,
    )


def _driving(name: str, scales: Scales) -> TorqueVerdict:
    return TorqueVerdict(
        Diagnostic(
            "torque_sign",
            f"friction would drive the joint with {-scales.friction:.2g} ± "
            f"{scales.friction_std:.1g} N·m, above 0",
            subject=name,
            hint="turn the sign of this joint's effort gain",
        ),
        0.5 * (scales.friction / scales.friction_std) ** 2,
    )


def _scaled(name: str, scales: Scales, usual: float) -> TorqueVerdict:
    if scales.against < _SUSPECT or scales.predicted < _LEAST_SHARE * usual:
        return FINE
    low, high = scales.range
    kind, cure = "torque_scale", f"divide this joint's effort gain by {scales.best:.2g}"
    if scales.best < 0.0:
        kind, cure = "torque_sign", "turn the sign of this joint's effort gain"
    return TorqueVerdict(
        Diagnostic(
            kind,
            f"the torque is {scales.best:.2g} ({low:.2g} to {high:.2g}) times what the other "
            f"joints say, outside {1.0 / _TOLERANCE:.2g} to {_TOLERANCE:.2g}",
            subject=name,
            hint=f"check its unit, then {cure}",
        ),
        scales.against,
    )
