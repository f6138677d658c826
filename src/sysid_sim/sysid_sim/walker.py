# SPDX-License-Identifier: Apache-2.0
"""The low-level controller that legged robots have built in: it walks with the nominal model."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pinocchio as pin

from sysid_controller.contact_qp import ContactForceQp, QpSolution
from sysid_controller.contact_torque import projected_torque
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.contact_dynamics import ContactDynamics, ContactTerms
from sysid_core.dynamics.contact_kinematics import BASE
from sysid_core.dynamics.stance import Stance, stance_of
from sysid_core.robot import Robot
from sysid_sim.cli import read_scenarios
from sysid_sim.legged_motion import ContactReference, Jump, LeggedMotion, Sensed, Sway, Wander
from sysid_sim.plant import rotation_of
from sysid_sim.simulation import Simulation
from sysid_sim.walk_motion import Walk, WalkConfig

__all__ = ["BASE_BANDWIDTH", "MOTIONS", "ContactLaw", "MotionFactory", "Walker"]


BASE_BANDWIDTH = 12.0  # Of the base's closed loop ω [rad/s]: gains ω² and 2ω, as for the feet
_FOOT_BANDWIDTH = 40.0  # [rad/s] of swinging feet: as fast as a trot's short steps need
_CONTACT_DAMPING = 20.0  # [1/s] at which the motion of a standing foot is brought to rest
_LEG_DAMPING = 1e-6  # [-] keeps stretched legs from asking for endless accelerations
_SIGN_WIDTH = 0.05  # [rad/s] of the smoothed sign of Coulomb friction
_FRICTION = 0.5  # [-] a margin to the ground's friction
_FORCE_WEIGHT = 1e-5  # of squared forces [N²] against squared acceleration errors


class ContactLaw:
    """Tracks a base and swing feet with torques from the nominal model.

    Each tick turns the references into a wanted acceleration, exactly achievable where every leg
    can move its foot in all directions, and that into torques whose contact forces lie inside
    friction cones.

    Raises
    ------
    ModelError
        If the robot's class is not supported.
    """

    def __init__(self, robot: Robot, friction: float = _FRICTION) -> None:
        self.dynamics = ContactDynamics(robot, _SIGN_WIDTH)
        self._limit = robot.limits.effort
        self._qp = ContactForceQp(
            robot.model.nv,
            self.dynamics.kinematics,
            self._limit,
            friction=friction,
            force_weight=_FORCE_WEIGHT,
        )

    def __call__(
        self,
        reference: ContactReference,
        q: FloatArray,
        v: FloatArray,
        contacts: BoolArray,
        free: FloatArray | None = None,
    ) -> QpSolution:
        """Return torques within the robot's limits; where the QP fails, the least ones.

        The measured q (nq,) and v (nv,) are in Pinocchio's convention; the contacts (nc,) are feet
        that are to carry load now; free (nj,) are wanted accelerations of joints that no foot
        hangs on, NaN for the others; None: there are no such joints.
        """
        terms = self.dynamics.terms(q, v)
        feet = self._foot_accelerations(reference, v, contacts, terms)
        wanted = self._wanted(terms, base_acceleration(reference, q, v), feet, contacts)
        if free is not None:
            wanted[BASE:] += np.nan_to_num(free)
        solution = self._qp.solve(terms, wanted, feet, contacts)
        effort = solution.effort
        if solution.failure is not None:
            J, _ = self.dynamics.constraint(terms, contacts)
            effort = projected_torque(terms, J, wanted, np.zeros_like(effort))
        if free is not None:  # an arm follows its own motion instead of balancing the base
            own = (terms.inertia @ wanted + terms.bias)[BASE:]
            effort = np.where(np.isfinite(free), own, effort)
        return solution._replace(effort=np.clip(effort, -self._limit, self._limit))

    def _foot_accelerations(
        self, reference: ContactReference, v: FloatArray, contacts: BoolArray, terms: ContactTerms
    ) -> FloatArray:
        """Return the wanted accelerations (nc, 6) of the feet; angular ones bring them to rest."""
        kp, kd = _FOOT_BANDWIDTH**2, 2.0 * _FOOT_BANDWIDTH
        motion = self.dynamics.kinematics.at_ground(terms.jacobian) @ v
        wanted = -_CONTACT_DAMPING * motion
        swing = ~contacts
        wanted[swing, :3] = (
            reference.foot_acceleration
            + kd * (reference.foot_velocity - terms.velocity)
            + kp * (reference.foot_position - terms.position)
        )[swing]
        wanted[swing, 3:] = -kd * motion[swing, 3:]
        return wanted

    def _wanted(
        self, terms: ContactTerms, base: FloatArray, feet: FloatArray, contacts: BoolArray
    ) -> FloatArray:
        """Return the acceleration (nv,) that moves base and feet as wanted."""
        kinematics = self.dynamics.kinematics
        # stance feet are held where they touch the ground, swing feet moved by their frames
        ground = contacts[:, None, None]
        drift = terms.drift[:, :, None]
        jacobian = np.where(ground, kinematics.at_ground(terms.jacobian), terms.jacobian)
        drift = np.where(ground, kinematics.at_ground(drift), drift)[:, :, 0]
        chosen = np.arange(6) < np.where(kinematics.flat, 6, 3)[:, None]
        J = jacobian[chosen]
        right = (feet - drift)[chosen] - J[:, :BASE] @ base
        legs = J[:, BASE:]
        damping = _LEG_DAMPING * np.trace(legs @ legs.T) / len(legs) * np.eye(len(legs))
        joints = legs.T @ np.linalg.solve(legs @ legs.T + damping, right)
        return np.concatenate([base, joints])


def base_acceleration(reference: ContactReference, q: FloatArray, v: FloatArray) -> FloatArray:
    """Return the wanted derivative (6,) of the twist's components."""
    kp, kd = BASE_BANDWIDTH**2, 2.0 * BASE_BANDWIDTH
    R = pin.Quaternion(q[3:7]).toRotationMatrix()
    desired = pin.Quaternion(reference.pose[3:]).toRotationMatrix()
    linear, angular = v[:3], v[3:6]
    world = (
        reference.acceleration[:3]
        + kd * (reference.velocity[:3] - R @ linear)
        + kp * (reference.pose[:3] - q[:3])
    )
    turn = (
        reference.acceleration[3:]
        + kd * (reference.velocity[3:] - angular)
        + kp * pin.log3(R.T @ desired)
    )
    # d/dt (Rᵀ ṗ) = Rᵀ p̈ − ω × (Rᵀ ṗ)
    return np.concatenate([R.T @ world - np.cross(angular, linear), turn])


