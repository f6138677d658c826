# SPDX-License-Identifier: Apache-2.0
"""No contact force enters the rows, and nothing else is lost by projecting it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import BoolArray
from sysid_core.dynamics.contact import ContactRegression
from sysid_core.dynamics.contact_kinematics import ContactKinematics, configuration, null_space
from sysid_core.dynamics.statistics import Statistics
from sysid_core.errors import DataError, ModelError, ParameterError
from sysid_core.recording import Samples
from sysid_core.robot.library import load_robot
from sysid_core.robot.model import Robot


def flags(samples: Samples) -> BoolArray:
    return np.asarray(samples.contacts, dtype=bool)


def without(samples: Samples, field: str) -> Samples:
    nothing: dict[str, Any] = {field: None}
    return replace(samples, **nothing)


@pytest.fixture(scope="module")
def regression(solo12: Robot) -> ContactRegression:
    return ContactRegression(solo12)


@pytest.fixture(scope="module")
def samples(legged: Any) -> Samples:
    return replace(legged.samples(120, seed=1), wrenches=None)


def test_basis_is_orthonormal_and_stops_every_contact(
    regression: ContactRegression, samples: Samples
) -> None:
    kinematics = regression.kinematics
    geometry = kinematics.evaluate(configuration(regression.robot, samples).q)
    seen = 0
    for sample, basis, _ in regression.projections(samples):
        active = flags(samples)[sample[0]]
        J = kinematics.constraint_rows(geometry.jacobian[sample], active)
        assert J.shape[1] == 3 * active.sum()
        size = basis.shape[2]
        np.testing.assert_allclose(J @ basis, 0.0, atol=1e-12)
        gram = np.swapaxes(basis, 1, 2) @ basis
        np.testing.assert_allclose(gram, np.broadcast_to(np.eye(size), gram.shape), atol=1e-12)
        seen += len(sample)
    assert seen == len(samples)


def test_contact_jacobian_is_that_of_the_library(solo12: Robot, samples: Samples) -> None:
    kinematics = ContactKinematics(solo12)
    q = configuration(solo12, samples).q[:5]
    geometry = kinematics.evaluate(q)
    model, data = solo12.model, solo12.model.createData()
    for i in range(len(q)):
        pin.computeJointJacobians(model, data, q[i])
        pin.updateFramePlacements(model, data)
        for c, contact in enumerate(solo12.description.contacts):
            frame = model.getFrameId(contact.frame.link)
            J = pin.getFrameJacobian(model, data, frame, pin.LOCAL_WORLD_ALIGNED)
            np.testing.assert_allclose(geometry.jacobian[i, c], J, atol=1e-12)
            np.testing.assert_allclose(
                geometry.position[i, c], data.oMf[frame].translation, atol=1e-12
            )


def test_cost_is_that_of_the_projector(regression: ContactRegression, samples: Samples) -> None:
    """‖A x − b‖² over the rows equals ‖P (Y x − Sᵀτ)‖² with P = I − J⁺J, for any x."""
    robot = regression.robot
    state = configuration(robot, samples)
    geometry = regression.kinematics.evaluate(state.q)
    full = replace(samples, contacts=np.zeros_like(flags(samples)))
    block = regression.rows(full).blocks[0]
    Y = block.matrix.reshape(len(samples), 18, -1)
    force = np.hstack([np.zeros((len(samples), 6)), samples.effort])
    statistics = Statistics.of(regression.rows(samples))
    gram, moment, square = 0.0, 0.0, 0.0
    for i in range(len(samples)):
        J = regression.kinematics.constraint_rows(geometry.jacobian[i : i + 1], flags(samples)[i])[
            0
        ]
        P = np.eye(18) - np.linalg.pinv(J) @ J
        gram = gram + Y[i].T @ P @ Y[i]
        moment = moment + Y[i].T @ P @ force[i]
        square = square + force[i] @ P @ force[i]
    scale = np.abs(gram).max()
    np.testing.assert_allclose(statistics.gram[0], gram, atol=1e-10 * scale)
    np.testing.assert_allclose(statistics.moment[0], moment, atol=1e-10 * scale)
    np.testing.assert_allclose(statistics.square[0], square, rtol=1e-10)


def test_what_feet_bear_of_a_wrench_at_the_base_is_left_as_that_wrench(
    regression: ContactRegression, samples: Samples, legged: Any
) -> None:
    samples = samples.select(flags(samples).sum(axis=1) >= 3)
    state = configuration(regression.robot, samples)
    jacobian = regression.kinematics.evaluate(state.q).jacobian
    wrench = np.array([12.0, -7.0, -30.0, 1.0, 2.0, -0.5])
    effort = samples.effort.copy()
    for i, q in enumerate(state.q):
        J = regression.kinematics.constraint_rows(jacobian[i : i + 1], flags(samples)[i])[0]
        turn = np.asarray(pin.Quaternion(*q[[6, 3, 4, 5]]).matrix()).T
        own = np.concatenate([turn @ wrench[:3], turn @ wrench[3:]])
        feet = np.linalg.lstsq(J[:, :6].T, own, rcond=None)[0]
        np.testing.assert_allclose(J[:, :6].T @ feet, own, atol=1e-9)
        effort[i] += J[:, 6:].T @ feet
    given = replace(samples, effort=effort)
    count = 0
    for part in regression.outside_wrenches(given, legged.truth):
        np.testing.assert_allclose(part.left, -part.columns @ wrench, atol=1e-8)
        count += len(part.sample)
    assert count == len(samples)


def test_rows_of_exact_motion_hold_for_the_true_parameters(
    regression: ContactRegression, samples: Samples, legged: Any
) -> None:
    rows = regression.rows(samples)
    residual = rows.residuals(regression.base.project(legged.truth))[0]
    np.testing.assert_allclose(residual, 0.0, atol=1e-9)
    assert (np.diff(rows.blocks[0].sample) >= 0).all()
    counts = np.bincount(rows.blocks[0].sample, minlength=len(samples))
    np.testing.assert_array_equal(counts, 18 - 3 * flags(samples).sum(axis=1))


def test_base_parameters_are_recovered_from_noise_free_contact(
    regression: ContactRegression, legged: Any
) -> None:
    samples = replace(legged.samples(250, seed=2), wrenches=None)
    block = regression.rows(samples).blocks[0]
    found = np.linalg.lstsq(block.matrix, block.target, rcond=None)[0]
    expected = regression.base.project(legged.truth)
    # the worst conditioned direction has a singular value of some 1e-5 of the largest
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_measured_wrenches_replace_the_projection(
    regression: ContactRegression, legged: Any
) -> None:
    """Wrench rows, projected rows and a mixture give the same parameters."""
    measured = legged.samples(250, seed=3)
    partly = measured.wrenches.copy()
    partly[::2, 1] = np.nan
    partly[1::3, 2:] = np.nan
    expected = regression.base.project(legged.truth)
    for wrenches, contacts in (
        (measured.wrenches, flags(measured)),
        (measured.wrenches, None),
        (partly, flags(measured)),
        (None, flags(measured)),
    ):
        samples = replace(measured, wrenches=wrenches, contacts=contacts)
        block = regression.rows(samples).blocks[0]
        found = np.linalg.lstsq(block.matrix, block.target, rcond=None)[0]
        np.testing.assert_allclose(found, expected, atol=1e-8)
    whole = regression.rows(measured).blocks[0]
    assert len(whole.target) == 18 * len(measured)


def test_flat_feet_hold_six_directions(solo12: Robot, make_legged: Callable[..., Any]) -> None:
    contacts = tuple(
        replace(contact, type="flat") if contact.name == "FL" else contact
        for contact in solo12.description.contacts
    )
    robot = load_robot(replace(solo12.description, contacts=contacts))
    made = make_legged(robot, robot.consistent_nominal)
    samples = replace(made.samples(40, seed=6), wrenches=None)
    regression = ContactRegression(robot)
    rows = regression.rows(samples)
    held = flags(samples) @ np.array([6, 3, 3, 3])
    np.testing.assert_array_equal(np.bincount(rows.blocks[0].sample, minlength=40), 18 - held)
    residual = rows.residuals(regression.base.project(made.truth))[0]
    np.testing.assert_allclose(residual, 0.0, atol=1e-9)


def test_ball_feet_touch_the_ground_below_their_frames(ball_footed: Any) -> None:
    """Rows hold for the truth, projected and measured; frames at the ball's centre don't."""
    measured = ball_footed.samples(40, seed=7)
    projected = replace(measured, wrenches=None)
    regression = ContactRegression(ball_footed.robot)
    truth = regression.base.project(ball_footed.truth)
    for samples in (measured, projected):
        np.testing.assert_allclose(regression.rows(samples).residuals(truth)[0], 0.0, atol=1e-9)
    contacts = tuple(replace(c, radius=0.0) for c in ball_footed.robot.description.contacts)
    points = load_robot(replace(ball_footed.robot.description, contacts=contacts))
    at_centre = ContactRegression(points).rows(projected)
    assert np.abs(at_centre.residuals(truth)[0]).max() > 0.1


def test_dry_friction_at_rest_does_not_disturb(legged: Any, samples: Samples) -> None:
    """A slow joint may stick with any torque: the others' equations still hold."""
    speed = np.abs(samples.velocity)
    limit = float(np.quantile(speed, 0.2))
    stuck = np.random.default_rng(5).uniform(-0.5, 0.5, speed.shape) * (speed < limit)
    sticking = replace(samples, effort=samples.effort + stuck)
    plain = ContactRegression(legged.robot)
    truth = plain.base.project(legged.truth)
    careful = plain.rows(sticking, limit)
    left = np.abs(careful.residuals(truth)[0]).max()
    assert left <= 0.01 * np.linalg.norm(stuck, axis=1).max()
    assert left < 0.1 * np.abs(plain.rows(sticking).residuals(truth)[0]).max()
    weight = np.linalg.norm(careful.blocks[0].matrix) / np.linalg.norm(
        plain.rows(samples).blocks[0].matrix
    )
    assert 0.5 < weight < 1.0
    at_rest = replace(sticking, velocity=0.0 * samples.velocity)
    assert plain.rows(at_rest, 1e-9 + 0.0 * speed[0]).finite
    with pytest.raises(ParameterError, match="still_velocity"):
        plain.rows(samples, -1.0)


