# SPDX-License-Identifier: Apache-2.0
"""What to do while the model gives no torque: hold where it last gave one."""

import numpy as np

from sysid_controller.laws import ControlLaw
from sysid_core.arrays import FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.dynamics.select import Dynamics

__all__ = ["SafeHold"]


_NOT_FINITE = Diagnostic(
    "not_finite", "the model gives torques that are not finite", Severity.ERROR
)


class SafeHold:
    """Gravity compensation and PD feedback at the last position that the model could solve.

    A linkage out of its reach, or near a singular configuration, has no inverse dynamics. Zero
    torque would drop what it carries, so the joints are held where the model was last valid. The
    law's feedback holds the joints; the typical inertia (na, na) [kg·m²] turns accelerations into
    torques. If that is `local`, it is taken from where the hold begins.
    """

    def __init__(self, law: ControlLaw, inertia: FloatArray, *, local: bool = False) -> None:
        self.law = law
        self._inertia = inertia
        self._local = local
        self.failure: Diagnostic | None = None
        self._position: FloatArray | None = None
        self._solvable: tuple[FloatArray, ...] = ()
        self._held: FloatArray | None = None

    def release(self, position: FloatArray, desired: FloatArray) -> bool:
        """Note that the model gives torque again, and tell whether it did not before.

        Measured and desired positions (na,) [rad] are not copied and must not change.
        """
        was, self.failure = self.failure is not None, None
        self._position, self._solvable, self._held = position, (position, desired), None
        return was

    def forget(self) -> None:
        """Forget where the model was valid: the robot may be moved meanwhile."""
        self.failure, self._position, self._solvable, self._held = None, None, (), None

    def __call__(
        self, dynamics: Dynamics, position: FloatArray, velocity: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return torque and its share from gravity (na,) [N·m] at a state (na,) [rad, rad/s].

        The dynamics' `failure` says why they give no torque.
        """
        self.failure = dynamics.failure or _NOT_FINITE
        if self._position is None:
            self._position = position
        gravity = self._last_gravity(dynamics)
        feedback = self.law.feedback(self._inertia, self._position - position, -velocity)
        return gravity + feedback, gravity

    def gravity(self, dynamics: Dynamics, position: FloatArray) -> FloatArray:
        """Return the torque (na,) [N·m] that holds a position, or held the last solvable one."""
        gravity = dynamics.gravity(position)
        return gravity if np.isfinite(gravity).all() else self._last_gravity(dynamics)

    def _last_gravity(self, dynamics: Dynamics) -> FloatArray:
        if self._held is None:
            self._held = np.zeros(len(self._inertia))
            if self._local and self._position is not None:
                self._inertia = dynamics.inertia(self._position)
            for position in self._solvable:
                gravity = dynamics.gravity(position)
                if np.isfinite(gravity).all():
                    self._held = gravity
                    break
        return self._held
