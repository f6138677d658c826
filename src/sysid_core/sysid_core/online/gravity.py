# SPDX-License-Identifier: Apache-2.0
"""Where gravity acts on a robot that is identified live, as its torques tell it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.askew import ALL, find_askew
from sysid_core.batch import Batch
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.select import make_regression
from sysid_core.errors import SysidError
from sysid_core.estimation import Estimate
from sysid_core.joint_order import JointOrder, find_joint_order
from sysid_core.joint_zeros import JointZeros
from sysid_core.posing import Posing
from sysid_core.recording import Samples
from sysid_core.refit import Refit
from sysid_core.robot.model import Robot
from sysid_core.signals.rotation import rotate_into_body, turned
from sysid_core.tilt import OpposedEffortsError, find_tilt

__all__ = ["Gravity"]

_TOLERATED = 0.1
"""Share of its weight that a fixed robot may miss before a model is refused, or other joints are
taken for right: below, one that was bent to it beats the nominal one, which misses as much [-]."""


@dataclass(frozen=True)
class Gravity:
    """What torques told of gravity, of how links hang in it, or of joints' order, if otherwise.

    Attributes
    ----------
    direction : (3,) [m/s²], optional
        Of a floating base, in the world of its odometry.
    refuses, explains : bool
        Whether no model may be learned before the description is mended; whether it is what makes
        joints' torques look wrong.
    """

    AS_DESCRIBED: ClassVar[Gravity]

    finding: Diagnostic | None = None
    direction: FloatArray | None = None
    refuses: bool = False
    explains: bool = False

    def blamed(self, wrong: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
        """Return what a model is refused for where some torques look wrong, or none."""
        if self.finding is not None and (self.refuses or (self.explains and wrong)):
            return (self.finding,)
        return wrong

    @property
    def told(self) -> tuple[Diagnostic, ...]:
        """What to tell beside a model."""
        return () if self.finding is None or self.refuses else (self.finding,)

    def levelled(self, robot: Robot, samples: Samples) -> Samples:
        """Return samples whose base has gravity where it acts, in a world as described."""
        if self.direction is None or samples.base_pose is None:
            return samples
        position, orientation = np.split(samples.base_pose, [3], axis=1)
        count = len(samples), 1
        described = rotate_into_body(orientation, np.tile(robot.description.gravity, count))
        found = rotate_into_body(orientation, np.tile(self.direction, count))
        upright = turned(orientation, described, found)
        return replace(samples, base_pose=np.hstack([position, upright]))

    def asked(
        self,
        robot: Robot,
        batch: Batch,
        estimate: Estimate,
        colour: FloatArray,
        still: float,
        *,
        blames: bool,
    ) -> Gravity:
        """Return what torques of a batch tell, where that was known until now.

        Takes a live estimate, the rows (G,) that count as one independent one, `still` as in
        `rest_speed`, and whether a joint's torque looks wrong. A fixed base is asked from the
        description on each time.
        """
        there = robot if self.direction is None else robot.in_gravity(self.direction)
        try:
            refit = Refit(batch, still, Posing(None, None).problem, estimate, colour)
            described = refit.fit(make_regression(there))
            ways = ALL
            if robot.floating:  # zeros of legs take long, and efforts of another scale look tilted
                ways = (find_joint_order,) if blames else (find_tilt, find_joint_order)
            found = find_askew(refit, described, *ways)
        except OpposedEffortsError as error:
            return Gravity(Diagnostic("effort_sign", str(error)), refuses=True)
        except (SysidError, np.linalg.LinAlgError):
            return self
        if found is None:
            return self if robot.floating and not self.refuses else Gravity.AS_DESCRIBED
        if isinstance(found, JointOrder):
            return Gravity(found.finding, refuses=True)
        if isinstance(found, JointZeros):
            return Gravity(found.finding, explains=_is_large(found.largest))
        tilt = replace(found, described=np.array(robot.description.gravity))
        if robot.floating:
            return Gravity(tilt.finding, tilt.gravity)
        return Gravity(tilt.finding, refuses=_is_large(tilt.angle))


def _is_large(angle: float) -> bool:
    return float(np.sin(min(abs(angle), 0.5 * np.pi))) > _TOLERATED


Gravity.AS_DESCRIBED = Gravity()
