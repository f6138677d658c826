# SPDX-License-Identifier: Apache-2.0
"""Closed chains: their rows are the constrained dynamics, and noise-free data give the truth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainDynamics, ClosedChainRegression
from sysid_core.dynamics.select import make_regression
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import RobotError
from sysid_core.estimation import Problem, estimator
from sysid_core.priors import default_constraints, default_prior
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot, read_description

ROBOTS = Path(__file__).resolve().parents[4] / "config" / "robots"
FRICTION = ("viscous", "coulomb", "armature", "offset")


@pytest.fixture(scope="module")
def leg() -> Robot:
    return load_robot(ROBOTS / "digit_left_leg.yaml")


@pytest.fixture(scope="module")
def regression(leg: Robot) -> ClosedChainRegression:
    found = make_regression(leg)
    assert isinstance(found, ClosedChainRegression)
    return found


def excitation(n: int, *, rate: float = 100.0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return a rich motion (n, 6) of the leg's motors; the toes' in opposite senses mostly."""
    rng = np.random.default_rng(8)
    t = np.arange(n)[:, None] / rate
    q, v, a = np.zeros((3, n, 6))
    size = np.array([0.4, 0.3, 0.5, 0.4, 0.22, 0.22])
    for harmonic in range(1, 6):
        w = 2.0 * np.pi * 0.31 * harmonic
        phase, share = rng.uniform(0.0, 2.0 * np.pi, 6), size * rng.uniform(0.5, 1.0, 6) / harmonic
        phase[5] = phase[4] + np.pi + 0.4
        q += share * np.sin(w * t + phase)
        v += share * w * np.cos(w * t + phase)
        a -= share * w * w * np.sin(w * t + phase)
    return q, v, a


def true_parameters(leg: Robot, *, inertias: bool) -> FloatArray:
    """Return parameters that differ from the nominal ones as two copies of a robot do."""
    rng = np.random.default_rng(9)
    layout, x = leg.layout, leg.consistent_nominal.copy()
    motors = np.flatnonzero(leg.actuated)
    for term in ("viscous", "coulomb", "armature"):
        x[layout.term(term).start + motors] *= rng.uniform(0.5, 1.8, 6)
    x[layout.term("offset").start + motors] = rng.normal(0.0, 0.3, 6)
    if inertias:
        scale = rng.uniform(0.8, 1.25, len(layout.bodies))
        scale[[name.endswith("cross_link") for name in layout.bodies]] = 1.0  # are not identified
        layout.inertias(x)[:] *= scale[:, None]
    return x


def samples_of(leg: Robot, x: FloatArray, n: int) -> Samples:
    """Return noise-free samples, passive joints unmeasured."""
    q, v, a = excitation(n)
    dynamics = ClosedChainDynamics(leg)
    dynamics.set_parameters(x)
    u = np.array([dynamics.torque(*state) for state in zip(q, v, a, strict=True)])
    full = [np.full((n, len(leg.joint_names)), np.nan) for _ in range(4)]
    for array, values in zip(full, (q, v, a, u), strict=True):
        array[:, leg.actuated] = values
    return Samples(np.arange(n) / 100.0, *full)


def test_torques_are_those_of_the_constrained_equations_of_motion(
    leg: Robot, regression: ClosedChainRegression
) -> None:
    """Newton–Euler of the open tree equals motor torques plus constraint forces: Sᵀu + Jᵀλ."""
    x = true_parameters(leg, inertias=True)
    samples = samples_of(leg, x, 40)
    motion = regression.passive_states(samples)
    model = leg.with_parameters(x)
    data = model.createData()
    dynamics = ClosedChainDynamics(leg)
    dynamics.set_parameters(x)
    friction = dynamics.friction
    select = np.eye(15)[:, leg.actuated]
    for i in range(len(samples)):
        q, v, a = motion.q[i], motion.v[i], motion.a[i]
        tau = pin.rnea(model, data, q, v, a) + friction.torque(q, v, a)
        J = regression.closure.equations.jacobian(q)
        unknown, *_ = np.linalg.lstsq(np.hstack([select, J.T]), tau, rcond=None)
        np.testing.assert_allclose(unknown[:6], samples.effort[i, leg.actuated], atol=1e-9)


def test_rows_times_parameters_are_the_torques(
    leg: Robot, regression: ClosedChainRegression
) -> None:
    x = true_parameters(leg, inertias=True)
    samples = samples_of(leg, x, 100)
    rows = regression.rows(samples)
    assert regression.groups == leg.actuated_names
    assert rows.left_out.diagnostics == ()
    assert rows.finite
    for residual, block in zip(
        rows.residuals(regression.base.project(x)), rows.blocks, strict=True
    ):
        assert np.abs(residual).max() < 1e-9 * np.abs(block.target).max()


