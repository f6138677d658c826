# SPDX-License-Identifier: Apache-2.0
"""The array types that every signature of the project uses, and a constant of statistics."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["MAD_TO_STD", "BoolArray", "FloatArray", "IndexArray"]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IndexArray = npt.NDArray[np.intp]

MAD_TO_STD = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
