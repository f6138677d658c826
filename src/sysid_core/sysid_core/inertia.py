# SPDX-License-Identifier: Apache-2.0
"""Maps between inertial parameters, pseudo-inertia matrices and bounding ellipsoids."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray
from sysid_core.errors import ModelError, ParameterError

__all__ = [
    "Ellipsoid",
    "central_inertia",
    "consistency_margin",
    "equivalent_ellipsoid",
    "from_mass_com_inertia",
    "from_pseudo_inertia",
    "inertia_fault",
    "nearest_consistent",
    "pseudo_inertia",
    "pseudo_inertia_basis",
    "rotational_inertia",
    "smallest_eigenvalue",
    "solid",
    "spatial_inertia",
    "transform_matrix",
]

_ROUNDING = 1e-9
"""Pseudo-inertia eigenvalues within this of zero, per mass, are zero [m²]."""
_LARGEST_GYRATION = 1.0
"""A link with a larger radius of gyration [m] about its centre is taken for a placeholder."""


class Ellipsoid(NamedTuple):
    """A bounding ellipsoid in a body's joint frame."""

    center: FloatArray  # (3,) [m]
    shape: FloatArray
    """(3, 3) [m²] positive definite Q_s with the ellipsoid {x : (x−c)ᵀ Q_s⁻¹ (x−c) ≤ 1}."""

    @property
    def quadric(self) -> FloatArray:
        """Matrix Q (4, 4) with tr(J Q) ≥ 0 for every density inside (Khorshidi et al. eq. 13)."""
        inverse = np.linalg.inv(self.shape)
        Q = np.empty((4, 4))
        Q[:3, :3] = -inverse
        Q[:3, 3] = Q[3, :3] = inverse @ self.center
        Q[3, 3] = 1.0 - self.center @ inverse @ self.center
        return Q


@cache
def _basis() -> FloatArray:
    E = np.zeros((10, 4, 4))
    E[0, 3, 3] = 1.0
    for k in range(3):
        E[1 + k, k, 3] = E[1 + k, 3, k] = 1.0
    # Σ = ½ tr(I) 1 − I, the second moment of the density (Wensing et al. 2018, eq. 12)
    for index, axis in ((4, 0), (6, 1), (9, 2)):
        E[index, :3, :3] = 0.5 * np.eye(3)
        E[index, axis, axis] -= 1.0
    for index, (a, b) in ((5, (0, 1)), (7, (0, 2)), (8, (1, 2))):
        E[index, a, b] = E[index, b, a] = -1.0
    E.setflags(write=False)
    return E


def pseudo_inertia_basis() -> FloatArray:
    """Return the matrices E (10, 4, 4) with J(φ) = Σ φ_k E_k."""
    return _basis()


def pseudo_inertia(phi: FloatArray) -> FloatArray:
    """Return the pseudo-inertia J(φ) = [[Σ, m·c], [(m·c)ᵀ, m]] (Wensing et al. 2018, eq. 17).

    Of parameters (..., 10) [kg, kg·m, kg·m²], (..., 4, 4); positive definite exactly when a body
    with these parameters can exist.
    """
    phi = np.asarray(phi, dtype=float)
    return (phi @ _basis().reshape(10, 16)).reshape(*phi.shape[:-1], 4, 4)


def from_pseudo_inertia(J: FloatArray) -> FloatArray:
    """Return the inertial parameters (..., 10) of a pseudo-inertia (..., 4, 4)."""
    J = np.asarray(J, dtype=float)
    S = J[..., :3, :3]
    trace = np.trace(S, axis1=-2, axis2=-1)
    return np.stack(
        [
            J[..., 3, 3],
            J[..., 0, 3],
            J[..., 1, 3],
            J[..., 2, 3],
            trace - S[..., 0, 0],
            -S[..., 0, 1],
            trace - S[..., 1, 1],
            -S[..., 0, 2],
            -S[..., 1, 2],
            trace - S[..., 2, 2],
        ],
        axis=-1,
    )


def smallest_eigenvalue(phi: FloatArray) -> FloatArray:
    """Return the smallest pseudo-inertia eigenvalue (...,) of inertial parameters (..., 10)."""
    return np.asarray(np.linalg.eigvalsh(pseudo_inertia(phi))[..., 0])


def consistency_margin(phi: FloatArray) -> FloatArray:
    """Return the smallest relative to the largest pseudo-inertia eigenvalue (...,) [-]."""
    eigenvalues = np.linalg.eigvalsh(pseudo_inertia(phi))
    return np.asarray(eigenvalues[..., 0] / np.maximum(eigenvalues[..., -1], 1e-300))


