# SPDX-License-Identifier: Apache-2.0
"""Efforts that a driver publishes without gravity and friction identify the same bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.tree import TreeDynamics, TreeRegression
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.signals.options import SignalConfig

CONFIG = IdentifyConfig(friction="described", signals=SignalConfig(cutoff=8.0))


def _robot(*excludes: str) -> Robot:
    urdf = str(load_robot("ur10").urdf.path)
    described = {"name": "ur10", "urdf": urdf, "effort": {"excludes": list(excludes)}}
    return load_robot(parse_description(described))


def _gravity(robot: Robot, parameters: FloatArray, position: FloatArray) -> FloatArray:
    dynamics = TreeDynamics(robot)
    dynamics.set_parameters(parameters)
    return np.array([dynamics.gravity(q) for q in position])


@pytest.fixture(scope="module")
def heavy() -> FloatArray:
    """Return parameters of a robot a fifth heavier than described, without friction."""
    robot = _robot()
    vector = robot.consistent_nominal.copy()
    vector[robot.layout.friction] = 0.0
    robot.layout.inertias(vector)[:] *= 1.2
    return vector


@pytest.fixture(scope="module")
def whole(heavy: FloatArray, make_recording: Callable[..., Recording]) -> Recording:
    """Return ten seconds of motion, then two seconds of rest; efforts hold all torques."""
    robot = _robot()
    moving = make_recording(robot, heavy, duration=10.0, noise=0.3, seed=4)
    assert moving.velocity is not None
    assert moving.effort is not None
    rest = np.tile(moving.position[-1], (200, 1))
    time = moving.time[-1] + np.arange(1, 201) / 100.0
    return replace(
        moving,
        time=np.concatenate([moving.time, time]),
        position=np.concatenate([moving.position, rest]),
        velocity=np.concatenate([moving.velocity, np.zeros_like(rest)]),
        effort=np.concatenate([moving.effort, _gravity(robot, heavy, rest)]),
    )


def _without_gravity(whole: Recording, parameters: FloatArray) -> Recording:
    """Return what a driver publishes that takes the gravity of parameters (p,) off."""
    assert whole.effort is not None
    return replace(whole, effort=whole.effort - _gravity(_robot(), parameters, whole.position))


def test_what_a_driver_takes_off_is_put_back(whole: Recording, heavy: FloatArray) -> None:
    robot = _robot("gravity", "friction")
    described = np.where(heavy == 0.0, 0.0, robot.consistent_nominal)
    found = identify(robot, _without_gravity(whole, described), CONFIG)
    assert not [text for text in found.warnings if "standstill" in text]
    base = TreeRegression(robot).base
    samples = found.samples.select(slice(0, 300))
    A = TreeRegression(robot).full(samples.position, samples.velocity, samples.acceleration)
    error = A[:, :, base.columns] @ base.project(found.estimate.parameters - heavy)
    size = A[:, :, base.columns] @ base.project(heavy)
    assert np.linalg.norm(error) < 0.02 * np.linalg.norm(size)
    assert (found.estimate.parameters[robot.layout.term("coulomb")] == 0.0).all()


def test_a_wrong_declaration_is_named_at_standstill(whole: Recording, heavy: FloatArray) -> None:
    missing = identify(_robot(), _without_gravity(whole, heavy), CONFIG).warnings
    assert any("'effort.excludes: [gravity]'" in text for text in missing)
    too_much = identify(_robot("gravity"), whole, CONFIG).warnings
    assert any("take it out of 'effort.excludes'" in text for text in too_much)
    assert not any("standstill" in text for text in identify(_robot(), whole, CONFIG).warnings)
