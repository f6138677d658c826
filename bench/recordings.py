# SPDX-License-Identifier: Apache-2.0
"""Recordings of real arms: the defaults of ``sysid identify`` beside plain weighted least squares.

Recordings lie in ``$SYSID_DATA`` or ``../shared/data``. Both models, and one that is identified as
if live, learn from the first 70 % of a recording and predict the rest; all are scored on the plain
chain's samples and filter, also on those alone that no repeated message disturbed.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from scipy.signal import butter, filtfilt

from bench.runner import Given, Result, run_benchmark, show_rows
from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.data import read_recording
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.online.replay import replay, stream_settings_for
from sysid_core.online.update import Update
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.signals.interpolation import nearest

__all__ = [
    "STILL",
    "TRAIN",
    "PlainSamples",
    "joint_errors",
    "live_until",
    "plain_regressor",
    "plain_samples",
    "plain_wls",
    "recording_of",
    "run",
    "ur10e_columns",
]

DATA = Path(os.environ.get("SYSID_DATA", "../shared/data"))
TRAIN = 0.7  # share of a recording that is learned from
REACH = 2.0  # periods of a low-pass after which a kink's acceleration is 1 % of its peak
STILL = 0.01  # a joint slower than this share of its top speed rests: dry friction is unknown
UR10E_ROWS = {"14harm50sec": slice(194, 4966), "14harm50secLoad": slice(307, 5071)}
TX40_GEARS = (32.0, 32.0, 45.0, -48.0, 45.0, 32.0)
TIAGO_GAINS = (1.0, 13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6)  # N·m per published unit


class Case(NamedTuple):
    """One recording: how to read it, its robot, and the low-pass of the plain chain [Hz]."""

    name: str
    load: Callable[[], tuple[Robot, Recording]]
    cutoff: float


class PlainSamples(NamedTuple):
    """Uniform samples: position [rad], velocity, acceleration, effort [N·m] (n, nj); time [s]."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray
    time: FloatArray


def recording_of(robot: Robot, columns: FloatArray, source: str) -> Recording:
    """Return a table (n, 1 + 2 nj) of times [s], positions [rad] and efforts as a recording."""
    names, n = robot.joint_names, len(robot.joint_names)
    time, position, effort = columns[:, 0], columns[:, 1 : n + 1], columns[:, n + 1 :]
    return Recording(time, names, position, effort=effort, source=source)


def ur10e_columns(run: str) -> FloatArray:
    """Return what `recording_of` takes of one of the UR10e's runs, cut to its trajectory."""
    rows = np.loadtxt(DATA / "ur10e" / f"ur-20_02_19_{run}.csv", delimiter=",")
    return np.asarray(rows[UR10E_ROWS[run]][:, [*range(7), *range(13, 19)]])


def _ur10() -> tuple[Robot, Recording]:
    return load_robot("ur10"), read_recording(DATA / "ur10" / "mcap")


def _panda() -> tuple[Robot, Recording]:
    return load_robot("panda"), read_recording(DATA / "panda" / "mcap")


def _ur10e() -> tuple[Robot, Recording]:
    robot = load_robot("ur10e")
    return robot, recording_of(robot, ur10e_columns("14harm50sec"), "ur10e")


def _tx40() -> tuple[Robot, Recording]:
    robot, path = load_robot("tx40"), DATA / "tx40" / "pos_read_data.csv"
    position = np.loadtxt(path, delimiter=",", skiprows=1)
    effort = np.loadtxt(DATA / "tx40" / "curr_data.csv", delimiter=",", skiprows=1)
    time = 2e-4 * np.arange(len(position))
    columns = np.column_stack([time, position, effort])[(time >= 0.3) & (time <= 7.4)]
    return robot, recording_of(robot, columns, str(path))


def _tiago() -> tuple[Robot, Recording]:
    recording = read_recording(DATA / "tiago" / "tiago.csv")
    urdf = DATA / "tiago" / "tiago.urdf"
    model = pin.buildModelFromUrdf(str(urdf))
    others = [name for name in model.names[1:] if name not in recording.joint_names]
    description = {
        "name": "tiago",
        "urdf": str(urdf),
        "joints": {"locked": {str(name): 0.0 for name in others}},
        "effort": {"gain": dict(zip(recording.joint_names, TIAGO_GAINS, strict=True))},
    }
    return load_robot(parse_description(description)), recording


