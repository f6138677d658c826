# SPDX-License-Identifier: Apache-2.0
"""Mixtures of what recordings and robots have, drawn at random: the default beside plain WLS.

``python -m bench.mixtures`` records random arms of three to seven joints. Motion, friction, gains,
ripple, filters, noise, quanta, rate and stamps are drawn one by one, so that nothing was tuned to
their combination. The first 70 % is learned from, as by ``sysid identify`` and as if live; the
rest is predicted at the true states, without noise. The plant is Pinocchio's recursive
Newton-Euler algorithm with friction of its own.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.signal import butter, lfilter

from bench.plants import Load
from bench.recordings import (
    STILL,
    TRAIN,
    PlainSamples,
    joint_errors,
    live_until,
    plain_regressor,
    plain_samples,
    plain_wls,
)
from bench.runner import Given, Result, geometric_mean, run_benchmark, say, show_rows
from bench.signal_faults import Plant
from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import TreeDynamics
from sysid_core.errors import SysidError
from sysid_core.excitation.fourier import quintic_step
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.robot import Robot

__all__ = ["Carried", "record"]

_STEP = 1e-3  # [s] of the plant
_MOTIONS = ("fourier", "moves", "chirp", "turns")
_FRICTIONS = ("plain", "stribeck", "presliding", "curved", "drifting")
_STAMPS = ("clean", "jitter", "held", "repeated", "lost")
_RATES = (50, 100, 125, 500, 1000)  # [Hz]
_ROWS = 6000  # samples of the plain chain, and of what is predicted
_FLOOR = 1.03  # error relative to plain least squares' that is as good


class Truth(NamedTuple):
    """What the plant did: time (n,) [s], states and gear-side torque (n, nj)."""

    time: FloatArray
    q: FloatArray
    v: FloatArray
    a: FloatArray
    torque: FloatArray


def _moves(rng: np.random.Generator, time: FloatArray, joints: int) -> FloatArray:
    """Return positions (n, nj): quintic moves between a few places, with pauses."""
    places = rng.uniform(-1.3, 1.3, (int(rng.choice([3, 6, 400])), joints))
    pause, now, here = rng.choice([0.0, 0.2, 1.0]), 0.0, places[0]
    q = np.tile(here, (len(time), 1))
    for number in range(1, 400):
        there = places[number % len(places)]
        length = max(0.5, 1.9 * float(np.abs(there - here).max()) / rng.uniform(0.6, 1.6))
        q += np.outer(quintic_step((time - now) / length)[0], there - here)
        now, here = now + length + pause, there
    return q


def _motion(rng: np.random.Generator, kind: str, time: FloatArray, joints: int) -> FloatArray:
    """Return positions (n, nj) [rad]."""
    if kind == "moves":
        return _moves(rng, time, joints)
    q = np.zeros((len(time), joints))
    if kind == "fourier":
        period, harmonics = rng.choice([5.0, 10.0, 20.0]), int(rng.choice([3, 5, 10]))
        for k in range(1, harmonics + 1):
            w = 2.0 * np.pi * k / period
            s, c = rng.normal(size=(2, joints)) * min(0.6, 1.5 / w) / np.sqrt(harmonics)
            q += s * np.sin(w * time)[:, None] + c * np.cos(w * time)[:, None]
    elif kind == "chirp":
        low, high = 0.05, rng.uniform(0.3, 1.0)
        frequency = low + (high - low) * time / time[-1]
        phase = 2.0 * np.pi * np.cumsum(frequency)[:, None] * _STEP * rng.uniform(0.7, 1.3, joints)
        size = np.minimum(0.8, 0.35 / frequency)[:, None] * rng.uniform(0.5, 1.0, joints)
        q += size * np.sin(phase + rng.uniform(0.0, 6.0, joints))
    else:  # one joint after the other
        turn = (time / 4.0).astype(int) % joints
        own = turn[:, None] == np.arange(joints)
        q += np.cumsum(np.where(own, 1.2 * np.sin(np.pi * time)[:, None], 0.0), axis=0) * _STEP
    return np.asarray(q + rng.uniform(-0.5, 0.5, joints))


def _friction(rng: np.random.Generator, kind: str, plant: FloatArray, truth: Truth) -> FloatArray:
    """Return friction (n, nj) [N·m] of joints whose usual rigid torque is `plant` (nj,)."""
    time, q, v, _, rigid = truth
    coulomb = rng.uniform(0.05, 0.5, len(plant)) * plant
    viscous, load = coulomb * rng.uniform(0.2, 2.0, len(plant)), rng.choice([0.0, 0.05, 0.15])
    shape, sign = np.ones_like(v), np.tanh(v / 2e-3)
    speed = v
    if kind == "stribeck":
        shape += rng.uniform(0.2, 1.0) * np.exp(-((v / rng.uniform(0.02, 0.2)) ** 2))
    elif kind == "presliding":  # Dahl 1968
        change = np.diff(q, axis=0) / 10.0 ** rng.uniform(-3.0, -1.5)
        sign = np.zeros_like(q)
        for i, step in enumerate(change):
            sign[i + 1] = np.sign(step) - (np.sign(step) - sign[i]) * np.exp(-np.abs(step))
    elif kind == "curved":
        speed = np.sign(v) * np.abs(v) ** 0.6
    elif kind == "drifting":
        speed = v * (1.0 + rng.uniform(0.3, 1.0) * np.exp(-2.0 * time / time[-1]))[:, None]
    return np.asarray((coulomb * shape + load * np.abs(rigid)) * sign + viscous * speed)


class Carried(NamedTuple):
    """A load that an arm carries for a part of its recording."""

    load: Load
    came: float  # [-] share of the recording after which it is picked up
    gone: float  # [-] the same of its being put down


def record(
    seed: int, drawn: dict[str, Any], carried: Carried | None = None
) -> tuple[Robot, Recording, Truth, float]:
    """Return a random arm, its recording, what is true, and the plain chain's cut-off [Hz]."""
    rng = np.random.default_rng(seed)
    arm = Plant(int(rng.integers(3, 8)), seed)
    joints = arm.model.nv
    time = np.arange(0.0, float(rng.choice([20.0, 40.0, 60.0])), _STEP)
    drawn |= {
        "motion": str(rng.choice(_MOTIONS, p=[0.4, 0.3, 0.2, 0.1])),
        "friction": str(rng.choice(_FRICTIONS)),
        "stamps": str(rng.choice(_STAMPS)),
        "rate": int(rng.choice(_RATES)),
    }
    q = _motion(rng, drawn["motion"], time, joints)
    v = np.gradient(q, _STEP, axis=0)
    a = np.gradient(v, _STEP, axis=0)
    truth = Truth(time, q, v, a, arm.rigid(q, v, a))
    usual = truth.torque.std(axis=0) + 0.05
    if carried is not None:
        held = (time >= carried.came * time[-1]) & (time < carried.gone * time[-1])
        more = arm.rigid(q[held], v[held], a[held], carried.load) - truth.torque[held]
        truth.torque[held] += more
        drawn["share"] = float((np.sqrt(np.mean(more**2, axis=0)) / usual).max())
    torque = truth.torque + _friction(rng, drawn["friction"], usual, truth)
    torque += usual * (rng.uniform(0.0, 0.015, joints) * a + 0.05 * rng.normal(size=joints))
    turns = q * rng.integers(8, 60, joints) + rng.uniform(0.0, 6.0, joints)
    torque += rng.choice([0.0, 0.02, 0.05]) * usual * np.sin(turns)
    gains = 1.0 + rng.choice([0.0, 0.05, 0.1]) * rng.normal(size=joints)
    torque, drawn["gains"] = torque * gains, float(np.abs(gains - 1.0).max())
    truth = truth._replace(torque=torque)
    effort = torque
    if slow := float(rng.choice([0.0, 0.0, 50.0, 15.0])):  # a driver's own low-pass [Hz]
        effort = lfilter(*butter(1, 2.0 * slow * _STEP), effort, axis=0)
    effort = effort + rng.choice([0.005, 0.02, 0.08]) * usual * rng.normal(size=q.shape)
    if coarse := float(rng.choice([0.0, 0.01, 0.04])):
        effort = np.round(effort / (coarse * usual)) * coarse * usual
    quantum = float(rng.choice([1e-6, 1e-5, 1e-4, 5e-4]))
    position = np.round((q + 0.3 * quantum * rng.normal(size=q.shape)) / quantum) * quantum
    rows = np.arange(0, len(time), 1000 // drawn["rate"])
    stamps, source = _logged(rng, drawn["stamps"], time[rows])
    names, taken = arm.robot.joint_names, rows[source]
    recording = Recording(stamps, names, position[taken], effort=effort[taken], source="mixture")
    return arm.robot, recording, truth, float(rng.choice([5.0, 8.0]))


def _logged(
    rng: np.random.Generator, kind: str, time: FloatArray
) -> tuple[FloatArray, np.ndarray[Any, Any]]:
    """Return stamps (m,) [s], and which row each message holds (m,)."""
    source, period = np.arange(len(time)), float(time[1] - time[0])
    if kind == "jitter":
        late = time + rng.exponential(0.3 * period, len(time))
        return np.maximum.accumulate(late) + 1e-7 * source, source
    if kind == "held":
        each = int(rng.choice([2, 4]))
        return time, source // each * each
    if kind == "repeated":
        return time, np.maximum.accumulate(np.where(rng.random(len(time)) < 0.05, 0, source))
    if kind == "lost":
        kept = source[(rng.random(len(time)) > 0.05) | (source == 0)]
        return time[kept], kept
    return time, source


def _plain(robot: Robot, recording: Recording, cutoff: float) -> tuple[FloatArray, float]:
    """Return plain least squares' parameters from the first part, and its end [s]."""
    plain = plain_samples(robot, recording, cutoff)
    count = round(TRAIN * len(plain.time))
    used = PlainSamples(*(column[: count : max(1, count // _ROWS)] for column in plain))
    x = plain_wls(plain_regressor(robot, used), used.effort)
    return x, float(plain.time[count])


def run(seed: int) -> dict[str, Any]:
    """Compare on one mixture: errors on what is held out, relative to plain least squares'."""
    say(f"mixture {seed}")
    drawn: dict[str, Any] = {"seed": seed}
    robot, recording, truth, cutoff = record(seed, drawn)
    try:
        found = identify(robot, recording, IdentifyConfig(train=TRAIN))
    except SysidError as refusal:
        return {**drawn, "error": str(refusal)}
    x, split = _plain(robot, recording, min(cutoff, 0.2 * drawn["rate"]))
    held = np.flatnonzero(truth.time > split)[:: max(1, len(truth.time) // _ROWS)]
    q, v, a, torque = (column[held] for column in truth[1:])
    moving = np.abs(v) > STILL * np.abs(truth.v).max(axis=0)
    # torques below a coarse sensor's first value are not measured
    moving &= np.ptp(np.asarray(recording.effort), axis=0) > 0.0

    def error(predicted: FloatArray) -> float:
        return float(np.linalg.norm(joint_errors(torque - predicted, moving)))

    def of(model: Robot, parameters: FloatArray) -> float:
        dynamics = TreeDynamics(model)
        dynamics.set_parameters(parameters)
        return error(dynamics.torques(q, v, a)) / floor

    floor = error(plain_regressor(robot, PlainSamples(q, v, a, torque, truth.time[held])) @ x)
    live = live_until(robot, recording, split)
    return {
        **drawn,
        "identified": of(found.robot, found.estimate.parameters),
        "live": of(live.robot, live.parameters),
        "nominal": of(robot, found.nominal),
        "in use": bool(live.identified),
        "why not": [] if live.identified else [str(cause) for cause in live.causes],
    }


def measure(given: Given) -> Result:
    """Compare on all mixtures, told by their stamps."""
    runs = [run(seed) for seed in range(given.seed, given.seed + given.seeds)]
    good = [one for one in runs if "error" not in one]
    rows = []
    for kind in _STAMPS:
        some = [one for one in good if one["stamps"] == kind]
        if some:
            rows.append({"stamps": kind, "recordings": len(some), **_summary(some)})
    rows.append({"stamps": "all", "recordings": len(good), **_summary(good)})
    table = show_rows("held-out error at the true states over plain", rows, ".3g")
    worst = max(one["live"] / one["nominal"] for one in good)
    figures = {
        "recordings that end in an error": float(len(runs) - len(good)),
        "share of held-out errors within 3 % of plain": float(
            np.mean([one["identified"] <= _FLOOR for one in good])
        ),
        "live error over nominal, worst": worst,
    }
    return Result(figures, {"runs": runs}, {"mixtures": table})


def _summary(runs: list[dict[str, Any]]) -> dict[str, float]:
    identified = np.array([one["identified"] for one in runs])
    live = np.array([one["live"] for one in runs if one["in use"]])
    return {
        "identified, geometric mean": geometric_mean(identified),
        "worst": float(identified.max()),
        "live, in use": len(live) / len(runs),
        "geometric mean of these": geometric_mean(live),
        "worst of these": float(max(live, default=np.nan)),
    }


if __name__ == "__main__":
    run_benchmark(measure, seeds=(20, "recordings"))
