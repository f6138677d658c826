# SPDX-License-Identifier: Apache-2.0
"""Trees and linkages as the design of motions sees them: actuated joints in, rows and room out."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

import numpy as np

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.base_parameters import (
    BaseParameters,
    find_base_parameters,
    well_conditioned_base,
)
from sysid_core.dynamics.closed_chain import ClosedChainRegression
from sysid_core.dynamics.open_tree import random_states
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.errors import ModelError
from sysid_core.excitation.fourier import States
from sysid_core.robot.library import load_robot
from sysid_core.robot.loop_check import random_closed_configurations
from sysid_core.robot.model import Robot

__all__ = ["Mechanism", "make_mechanism"]

_SMOOTH = 0.05
"""Width of the smoothed sign of velocity in derivatives [rad/s]."""
_OPEN = -1.0
"""Room [rad] of passive joints where the loops do not close."""


class Mechanism(Protocol):
    """What a design asks of a robot on a fixed base; states are of the actuated joints."""

    def columns(self, states: States, *, smooth: bool = False) -> FloatArray:
        """Return the regressor (n, na, p), zero where the robot cannot be; smooth in velocity."""

    def configurations(self, position: FloatArray) -> FloatArray:
        """Return positions (n, nq) of all joints, NaN where the loops do not close."""

    def room(self, configurations: FloatArray) -> FloatArray:
        """Return how far passive joints (n, nu) [rad] are from their limits; negative beyond."""

    def random(self, count: int) -> States:
        """Return random states that the robot can be in."""

    def base(self, regressor: FloatArray, labels: tuple[str, ...]) -> BaseParameters:
        """Return the base parameters of a regressor (m, p)."""


def _smoothed(robot: Robot) -> Robot:
    smooth = max(_SMOOTH, robot.description.coulomb_velocity)
    return load_robot(replace(robot.description, coulomb_velocity=smooth))


class _Tree:
    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._regressions = TreeRegression(robot), TreeRegression(_smoothed(robot))

    def columns(self, states: States, *, smooth: bool = False) -> FloatArray:
        return self._regressions[smooth].full(*states)

    def configurations(self, position: FloatArray) -> FloatArray:
        return position

    def room(self, configurations: FloatArray) -> FloatArray:
        return np.zeros((len(configurations), 0))

    def random(self, count: int) -> States:
        return States(*random_states(self._robot, count))

    def base(self, regressor: FloatArray, labels: tuple[str, ...]) -> BaseParameters:
        return find_base_parameters(regressor, labels)


class _Linkage:
    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._regressions = ClosedChainRegression(robot), ClosedChainRegression(_smoothed(robot))
        self._closure = self._regressions[0].closure
        self._last = np.zeros((0, 0))

    def columns(self, states: States, *, smooth: bool = False) -> FloatArray:
        motion = self._closure.motion(*states, self._start(len(states.position)))
        self._last = motion.q
        valid = motion.valid.nonzero()[0]
        every = np.arange(self._robot.layout.size)
        A = np.zeros((*states.position.shape, len(every)))
        A[valid] = self._regressions[smooth].contract(motion, valid, every)
        return A

    def _start(self, count: int) -> FloatArray | None:
        """Return the last motion's configurations: derivatives and steps stay close to it."""
        return self._last if len(self._last) == count else None

    def configurations(self, position: FloatArray) -> FloatArray:
        rest = np.zeros_like(position)
        self._last = self._closure.motion(position, rest, rest, self._start(len(position))).q
        return self._last

    def room(self, configurations: FloatArray) -> FloatArray:
        found = np.array([-self._closure.excess(q) for q in configurations])
        return np.where(np.isnan(found), _OPEN, found)

    def random(self, count: int) -> States:
        q = random_closed_configurations(self._closure, count)
        if len(q) < count:
            raise ModelError(
                f"robot '{self._robot.name}' closes its loops at only {len(q)} of many random "
                "configurations; correct the limits of its joints"
            )
        rates = np.random.default_rng(0).normal(size=(2, count, int(self._robot.actuated.sum())))
        return States(q[:, self._robot.actuated], *rates)

    def base(self, regressor: FloatArray, labels: tuple[str, ...]) -> BaseParameters:
        return well_conditioned_base(regressor, labels)


def make_mechanism(robot: Robot) -> Mechanism:
    """Return the mechanism of a robot on a fixed base.

    Raises
    ------
    ModelError
        If its base floats.
    """
    if robot.floating:
        raise ModelError(
            f"robot '{robot.name}' has a floating base; exciting motions are designed for robots "
            "on a fixed base only"
        )
    return _Linkage(robot) if robot.description.loops else _Tree(robot)
