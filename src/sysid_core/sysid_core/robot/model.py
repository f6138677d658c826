# SPDX-License-Identifier: Apache-2.0
"""A robot: its description and URDF turned into a Pinocchio model with named parameters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.friction import FRICTION, FrictionTerm
from sysid_core.errors import ModelError, RobotError, found_in
from sysid_core.inertia import Ellipsoid, spatial_inertia
from sysid_core.parameters import FRICTION_TERMS, ParameterLayout
from sysid_core.recording import ImuMounting
from sysid_core.robot.bounds import bounding_ellipsoids, shape_of
from sysid_core.robot.description import FrameOnLink, RobotDescription, Vector3
from sysid_core.robot.imu import imu_mounting
from sysid_core.robot.limits import Limits
from sysid_core.robot.nominal import consistent, inertia_warnings, nominal_parameters
from sysid_core.robot.urdf import Urdf

__all__ = ["Robot"]


def _parse(urdf: Urdf, floating: bool) -> pin.Model:
    base = (pin.JointModelFreeFlyer(),) if floating else ()
    try:
        return pin.buildModelFromXML(urdf.xml, *base)
    except (ValueError, RuntimeError) as error:
        raise RobotError(f"Pinocchio cannot read it ({error})", source=str(urdf.path)) from error


class Robot:
    """A robot that can be identified.

    Attributes
    ----------
    model : pin.Model
        Locked joints merged, gravity set; a floating base is joint 1.
    joint_names : tuple[str, ...]
        Moving joints (one degree of freedom each) in the model's order, without the base.
    actuated, passive : (nj,) bool
    nominal : (p,)
        Parameters as the URDF and the description give them.
    imu_rotation : (3, 3)
        From the axes of the inertial sensor to those of the base.
    imu_position : (3,) [m]
        Of the inertial sensor, in the base frame.

    Raises
    ------
    RobotError
        If the description names joints, links or bodies that the URDF lacks.
    """

    def __init__(self, description: RobotDescription, urdf: Urdf) -> None:
        self.description = description
        self.urdf = urdf
        self.name = description.name
        self.floating = description.base == "floating"
        self.model = self._build_model()
        self.joint_names: tuple[str, ...] = tuple(self.model.names)[1 + self.floating :]
        self._check_names()
        passive = {*description.passive, *description.mimic}
        if description.actuated is not None:
            passive |= set(self.joint_names) - set(description.actuated)
        self.passive: BoolArray = np.array([name in passive for name in self.joint_names])
        self.actuated: BoolArray = ~self.passive
        self._check_chosen()
        self.actuated_names = tuple(n for n in self.joint_names if n not in passive)
        gears = description.transmission
        with found_in(description.source or self.name):
            self.couplings = () if gears is None else gears.couplings(self.joint_names)
            self.limits = Limits.of(self.model, description.limits)
        rubbed = (*self.joint_names, *(coupling.name for coupling in self.couplings))
        self._check_known("friction.nominal", description.friction_nominal, rubbed)
        self.layout = self._build_layout()
        self.nominal = nominal_parameters(description, urdf, self.model, self.layout)
        self.imu_rotation, self.imu_position = imu_mounting(description, urdf.root, self.place)
        self.warnings = inertia_warnings(urdf, self.layout, self.nominal)
        # What took long to find of it, by what that is; variants in friction and gravity share it
        self.memo: dict[tuple[object, ...], tuple[Any, ...]] = {}
        imu = (self.imu_rotation, self.imu_position)
        for array in (self.nominal, self.passive, self.actuated, *self.limits, *imu):
            array.setflags(write=False)

    @property
    def is_tree(self) -> bool:
        """Whether it stands on a fixed base, without loops, and all its joints are actuated."""
        return not (self.floating or self.passive.any() or self.linked)

    @property
    def linked(self) -> bool:
        """Whether loops or leaders tie its joints to each other."""
        return bool(self.description.loops or self.description.mimic)

    @property
    def prismatic_names(self) -> tuple[str, ...]:
        """Moving joints that slide: their torques are forces [N], their positions lengths [m]."""
        joints = self.urdf.joints
        return tuple(n for n in self.joint_names if joints[n].type == "prismatic")

    @property
    def travel(self) -> FloatArray:
        """Lengths (nj,) [m/rad] that stand for a radian: a sliding joint's range for a turn."""
        lower, upper = self.limits.known_range
        slides = np.isin(self.joint_names, self.prismatic_names) & np.isfinite(upper - lower)
        return np.where(slides, (upper - lower) / (2.0 * np.pi), 1.0)

    @cached_property
    def sampling_range(self) -> tuple[FloatArray, FloatArray]:
        """Positions (nj,), (nj,) [rad] that configurations are drawn between: known within ±π."""
        lowest, highest = self.limits.known_range
        lower = np.maximum(lowest, -np.pi)
        return lower, np.maximum(np.minimum(highest, np.pi), lower)

    # -- construction -----------------------------------------------------------------------

    def _error(self, message: str) -> RobotError:
        return RobotError(message, source=str(self.description.source or self.name))

    def _build_model(self) -> pin.Model:
        model = _parse(self.urdf, self.floating)
        locked = self.description.locked
        for joint in locked:
            if not model.existJointName(joint):
                raise self._error(f"joints.locked names '{joint}', which the URDF does not move")
        if locked:
            reference = pin.neutral(model)
            for joint, position in locked.items():
                reference[model.idx_qs[model.getJointId(joint)]] = position
            model = pin.buildReducedModel(
                model, [model.getJointId(joint) for joint in locked], reference
            )
        model.gravity.linear = np.array(self.description.gravity)
        return model

    def _check_names(self) -> None:
        description, gain = self.description, self.description.effort_gain
        known = set(self.joint_names)
        named = {
            "joints.actuated": description.actuated or (),
            "joints.passive": description.passive,
            "joints.mimic": (*description.mimic, *(m.joint for m in description.mimic.values())),
            "friction.chosen": tuple(description.friction_chosen),
            "effort.position_offset": tuple(description.position_offset),
            "effort.transmission.joints": (
                description.transmission.joints if description.transmission else ()
            ),
            "effort.gain": tuple(gain) if isinstance(gain, Mapping) else (),
        }
        for where, names in named.items():
            self._check_known(where, names, known)
        both = set(description.actuated or ()) & {*description.passive, *description.mimic}
        if both:
            raise self._error(f"{sorted(both)} cannot be actuated and passive at once")

    def _check_known(self, where: str, names: Iterable[str], known: Iterable[str]) -> None:
        if unknown := sorted(set(names) - set(known)):
            raise self._error(
                f"{where} names {unknown}, but the moving joints are {sorted(known)}"
            )

    def _check_chosen(self) -> None:
        if self.description.friction_chosen and not self.is_tree:
            raise self._error(
                "friction.chosen needs a robot on a fixed base, without loops, whose joints are "
                "all actuated; leave it out"
            )

    def _build_layout(self) -> ParameterLayout:
        child = {joint.name: joint.child for joint in self.urdf.joints.values()}
        bodies = [child[name] for name in self.joint_names]
        if self.floating:
            bodies.insert(0, self.urdf.root)
        return ParameterLayout(
            tuple(bodies), self.joint_names, tuple(c.name for c in self.couplings)
        )

    # -- derived ----------------------------------------------------------------------------

    @cached_property
    def friction_scales(self) -> FloatArray:
        """Scale (terms, nj) of every friction term for every joint, 0 where it lacks the term."""
        chosen = self.description.friction_chosen
        return np.array(
            [
                [
                    chosen.get(joint, {}).get(term.name, 0.0) if term.chosen else 1.0
                    for joint in self.joint_names
                ]
                for term in FRICTION
            ]
        ).reshape(len(FRICTION), -1)

    @property
    def friction_terms(self) -> tuple[FrictionTerm, ...]:
        """The friction terms that a joint has."""
        rows = zip(FRICTION, self.friction_scales, strict=True)
        return tuple(term for term, scales in rows if scales.any())

    @property
    def load_friction(self) -> bool:
        """Whether a joint's friction depends on its load."""
        return bool(self.friction_scales[FRICTION_TERMS.index("load")].any())

    def with_friction(self, chosen: Mapping[str, Mapping[str, float]]) -> Robot:
        """Return the robot with other chosen friction terms: joint → term → scale.

        Raises
        ------
        RobotError
            If a joint is unknown.
        """
        robot = copy(self)  # shares all that friction has no part in
        robot.description = replace(self.description, friction_chosen=chosen)
        robot.__dict__.pop("friction_scales", None)
        robot._check_names()
        robot._check_chosen()
        return robot

    def in_gravity(self, gravity: FloatArray | Vector3) -> Robot:
        """Return the robot where torques told that gravity (3,) [m/s²] acts in a direction."""
        x, y, z = map(float, gravity)
        found = replace(self.description, gravity=(x, y, z), gravity_found=True)
        robot = Robot(found, self.urdf)
        robot.memo = self.memo
        return robot

    @property
    def gravity_known(self) -> bool:
        """Whether torques told its direction, or a description has it along no axis."""
        own = self.description
        return own.gravity_found or int(np.count_nonzero(own.gravity)) > 1

    @property
    def imu_mounting(self) -> ImuMounting:
        """How the base carries an inertial sensor, which levels it unless gravity is known."""
        gravity = np.array(self.description.gravity)
        return ImuMounting(
            self.imu_rotation, self.imu_position, gravity, levels=not self.gravity_known
        )

    @cached_property
    def consistent_nominal(self) -> FloatArray:
        """Nominal parameters (p,) with every body made physically possible."""
        shape = partial(shape_of, self.description, self.urdf, self.model)
        return consistent(self.layout, self.nominal, shape)

    @cached_property
    def ellipsoids(self) -> tuple[Ellipsoid, ...]:
        """Bounding ellipsoid of every body, in the layout's order."""
        nominal = self.layout.bodies_of(self.consistent_nominal)
        return bounding_ellipsoids(self.description, self.urdf, self.model, nominal)

    @cached_property
    def model_hash(self) -> str:
        """Hash of what fixes the regressor: kinematics, gravity, layout, loops, contacts."""
        model = self.model
        content = {
            "joints": [
                [
                    model.names[i],
                    model.joints[i].shortname(),
                    model.parents[i],
                    np.round(model.jointPlacements[i].homogeneous, 9).tolist(),
                ]
                for i in range(1, model.njoints)
            ],
            "gravity": list(self.description.gravity),
            "layout": [self.layout.bodies, self.layout.joints, self.layout.couplings],
            "couplings": [c.direction.tolist() for c in self.couplings],
            "passive": self.passive.tolist(),
            "loops": [repr(loop) for loop in self.description.loops]
            + [repr(mimic) for mimic in sorted(self.description.mimic.items())],
            "contacts": [repr(contact) for contact in self.description.contacts],
        }
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def body_joint_ids(self) -> tuple[int, ...]:
        """Pinocchio joint index of every body of the layout."""
        return tuple(range(1, self.model.njoints))

    @cached_property
    def tool_frame(self) -> str:
        """Frame that payloads are expressed in."""
        name = self.description.tool_frame
        if name is not None:
            if not self.model.existFrame(name, pin.FrameType.BODY):
                raise self._error(f"tool_frame '{name}' is not in the URDF")
            return name
        depths = [len(self.model.supports[i]) for i in range(self.model.njoints)]
        return self.layout.bodies[int(np.argmax(depths)) - 1]

    def frame(self, link: str) -> pin.Frame:
        """Return the frame of a link.

        Raises
        ------
        RobotError
            If the URDF has no such link.
        """
        if not self.model.existFrame(link, pin.FrameType.BODY):
            raise self._error(f"link '{link}' is not in the URDF")
        return self.model.frames[self.model.getFrameId(link, pin.FrameType.BODY)]

    def place(self, frame: FrameOnLink) -> tuple[int, pin.SE3]:
        """Return the index of the joint that carries a described frame, and its placement there.

        Raises
        ------
        RobotError
            If the URDF has no such link.
        """
        link = self.frame(frame.link)
        return int(link.parentJoint), link.placement * frame.placement

    def with_parameters(self, parameters: FloatArray) -> pin.Model:
        """Return a copy of the model that has the inertias of a vector (p,)."""
        self.check_parameters(parameters)
        model = self.model.copy()
        for index, phi in zip(self.body_joint_ids, self.layout.inertias(parameters), strict=True):
            model.inertias[index] = spatial_inertia(phi)
        return model

    def check_parameters(self, parameters: FloatArray) -> None:
        """Check that a vector belongs to this robot.

        Raises
        ------
        ModelError
            If its length is not that of the layout or a number is not finite.
        """
        if parameters.shape != (self.layout.size,):
            raise ModelError(
                f"robot '{self.name}' has {self.layout.size} parameters, got {parameters.shape}"
            )
        if not np.isfinite(parameters).all():
            raise ModelError("parameters must be finite")
