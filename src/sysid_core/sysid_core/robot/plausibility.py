# SPDX-License-Identifier: Apache-2.0
"""What looks wrong with a recording: other units, another robot."""

from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from sysid_core.arrays import FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic, Severity
from sysid_core.recording import Recording
from sysid_core.robot.model import Robot

__all__ = [
    "BEYOND_RANGE",
    "BEYOND_SPEED",
    "STILL",
    "absurdity",
    "implausibilities",
    "mass_factor",
    "nominal_gravity",
    "some_of",
]

BEYOND_RANGE = np.pi
"""Positions so far [rad] out of range are a broken encoder or a joint that nothing stops: no
torque from them is worth sending. A joint that slips past its stop is still believed."""
BEYOND_SPEED = 10.0  # Velocities beyond so many times the limit are not measurements [-]

_ROWS = 400  # Rows that gravity torques are compared on
_SCALE = 3.0  # A torque scale that differs by a larger factor from the model's is implausible [-]
_OTHER_UNIT = 30.0
"""A larger one is another unit: no gain from currents to torques is known so badly [-]."""
_CORRELATION = 0.6
"""Gravity must explain torques at least so well before their scale says anything [-]."""
STILL = 1e-3  # A joint that moves less [rad] stands still
_LACKING = 0.2  # Share of the gravity torques that friction leaves in efforts without gravity [-]
_SPIKES = 2.0  # Share of the positions at either end that spikes may take [%]
_GLITCHES = 0.1  # Share of the efforts at either end that single wrong ones may take [%]
_BEYOND_LIMIT = 0.1  # Positions may pass a limit by this [rad]
_MASS_FACTOR = 2.0
"""Factor of the total mass beyond which no model is believed: no tool or load makes it."""
_TORQUE_FACTOR = 3.0
"""The same of the torques: effort gains of motors are further from one than this."""
_STATES = 64  # Configurations that gravity torques are compared at
_LOADED = 0.01  # Share of the largest square torque from which a joint carries a load


def mass_factor(robot: Robot, parameters: FloatArray) -> float:
    """Return the total mass of parameters (p,) over that of the robot's description."""
    identified, nominal = (
        float(robot.layout.inertias(vector)[:, 0].sum())
        for vector in (parameters, robot.consistent_nominal)
    )
    return identified / nominal


def absurdity(robot: Robot, parameters: FloatArray, share: float = 1.0) -> Diagnostic | None:
    """Say by what factor the mass or most joints' torques of parameters (p,) are off, if they are.

    So they are where all efforts are in amperes, or in shares of their limits; by a `share` of
    that, as logarithms, also where a model was partly learned from such efforts.
    """
    inertial = robot.layout.inertias(parameters).ravel()
    shares = _gravity_shares(robot) @ inertial
    torque = float(np.median(shares)) if len(shares) else 1.0
    for what, factor, most in (
        ("total mass is", mass_factor(robot, parameters), _MASS_FACTOR),
        ("gravity torques are", torque, _TORQUE_FACTOR),
    ):
        if not most**-share <= factor <= most**share:
            message = f"the identified {what} {factor:.2g} times the description's"
            hint = (
                "set 'effort.gain' (N·m per published unit) if efforts are currents, check the "
                "odometry and the URDF's masses"
            )
            return Diagnostic("total_mass", message, hint=hint)
    return None


def _gravity_shares(robot: Robot) -> FloatArray:
    """Return by what (k, 10 nb) bodies' parameters give the joints' gravity torques over nominal.

    Joints that carry hardly anything are left out; of a floating robot, whose feet carry it, all.
    """
    key = ("gravity shares", robot.description.gravity)
    if key not in robot.memo:
        nominal = robot.layout.inertias(robot.consistent_nominal).ravel()
        found = np.zeros((0, len(nominal)))
        if not robot.floating:
            model, none = robot.model, np.zeros(robot.model.nv)
            data, drawn = model.createData(), np.random.default_rng(0)
            places = drawn.uniform(*robot.sampling_range, (_STATES, model.nv))
            rows = np.array(
                [pin.computeJointTorqueRegressor(model, data, q, none, none) for q in places]
            )
            torque = rows @ nominal
            size = (torque**2).sum(axis=0)
            loaded = size > _LOADED * max(float(size.max()), 1e-12)
            found = np.einsum("sj,sjp->jp", torque, rows)[loaded] / size[loaded, None]
        robot.memo[key] = (found,)
    return np.asarray(robot.memo[key][0])


