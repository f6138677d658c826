# SPDX-License-Identifier: Apache-2.0
"""The parameters that a controller is told to use."""

from __future__ import annotations

from dataclasses import dataclass

from sysid_core.arrays import FloatArray

__all__ = ["ModelInUse"]


@dataclass(frozen=True)
class ModelInUse:
    """Parameters in use."""

    parameters: FloatArray  # (p,)
    std: FloatArray  # (p,)
    base: FloatArray  # (b,) base parameters of `parameters`
    base_covariance: FloatArray  # (b, b): NaN where it is not known
    identified: bool  # Whether the parameters are identified rather than nominal
