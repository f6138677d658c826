# SPDX-License-Identifier: Apache-2.0
"""Robots, samples and recordings that obey the equations of motion, for several folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from sysid_core.arrays import BoolArray, FloatArray
from sysid_core.dynamics.contact_dynamics import ContactDynamics, ContactTerms
from sysid_core.dynamics.contact_kinematics import null_space
from sysid_core.dynamics.tree import TreeRegression
from sysid_core.identification import Identification
from sysid_core.inertia import central_inertia, from_mass_com_inertia
from sysid_core.recording import Recording, Samples
from sysid_core.robot.library import load_robot
from sysid_core.robot.model import Robot
from sysid_core.validation import validate

TROT = np.array([[1, 0, 0, 1], [0, 1, 1, 0]], dtype=bool)
STANCES = np.array(
    [[1, 1, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]],
    dtype=bool,
)


@dataclass(frozen=True)
class Legged:
    """A floating robot with known parameters, in random states under its own weight."""

    robot: Robot
    truth: FloatArray

    def samples(
        self,
        count: int,
        seed: int,
        stances: BoolArray = STANCES,
        *,
        period: int = 1,
        noise: float = 0.0,
        vigour: float = 1.0,
    ) -> Samples:
        """Return samples at random states; every `period` samples the next stance's turn comes.

        Wrenches are those of the simulation in the contact frames; `noise` [N·m] is white and on
        the torques; `vigour` scales speeds and accelerations.
        """
        rng = np.random.default_rng(seed)
        dynamics = ContactDynamics(self.robot)
        dynamics.set_parameters(self.truth)
        flags = stances[(np.arange(count) // period) % len(stances)]
        nv, nc = self.robot.model.nv, flags.shape[1]
        q = np.empty((count, self.robot.model.nq))
        v, a = np.empty((count, nv)), np.empty((count, nv))
        effort, wrenches = np.empty((count, nv - 6)), np.zeros((count, nc, 6))
        for i, active in enumerate(flags):
            q[i] = self._configuration(rng)
            J = dynamics.kinematics.evaluate(q[i : i + 1]).jacobian
            N = null_space(dynamics.kinematics.constraint_rows(J, active))[0]
            v[i] = N @ (N.T @ rng.normal(scale=vigour, size=nv))
            terms = dynamics.terms(q[i], v[i])
            wanted = rng.normal(scale=3.0 * vigour, size=nv)
            a[i], force = self._supported(dynamics, terms, active, wanted)
            generalised = terms.inertia @ a[i] + terms.bias
            generalised -= np.einsum("ckv,ck->v", terms.jacobian, force)
            effort[i] = generalised[6:]
            rotation = dynamics.kinematics.evaluate(q[i : i + 1]).rotation[0]
            wrenches[i] = np.concatenate(
                [np.einsum("cji,cj->ci", rotation, force[:, k : k + 3]) for k in (0, 3)], axis=1
            )
        effort += noise * rng.normal(size=effort.shape)
        return Samples(
            time=0.01 * np.arange(count, dtype=np.float64),
            position=q[:, 7:],
            velocity=v[:, 6:],
            acceleration=a[:, 6:],
            effort=effort,
            base_pose=q[:, :7],
            base_twist=v[:, :6],
            base_acceleration=a[:, :6],
            contacts=flags,
            wrenches=wrenches,
        )

    def _configuration(self, rng: np.random.Generator) -> FloatArray:
        tilt = pin.Quaternion(pin.rpy.rpyToMatrix(*rng.uniform(-0.5, 0.5, 2), rng.uniform(-3, 3)))
        legs = np.tile([0.0, 0.7, -1.4], 4) * np.repeat([1, 1, -1, -1], 3)
        joints = legs + rng.uniform(-0.5, 0.5, len(self.robot.joint_names))
        return np.concatenate([rng.normal(size=3), tilt.coeffs(), joints])

    def _supported(
        self, dynamics: ContactDynamics, terms: ContactTerms, active: BoolArray, wanted: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the acceleration nearest to the wanted one that the feet can carry, and forces.

        Least squares of acceleration and of forces from an even share of the weight, subject to
        the base's equations of motion and to fixed feet.
        """
        J, drift = dynamics.constraint(terms, active)
        k, nv = J.shape
        mass = self.truth[self.robot.layout.masses].sum()
        share = np.zeros((len(active), 6))
        share[active, 2] = 9.81 * mass / max(int(active.sum()), 1)
        start = np.concatenate(
            [share[c, : 6 if dynamics.kinematics.flat[c] else 3] for c in np.flatnonzero(active)]
            or [np.zeros(0)]
        )
        equations = np.zeros((6 + k, nv + k))
        equations[:6, :nv], equations[:6, nv:] = terms.inertia[:6], -J.T[:6]
        equations[6:, :nv] = J
        right = np.concatenate([-terms.bias[:6], -drift])
        aim = np.concatenate([wanted, start])
        change = np.linalg.lstsq(equations, right - equations @ aim, rcond=1e-12)[0]
        solution = aim + change
        return solution[:nv], dynamics.kinematics.wrenches(solution[nv:], active)


