# SPDX-License-Identifier: Apache-2.0
"""Reads a recording as one robot's: joint names and order, units, gains, sides of the gears."""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.diagnostics import Severity
from sysid_core.errors import DataError, found_in
from sysid_core.recording import Recording
from sysid_core.robot.conversion import JointConversion
from sysid_core.robot.locked import locked_elsewhere
from sysid_core.robot.model import Robot
from sysid_core.robot.plausibility import STILL, implausibilities

__all__ = ["STILL", "interpret"]

_BACKWARD_PERIODS = 5.0
"""Rows that are late by more sampling periods are no mere jitter of the transport."""
_SLOWEST = 1.0  # Rate [Hz] below which rows show no dynamics
_UNITS_OF_TIME = {"milliseconds": 1e3, "microseconds": 1e6, "nanoseconds": 1e9}
_USUAL_RATE = 10.0  # Rate [Hz] that the unit of stamps would make of one that is too low, at least
_JOINT_STATE = "sensor_msgs/msg/JointState"
_QUANTITIES = ("position", "velocity", "effort")
_MOST_SHOWN = 12


def interpret(
    robot: Robot,
    recording: Recording,
    *,
    lenient: bool = False,
    part_of: JointConversion | None = None,
) -> Recording:
    """Return a recording in the robot's joint order, SI units, on the joint side of the gears.

    Joints of the recording that the robot does not move are left out. Passive joints may be
    missing; their columns are NaN then, as are all passive joints' efforts. If lenient, rows with
    invalid numbers become missing ones, and a clock that goes back starts another stretch. Of a
    longer recording, whose conversion is given, the robot may well rest in this part.

    Raises
    ------
    DataError
        If actuated joints or efforts are missing, numbers are invalid, the clock goes back, or
        nothing moves.
    """
    with found_in(recording.source):
        warnings = list(recording.warnings)
        columns = _columns(robot, recording, warnings)
        taken = _quantities(recording, lambda values: _take(values, columns))
        chosen = replace(recording, joint_names=robot.joint_names, warnings=(), **taken)
        feet = tuple(contact.name for contact in robot.description.contacts)
        if recording.contacts is not None and feet:
            chosen = replace(chosen, contacts=recording.contacts.of(feet) or recording.contacts)
        if recording.imu is not None:
            chosen = replace(chosen, imu=replace(recording.imu, mounting=robot.imu_mounting))
        chosen = _clean(robot, chosen, lenient, warnings)
        if part_of is None:
            _require_effort(robot, chosen, warnings)
        chosen = _to_joints(robot, chosen, part_of or JointConversion(robot), warnings)
        if part_of is None:
            _require_motion(robot, chosen, warnings)
            locked = locked_elsewhere(robot, recording)
            for found in (*locked, *implausibilities(robot, chosen)):
                if found.severity is Severity.ERROR and not lenient:
                    raise DataError(str(found))
                warnings.append(str(found))
        return replace(chosen, warnings=tuple(dict.fromkeys(warnings)))


def _columns(robot: Robot, recording: Recording, warnings: list[str]) -> IndexArray:
    """Return each joint's column in the recording, −1 where a passive joint is missing."""
    mapping = robot.description.names
    renamed = [mapping.get(name, name) for name in recording.joint_names]
    doubled = sorted({name for name in renamed if renamed.count(name) > 1})
    if doubled:
        raise DataError(
            f"several recorded joints are taken for {doubled}; correct 'names' in the description"
        )
    found = np.array(
        [renamed.index(name) if name in renamed else -1 for name in robot.joint_names],
        dtype=np.intp,
    )
    absent = (found < 0) & robot.actuated
    missing = [name for name, lacks in zip(robot.joint_names, absent, strict=True) if lacks]
    used = set(robot.joint_names) | set(robot.description.locked)
    extra = [
        given
        for given, name in zip(recording.joint_names, renamed, strict=True)
        if name not in used
    ]
    if missing:
        raise DataError(
            f"joints {_quote(missing)} of robot '{robot.name}' are missing; the data have "
            f"{_quote(recording.joint_names)}{_hint(missing, extra)}{_other_topics(recording)}"
        )
    if extra:
        warnings.append(
            f"joints {_quote(extra)} of the data are none that robot '{robot.name}' moves: ignored"
        )
    return found


