# SPDX-License-Identifier: Apache-2.0
"""The parameters that a controller is told to use."""

from __future__ import annotations

from dataclasses import dataclass

from sysid_core.arrays import FloatArray

__all__ = ["ModelInUse"]


@dataclass(frozen=True)
class ModelInUse:
    """Parameters in use.

    Attributes
    ----------
    parameters, std : (p,)
    base : (b,)
        Base parameters of `parameters`.
    base_covariance : (b, b)
        NaN where it is not known.
    identified : bool
        Whether the parameters are identified rather than nominal.
    """

    parameters: FloatArray
    std: FloatArray
    base: FloatArray
    base_covariance: FloatArray
    identified: bool
