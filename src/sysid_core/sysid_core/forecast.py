# SPDX-License-Identifier: Apache-2.0
"""A model's own motion: integrated from measured states under measured torques."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_dynamics import ContactDynamics
from sysid_core.dynamics.contact_kinematics import BASE, configuration
from sysid_core.dynamics.friction import FrictionLaw
from sysid_core.dynamics.select import make_dynamics
from sysid_core.errors import DataError
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = ["Forecast", "forecast"]

_SPAN = 0.25
"""Length of a window [s]: errors of torques show in velocities, and states do not drift apart."""
_LEAST = 0.05
"""Least length [s] of a window, where contacts change."""
_WINDOWS = 40
"""Most windows, evenly spread: their mean is known to a sixth of their scatter."""
_STEP = 1e-3
"""Longest step [s]; the midpoint rule errs by its square."""
_ITERATIONS = 2
"""Newton's steps for the velocity in the middle of a step."""
_SIGN_WIDTH = 0.02
"""Least width [rad/s] of the sign of dry friction, whose step no integrator takes."""
_SLOPE = 1e-4
"""Difference of velocities [rad/s] for the slope of friction."""


class Forecast(NamedTuple):
    """Root mean square errors of a model's motion in short windows."""

    joints: tuple[str, ...]  # The actuated ones
    position: FloatArray  # (na,) [rad], [rad/s]
    velocity: FloatArray  # (na,) [rad], [rad/s]
    # windows, lost: windows that count, and those that the model left its reach in.
    windows: int
    lost: int
    seconds: float  # [s] mean length of a window


