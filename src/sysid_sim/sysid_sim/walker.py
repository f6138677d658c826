# SPDX-License-Identifier: Apache-2.0
"""The low-level controller that legged robots have built in: it walks with the nominal model."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.stance import Stance, stance_of
from sysid_core.robot import Robot
from sysid_sim.cli import read_scenarios
from sysid_sim.contact_law import BASE_BANDWIDTH, ContactLaw
from sysid_sim.legged_motion import Jump, LeggedMotion, Sensed, Sway
from sysid_sim.plant import rotation_of
from sysid_sim.simulation import Simulation
from sysid_sim.walk_motion import Walk, WalkConfig

__all__ = ["MOTIONS", "MotionFactory", "Walker"]

MotionFactory = Callable[[Stance, int], LeggedMotion]  # From the stance and the seed

_CONTROL_PERIOD = 0.002
_HEIGHT_RATE, _TILT_RATE = 1.5, 1.5
"""Rates [1/s] at which standing errors of height and tilt are worked off."""
_BOUNCE = 0.015  # [s] for which a standing foot may lose touch
_SEARCH = 0.3  # Speed [√(g h)] at which a foot reaches for the ground


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
        v = np.concatenate([twist, velocity])
        return self._law(reference, q, v, plan.loaded & ~searching).effort

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