def test_sign_and_length_of_a_quaternion_do_not_matter(
    regression: ContactRegression, samples: Samples
) -> None:
    pose = np.array(samples.base_pose)
    pose[::2, 3:] *= -1.0
    pose[::3, 3:] *= 1.01
    expected, found = regression.rows(samples), regression.rows(replace(samples, base_pose=pose))
    a, b = Statistics.of(expected), Statistics.of(found)
    np.testing.assert_allclose(b.gram, a.gram, atol=1e-9 * np.abs(a.gram).max())


def test_samples_that_are_not_finite_give_no_rows(
    regression: ContactRegression, samples: Samples
) -> None:
    twist, effort = np.array(samples.base_twist), samples.effort.copy()
    twist[3, 1], effort[7, 2] = np.nan, np.inf
    rows = regression.rows(replace(samples, base_twist=twist, effort=effort))
    assert rows.finite
    assert set(range(len(samples))) - set(rows.blocks[0].sample) == {3, 7}


def test_all_feet_in_the_air_leave_every_equation(
    regression: ContactRegression, samples: Samples
) -> None:
    flying = samples.select(np.flatnonzero(flags(samples).sum(axis=1) == 0))
    assert len(regression.rows(flying).blocks[0].target) == 18 * len(flying)
    assert null_space(np.zeros((2, 0, 18))).shape == (2, 18, 18)