def test_the_base_spans_the_regressor_well_conditioned(regression: ClosedChainRegression) -> None:
    """At fresh states, whatever full parameters do to torques their base parameters do."""
    base, p = regression.base, regression.layout.size
    rng = np.random.default_rng(10)
    q, v, a = excitation(50)
    nj = len(regression.robot.joint_names)
    arrays = [np.full((50, nj), np.nan) for _ in range(4)]
    for array, values in zip(arrays, (q, v, a, 0.0 * q), strict=True):
        array[:, regression.robot.actuated] = values
    rows = regression.rows(Samples(np.arange(50.0), *arrays))
    assert base.mapping.shape == (base.size, p)
    np.testing.assert_array_equal(base.mapping[:, base.columns], np.eye(base.size))
    x = rng.normal(size=p)
    null = x - np.linalg.pinv(base.mapping) @ base.project(x)  # torques must not see this
    motion = regression.passive_states(Samples(np.arange(50.0), *arrays))
    W = regression.contract(motion, np.arange(50), np.arange(p))
    assert np.abs(W @ null).max() < 1e-9 * np.abs(W @ x).max()
    for j, block in enumerate(rows.blocks):
        expected = W[:, j] @ x
        error = block.matrix @ base.project(x) - expected
        assert np.abs(error).max() < 1e-9 * np.abs(expected).max()


def test_supports_hold_all_that_rows_can_fill(
    leg: Robot, regression: ClosedChainRegression
) -> None:
    rows = regression.rows(samples_of(leg, leg.consistent_nominal, 60))
    scale = np.max([np.abs(block.matrix).max(axis=0) for block in rows.blocks], axis=0)
    for block, support in zip(rows.blocks, regression.supports, strict=True):
        outside = np.setdiff1d(np.arange(regression.base.size), support)
        assert (np.abs(block.matrix[:, outside]) <= 1e-9 * scale[outside]).all()
    toes = [len(support) for support in regression.supports[-2:]]
    assert max(toes) < regression.base.size // 2  # they move little of the leg


@pytest.mark.parametrize("method", ["entropic", "wls"])
def test_motors_are_identified_exactly_with_inertias_held(method: str) -> None:
    """The paper's choice for legs: friction and rotor inertia to 1e-6, torque to 1e-8."""
    description = read_description(ROBOTS / "digit_left_leg.yaml")
    leg = load_robot(replace(description, inertias="none"))
    x = true_parameters(leg, inertias=False)
    identified, relative = identify_noise_free(leg, x, method)
    motors = np.flatnonzero(leg.actuated)
    for term in FRICTION:
        where = leg.layout.term(term).start + motors
        np.testing.assert_allclose(identified[where], x[where], atol=1e-6 * np.abs(x[where]).max())
    np.testing.assert_array_equal(
        identified[leg.layout.inertial], leg.consistent_nominal[leg.layout.inertial]
    )
    assert relative < 1e-8


def test_everything_is_identified_from_noise_free_data(leg: Robot) -> None:
    """All inertias too: torque to 1e-8 of its size, on motion beyond what was learned from."""
    x = true_parameters(leg, inertias=True)
    identified, relative = identify_noise_free(leg, x, "wls")
    assert relative < 1e-8
    motors = np.flatnonzero(leg.actuated)
    for term in ("viscous", "coulomb"):  # rotors turn with links, whose inertia is free too
        where = leg.layout.term(term).start + motors
        np.testing.assert_allclose(identified[where], x[where], rtol=1e-6)


def identify_noise_free(leg: Robot, x: FloatArray, method: str) -> tuple[FloatArray, float]:
    """Return identified parameters and the largest relative torque error on held-out motion."""
    regression = make_regression(leg)
    samples = samples_of(leg, x, 1200)
    rows = regression.rows(samples.select(slice(0, 900)))
    problem = Problem(
        leg.layout,
        regression.base,
        regression.groups,
        Statistics.of(rows),
        default_prior(leg),
        default_constraints(leg),
    )
    estimate = estimator(method, noise_floor=1e-12).solve(problem)
    held = regression.rows(samples.select(slice(900, 1200)))
    errors = held.residuals(regression.base.project(estimate.parameters))
    relative = max(
        float(np.abs(e).max() / np.abs(block.target).max())
        for e, block in zip(errors, held.blocks, strict=True)
    )
    return estimate.parameters, relative


def test_samples_out_of_reach_are_left_out_and_counted(
    leg: Robot, regression: ClosedChainRegression
) -> None:
    samples = samples_of(leg, leg.consistent_nominal, 30)
    samples.position[10:13][:, [7, 10]] = 0.75  # the toe rods are too short for this
    samples.position[20, 0] = np.nan
    rows = regression.rows(samples)
    assert (rows.left_out.samples, rows.left_out.count) == (30, 4)
    (diagnostic,) = rows.left_out.diagnostics
    assert diagnostic.kind == "open_loop"
    assert diagnostic.share == pytest.approx(4 / 30)
    kept = [i for i in range(30) if i not in (10, 11, 12, 20)]
    for block in rows.blocks:
        np.testing.assert_array_equal(block.sample, kept)
    assert rows.finite
    nothing = regression.rows(samples.select(slice(10, 13)))
    total = rows.left_out + nothing.left_out
    assert (total.samples, total.count) == (33, 7)
    assert all(len(block.target) == 0 for block in nothing.blocks)
    assert Statistics.of(nothing).count.sum() == 0.0


