# SPDX-License-Identifier: Apache-2.0
"""Motions that make a robot's parameters show themselves."""

from sysid_core.excitation.fourier import FourierMotion, States, random_motion
from sysid_core.excitation.limits import MotionLimits, fit_into, motion_limits
from sysid_core.excitation.optimise import Excitation, ExciteConfig, excite

__all__ = [
    "Excitation",
    "ExciteConfig",
    "FourierMotion",
    "MotionLimits",
    "States",
    "excite",
    "fit_into",
    "motion_limits",
    "random_motion",
]