def test_nothing_to_take_rows_from_gives_none(
    regression: ContactRegression, samples: Samples
) -> None:
    assert len(regression.rows(samples.select(slice(0, 0))).blocks[0].target) == 0


@pytest.mark.parametrize("missing", ["base_pose", "base_twist", "base_acceleration"])
def test_missing_odometry_is_named(
    regression: ContactRegression, samples: Samples, missing: str
) -> None:
    with pytest.raises(DataError, match="odometry"):
        regression.rows(without(samples, missing))


def test_missing_contacts_are_named(regression: ContactRegression, samples: Samples) -> None:
    with pytest.raises(DataError, match="condition_contacts"):
        regression.rows(replace(samples, contacts=None))
    with pytest.raises(DataError, match="FL, FR, HL, HR"):
        regression.rows(replace(samples, contacts=flags(samples)[:, :3]))


def test_zero_quaternion_is_refused(regression: ContactRegression, samples: Samples) -> None:
    pose = np.array(samples.base_pose)
    pose[4, 3:] = 0.0
    with pytest.raises(DataError, match="zero quaternion"):
        regression.rows(replace(samples, base_pose=pose))


def test_unfit_robots_and_settings_are_refused(solo12: Robot) -> None:
    with pytest.raises(ModelError, match="floating base"):
        ContactRegression(load_robot("panda"))
    with pytest.raises(ModelError, match="contact frames"):
        ContactRegression(load_robot(replace(solo12.description, contacts=())))