def _quote(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_SHOWN])
    return f"[{shown}{', …' if len(names) > _MOST_SHOWN else ''}]"


def _hint(missing: Sequence[str], extra: Sequence[str]) -> str:
    """Guess which of the extra names stand for the missing ones."""
    pairs = {}
    left = list(extra)
    for name in missing:
        close = difflib.get_close_matches(name, left, n=1, cutoff=0.6)
        if close:
            pairs[close[0]] = name
            left.remove(close[0])
    if len(pairs) == len(missing):
        text = ", ".join(f"{given}: {name}" for given, name in pairs.items())
        return f". If only the names differ, add 'names: {{{text}}}' to the description"
    if len(extra) >= len(missing):
        return (
            ". Give the robot that was recorded, or map the names under 'names' in its description"
        )
    return ". Give the robot that was recorded, or declare these joints passive or locked"


def _other_topics(recording: Recording) -> str:
    """Return what to say where joint states of another robot may have been read."""
    topics = [t.name for t in recording.topics if t.type == _JOINT_STATE and t.count]
    if len(topics) < 2:
        return ""
    return f". Joint states are on several topics ({', '.join(topics)}): choose with --topic A,B"


def _quantities(
    recording: Recording, change: Callable[[FloatArray], FloatArray]
) -> dict[str, Any]:
    """Return position, velocity and effort (n, nj), as far as recorded, after a change."""
    found = {quantity: getattr(recording, quantity) for quantity in _QUANTITIES}
    return {quantity: change(values) for quantity, values in found.items() if values is not None}


def _take(values: FloatArray, columns: IndexArray) -> FloatArray:
    taken = np.array(values[:, np.maximum(columns, 0)], dtype=float)
    taken[:, columns < 0] = np.nan
    return taken


def _clean(robot: Robot, recording: Recording, lenient: bool, warnings: list[str]) -> Recording:
    """Refuse invalid numbers and clocks that go back; if lenient, mark such rows as missing."""
    if len(recording) < 2:
        raise DataError("holds a single row; record for longer")
    step = np.diff(recording.time)
    forward = step[step > 0.0]
    period = float(np.median(forward)) if len(forward) else 0.0
    _require_seconds(period)
    back = np.flatnonzero(step < -_BACKWARD_PERIODS * period)
    if len(back) and not lenient:
        row = int(back[0])
        more = "" if len(back) == 1 else f" and {len(back) - 1} more times"
        raise DataError(
            f"time goes back by {-step[row]:.4g} s after t = {recording.time[row]:.6g} s"
            f"{more}; split the recording there, or use --lenient to take each "
            "part as a stretch of its own"
        )
    invalid = _invalid(robot, recording, lenient)
    if not invalid.any():
        return recording
    warnings.append(f"{int(invalid.any(axis=1).sum())} rows with NaN or inf were left out")
    return replace(
        recording, **_quantities(recording, lambda values: np.where(invalid, np.nan, values))
    )


def _require_seconds(period: float) -> None:
    """Refuse rows that follow each other as slowly as those of a table in another unit of time."""
    if period * _SLOWEST <= 1.0:
        return
    units = (unit for unit, n in _UNITS_OF_TIME.items() if n >= _USUAL_RATE * period)
    unit = next(units, "another unit")
    raise DataError(
        f"rows are {period:.3g} s apart, too slow for dynamics; if the time is in {unit}, "
        "convert it to seconds, else record more often"
    )


