# SPDX-License-Identifier: Apache-2.0
"""A known load tells the scale of each joint's efforts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from sysid_core.errors import DataError, ModelError
from sysid_core.gains import measured_gains
from sysid_core.identification import IdentifyConfig, identify
from sysid_core.inertia import from_mass_com_inertia
from sysid_core.loads import Bare, _load
from sysid_core.recording import Recording
from sysid_core.recordings import KnownLoad, Source, parse_load
from sysid_core.robot import load_robot
from sysid_core.signals.options import SignalConfig

SCALE = np.array([1.1, 1.08, 1.12, 0.95, 1.0, 1.05])
MASS, COM = 3.0, (0.05, 0.1, 0.1)


@pytest.mark.parametrize("placed", [True, False])
def test_a_known_load_tells_the_gains(
    make_recording: Callable[..., Recording], placed: bool
) -> None:
    robot = load_robot("ur10")
    truth = robot.consistent_nominal.copy()
    truth[robot.layout.term("coulomb")] = 2.0
    loaded = truth.copy()
    load = from_mass_com_inertia(MASS, np.array(COM), 0.01 * np.eye(3))
    loaded[robot.layout.body("wrist_3_link")] += load
    recordings = []
    for vector, seed in ((truth, 1), (loaded, 2)):
        recording = make_recording(robot, vector, duration=20.0, noise=0.3, seed=seed)
        assert recording.effort is not None
        recordings.append(replace(recording, effort=SCALE * recording.effort))
    known = KnownLoad("wrist_3_link", MASS, COM if placed else (0.0, 0.0, 0.0))
    sources = [Source(recordings[0]), Source(recordings[1], load=known)]
    found = measured_gains(robot, sources, 8.0, IdentifyConfig(), com=placed)
    truth_of = dict(zip(robot.joint_names, 1.0 / SCALE, strict=True))
    wanted = np.array([truth_of[joint] for joint in found.joints])
    assert {"shoulder_lift_joint", "elbow_joint", "wrist_1_joint"} <= set(found.joints)
    assert (np.abs(found.gain - wanted) < 4.0 * found.std + 1e-3).all()
    lift = found.joints.index("shoulder_lift_joint")
    assert found.gain[lift] == pytest.approx(wanted[lift], rel=0.02)
    with pytest.raises(DataError, match="without it"):
        measured_gains(robot, sources[1:], 8.0, IdentifyConfig(), com=placed)


def test_trusted_masses_take_an_error_of_gains_off_a_load(
    make_recording: Callable[..., Recording],
) -> None:
    described = load_robot("ur10").description
    trusted = replace(described.prior, relative_std=0.02)
    robot = load_robot(replace(described, prior=trusted, effort_gain_std=0.1))
    carried = robot.consistent_nominal.copy()
    load = from_mass_com_inertia(MASS, np.array(COM), 0.01 * np.eye(3))
    carried[robot.layout.body("wrist_3_link")] += load
    runs = [
        make_recording(robot, vector, duration=20.0, noise=0.3, seed=seed)
        for vector, seed in ((robot.consistent_nominal, 1), (carried, 2))
    ]
    options = IdentifyConfig(friction="described", signals=SignalConfig(cutoff=8.0))
    for scale in (0.92, 1.1):
        bare, loaded = (replace(r, effort=scale * r.effort) for r in runs if r.effort is not None)
        found = identify(robot, bare, options)
        estimate = found.estimate
        start = Bare(estimate.parameters, estimate.base_covariance, found.discrepancy)
        only = replace(options, only=("wrist_3_link",), start=start)
        (seen,) = identify(robot, loaded, only).loads
        assert seen.mass == pytest.approx(MASS, rel=0.02)  # the scale itself without
        assert abs(seen.mass - MASS) < 2.0 * seen.mass_std < 0.06 * MASS
        (blind,) = identify(robot, loaded, replace(only, start=Bare(estimate.parameters))).loads
        assert blind.mass == pytest.approx(scale * MASS, rel=0.02)
        assert blind.mass_std > 0.05 * MASS
    assert start.covariance is not None
    wrong = replace(start, covariance=start.covariance[1:, 1:])
    with pytest.raises(ModelError, match="identify it again"):
        identify(robot, loaded, replace(only, start=wrong))


def test_deviations_of_a_load_are_those_of_its_moments() -> None:
    rng = np.random.default_rng(3)
    moments = MASS * np.array([1.0, *COM])
    root = 0.02 * rng.normal(size=(4, 4))
    load = _load("tool", moments, root @ root.T, 0.0)
    drawn = moments + rng.normal(size=(20000, 4)) @ root.T
    np.testing.assert_allclose(load.mass_std, drawn[:, 0].std(), rtol=0.03)
    np.testing.assert_allclose(load.com_std, (drawn[:, 1:] / drawn[:, :1]).std(axis=0), rtol=0.03)


def test_a_load_is_stated_with_or_without_its_centre() -> None:
    assert parse_load("tool=2.5") == (KnownLoad("tool", 2.5, (0.0, 0.0, 0.0)), False)
    assert parse_load("tool=2.5,0,0.1,-1e-2") == (KnownLoad("tool", 2.5, (0.0, 0.1, -0.01)), True)


@pytest.mark.parametrize("text", ["tool", "tool=", "=1", "tool=-1", "tool=1,2", "tool=nan"])
def test_other_loads_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(DataError, match=r"BODY=MASS\[,X,Y,Z\]"):
        parse_load(text)