def rotational_inertia(phi: FloatArray) -> FloatArray:
    """Return the rotational inertia (..., 3, 3) [kg·m²] about the joint frame's origin."""
    phi = np.asarray(phi, dtype=float)
    rows = phi[..., [4, 5, 7, 5, 6, 8, 7, 8, 9]]
    return rows.reshape(*phi.shape[:-1], 3, 3)


def central_inertia(phi: FloatArray) -> FloatArray:
    """Return the rotational inertia (3, 3) [kg·m²] about the centre of mass."""
    phi = np.asarray(phi, dtype=float)
    mass, first = phi[0], phi[1:4]
    if mass <= 0.0:
        raise ParameterError(f"the centre of mass needs a positive mass, got {mass:g} kg")
    com = first / mass
    return rotational_inertia(phi) - mass * (com @ com * np.eye(3) - np.outer(com, com))


def from_mass_com_inertia(mass: float, com: FloatArray, inertia: FloatArray) -> FloatArray:
    """Return the parameters (10,) of a body: mass [kg], centre (3,) [m], inertia about it.

    The inertia (3, 3) [kg·m²] is in the axes of the result's frame.
    """
    com = np.asarray(com, dtype=float)
    about_origin = np.asarray(inertia, dtype=float) + mass * (
        com @ com * np.eye(3) - np.outer(com, com)
    )
    I = about_origin  # noqa: E741
    return np.array([mass, *(mass * com), I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])


def spatial_inertia(phi: FloatArray) -> pin.Inertia:
    """Return Pinocchio's inertia of inertial parameters (10,).

    Raises
    ------
    ModelError
        If a body without mass has other inertial parameters.
    """
    if phi[0] != 0.0:
        return pin.Inertia.FromDynamicParameters(phi)
    if not phi.any():
        return pin.Inertia.Zero()
    raise ModelError(
        "a body without mass cannot have other inertial parameters; "
        "use physically consistent parameters"
    )


def equivalent_ellipsoid(phi: FloatArray, scale: float = 1.0) -> Ellipsoid:
    """Return the solid ellipsoid of uniform density with these inertial parameters (10,).

    Its covariance is Σ_c / m, so its squared semi-axes are five times the eigenvalues;
    `scale` stretches the semi-axes.
    """
    J = pseudo_inertia(phi)
    mass = J[3, 3]
    com = J[:3, 3] / mass
    covariance = J[:3, :3] / mass - np.outer(com, com)
    return Ellipsoid(com, 5.0 * scale**2 * covariance)


def solid(mass: float, ellipsoid: Ellipsoid) -> FloatArray:
    """Return the inertial parameters (10,) of an ellipsoid of uniform density and a mass [kg]."""
    c = ellipsoid.center
    J = np.eye(4)
    J[:3, :3] = ellipsoid.shape / 5.0 + np.outer(c, c)
    J[:3, 3] = J[3, :3] = c
    return from_pseudo_inertia(mass * J)


def transform_matrix(rotation: FloatArray, translation: FloatArray) -> FloatArray:
    """Return the matrix T (10, 10) that moves inertial parameters into another frame.

    With the body frame placed at (`rotation` R, `translation` p [m]) in the target frame,
    φ_target = T φ_body, from J_target = H J Hᵀ and H = [[R, p], [0, 1]].
    """
    H = np.eye(4)
    H[:3, :3] = rotation
    H[:3, 3] = translation
    return from_pseudo_inertia(H @ _basis() @ H.T).T.copy()


def nearest_consistent(phi: FloatArray, margin: float = 1e-6) -> FloatArray:
    """Lift the eigenvalues of pseudo-inertias (..., 10) to at least `margin` times the largest."""
    values, vectors = np.linalg.eigh(pseudo_inertia(phi))
    floor = margin * np.maximum(values[..., -1:], np.finfo(float).tiny)
    lifted = np.maximum(values, floor)
    return from_pseudo_inertia(vectors * lifted[..., None, :] @ np.swapaxes(vectors, -1, -2))


def inertia_fault(phi: FloatArray) -> str | None:
    """Return what is wrong with the inertial parameters (10,) that a URDF gives, if anything.

    ``massless``, ``impossible`` (no body can have them), ``degenerate`` (of a body without
    extent), or ``placeholder`` (such as 1 kg·m² about all axes).
    """
    mass = phi[0]
    if mass <= 0.0:
        return "massless"
    smallest = smallest_eigenvalue(phi) / mass
    if smallest <= _ROUNDING:
        return "impossible" if smallest < -_ROUNDING else "degenerate"
    central = phi[[4, 6, 9]].sum() - 2.0 * phi[1:4] @ phi[1:4] / mass
    return "placeholder" if central > 2.0 * mass * _LARGEST_GYRATION**2 else None
