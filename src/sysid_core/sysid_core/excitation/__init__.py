# SPDX-License-Identifier: Apache-2.0
"""Motions that make a robot's parameters show themselves."""

from sysid_core.excitation.design import ExciteConfig
from sysid_core.excitation.fourier import (
    FadedMotion,
    FourierMotion,
    States,
    quintic_step,
    random_motion,
)
from sysid_core.excitation.limits import MotionLimits, fit_into, motion_limits
from sysid_core.excitation.optimise import Excitation, excite

__all__ = [
    "Excitation",
    "ExciteConfig",
    "FadedMotion",
    "FourierMotion",
    "MotionLimits",
    "States",
    "excite",
    "fit_into",
    "motion_limits",
    "quintic_step",
    "random_motion",
]
