# SPDX-License-Identifier: Apache-2.0
"""Brings a robot to rest and keeps it there, with the nominal model and damping alone."""

from __future__ import annotations

from collections import deque

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.robot.model import Limits

__all__ = ["SafetyStop"]

# A decay of a fifth per sample stays stable with the two or three samples of delay of a bus and
# of differentiation, and with links and rotors a third as heavy as the model says.
_DECAY = 0.2  # [-] of the velocity per sample, at most
_FASTEST_DECAY = 100.0  # [1/s]; beyond it gears and links bend
# What gravity's error displaces settles at stiffness over damping: in a quarter of a second.
_STIFFNESS = 20.0  # [rad/s] bandwidth at which the joints are held once they are slow
_STIFF_SHARE = 0.25  # [-] of the decay's bandwidth that it has at most: no overshoot
_SLOW = 0.2  # [-] of the velocity limit below which the joints are held where they are
_REST_SPEED = 0.1  # [-] of the velocity limit that counts as rest
_REST_MOST = 0.2  # [rad/s] that count as rest at most
_REST_TIME = 0.5  # [s] at rest after which the robot is driven again
_MOST_STOPS = 3  # after which it stays stopped
_WITHIN = 60.0  # [s]


class SafetyStop:
    """A controlled stop: ``u = g(q) − D q̇ + K (q_held − q)``.

    D is diagonal: whatever saturates, it only takes energy. Its size is what the nominal inertia
    bears at the sampling period with delay: the largest eigenvalue of M⁻¹ D is the decay rate.

    Attributes
    ----------
    reason : Diagnostic or None
        Why the robot is stopped; None while it is not.
    stays : bool
        Whether it stays stopped until `forget`, as it had to be stopped again and again.
    """

    def __init__(self, limits: Limits) -> None:
        self._slow = _SLOW * limits.velocity
        self._rest = np.minimum(_REST_SPEED * limits.velocity, _REST_MOST)
        self._damping: FloatArray = np.zeros(len(limits.velocity))
        self._stiffness: FloatArray = np.zeros(len(limits.velocity))
        self._held: FloatArray | None = None
        self._begins: deque[float] = deque(maxlen=_MOST_STOPS)
        self._rests_since: float | None = None
        self.reason: Diagnostic | None = None
        self.stays = False

    def forget(self) -> None:
        """Forget earlier stops: somebody enabled or disabled the controller."""
        self._begins.clear()
        self.stays = False

    def release(self) -> None:
        """End the stop."""
        self.reason = None

    def begin(self, reason: Diagnostic, steady: float, inertia: FloatArray, period: float) -> None:
        """Stop from now on.

        Parameters
        ----------
        steady : float [s]
        inertia : (na, na) [kg·m²]
            Of the nominal model.
        period : float [s]
            Between joint states or ticks, whichever is longer.
        """
        self.reason, self._held, self._rests_since = reason, None, None
        self._begins.append(steady)
        full = len(self._begins) == _MOST_STOPS
        self.stays = full and steady - self._begins[0] <= _WITHIN
        decay = min(_DECAY / period, _FASTEST_DECAY)
        mobility = np.linalg.inv(inertia)
        felt = 1.0 / np.diag(mobility)
        felt = felt / np.linalg.eigvals(mobility * felt).real.max()
        self._damping = decay * felt
        self._stiffness = min(_STIFFNESS, _STIFF_SHARE * decay) ** 2 * felt

    def torque(
        self, gravity: FloatArray, position: FloatArray, velocity: FloatArray, steady: float
    ) -> FloatArray:
        """Return the torque (na,) [N·m] that brakes and holds.

        Parameters
        ----------
        gravity : (na,) [N·m]
            Of the nominal model at `position`.
        position, velocity : (na,) [rad, rad/s]
        steady : float [s]
        """
        speed = np.abs(velocity)
        if self._held is None and (speed <= self._slow).all():
            self._held = position
        if (speed > self._rest).any():
            self._rests_since = None
        elif self._rests_since is None:
            self._rests_since = steady
        held = position if self._held is None else self._held
        return gravity - self._damping * velocity + self._stiffness * (held - position)

    def over(self, steady: float) -> bool:
        """Tell whether the robot has rested long enough to be driven again."""
        rested = self._rests_since is not None and steady - self._rests_since >= _REST_TIME
        return rested and not self.stays

    def __str__(self) -> str:
        """Return why the robot is stopped and how it goes on, in words."""
        goes_on = (
            f"{_MOST_STOPS} stops within {_WITHIN:g} s, find the cause and call ~/enable"
            if self.stays
            else f"it is driven again after {_REST_TIME:g} s at rest"
        )
        return f"{self.reason}; identified parameters are dropped; {goes_on}"