MotionFactory = Callable[[Stance, int], LeggedMotion]  # From the stance and the seed

_CONTROL_PERIOD = 0.002
_HEIGHT_RATE, _TILT_RATE = 1.5, 1.5
"""Rates [1/s] at which standing errors of height and tilt are worked off."""
_BOUNCE = 0.015  # [s] for which a standing foot may lose touch
_ARM_SWAY, _ARM_SHARE = 0.4, 0.15  # [rad], [-] of its range: most by which an arm's joint sways
_ARM_BAND = (0.1, 0.4)  # [Hz] in which it does
_SEARCH = 0.3  # Speed [√(g h)] at which a foot reaches for the ground


class _Arms:
    """Joints that no foot hangs on, as of an arm on a quadruped: they sway about the stance."""

    def __init__(self, robot: Robot, stance: Stance, seed: int) -> None:
        model = robot.model
        feet = {robot.place(contact.frame)[0] for contact in robot.description.contacts}
        first = model.njoints - len(robot.joint_names)
        bears = [not feet.isdisjoint(subtree) for subtree in list(model.subtrees)[first:]]
        self._free, self._middle = ~np.array(bears), stance.joints
        most = np.minimum(_ARM_SHARE * np.subtract(*robot.sampling_range[::-1]), _ARM_SWAY)
        self._sway = Wander(np.random.default_rng([seed, 1]), most * self._free, _ARM_BAND)

    def accelerations(self, time: float, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return the wanted accelerations (nj,) [rad/s²], NaN for legs."""
        x, dx, ddx = self._sway.at(time)
        kp, kd = _FOOT_BANDWIDTH**2, 2.0 * _FOOT_BANDWIDTH
        wanted = ddx + kd * (dx - velocity) + kp * (self._middle + x - position)
        return np.where(self._free, wanted, np.nan)


class Walker:
    """Drives a quadruped from what its sensors show, with inverse dynamics of the nominal model.

    A wrong model makes the base sag and tilt; slow integral action on height and tilt makes up for
    that, as for payloads. The seed is that of the motion; torques are worked out at a multiple of
    the simulation's period, of about 2 ms.
    """

    def __init__(self, motion: MotionFactory, robot: Robot, seed: int, period: float) -> None:
        self.robot = robot
        self.stance = stance_of(robot)
        # (nq,) configuration of the stance
        self.start: FloatArray = np.concatenate([self.stance.pose, self.stance.joints])
        self.trouble = ""  # Not empty once the robot fell; motors are off from then on
        self._motion = motion(self.stance, seed)
        self._law = ContactLaw(robot)
        self._arms = _Arms(robot, self.stance, seed)
        self._every = max(1, round(_CONTROL_PERIOD / period))
        self._step = self._every * period
        self._tick = 0
        self._effort = np.zeros(len(robot.actuated_names))
        self._sum = np.zeros(3)
        self._untouched = np.zeros(len(self.stance.feet))

    def command(self, simulation: Simulation) -> FloatArray:
        """Return the torques (na,) [N·m] to apply now, from what `simulation` senses."""
        if self._tick % self._every == 0 and not self.trouble:
            self._effort = self._control(simulation)
        self._tick += 1
        return self._effort

    def _control(self, simulation: Simulation) -> FloatArray:
        position, velocity = simulation.sense()
        pose, twist, touching = simulation.sense_base()
        if self._fell(pose):
            self.trouble = f"the robot fell at {simulation.time:.2f} s"
            return np.zeros_like(self._effort)
        q = np.concatenate([pose, position])
        feet = self._law.dynamics.kinematics.evaluate(q[None]).position[0]
        plan = self._motion.plan(simulation.time, Sensed(pose, twist, feet, touching))
        reference = plan.reference
        acceleration = reference.acceleration.copy()
        acceleration[2:5] += self._integral(reference.pose, pose, bool(plan.loaded.any()))
        searching = self._search(plan.loaded, touching)
        down = np.array([0.0, 0.0, -_SEARCH * self.stance.speed])
        reference = reference._replace(
            acceleration=acceleration,
            foot_position=np.where(searching[:, None], feet, reference.foot_position),
            foot_velocity=np.where(searching[:, None], down, reference.foot_velocity),
        )
        v = np.concatenate([twist, velocity])
        arms = self._arms.accelerations(simulation.time, position, velocity)
        return self._law(reference, q, v, plan.loaded & ~searching, arms).effort

    def _search(self, loaded: BoolArray, touching: BoolArray) -> BoolArray:
        """Return the feet (nc,) that are to carry load but must reach for the ground first."""
        self._untouched += self._step
        self._untouched[~loaded] = np.inf
        self._untouched[loaded & touching] = 0.0
        return loaded & (self._untouched > _BOUNCE)

    def _integral(self, wanted: FloatArray, pose: FloatArray, standing: bool) -> FloatArray:
        """Return what to add to the accelerations of height, roll and pitch."""
        turn = pin.log3(rotation_of(pose[3:]).T @ rotation_of(wanted[3:]))
        error = np.array([wanted[2] - pose[2], turn[0], turn[1]])
        gain = BASE_BANDWIDTH**2
        rate = np.array([_HEIGHT_RATE, _TILT_RATE, _TILT_RATE])
        if standing:
            limit = np.array([0.8 * 9.81, 20.0, 20.0])
            self._sum = np.clip(self._sum + self._step * gain * rate * error, -limit, limit)
        return self._sum

    def _fell(self, pose: FloatArray) -> bool:
        low = pose[2] < 0.4 * self.stance.pose[2]
        return bool(low or rotation_of(pose[3:])[2, 2] < 0.5)


_WALKS = {name: WalkConfig.told(**told) for name, told in read_scenarios()["walks"].items()}
MOTIONS: Mapping[str, MotionFactory] = {
    **{name: partial(Walk, config) for name, config in _WALKS.items()},
    "jump": Jump,
    "wobble": Sway,
}
"""What a quadruped can do, by name."""
