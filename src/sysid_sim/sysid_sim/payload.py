# SPDX-License-Identifier: Apache-2.0
"""What a payload adds to the body that carries it."""

import numpy as np
import numpy.typing as npt

from sysid_core.arrays import FloatArray
from sysid_core.inertia import from_mass_com_inertia, smallest_eigenvalue
from sysid_sim.errors import SimulationError

__all__ = ["payload_parameters"]

_HEAVIEST = 10.0  # In masses of the robot: more than any lifts, and than the contact solver bears
_LONGEST_LEVER = 10.0  # [m]


def payload_parameters(
    mass: float, com: FloatArray, about_com: npt.ArrayLike | None, carrier: float
) -> FloatArray:
    """Return the parameters (10,) of a payload about the frame that it is attached to.

    It has a mass [kg], a centre of mass (3,) [m] and an inertia (3, 3) [kg·m²] about that, none
    for a point mass; `carrier` [kg] is the robot's mass.

    Raises
    ------
    SimulationError
        If no body can have this mass and inertia, or none that this robot carries.
    """
    inertia = np.zeros((3, 3)) if about_com is None else np.asarray(about_com, dtype=float)
    reach = float(np.sqrt(np.abs(inertia).max() / mass)) if mass > 0.0 else 0.0
    lever, most = max(float(np.abs(com).max(initial=0.0)), reach), _HEAVIEST * carrier
    if mass > most or lever > _LONGEST_LEVER:
        raise SimulationError(
            f"a payload of {mass:g} kg that reaches {lever:g} m is too much: at most "
            f"{most:.3g} kg, {_HEAVIEST:g} times the robot's, and {_LONGEST_LEVER:g} m"
        )
    numbers = [np.array([mass]), com, inertia.ravel()]
    if com.shape != (3,) or inertia.shape != (3, 3) or not np.isfinite(np.hstack(numbers)).all():
        raise SimulationError(
            "a payload needs a mass [kg], a centre of mass of three and an inertia of three by "
            "three finite numbers"
        )
    if mass < 0.0 or np.abs(inertia - inertia.T).max() > 1e-9:
        raise SimulationError(
            f"a payload needs a mass of at least zero and a symmetric inertia, got {mass:g} kg"
        )
    phi = from_mass_com_inertia(mass, com, inertia)
    scale = max(mass, float(np.trace(inertia)))
    if smallest_eigenvalue(phi) < -1e-9 * scale or (mass == 0.0 and inertia.any()):
        raise SimulationError(
            f"no body of {mass:g} kg has this inertia: its principal moments must be positive "
            "and each at most the sum of the others"
        )
    return phi
