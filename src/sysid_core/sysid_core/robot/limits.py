# SPDX-License-Identifier: Apache-2.0
"""Limits of joints, as a URDF and a description give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.errors import RobotError

__all__ = ["PLACEHOLDER_SPEED", "Limits"]

PLACEHOLDER_SPEED = 100.0
"""Speed [rad/s] from which a limit is a placeholder: no geared joint turns so fast."""

_UNLIMITED = 1e8  # Position from which a limit stands for none


class Limits(NamedTuple):
    """Limits of the moving joints, in their order; ±inf where there is none."""

    lower: FloatArray  # (nj,) [rad]
    upper: FloatArray  # (nj,) [rad]
    velocity: FloatArray  # (nj,) [rad/s]
    effort: FloatArray  # (nj,) [N·m]

    @classmethod
    def of(cls, model: pin.Model, overrides: Mapping[str, Mapping[str, float]]) -> Limits:
        """Return the limits of a model, and of a description: kind → joint → value.

        Raises
        ------
        RobotError
            If a joint of the description is not one that moves.
        """
        joints = [name for i, name in enumerate(model.names) if model.nvs[i] == 1]
        nq, nv = model.nq - len(joints), model.nv - len(joints)
        effort = "upperEffortLimit" if hasattr(model, "upperEffortLimit") else "effortLimit"
        found = cls(
            np.array(model.lowerPositionLimit[nq:]),
            np.array(model.upperPositionLimit[nq:]),
            np.array(model.velocityLimit[nv:]),
            np.array(getattr(model, effort)[nv:]),
        )
        found.lower[found.lower < -_UNLIMITED] = -np.inf
        found.upper[found.upper > _UNLIMITED] = np.inf
        for values in (found.velocity, found.effort):  # URDF's way of saying nothing
            values[values <= 0.0] = np.inf
        for kind, given in overrides.items():
            for joint, value in given.items():
                if joint not in joints:
                    raise RobotError(f"limits.{kind} names '{joint}', which is no moving joint")
                getattr(found, kind)[joints.index(joint)] = value
        return found

    def of_joints(self, chosen: BoolArray) -> Limits:
        """Return the limits of the joints that a mask (nj,) picks."""
        return Limits(*(bounds[chosen] for bounds in self))

    @property
    def known_range(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest positions (nj,), (nj,) [rad], ±inf also where they are equal.

        URDFs that leave them out have zero for both.
        """
        empty = self.lower >= self.upper
        return np.where(empty, -np.inf, self.lower), np.where(empty, np.inf, self.upper)