def perturbed(robot: Robot, seed: int, *, friction: bool = True) -> FloatArray:
    """Return parameters that differ from the nominal ones in every number."""
    rng = np.random.default_rng(seed)
    layout = robot.layout
    vector = wrong_prior(robot, robot.consistent_nominal, seed, mass=0.2, com=0.01)
    if friction:
        count = len(layout.joints)
        vector[layout.term("viscous")] = rng.uniform(0.01, 0.1, count)
        vector[layout.term("coulomb")] = rng.uniform(0.01, 0.1, count)
        vector[layout.term("armature")] = rng.uniform(0.001, 0.01, count)
        vector[layout.term("offset")] = rng.uniform(-0.05, 0.05, count)
    return vector


def wrong_prior(
    robot: Robot, mean: FloatArray, seed: int, *, mass: float = 0.3, com: float = 0.02
) -> FloatArray:
    """Return parameters with masses and inertias off by `mass` [-], centres by `com` [m]."""
    rng = np.random.default_rng(seed)
    result = np.array(mean)
    for phi in robot.layout.inertias(result):
        signs = 1.0 + mass * rng.choice([-1.0, 1.0], 2)
        shift = rng.normal(size=3)
        shift *= com / np.linalg.norm(shift)
        centre = phi[1:4] / phi[0] + shift
        phi[:] = from_mass_com_inertia(phi[0] * signs[0], centre, central_inertia(phi) * signs[1])
    return result


@pytest.fixture(scope="session")
def solo12() -> Robot:
    return load_robot("solo12")


@pytest.fixture(scope="session")
def legged(solo12: Robot) -> Legged:
    """Return Solo12 with parameters that are not its nominal ones, friction included."""
    return Legged(solo12, perturbed(solo12, 11))


@pytest.fixture(scope="session")
def ball_footed(solo12: Robot) -> Legged:
    """Return Solo12 on balls of 2 cm around the frames of its feet."""
    contacts = tuple(replace(contact, radius=0.02) for contact in solo12.description.contacts)
    robot = load_robot(replace(solo12.description, contacts=contacts))
    return Legged(robot, perturbed(robot, 12))


@pytest.fixture(scope="session")
def make_legged() -> Callable[..., Legged]:
    """Return the maker of legged robots: robot, true parameters."""
    return Legged


@pytest.fixture(scope="session")
def make_wrong_prior() -> Callable[..., FloatArray]:
    """Return `wrong_prior`."""
    return wrong_prior


@pytest.fixture(scope="session")
def solo12_data() -> Samples:
    """Return the simulated trot behind Khorshidi et al., or skip where it isn't at hand."""
    root = Path(os.environ.get("SYSID_DATA", Path(__file__).parents[4] / "shared" / "data"))
    folder = root / "solo12"
    if not folder.is_dir():
        pytest.skip(f"no data in {folder}")
    q, v, a, effort, contact = (
        np.loadtxt(folder / f"solo_robot_{name}.dat").T
        for name in ("q", "dq", "ddq", "tau", "contact")
    )
    return Samples(
        time=0.01 * np.arange(len(q), dtype=np.float64),
        position=q[:, 7:],
        velocity=v[:, 6:],
        acceleration=a[:, 6:],
        effort=effort,
        base_pose=q[:, :7],
        base_twist=v[:, :6],
        base_acceleration=a[:, :6],
        contacts=contact > 0.5,
    )