def _invalid(robot: Robot, recording: Recording, lenient: bool) -> BoolArray:
    """Return which values (n, nj) of joints are invalid.

    A row in which a joint has no value at all lacked it. A joint that has some quantities in a
    row and NaN for another, which it has elsewhere, was published with NaN.
    """
    arrays = _quantities(recording, np.asarray)
    given = {q: ~np.isnan(values) for q, values in arrays.items()}
    some = np.any(list(given.values()), axis=0)
    invalid = np.zeros(recording.position.shape, dtype=bool)
    for quantity, values in arrays.items():
        measured = given[quantity].any(axis=0) & (robot.actuated | (quantity != "effort"))
        bad = (np.isinf(values) | (some & ~given[quantity])) & measured
        if bad.any() and not lenient:
            row, joint = np.argwhere(bad)[0]
            value = "inf" if np.isinf(values[row, joint]) else "NaN"
            raise DataError(
                f"{quantity} of joint '{robot.joint_names[joint]}' is {value} at t = "
                f"{recording.time[row]:.6g} s ({int(bad.sum())} such values in all); delete these "
                "rows, or use --lenient to leave them out"
            )
        invalid |= bad
    return invalid


def _require_effort(robot: Robot, recording: Recording, warnings: list[str]) -> None:
    mend = "identification needs torques: let the driver publish effort"
    if recording.effort is None or np.isnan(recording.effort[:, robot.actuated]).all():
        raise DataError(f"holds no efforts; {mend}")
    lacking = np.isnan(recording.effort).all(axis=0) & robot.actuated
    if lacking.any():
        names = [n for n, bad in zip(robot.joint_names, lacking, strict=True) if bad]
        raise DataError(f"joints {_quote(names)} have no effort; {mend}")
    effort = recording.effort[:, robot.actuated]
    if (np.nan_to_num(effort) == 0.0).all():
        raise DataError(f"all efforts are zero; {mend}")
    mute = np.nanmax(effort, axis=0) == np.nanmin(effort, axis=0)
    for name in (n for n, bad in zip(robot.actuated_names, mute, strict=True) if bad):
        warnings.append(
            f"effort of joint '{name}' never changes, as if not measured: its rows are left out, "
            "and its friction stays as described; check its driver"
        )


def _to_joints(
    robot: Robot, recording: Recording, conversion: JointConversion, warnings: list[str]
) -> Recording:
    """Apply effort gains, the transmission and position offsets."""
    actuated = robot.actuated
    auto = conversion.motor_side is None
    position, effort = recording.position.copy(), np.full_like(recording.position, np.nan)
    published = effort if recording.effort is None else recording.effort
    position[:, actuated], effort[:, actuated] = conversion.convert(
        recording.position[:, actuated], published[:, actuated]
    )
    velocity = recording.velocity
    if velocity is not None:
        velocity = velocity.copy()
        velocity[:, actuated] = conversion.velocity(velocity[:, actuated])
    if auto and conversion.motor_side:
        warnings.append("positions are beyond the joints' limits: taken as the motors'")
    return replace(
        recording,
        position=position,
        velocity=velocity,
        effort=None if recording.effort is None else effort,
    )


def _require_motion(robot: Robot, recording: Recording, warnings: list[str]) -> None:
    position = recording.position[:, robot.actuated]
    if np.isnan(position).all(axis=0).any():
        name = robot.actuated_names[int(np.argmax(np.isnan(position).all(axis=0)))]
        raise DataError(f"joint '{name}' has no positions")
    extent = np.nanmax(position, axis=0) - np.nanmin(position, axis=0)
    if (extent < STILL).all():
        raise DataError(
            f"no joint moves by more than {extent.max():.2g} rad: there is nothing to identify; "
            "record while the robot moves all its joints"
        )
    still = [n for n, e in zip(robot.actuated_names, extent, strict=True) if e < STILL]
    if still:
        warnings.append(f"joints {_quote(still)} stand still: their friction stays as described")
