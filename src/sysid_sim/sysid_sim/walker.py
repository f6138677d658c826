# SPDX-License-Identifier: Apache-2.0
"""The low-level controller that legged robots have built in: it walks with the nominal model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.contact_kinematics import ContactKinematics
from sysid_core.robot import Robot
from sysid_sim.contact_law import BASE_BANDWIDTH, ContactLaw, ContactState
from sysid_sim.errors import SimulationError
from sysid_sim.jump_motion import Jump
from sysid_sim.legged_motion import LeggedMotion, Sensed, Stance, Sway, SwayConfig
from sysid_sim.mjcf import foot_radii
from sysid_sim.plant import rotation_of
from sysid_sim.rest import rest_configuration
from sysid_sim.simulation import Simulation
from sysid_sim.walk_motion import CRAWL, Walk, WalkConfig

__all__ = ["MOTIONS", "MotionFactory", "Walker", "legs_of", "stance_of"]

MotionFactory = Callable[[Stance, int], LeggedMotion]
"""Makes a motion from the stance and the seed."""

_HIP, _KNEE = 0.75, -1.5
_STRAIGHT = 0.1
"""Legs whose Jacobian is worse conditioned than this are stretched [-]."""
_ROUNDS = 20
"""Newton steps to the balanced stance, three times what they need."""
_CONTROL_PERIOD = 0.002
_HEIGHT_RATE, _TILT_RATE = 1.5, 1.5
"""Rates [1/s] at which standing errors of height and tilt are worked off."""
_BOUNCE = 0.015
"""Time [s] for which a standing foot may lose touch."""
_SEARCH = 0.3
"""Speed [√(g h)] at which a foot reaches for the ground."""


def stance_of(robot: Robot) -> Stance:
    """Return a stance with bent knees, on the ground, its centre of mass between its feet.

    It begins with the middle of the joints' ranges, unless the legs are stretched there: then
    each leg's last two joints are bent so that the knees point to the middle of the robot. Then
    the feet are put on one level, with their middle below the nominal centre of mass.

    Raises
    ------
    SimulationError
        If the robot does not stand on legs of three joints each.
    """
    kinematics = ContactKinematics(robot)
    q = rest_configuration(robot)
    geometry = kinematics.evaluate(q[None])
    places = geometry.position[0]
    legs = legs_of(robot, kinematics)
    for leg, (own, jacobian) in enumerate(zip(legs, geometry.jacobian[0, :, :3, 6:], strict=True)):
        values = np.linalg.svd(jacobian[:, own], compute_uv=False)
        if values[-1] < _STRAIGHT * values[0]:
            sign = 1.0 if places[leg, 0] > 0.0 else -1.0
            q[7 + own[1:]] = sign * np.array([_HIP, _KNEE])
    radii = foot_radii(robot)
    feet = _balance(robot, kinematics, legs, q, radii)
    q[2] = float(np.max(radii - feet[:, 2]))
    return Stance(q[:7], q[7:], feet + q[:3])


def legs_of(robot: Robot, kinematics: ContactKinematics) -> list[IndexArray]:
    """Return the three joints of every leg, from the base to the foot."""
    model, legs = robot.model, []
    for name, (foot, _) in zip(kinematics.names, kinematics.frames, strict=True):
        above = list(model.supports[foot])[2:]  # below the world and the floating base
        if len(above) != 3:
            raise SimulationError(
                f"'{robot.name}' cannot walk: contact '{name}' is carried by {len(above)} joints, "
                "walking needs legs of three"
            )
        legs.append(np.array([model.idx_vs[joint] - 6 for joint in above]))
    return legs


def _balance(
    robot: Robot,
    kinematics: ContactKinematics,
    legs: list[IndexArray],
    q: FloatArray,
    radii: FloatArray,
) -> FloatArray:
    """Move the legs of q (nq,) in place until the feet are level and balanced; returns them."""
    model = robot.with_parameters(robot.consistent_nominal)
    data = model.createData()
    ground: float | None = None
    for _ in range(_ROUNDS):
        geometry = kinematics.evaluate(q[None])
        feet = geometry.position[0]
        if ground is None:
            ground = float(np.mean(feet[:, 2] - radii))
        wanted = feet + pin.centerOfMass(model, data, q) - feet.mean(axis=0)
        wanted[:, 2] = ground + radii
        for own, jacobian, step in zip(
            legs, geometry.jacobian[0, :, :3, 6:], wanted - feet, strict=True
        ):
            q[7 + own] += np.linalg.solve(jacobian[:, own], step)
    return kinematics.evaluate(q[None]).position[0]


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
        state = ContactState(pose, twist, position, velocity, plan.loaded & ~searching)
        return self._law(reference, state).effort

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


MOTIONS: Mapping[str, MotionFactory] = {
    "crawl": partial(
        Walk,
        WalkConfig(
            offsets=CRAWL,
            duty=0.85,
            period=8.0,
            velocity=(0.05, 0.0),
            variation=(0.05, 0.03, 0.04),
            lean=0.5,
        ),
    ),
    "jump": Jump,
    "new_trot": partial(
        Walk,
        WalkConfig(
            period=2.0,
            velocity=(-0.12, 0.08),
            turning=0.06,
            variation=(0.2, 0.08, 0.08),
            clearance=0.25,
            sway=SwayConfig(shift=(0.0, 0.0, 0.06), tilt=(0.08, 0.08, 0.0), band=(0.1, 0.45)),
        ),
    ),
    "trot": partial(Walk, WalkConfig()),
    "wobble": Sway,
}
"""What a quadruped can do, by name."""