def recorded(
    robot: Robot,
    parameters: FloatArray,
    *,
    duration: float = 12.0,
    rate: float = 100.0,
    noise: float = 0.0,
    seed: int = 0,
) -> Recording:
    """Return a recording of an arm that swings all its joints, torques by the true parameters.

    Positions are sums of three sines of up to half a hertz; `noise` [N·m] is white.
    """
    rng = np.random.default_rng(seed)
    nj = len(robot.joint_names)
    t = np.arange(int(duration * rate)) / rate
    lower, upper = np.maximum(robot.limits.lower, -2.0), np.minimum(robot.limits.upper, 2.0)
    omega = 2.0 * np.pi * np.array([0.11, 0.23, 0.47])[:, None] * rng.uniform(0.8, 1.1, (3, nj))
    size = 0.15 * (upper - lower) / np.array([1.0, 1.5, 2.0])[:, None]
    phase = rng.uniform(0.0, 2.0 * np.pi, (3, nj))
    angle = t[:, None, None] * omega + phase
    q = 0.5 * (lower + upper) + (size * np.sin(angle)).sum(axis=1)
    v = (size * omega * np.cos(angle)).sum(axis=1)
    a = -(size * omega**2 * np.sin(angle)).sum(axis=1)
    effort = TreeRegression(robot).full(q, v, a) @ parameters
    effort += noise * rng.standard_normal(effort.shape)
    return Recording(t, robot.joint_names, q, v, effort, source="simulated")


@pytest.fixture(scope="session")
def make_recording() -> Callable[..., Recording]:
    """Return `recorded`: robot, true parameters, duration, rate, noise, seed."""
    return recorded


@pytest.fixture(scope="session")
def ur10() -> Robot:
    """Return an arm of six joints."""
    return load_robot("ur10")


@pytest.fixture(scope="session")
def ur10_truth(ur10: Robot) -> FloatArray:
    """Return the arm's nominal parameters with the friction and rotors of a usual drive."""
    vector, layout = ur10.consistent_nominal.copy(), ur10.layout
    vector[layout.term("viscous")] = [12.0, 15.0, 8.0, 2.0, 2.0, 1.5]
    vector[layout.term("coulomb")] = [9.0, 11.0, 6.0, 2.0, 1.8, 1.5]
    vector[layout.term("armature")] = [1.0, 1.0, 0.6, 0.2, 0.2, 0.2]
    return vector


@pytest.fixture(scope="session")
def clean(ur10: Robot, ur10_truth: FloatArray) -> Recording:
    """Return a recording of that arm without a fault."""
    return recorded(ur10, ur10_truth, duration=24.0, noise=0.3, seed=3)


@pytest.fixture(scope="session")
def error_on_clean(
    ur10: Robot, ur10_truth: FloatArray, clean: Recording
) -> Callable[[Identification], float]:
    """Return a function that says how far a model is off that recording [N·m], held out."""

    def error(found: Identification) -> float:
        parameters = found.estimate.parameters
        scores = validate(ur10, clean, ur10_truth, parameters, learned_cutoff=8.0).scores
        return float(np.linalg.norm(scores.rmse_identified))

    return error


@pytest.fixture(scope="session")
def lwr() -> Robot:
    """Return an arm of seven joints."""
    return load_robot("kuka_lwr")


@pytest.fixture(scope="session")
def lwr_recording(lwr: Robot) -> Recording:
    """Return a short recording of that arm, a tenth heavier than described, with friction."""
    truth = lwr.consistent_nominal * 1.1
    for term in ("coulomb", "viscous"):
        truth[lwr.layout.term(term)] = 2.0
    return recorded(lwr, truth, duration=10.0, noise=0.3, seed=4)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """Return the folder of recorded data, or skip where it isn't at hand."""
    root = Path(os.environ.get("SYSID_DATA", Path(__file__).parents[4] / "shared" / "data"))
    if not root.is_dir():
        pytest.skip(f"no data in {root}")
    return root


@pytest.fixture(scope="session")
def example_robots() -> Path:
    """Return the robots of example-robot-data, or skip where it isn't installed."""
    try:
        package = distribution("example-robot-data")
    except PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    folder = "cmeel.prefix/share/example-robot-data/robots"
    return Path(str(package.locate_file(folder)))
