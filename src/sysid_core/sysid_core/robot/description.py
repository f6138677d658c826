# SPDX-License-Identifier: Apache-2.0
"""The robot description as plain data: all that sysid must know beyond the URDF."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.friction import FRICTION
from sysid_core.errors import RobotError
from sysid_core.robot.known import Relations

__all__ = [
    "UNCOMPENSATED",
    "Contact",
    "Coupling",
    "DescribedEllipsoid",
    "DescribedSignals",
    "FrameOnLink",
    "Loop",
    "Mimic",
    "PriorConfig",
    "RobotDescription",
    "Transmission",
    "Vector3",
]

Vector3 = tuple[float, float, float]

UNCOMPENSATED = ("armature", "offset")
"""Terms of the friction law that remain in efforts whose friction a driver compensates."""


@dataclass(frozen=True)
class FrameOnLink:
    """A frame fixed to a link: translation [m] and roll, pitch, yaw [rad] in the link's frame."""

    link: str
    xyz: Vector3 = (0.0, 0.0, 0.0)
    rpy: Vector3 = (0.0, 0.0, 0.0)

    @property
    def placement(self) -> pin.SE3:
        """Placement of the frame in the link."""
        return pin.SE3(pin.rpy.rpyToMatrix(*self.rpy), np.array(self.xyz))


@dataclass(frozen=True)
class Loop:
    """A kinematic loop closed where two frames coincide: a 3-D ``point`` or a 6-D ``fixed``."""

    name: str
    frame_a: FrameOnLink
    frame_b: FrameOnLink
    type: str = "point"


@dataclass(frozen=True)
class Mimic:
    """How a joint follows another: position = multiplier · the other's + offset [rad]."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class Contact:
    """A frame that may touch the ground: a ``point`` or a ``flat`` foot.

    A point foot may be a ball of some `radius` [m] around the frame's origin: it touches the
    ground that far below, which matters as much as the torque of its friction forces there.
    """

    name: str
    frame: FrameOnLink
    type: str = "point"
    radius: float = 0.0


class Coupling(NamedTuple):
    """A motor that turns with more than one joint."""

    name: str
    direction: FloatArray
    """(nj,) [-] the motor's speed referred to its own joint is ``direction @ q̇``."""


@dataclass(frozen=True)
class Transmission:
    """Coupled motors: positions = matrix · joint positions, joint torques = matrixᵀ · theirs."""

    joints: tuple[str, ...]  # Joints in the order of the columns; row i is the motor of joint i
    matrix: tuple[tuple[float, ...], ...]  # Gear ratios [-]
    side: str = "auto"
    """Side that recorded data are on: ``joint``, ``motor``, or ``auto``, which takes positions
    beyond the joints' limits as the motors'."""

    def couplings(self, joint_names: tuple[str, ...]) -> tuple[Coupling, ...]:
        """Return the motors that turn with more than one of the robot's joints.

        Raises
        ------
        RobotError
            If the matrix is singular.
        """
        matrix = np.array(self.matrix)
        if abs(np.linalg.det(matrix)) < 1e-9 * np.abs(matrix).max() ** len(matrix):
            raise RobotError("effort.transmission.matrix is singular: motors must move all joints")
        couplings = []
        for i, (joint, row) in enumerate(zip(self.joints, matrix, strict=True)):
            if np.count_nonzero(row) > 1:
                own = row[i] if row[i] != 0.0 else row[np.flatnonzero(row)[0]]
                direction = np.zeros(len(joint_names))
                direction[[joint_names.index(name) for name in self.joints]] = row / own
                couplings.append(Coupling(f"{joint}_motor", direction))
        return tuple(couplings)


@dataclass(frozen=True)
class PriorConfig:
    """Confidence in the nominal parameters."""

    relative_std: float = 0.5  # [-] relative standard deviation of each body's inertia
    friction_relative_std: float = 2.0  # [-] relative standard deviation of friction terms
    offset_std: float = 0.02
    """[-] standard deviation of torque offsets, as a share of the joint's effort limit: no more
    than friction thought likely, since the two look alike while a joint turns one way."""
    confidence: Mapping[str, float] = field(default_factory=dict)
    """Relative standard deviation of single bodies."""


@dataclass(frozen=True)
class DescribedEllipsoid:
    """A bounding ellipsoid along the axes of a body's joint frame [m]."""

    center: Vector3
    semi_axes: Vector3


@dataclass(frozen=True)
class DescribedSignals:
    """Expected sensor rate and filter cut-off [Hz]; None: found from the data."""

    rate: float | None = None
    cutoff: float | None = None


@dataclass(frozen=True)
class RobotDescription:
    """Contents of ``config/robots/<name>.yaml``; see ``docs/robot_description.md``."""

    name: str
    urdf: str
    source: Path | None = None
    base: str = "fixed"
    gravity: Vector3 = (0.0, 0.0, -9.81)
    gravity_found: bool = False  # Whether torques told its direction, which no file says
    tool_frame: str | None = None
    actuated: tuple[str, ...] | None = None
    passive: tuple[str, ...] = ()
    locked: Mapping[str, float] = field(default_factory=dict)
    mimic: Mapping[str, Mimic] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    effort_gain: Mapping[str, float] | float = 1.0
    effort_gain_std: float = 0.05
    effort_excludes: tuple[str, ...] = ()
    command_excludes: tuple[str, ...] = ()
    position_offset: Mapping[str, float] = field(default_factory=dict)
    transmission: Transmission | None = None
    friction_terms: tuple[str, ...] = tuple(term.name for term in FRICTION if not term.chosen)
    friction_chosen: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    friction_nominal: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    coulomb_velocity: float = 0.0
    loops: tuple[Loop, ...] = ()
    contacts: tuple[Contact, ...] = ()
    imu: FrameOnLink | None = None
    inertias: tuple[str, ...] | str = "all"
    prior: PriorConfig = PriorConfig()
    ellipsoids: Mapping[str, DescribedEllipsoid] = field(default_factory=dict)
    mass_bounds: Mapping[str, tuple[float, float] | float] = field(default_factory=dict)
    relations: Relations = field(default_factory=Relations)
    total_mass: tuple[float, float] | None = None
    signals: DescribedSignals = DescribedSignals()
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The parsed YAML that this was read from."""
