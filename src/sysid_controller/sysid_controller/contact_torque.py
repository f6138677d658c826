# SPDX-License-Identifier: Apache-2.0
"""The dynamics of a robot in contact behind the interface that joint-space laws use."""

import numpy as np

from sysid_controller.contact_qp import ContactForceQp
from sysid_controller.settings import ControllerConfig
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.dynamics.contact_dynamics import ContactDynamics, ContactTerms
from sysid_core.dynamics.contact_kinematics import BASE, null_space
from sysid_core.dynamics.friction import FrictionLaw
from sysid_core.robot import Robot

__all__ = ["ContactTorque", "projected_torque"]

_CALL_BACK = 0.25  # [-] of a foot's load, as most, for each direction
_FORCE_WEIGHT = 6e-3  # [-] of squared forces per weight against squared accelerations, in the QP
_CONTACT_DAMPING = 20.0  # [1/s] at which the motion of a standing foot is brought to rest
_UNKNOWN_BASE = Diagnostic(
    "unknown_base",
    "the base's state is unknown",
    Severity.ERROR,
    hint="give odometry and contacts",
)


def projected_torque(
    terms: ContactTerms, J: FloatArray, wanted: FloatArray, nearest: FloatArray
) -> FloatArray:
    """Return the torque (nj,) of a motion (nv,) that is closest to another torque (nj,).

    Free of contact forces as in Mistry & Righetti (2011), where the other torque is zero.
    """
    N = null_space(J[None])[0]
    driven = N[BASE:].T
    needed = N.T @ (terms.inertia @ wanted + terms.bias) - driven @ nearest
    return nearest + np.asarray(np.linalg.lstsq(driven, needed, rcond=1e-9)[0])