def implausibilities(robot: Robot, recording: Recording) -> Iterator[Diagnostic]:
    """Say what looks wrong with an interpreted recording's units or robot.

    What cannot be right is an error: nothing would be learned but the mistake.
    """
    yield from _ranges(robot, recording)
    yield from _positions(robot, recording)
    yield from _efforts(robot, recording)


def _extremes(values: FloatArray, beyond: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Return least and largest values of each column, but for a share [%] `beyond` each."""
    measured = ~np.isnan(values).all(axis=0)
    low, high = np.zeros(values.shape[1]), np.zeros(values.shape[1])
    low[measured], high[measured] = np.nanpercentile(
        values[:, measured], (beyond, 100.0 - beyond), axis=0
    )
    return low, high


def _ranges(robot: Robot, recording: Recording) -> Iterator[Diagnostic]:
    low, high = _extremes(recording.position)
    empty = (robot.limits.lower >= robot.limits.upper) & (high - low > STILL)
    if empty.any():
        names = ", ".join(n for n, e in zip(robot.joint_names, empty, strict=True) if e)
        message = f"lower and upper limit are equal, and taken as none: {names}"
        hint = "give both, in the URDF or under 'limits.position' in the description"
        yield Diagnostic("ranges", message, hint=hint)


def _positions(robot: Robot, recording: Recording) -> Iterator[Diagnostic]:
    low, high = _extremes(recording.position)
    lower, upper = robot.limits.known_range
    excess = np.maximum(lower - low, high - upper)
    beyond = excess > _BEYOND_LIMIT
    if not beyond.any():
        turns = np.maximum(np.abs(low), np.abs(high)) > 20.0 * np.pi
        if not (turns & np.isinf(upper)).any():
            return
    radians = np.maximum(np.radians(low) - upper, lower - np.radians(high))
    fits = (np.radians(high) <= upper + _BEYOND_LIMIT) & (np.radians(low) >= lower - _BEYOND_LIMIT)
    least, most = _extremes(recording.position, _SPIKES)
    far = np.maximum(lower - least, most - upper) > np.pi
    if fits.all() and (radians <= 0.0).all() and far.any():
        message = (
            "positions look like degrees: they are far beyond the joints' limits in radians, and "
            "within them in degrees"
        )
        # one joint may have turned on and on, but hardly most of them
        certain = 2 * np.count_nonzero(far) > np.count_nonzero(most - least > STILL)
        severity = Severity.ERROR if certain else Severity.WARNING
        yield Diagnostic("degrees", message, severity, hint="convert them to radians")
        return
    names = ", ".join(
        f"{name} ({low[j]:.3g} … {high[j]:.3g} rad, limits {lower[j]:.3g} … {upper[j]:.3g})"
        for j, name in enumerate(robot.joint_names)
        if beyond[j]
    )
    message, hint = "positions run over tens of turns", "are they in radians?"
    if names:
        message = f"positions beyond the joints' limits: {names}"
        hint = "wrong units, zero or robot?"
    yield Diagnostic("positions", message, hint=hint)


def _efforts(robot: Robot, recording: Recording) -> Iterator[Diagnostic]:
    if recording.effort is None:
        return
    low, high = _extremes(recording.effort, _GLITCHES)
    largest = np.maximum(np.abs(low), np.abs(high))
    for name, value, limit in zip(robot.joint_names, largest, robot.limits.effort, strict=True):
        if value > 1.5 * limit:
            message = (
                f"effort scale implausible: joint '{name}' reaches {value:.4g} N·m, its limit is "
                f"{limit:.4g} N·m"
            )
            hint = (
                "set 'effort.gain' (N·m per published unit) in the description, or "
                "'limits.effort' if the URDF's is a placeholder"
            )
            yield Diagnostic("effort_limit", message, hint=hint)
    if robot.floating or robot.linked:
        return  # contact and loop forces carry the weight: gravity alone says nothing
    yield from _excluded(robot, recording.position, recording.effort)
    yield from _scale(robot, recording.position, recording.effort)


def _scale(robot: Robot, position: FloatArray, effort: FloatArray) -> Iterator[Diagnostic]:
    ratios = _gravity_ratios(robot, position, effort)
    if not len(ratios):
        return
    if (ratios < 0.0).all():
        message = "efforts have the opposite sign of the model's gravity torques"
        hint = "check their sign, 'effort.gain' and 'gravity' in the description"
        yield Diagnostic("effort_sign", message, hint=hint)
    size = float(np.median(np.abs(ratios)))
    if not 1.0 / _SCALE < size < _SCALE:
        other = not 1.0 / _OTHER_UNIT < size < _OTHER_UNIT
        message = (
            f"effort scale implausible: efforts are {size:.3g} times the URDF's gravity torques"
        )
        hint = (
            "if they are motor currents, set 'effort.gain' (N·m per published unit) in the "
            "description, else check the URDF's masses"
        )
        severity = Severity.ERROR if other else Severity.WARNING
        yield Diagnostic("effort_scale", message, severity, hint=hint)


def _excluded(robot: Robot, position: FloatArray, effort: FloatArray) -> Iterator[Diagnostic]:
    """Say where efforts at standstill hold gravity that they are said to lack, or lack it."""
    step = max(1, len(position) // _ROWS)
    moved = np.abs(position[step:] - position[:-step]).max(axis=1)
    rows = np.flatnonzero(np.append(moved < STILL, np.zeros(step, dtype=bool)))
    if not len(rows):
        return
    rows = some_of(rows, _ROWS)
    gravity, effort = nominal_gravity(robot.model, position[rows]), effort[rows]
    said = "gravity" in robot.description.effort_excludes
    effort = effort - gravity if said else effort
    size = np.linalg.norm(gravity)
    agreement = float(np.vdot(gravity, effort) / max(size * np.linalg.norm(effort), 1e-300))
    if said and agreement > _CORRELATION and np.linalg.norm(effort) > 0.5 * size:
        message, hint = "efforts at standstill hold gravity", "take it out of 'effort.excludes'"
        yield Diagnostic("gravity_included", message, hint=hint)
    lacks = np.linalg.norm(effort) < _LACKING * size and agreement < _CORRELATION
    if not said and lacks:
        hint = "if the robot compensates it, say 'effort.excludes: [gravity]' in the description"
        yield Diagnostic("gravity_excluded", "efforts at standstill lack gravity", hint=hint)


def some_of(rows: IndexArray, most: int) -> IndexArray:
    """Return some rows of many, evenly spread."""
    return rows[np.linspace(0, len(rows) - 1, min(most, len(rows))).astype(int)]


def nominal_gravity(model: pin.Model, position: FloatArray) -> FloatArray:
    """Return the nominal model's gravity torques (m, nj) [N·m] at positions (m, nj)."""
    data = model.createData()
    torques = (pin.computeGeneralizedGravity(model, data, q) for q in position)
    return np.array([torque.copy() for torque in torques])


def _gravity_ratios(robot: Robot, position: FloatArray, effort: FloatArray) -> FloatArray:
    """Return the factors (k,) from the nominal gravity torques of joints to efforts that agree."""
    complete = np.isfinite(position).all(axis=1)
    complete &= np.isfinite(effort[:, robot.actuated]).all(axis=1)
    rows = np.flatnonzero(complete)
    if len(rows) < 20:
        return np.zeros(0)
    rows = some_of(rows, _ROWS)
    gravity = nominal_gravity(robot.model, position[rows])[:, robot.actuated]
    effort = effort[rows][:, robot.actuated]
    gravity, effort = gravity - gravity.mean(axis=0), effort - effort.mean(axis=0)
    # joints share one scale only roughly: the strongest few decide, friction is left to the rest
    strong = gravity.std(axis=0) > 0.1 * max(float(gravity.std(axis=0).max()), 1e-12)
    g, e = gravity[:, strong], effort[:, strong]
    cross, own = (g * e).sum(axis=0), (g * g).sum(axis=0)
    correlation = cross / np.sqrt(own * np.maximum((e * e).sum(axis=0), 1e-300))
    agreeing = (np.abs(correlation) > _CORRELATION) & (own > 1e-12)
    ratios: FloatArray = cross[agreeing] / own[agreeing]
    return ratios
