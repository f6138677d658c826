# SPDX-License-Identifier: Apache-2.0
"""Designed motions keep the robot's limits and tell more than random ones."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.errors import ModelError, ParameterError
from sysid_core.excitation import (
    Excitation,
    ExciteConfig,
    MotionLimits,
    excite,
    fit_into,
    motion_limits,
    random_motion,
)
from sysid_core.excitation.information import Information
from sysid_core.excitation.optimise import Design
from sysid_core.robot import Robot, load_robot

FLOOR = 0.2
OPTIONS = ExciteConfig(duration=6.0, starts=1, iterations=15, floor=FLOOR, seed=2)


@pytest.fixture(scope="module")
def panda() -> Robot:
    return load_robot("panda")


@pytest.fixture(scope="module")
def limits(panda: Robot) -> MotionLimits:
    return motion_limits(panda, share=0.8, speed=0.7)


@pytest.fixture(scope="module")
def found(panda: Robot, limits: MotionLimits) -> Excitation:
    return excite(panda, limits, OPTIONS)


def test_the_gradient_is_that_of_the_objective(panda: Robot, limits: MotionLimits) -> None:
    design = Design(Information(panda), limits, OPTIONS)
    rng = np.random.default_rng(1)
    motion = random_motion(7, OPTIONS.duration, design.harmonics, rng)
    # a quarter beyond the limits, so that every penalty is at work
    x = design.variables(fit_into(motion, limits, fill=True).scaled(1.25))
    direction, step = rng.normal(size=x.shape), 1e-5
    _, gradient = design(x)
    expected = (design(x + step * direction)[0] - design(x - step * direction)[0]) / (2.0 * step)
    assert gradient @ direction == pytest.approx(expected, rel=1e-4)


def test_variables_and_motion_are_two_forms_of_the_same(
    panda: Robot, limits: MotionLimits
) -> None:
    design = Design(Information(panda), limits, OPTIONS)
    x = np.random.default_rng(4).normal(size=7 + 2 * 7 * (design.harmonics - 1))
    np.testing.assert_allclose(design.variables(design.motion(x)), x, atol=1e-12)


def test_all_limits_are_kept(panda: Robot, limits: MotionLimits, found: Excitation) -> None:
    states = found.motion.states(np.linspace(0.0, OPTIONS.duration, 3001))
    assert (states.position >= limits.lower).all()
    assert (states.position <= limits.upper).all()
    assert (np.abs(states.velocity) <= limits.velocity).all()
    assert (np.abs(states.acceleration) <= limits.acceleration).all()
    model = panda.with_parameters(panda.consistent_nominal)
    data = model.createData()
    friction = np.array(
        [panda.nominal[panda.layout.term(t)] for t in ("coulomb", "viscous", "offset")]
    )
    for q, v, a in zip(*states, strict=True):
        signs = np.stack([np.sign(v), v, np.ones_like(v)])
        torque = pin.rnea(model, data, q, v, a) + (friction * signs).sum(axis=0)
        assert (np.abs(torque) <= limits.effort).all()
        pin.framesForwardKinematics(model, data, q)
        moving = ["panda_joint4", "panda_joint5", "panda_joint6", "panda_joint7", "panda_link8"]
        heights = [data.oMf[model.getFrameId(name)].translation[2] for name in moving]
        assert min(heights) >= FLOOR - 1e-4  # between the samples that the design looks at


def test_it_tells_more_than_random_motions(found: Excitation) -> None:
    assert found.condition < found.random_condition
    assert found.sharpness > 1.1


def test_the_same_seed_gives_the_same_motion(
    panda: Robot, limits: MotionLimits, found: Excitation
) -> None:
    again = excite(panda, limits, OPTIONS)
    np.testing.assert_array_equal(again.motion.sine, found.motion.sine)


def test_robots_of_other_classes_are_refused() -> None:
    with pytest.raises(ModelError, match="closed loops"):
        Information(load_robot("digit_left_leg"))
    with pytest.raises(ModelError, match="floating base"):
        Information(load_robot("solo12"))


def test_limits_that_nothing_keeps_are_reported(panda: Robot, limits: MotionLimits) -> None:
    with pytest.raises(ParameterError, match="no motion within the limits"):
        excite(panda, limits, ExciteConfig(floor=10.0))


@pytest.mark.parametrize(
    "wrong",
    [{"duration": 0.0}, {"duration": np.nan}, {"harmonics": 1}, {"starts": 0}, {"floor": np.inf}],
)
def test_options_are_checked(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        ExciteConfig(**wrong)  # type: ignore[arg-type]