class ContactTorque:
    """The `Dynamics` of a robot in contact, so that joint-space laws can drive it.

    The base has no reference of its own: it moves as the joints and the contacts make it. Until
    `set_base` has told its state, and after `lose_base`, torques are NaN and `failure` says why;
    what holds the robot against gravity is still known from the last state then.

    Raises
    ------
    ModelError
        If the robot has no contacts, or passive joints or loops.
    """

    def __init__(self, robot: Robot, sign_width: float) -> None:
        self.home: FloatArray = np.mean(robot.sampling_range, axis=0)
        self.joint_names = robot.joint_names
        self._dynamics = ContactDynamics(robot, sign_width)
        self._nv = robot.model.nv
        self._mass = float(robot.consistent_nominal[robot.layout.masses].sum())
        self._gravity = float(np.linalg.norm(robot.description.gravity))
        self._qp: ContactForceQp | None = None
        self._state: tuple[FloatArray, FloatArray, BoolArray] | None = None
        self.failure: Diagnostic | None = _UNKNOWN_BASE
        # Why the projected law stood in for the QP in the last call
        self.fallback: Diagnostic | None = None

    @property
    def friction(self) -> FrictionLaw:
        """The friction law in use."""
        return self._dynamics.tree.friction

    def configure(self, config: ControllerConfig, limit: FloatArray) -> None:
        """Share out contact forces as settings say; limits (nj,) [N·m] of torques.

        ``projected`` is least torque, whatever the contact forces (Mistry & Righetti 2011), ``qp``
        forces inside friction cones and torques within limits.
        """
        self.fallback = None
        self._qp = None
        if config.contact_control == "qp":
            self._qp = ContactForceQp(
                self._nv,
                self._dynamics.kinematics,
                limit,
                friction=config.contact_friction,
                force_weight=_FORCE_WEIGHT / self._mass**2,
            )

    def set_parameters(self, parameters: FloatArray, scales: FloatArray | None = None) -> None:
        """Use a parameter vector (p,) of the robot's layout from now on, and friction's scales."""
        self._dynamics.set_parameters(parameters, scales)

    def set_base(self, pose: FloatArray, twist: FloatArray, contacts: BoolArray) -> None:
        """Tell the measured base pose (7,), its twist (6,) and the feet that carry load (nc,).

        The pose is a position in the world [m] and a unit quaternion x, y, z, w; the twist linear
        [m/s] and angular [rad/s] velocity in the base frame.
        """
        self._state = (pose, twist, contacts)
        self.failure = None

    def lose_base(self, reason: Diagnostic) -> None:
        """Note that the base's state is not known at present, and why."""
        self.failure = reason

    def torque(
        self,
        position: FloatArray,
        velocity: FloatArray,
        acceleration: FloatArray,
        sliding: FloatArray | None = None,
    ) -> FloatArray:
        """Return the torque (nj,) [N·m] of a motion of the joints; see `Dynamics.torque`.

        Where joints and contacts contradict each other, the motion is the one nearest to the
        wanted one that standing feet allow.
        """
        if self.failure is not None or self._state is None:
            return np.full(len(position), np.nan)
        pose, twist, contacts = self._state
        q, v = np.concatenate([pose, position]), np.concatenate([twist, velocity])
        terms = self._dynamics.terms(q, v, sliding)
        J, drift = self._dynamics.constraint(terms, contacts)
        base = self._follows(terms, J, terms.bias, drift, acceleration)
        wanted = np.concatenate([base, acceleration])
        effort = self._in_cones(terms, v, wanted, contacts)
        if effort is not None:
            return effort
        return projected_torque(
            terms, J, wanted, self._called_back(J, contacts, J @ wanted + drift)
        )

    @staticmethod
    def _follows(
        terms: ContactTerms,
        J: FloatArray,
        bias: FloatArray,
        drift: FloatArray,
        acceleration: FloatArray,
    ) -> FloatArray:
        """Return what the base does (6, …) as joints accelerate (nj, …) and feet stand fast."""
        k = len(J)
        matrix = np.zeros((BASE + k, BASE + k))
        matrix[:BASE, :BASE] = terms.inertia[:BASE, :BASE]
        matrix[:BASE, BASE:] = -J[:, :BASE].T
        matrix[BASE:, :BASE] = J[:, :BASE]
        right = np.concatenate(
            [
                -bias[:BASE] - terms.inertia[:BASE, BASE:] @ acceleration,
                -drift - J[:, BASE:] @ acceleration,
            ]
        )
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-10)[0][:BASE])

    def _in_cones(
        self, terms: ContactTerms, v: FloatArray, wanted: FloatArray, contacts: BoolArray
    ) -> FloatArray | None:
        """Return the QP's torque (nj,); None where it is not asked for or finds none."""
        self.fallback = None
        if self._qp is None:
            return None
        feet = -_CONTACT_DAMPING * self._dynamics.kinematics.at_ground(terms.jacobian) @ v
        solution = self._qp.solve(terms, wanted, feet, contacts)
        self.fallback = solution.failure
        return solution.effort if solution.failure is None else None

    def _called_back(self, J: FloatArray, contacts: BoolArray, slip: FloatArray) -> FloatArray:
        """Return the torque (nj,) that calls standing feet back where they slipped.

        It makes no motion, for the feet hold it back, but forces between them: as if each had
        its share of the robot to move as wanted (`slip` (k,) [m/s²]), within what friction holds.
        """
        flat = self._dynamics.kinematics.flat[contacts]
        linear = np.array([row < 3 for f in flat for row in range(6 if f else 3)], dtype=bool)
        most = _CALL_BACK * self._gravity
        share = self._mass / max(len(flat), 1)
        return J[:, BASE:].T @ np.where(linear, share * np.clip(slip, -most, most), 0.0)

    def gravity(self, position: FloatArray) -> FloatArray:
        """Return the torque (nj,) [N·m] that holds a configuration at rest on its feet."""
        if self._state is None:
            return np.full(len(position), np.nan)
        pose, _, contacts = self._state
        zero = np.zeros(self._nv)
        terms = self._dynamics.terms(np.concatenate([pose, position]), zero)
        effort = self._in_cones(terms, zero, zero, contacts)
        if effort is not None:
            return effort
        J, _ = self._dynamics.constraint(terms, contacts)
        return projected_torque(terms, J, zero, np.zeros(len(position)))

    def inertia(self, position: FloatArray) -> FloatArray:
        """Return the inertia (nj, nj) [kg·m²] that joints feel, rotors included.

        The base follows the joints as the standing feet make it, all of them until told else.
        """
        nj = len(position)
        if self._state is None:
            pose = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
            contacts = np.ones(len(self._dynamics.kinematics.names), dtype=bool)
        else:
            pose, _, contacts = self._state
        terms = self._dynamics.terms(np.concatenate([pose, position]), np.zeros(self._nv))
        J, _ = self._dynamics.constraint(terms, contacts)
        still = np.zeros((self._nv, nj))
        follows = self._follows(terms, J, still, np.zeros((len(J), nj)), np.eye(nj))
        motion = np.vstack([follows, np.eye(nj)])
        return np.asarray(motion.T @ terms.inertia @ motion)

    def unreachable(self, positions: FloatArray) -> Diagnostic | None:
        """Return None: feet follow whatever the joints do."""
        return None