def test_measured_passive_positions_are_only_a_start(
    leg: Robot, regression: ClosedChainRegression
) -> None:
    samples = samples_of(leg, leg.consistent_nominal, 20)
    plain = regression.rows(samples)
    motion = regression.passive_states(samples)
    noise = np.random.default_rng(3).normal(0.0, 0.02, motion.q.shape)
    samples.position[:, leg.passive] = (motion.q + noise)[:, leg.passive]
    measured = regression.rows(samples)
    for a, b in zip(plain.blocks, measured.blocks, strict=True):
        np.testing.assert_allclose(a.matrix, b.matrix, atol=1e-7 * np.abs(a.matrix).max())


def test_dynamics_agree_with_themselves(leg: Robot) -> None:
    """Forward dynamics undo inverse dynamics; gravity and inertia are their parts."""
    dynamics = ClosedChainDynamics(leg)
    for q, v, a in zip(*excitation(20), strict=True):
        u = dynamics.torque(q, v, a)
        np.testing.assert_allclose(dynamics.acceleration(q, v, u), a, atol=1e-10)
        rest = np.zeros(6)
        np.testing.assert_allclose(dynamics.torque(q, rest, rest), dynamics.gravity(q), atol=1e-12)
        M = dynamics.inertia(q)
        pushed = dynamics.torque(q, rest, a) - dynamics.gravity(q)
        np.testing.assert_allclose(M @ a, pushed, atol=1e-10)
        assert np.linalg.eigvalsh(M).min() > 0.0


def test_power_of_the_motors_is_the_change_of_energy(leg: Robot) -> None:
    """Without friction, u·q̇_a equals the rate of kinetic plus potential energy."""
    x = leg.consistent_nominal.copy()
    x[leg.layout.friction] = 0.0
    dynamics, model = ClosedChainDynamics(leg), leg.with_parameters(x)
    dynamics.set_parameters(x)
    data, h = model.createData(), 1e-5

    def energy(q_a: FloatArray, v_a: FloatArray) -> float:
        dynamics.close(q_a)
        q = dynamics.configuration
        v = dynamics.closure.map(q)[0] @ v_a
        return pin.computeKineticEnergy(model, data, q, v) + pin.computePotentialEnergy(
            model, data, q
        )

    for q, v, a in zip(*excitation(20), strict=True):
        forth = energy(q + h * v + 0.5 * h * h * a, v + h * a)
        back = energy(q - h * v + 0.5 * h * h * a, v - h * a)
        power = dynamics.torque(q, v, a) @ v
        assert abs((forth - back) / (2.0 * h) - power) < 1e-5 * (1.0 + abs(power))


def test_a_failure_is_told_and_passes(leg: Robot) -> None:
    dynamics, rest = ClosedChainDynamics(leg), np.zeros(6)
    beyond = np.array([0.0, 0.0, 0.0, 0.0, 0.75, 0.75])
    for result in (dynamics.torque(beyond, rest, rest), dynamics.gravity(beyond)):
        assert np.isnan(result).all()
        assert "leave a gap" in str(dynamics.failure)
    assert np.isnan(dynamics.inertia(beyond)).all()
    assert np.isfinite(dynamics.torque(rest, rest, rest)).all()
    assert dynamics.failure is None


def test_motion_that_the_linkage_cannot_follow_is_told_beforehand(leg: Robot) -> None:
    dynamics, rest = ClosedChainDynamics(leg), np.zeros(6)
    dynamics.close(rest)
    before = dynamics.configuration
    assert dynamics.unreachable(np.zeros((0, 6))) is None
    assert dynamics.unreachable(0.8 * excitation(40)[0]) is None
    beyond = np.array([0.0, 0.0, 0.0, 0.0, 0.75, 0.75])
    assert "leave a gap" in str(dynamics.unreachable(np.array([rest, beyond, rest])))
    rolled = np.array([0.0, 0.0, 0.0, 0.0, 0.2, 0.2])
    told = str(dynamics.unreachable(np.linspace(rest, rolled, 5)))
    assert "drive passive joint 'left_toe_roll'" in told
    # whoever starts beyond limits is not locked in there
    assert dynamics.unreachable(np.linspace(rolled, rest, 5)) is None
    assert dynamics.failure is None
    np.testing.assert_array_equal(dynamics.configuration, before)


def test_what_is_out_of_reach_stays_cheap_and_the_way_back_is_found(leg: Robot) -> None:
    dynamics = ClosedChainDynamics(leg)
    out = np.array([0.0, 0.0, 0.0, 0.0, 0.75, 0.75])
    path = [share * out for share in (*np.linspace(0.0, 1.0, 40), *np.linspace(1.0, 0.0, 40))]
    closed = [dynamics.close(q_a) for q_a in path]
    assert closed[:10] == closed[-10:] == [True] * 10
    assert not any(closed[35:45])
    assert closed == closed[::-1]


def test_passive_joints_without_loops_are_refused() -> None:
    description = read_description(ROBOTS / "panda.yaml")
    robot = load_robot(replace(description, passive=("panda_joint3",), actuated=None))
    with pytest.raises(RobotError, match="belong to no loop"):
        make_regression(robot)
