# SPDX-License-Identifier: Apache-2.0
"""Motors that turn with more than one joint, from the described transmission."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.robot.description import Transmission

__all__ = ["Coupling", "find_couplings"]


class Coupling(NamedTuple):
    """A motor that turns with more than one joint."""

    name: str
    direction: FloatArray
    """(nj,) [-] the motor's speed referred to its own joint is ``direction @ q̇``."""


def find_couplings(
    transmission: Transmission | None, joint_names: tuple[str, ...]
) -> tuple[Coupling, ...]:
    """Return the coupled motors of a transmission.

    Raises
    ------
    ValueError
        If its matrix is singular.
    """
    if transmission is None:
        return ()
    matrix = np.array(transmission.matrix)
    if abs(np.linalg.det(matrix)) < 1e-9 * np.abs(matrix).max() ** len(matrix):
        raise ValueError("effort.transmission.matrix is singular: motors must move all joints")
    couplings = []
    for i, joint in enumerate(transmission.joints):
        row = matrix[i]
        if np.count_nonzero(row) > 1:
            own = row[i] if row[i] != 0.0 else row[np.flatnonzero(row)[0]]
            direction = np.zeros(len(joint_names))
            for j, name in enumerate(transmission.joints):
                direction[joint_names.index(name)] = row[j] / own
            couplings.append(Coupling(f"{joint}_motor", direction))
    return tuple(couplings)