class _FixedBase:
    """A tree or closed chains on a fixed base; states are those of the actuated joints."""

    def __init__(self, robot: Robot, samples: Samples) -> None:
        width = max(robot.description.coulomb_velocity, _SIGN_WIDTH)
        self._dynamics = make_dynamics(robot, width)
        self.set_parameters = self._dynamics.set_parameters
        self._friction, self._actuated = self._dynamics.friction, robot.actuated
        self.q, self.v = (x[:, robot.actuated] for x in (samples.position, samples.velocity))
        self.contacts: BoolArray = np.ones((len(samples), 0), dtype=bool)

    def step(
        self, at: int, q: FloatArray, v: FloatArray, effort: FloatArray, seconds: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the state after a step from sample `at` on; NaN out of reach."""
        middle, change, still = q + 0.5 * seconds * v, np.zeros_like(v), np.zeros_like(v)
        inertia = self._dynamics.inertia(middle)
        slope = np.diag(_slope(self._friction, self._actuated, q, v, effort))
        for _ in range(_ITERATIONS):
            force = effort - self._dynamics.torque(middle, v + 0.5 * change, still)
            left = seconds * force - inertia @ change
            if not np.isfinite(left).all():
                return np.full_like(q, np.nan), np.full_like(v, np.nan)
            change = change + np.linalg.solve(inertia + 0.5 * seconds * slope, left)
        return q + seconds * (v + 0.5 * change), v + change


class _Floating:
    """A floating base in contact; states are Pinocchio's."""

    def __init__(self, robot: Robot, samples: Samples) -> None:
        width = max(robot.description.coulomb_velocity, _SIGN_WIDTH)
        self._dynamics = ContactDynamics(robot, width)
        self.set_parameters, self._all = self._dynamics.set_parameters, robot.actuated
        self.q, self.v, _ = configuration(robot, samples)
        self.contacts, self._wrenches = ContactRegression(robot).contact_state(samples)

    def step(
        self, at: int, q: FloatArray, v: FloatArray, effort: FloatArray, seconds: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the state after a step from sample `at` on."""
        model, tree = self._dynamics.tree.model, self._dynamics.tree
        middle = pin.integrate(model, q, 0.5 * seconds * v)
        slope = np.zeros((len(v), len(v)))
        joints = np.arange(BASE, len(v))
        slope[joints, joints] = _slope(tree.friction, self._all, q[BASE + 1 :], v[BASE:], effort)
        after = v
        for _ in range(_ITERATIONS):
            terms = self._dynamics.terms(middle, 0.5 * (v + after))
            bias = terms.bias - 0.5 * slope @ (after - v)
            if self._wrenches is not None:
                known = self._dynamics.kinematics.evaluate(middle[None])
                bias = bias - known.generalised(self._wrenches[at : at + 1])[0]
            inertia = terms.inertia + 0.5 * seconds * slope
            terms = terms._replace(inertia=inertia, bias=bias)
            after = v + seconds * self._dynamics.forward(terms, effort, self.contacts[at])[0]
        return pin.integrate(model, q, 0.5 * seconds * (v + after)), after


def forecast(robot: Robot, samples: Samples, parameters: FloatArray) -> Forecast:
    """Integrate the model of parameters (p,) forward in windows, each from its measured state.

    The implicit midpoint rule, solved with friction's slope, keeps stiff friction stable; torques
    between samples are interpolated. Robots in contact hold fast what stands, in windows without a
    change of contact. Samples are uniform within uninterrupted stretches.

    Raises
    ------
    DataError
        If no window is long enough.
    """
    plant = _Floating(robot, samples) if robot.floating else _FixedBase(robot, samples)
    plant.set_parameters(parameters)
    effort = samples.effort[:, robot.actuated]
    errors, lost, length = [], 0, 0.0
    windows = _windows(samples.time, plant, effort)
    for first, last in windows:
        found = _errors(plant, samples.time, effort, first, last)
        if np.isfinite(found).all():
            errors.append(found)
            length += float(samples.time[last] - samples.time[first])
        else:
            lost += 1
    if not errors:
        raise DataError("the model leaves its reach wherever it is integrated: it is far off")
    root = np.sqrt(np.mean(np.concatenate(errors) ** 2, axis=0))
    position, velocity = root[:, 0], root[:, 1]
    return Forecast(
        robot.actuated_names, position, velocity, len(errors), lost, length / len(errors)
    )


def _errors(
    plant: _FixedBase | _Floating, time: FloatArray, effort: FloatArray, first: int, last: int
) -> FloatArray:
    """Return the errors (m, na, 2) of positions and velocities at the samples of a window."""
    q, v = plant.q[first], plant.v[first]
    joints = effort.shape[1]
    errors = np.empty((last - first, joints, 2))
    for at in range(first, last):
        steps = int(np.ceil((time[at + 1] - time[at]) / _STEP))
        seconds = float(time[at + 1] - time[at]) / steps
        for k in range(steps):
            share = (k + 0.5) / steps
            torque = (1.0 - share) * effort[at] + share * effort[at + 1]
            q, v = plant.step(at, q, v, torque, seconds)
        errors[at - first, :, 0] = (q - plant.q[at + 1])[-joints:]
        errors[at - first, :, 1] = (v - plant.v[at + 1])[-joints:]
        if not np.isfinite(v).all():
            errors[at - first :] = np.nan
            break
    return errors


def _windows(
    time: FloatArray, plant: _FixedBase | _Floating, effort: FloatArray
) -> list[tuple[int, int]]:
    """Return the first and last samples of windows that are integrated.

    Raises
    ------
    DataError
        If none is long enough.
    """
    step = float(np.median(np.diff(time)))
    known: BoolArray = np.asarray(np.isfinite(np.hstack([plant.q, plant.v, effort])).all(axis=1))
    changes = np.abs(np.diff(plant.contacts.astype(float), axis=0)).sum(axis=1)
    goes_on = (np.diff(time) < 1.5 * step) & np.equal(changes, 0.0)
    goes_on &= known[1:] & known[:-1]
    longest, shortest = max(1, round(_SPAN / step)), max(1, round(_LEAST / step))
    edges = np.flatnonzero(np.diff(np.concatenate([[False], goes_on, [False]])))
    found = [
        (at, min(at + longest, int(last)))
        for first, last in edges.reshape(-1, 2)
        for at in range(int(first), int(last) - shortest + 1, longest)
    ]
    if not found:
        raise DataError(
            f"no uninterrupted stretch of {_LEAST:g} s to integrate a model in; record for longer"
        )
    chosen = np.unique(np.linspace(0, len(found) - 1, min(_WINDOWS, len(found))).astype(int))
    return [found[i] for i in chosen]


def _slope(
    friction: FrictionLaw, actuated: BoolArray, q: FloatArray, v: FloatArray, effort: FloatArray
) -> FloatArray:
    """Return by how much friction (na,) grows with each actuated joint's speed [N·m·s/rad]."""

    def torque(speed: FloatArray) -> FloatArray:
        whole = np.zeros((4, len(actuated)))
        whole[:, actuated] = q, speed, np.zeros_like(q), effort
        return friction.torque(whole[0], whole[1], whole[2], rigid=whole[3])[actuated]

    change: FloatArray = (torque(v + _SLOPE) - torque(v - _SLOPE)) / (2.0 * _SLOPE)
    return np.maximum(change, 0.0)