CASES = (
    Case("ur10", _ur10, 8.0),
    Case("ur10e", _ur10e, 5.0),
    Case("tx40", _tx40, 30.0),
    Case("panda", _panda, 5.0),
    Case("tiago", _tiago, 5.0),
)
"""Recordings of real arms, with the low-pass that the data's own authors or README use."""


def _to_joints(robot: Robot, recording: Recording) -> tuple[FloatArray, FloatArray]:
    """Return positions [rad] and torques [N·m] in the robot's joint order, worked out here."""
    names = [robot.description.names.get(name, name) for name in recording.joint_names]
    order = [names.index(name) for name in robot.joint_names]
    position = np.unwrap(recording.position[:, order], axis=0)
    effort = np.zeros_like(position) if recording.effort is None else recording.effort[:, order]
    if robot.name == "tx40":
        gears = np.diag(TX40_GEARS)
        gears[5, 4] = 32.0
        position = position @ np.linalg.inv(gears).T
        position += np.pi * np.array([0.0, -0.5, 0.5, 0.0, 0.0, 0.0])
        return position, effort @ gears
    gain = robot.description.effort_gain
    if isinstance(gain, float):
        return position, gain * effort
    return position, effort * np.array([gain.get(name, 1.0) for name in robot.joint_names])


def plain_samples(robot: Robot, recording: Recording, cutoff: float) -> PlainSamples:
    """Interpolate linearly, low-pass (Butterworth, 4th order, both ways), differentiate."""
    position, effort = _to_joints(robot, recording)
    time = recording.time
    step = float(np.median(np.diff(time)))
    grid = np.arange(time[0], time[-1], step)
    b, a = butter(4, min(2.0 * cutoff * step, 0.9))
    q, tau = (
        filtfilt(
            b, a, np.column_stack([np.interp(grid, time, column) for column in values.T]), axis=0
        )
        for values in (position, effort)
    )
    v = np.gradient(q, step, axis=0)
    acceleration = np.gradient(v, step, axis=0)
    keep = slice(round(0.5 / step), -round(0.5 / step))  # the filter's edges
    return PlainSamples(q[keep], v[keep], acceleration[keep], tau[keep], grid[keep])


def _undisturbed(recording: Recording, time: FloatArray, cutoff: float) -> BoolArray:
    """Return at which times (n,) [s] the plain chain's accelerations hold no repeated message.

    A message that a logger writes twice stands still for a period and leaps in the next, which
    the plain chain differentiates as if the robot did.
    """
    repeated = recording.time[1:][(np.diff(recording.position, axis=0) == 0.0).all(axis=1)]
    if not len(repeated):
        return np.ones(len(time), dtype=np.bool_)
    near = nearest(repeated, repeated[:, np.newaxis], time)[:, 0]
    return np.asarray(np.abs(time - near) > REACH / cutoff)


def plain_regressor(robot: Robot, s: PlainSamples) -> FloatArray:
    """Return (n, nj, p): Pinocchio's regressor, viscous, Coulomb, armature, offset, couplings."""
    n, nj = s.position.shape
    data, D = robot.model.createData(), np.array([c.direction for c in robot.couplings])
    D = D.reshape(len(robot.couplings), nj)
    inertial = np.array(
        [
            pin.computeJointTorqueRegressor(robot.model, data, *state)
            for state in zip(*s[:3], strict=True)
        ]
    )
    eye = np.eye(nj)
    motions = (s.velocity, np.sign(s.velocity), s.acceleration)
    terms = [eye * values[:, None, :] for values in motions]
    terms.append(np.broadcast_to(eye, (n, nj, nj)))
    for rate, is_sign in ((s.velocity, False), (s.velocity, True), (s.acceleration, False)):
        for row in D:  # a motor that turns with several joints; its own joint has its own term
            turned = rate @ row
            if is_sign:
                column = np.outer(np.sign(turned), row)
            else:
                column = np.outer(turned, row) - rate * row**2
            terms.append(column[:, :, None])
    return np.concatenate([inertial, *terms], axis=2)


def plain_wls(A: FloatArray, tau: FloatArray) -> FloatArray:
    """Return the minimum-norm weighted least squares solution; weights from the residuals."""
    n, nj, p = A.shape
    weight = np.ones(nj)
    for _ in range(3):
        scaled = (A * weight[:, None]).reshape(n * nj, p)
        x = np.linalg.lstsq(scaled, (tau * weight).ravel(), rcond=1e-8)[0]
        weight = 1.0 / np.sqrt(np.mean((tau - A @ x) ** 2, axis=0)).clip(min=1e-9)
    return np.asarray(x)


