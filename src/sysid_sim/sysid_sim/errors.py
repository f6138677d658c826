# SPDX-License-Identifier: Apache-2.0
"""The errors that the simulation adds to the core's."""

from sysid_core.errors import SysidError

__all__ = ["SimulationError", "TimeStepError"]


class SimulationError(SysidError):
    """A robot, a payload, a setting or a scenario cannot be simulated."""


class TimeStepError(SimulationError):
    """The physics' time step is too long for a robot's damping."""
