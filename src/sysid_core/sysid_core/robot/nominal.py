# SPDX-License-Identifier: Apache-2.0
"""Nominal parameters: as URDF and description give them, what is wrong with them, and mended."""

from collections.abc import Callable

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.inertia import Ellipsoid, inertia_fault, nearest_consistent, solid
from sysid_core.parameters import COUPLING_TERMS, FRICTION_TERMS, ParameterLayout
from sysid_core.robot.description import UNCOMPENSATED, RobotDescription
from sysid_core.robot.urdf import Urdf

__all__ = ["consistent", "inertia_warnings", "nominal_parameters"]

_SMALLEST_MASS = 1e-3  # Share of the robot's mass that a body without mass starts from [-]
_BALL = Ellipsoid(np.zeros(3), 0.05**2 * np.eye(3))
"""What such a body starts as where its shape is not known [m]."""


def nominal_parameters(
    description: RobotDescription, urdf: Urdf, model: pin.Model, layout: ParameterLayout
) -> FloatArray:
    """Return the parameters (p,) that URDF and description give."""
    vector = np.zeros(layout.size)
    for index in range(1, model.njoints):
        vector[layout.body(index - 1)] = model.inertias[index].toDynamicParameters()
    for j, name in enumerate(layout.joints):
        joint, given = urdf.joints[name], description.friction_nominal.get(name, {})
        values = {"viscous": joint.damping, "coulomb": joint.friction, **given}
        for term in FRICTION_TERMS:
            if "friction" not in description.effort_excludes or term in UNCOMPENSATED:
                vector[layout.term(term)][j] = values.get(term, 0.0)
    for c, name in enumerate(layout.couplings):
        for term in COUPLING_TERMS:
            given = description.friction_nominal.get(name, {})
            vector[layout.coupling_term(term)][c] = given.get(term, 0.0)
    return vector


def inertia_warnings(urdf: Urdf, layout: ParameterLayout, nominal: FloatArray) -> tuple[str, ...]:
    """Return what is wrong with the URDF's links and with the bodies of parameters (p,)."""
    links, moved = urdf.links, (joint.child for joint in urdf.joints.values())
    warnings = [
        f"link '{name}' has an inertia that no body of {links[name].inertial[0]:g} kg can "
        "have; the prior uses the nearest possible one"
        for name in sorted(moved)
        if inertia_fault(links[name].inertial) == "impossible"
    ]
    for body, phi in layout.bodies_of(nominal).items():
        fault = inertia_fault(phi)
        if fault == "massless":
            warnings.append(
                f"body '{body}' has no mass in the URDF; the prior starts it from a small "
                "one, with little confidence"
            )
        elif fault in ("impossible", "degenerate"):
            warnings.append(
                f"body '{body}' has an impossible or degenerate inertia in the URDF; the "
                "prior starts from the nearest possible one"
            )
    return tuple(warnings)


def consistent(
    layout: ParameterLayout, nominal: FloatArray, shape: Callable[[int, str], Ellipsoid | None]
) -> FloatArray:
    """Return parameters (p,) with every body made physically possible, read-only.

    A body without mass fills its `shape`, of the joint and body that it is called with.
    """
    vector = nominal.copy()
    phi = layout.inertias(vector)
    total = max(float(phi[:, 0].clip(0.0).sum()), 1.0)
    mass = _SMALLEST_MASS * total
    for index, (name, body) in enumerate(zip(layout.bodies, phi, strict=True), start=1):
        if body[0] <= 1e-9 * total:
            body[:] = solid(mass, shape(index, name) or _BALL)
        body[:] = nearest_consistent(body, margin=1e-6)
    vector.setflags(write=False)
    return vector