def joint_errors(error: FloatArray, moving: BoolArray) -> FloatArray:
    """Return the root mean square error (nj,) [N·m] over the samples where each joint moves."""
    square = np.where(moving, error**2, 0.0).sum(axis=0)
    return np.sqrt(square / np.maximum(moving.sum(axis=0), 1))


def live_until(robot: Robot, recording: Recording, until: float) -> Update:
    """Return the last update of a recording that was live until a time [s]."""
    part = recording.select(slice(0, int(np.searchsorted(recording.time, until))))
    *_, last = replay(part, robot, stream=stream_settings_for(part, robot))
    return last.update


def compare(case: Case) -> dict[str, Any]:
    """Identify one recording by both, and score both on the plain chain's held-out samples."""
    robot, recording = case.load()
    found = identify(robot, recording, IdentifyConfig(train=TRAIN))
    samples = plain_samples(robot, recording, case.cutoff)
    A, tau = plain_regressor(robot, samples), samples.effort
    split = round(TRAIN * len(tau))
    x = plain_wls(A[:split], tau[:split])
    moving = np.abs(samples.velocity) > STILL * np.abs(samples.velocity).max(axis=0)
    predicted = {"plain": A @ x}
    live = live_until(robot, recording, float(samples.time[split]))
    for name, with_friction, vector in (
        ("nominal", robot, found.nominal),
        ("identified", found.robot, found.estimate.parameters),
        ("live", live.robot, live.parameters),
    ):
        model = TreeDynamics(with_friction)
        model.set_parameters(vector)
        predicted[name] = model.torques(*samples[:3])
    rmse = {
        name: joint_errors((tau - values)[split:], moving[split:])
        for name, values in predicted.items()
    }
    moving &= _undisturbed(recording, samples.time, case.cutoff)[:, np.newaxis]
    clear = {
        name: float(np.linalg.norm(joint_errors((tau - values)[split:], moving[split:])))
        for name, values in predicted.items()
    }
    total = {name: float(np.sqrt((values**2).sum())) for name, values in rmse.items()}
    own = found.validation or found.train
    return {
        "recording": case.name,
        "joints": list(robot.joint_names),
        "plain_cutoff_hz": case.cutoff,
        "cutoff_hz": found.signals.cutoff,
        "rmse": {name: values.tolist() for name, values in rmse.items()},
        "total": total,
        "own_total": {
            "nominal": float(np.linalg.norm(own.rmse_nominal)),
            "identified": float(np.linalg.norm(own.rmse_identified)),
        },
        "ratio": total["identified"] / total["plain"],
        "live_ratio": total["live"] / total["plain"],
        "undisturbed_ratio": clear["identified"] / clear["plain"],
        "consistent": bool(found.estimate.consistency.min() > 0.0),
    }


def run(given: Given) -> Result:
    """Compare on every recording."""
    results = [compare(case) for case in CASES if case.name in given.only]
    rows = [
        {
            "recording": r["recording"],
            **{model: r["total"][model] for model in ("nominal", "plain", "identified")},
            "identified / plain": r["ratio"],
            "live / plain": r["live_ratio"],
            "off repeats": r["undisturbed_ratio"],
            "cut-off plain [Hz]": r["plain_cutoff_hz"],
            "identified [Hz]": r["cutoff_hz"],
            "physically consistent": "yes" if r["consistent"] else "no",
        }
        for r in results
    ]
    title = "held-out torque error, root sum of squares over the joints [N·m]"
    table = show_rows(title, rows, ".3g")
    told = [
        {
            "recording": r["recording"],
            **r["own_total"],
            "times smaller": r["own_total"]["nominal"] / r["own_total"]["identified"],
        }
        for r in results
    ]
    own = show_rows("as `sysid identify` tells it [N·m]", told, ".3g")
    figures = {f"held-out error over plain, {r['recording']}": r["ratio"] for r in results}
    return Result(figures, {"recordings": results}, {"recordings": table, "own": own})


if __name__ == "__main__":
    run_benchmark(run, only=(tuple(case.name for case in CASES), "recordings"))
