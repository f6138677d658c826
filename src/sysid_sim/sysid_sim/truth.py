# SPDX-License-Identifier: Apache-2.0
"""True parameters of simulated robots: drawn, or read from a file; what payloads add."""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sysid_core.arrays import FloatArray
from sysid_core.errors import DataError, SysidError
from sysid_core.estimate_file import friction_scales
from sysid_core.inertia import (
    from_mass_com_inertia,
    from_pseudo_inertia,
    pseudo_inertia,
    smallest_eigenvalue,
)
from sysid_core.parameters import INERTIAL_TERMS
from sysid_core.robot import Robot
from sysid_core.robot.description import RobotDescription
from sysid_core.untrusted import read_json
from sysid_sim.errors import SimulationError

__all__ = ["TruthSpread", "draw_truth", "payload_parameters", "read_truth"]


_UNKNOWN = (0.005, 0.02)
"""Where the description gives none: range of a motor's friction torque (Coulomb, and viscous at
the velocity limit) as a share of its torque limit [-], and of the time in which that limit brings
its bare rotor to its velocity limit [s]."""


@dataclass(frozen=True)
class TruthSpread:
    """How far true parameters lie from nominal ones; all draws are uniform within ± these."""

    mass: float = 0.2  # [-] share of each body's mass
    com: float = 0.3
    """[-] shift of each centre of mass, as a share of the standard deviation of the body's mass
    distribution along each principal direction."""
    shape: float = 0.15  # [-] stretch and shear of each body's mass distribution
    friction: float = 0.5  # [-] share of viscous friction, Coulomb friction and armature
    offset: float = 0.005  # [-] torque offset as a share of the torque limit

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0.0 <= value < 1.0:
                raise SimulationError(f"{field.name} must lie between 0 and 1, got {value!r}")

    @property
    def body_std(self) -> float:
        """Relative standard deviation [-] of bodies, as a prior states it, that covers the draws.

        A draw within ± x has the standard deviation x/√3. By the divergence that the prior is
        stated in, a centre of mass weighs half as much as a mass or a stretch.
        """
        return max(self.mass, self.shape, self.com / 2.0**0.5) / 3.0**0.5

    @property
    def friction_std(self) -> float:
        """Relative standard deviation [-] of friction and armature."""
        return self.friction / 3.0**0.5


def draw_truth(robot: Robot, seed: int, spread: TruthSpread | None = None) -> FloatArray:
    """Draw true parameters (p,) around the nominal ones; always physically consistent.

    A body's mass distribution is moved, stretched and sheared as a whole, and its density
    scaled: an affine map of the distribution, so that a body with the result can exist. What the
    description does not ask to identify stays nominal; a total mass that it gives holds within
    its standard deviation.
    """
    spread = spread or TruthSpread()
    rng = np.random.default_rng(seed)
    truth = robot.consistent_nominal.copy()
    wanted = robot.description.inertias
    for body in robot.layout.bodies:
        where = robot.layout.body(body)
        drawn = _draw_body(truth[where], rng, spread)
        if wanted == "all" or body in wanted:
            truth[where] = drawn
    _weigh(robot, truth, rng)
    _draw_friction(robot, truth, rng, spread)
    _draw_couplings(robot, truth, rng)
    return truth


def _weigh(robot: Robot, truth: FloatArray, rng: np.random.Generator) -> None:
    """Scale all bodies so that a robot that was weighed weighs what its description says."""
    known = robot.description.total_mass
    if known is None:
        return
    value, std = known
    layout = robot.layout
    truth[layout.inertial] *= (value + std * rng.uniform(-1.0, 1.0)) / truth[layout.masses].sum()


def _draw_body(phi: FloatArray, rng: np.random.Generator, spread: TruthSpread) -> FloatArray:
    J = pseudo_inertia(phi)
    mass = J[3, 3]
    com = J[:3, 3] / mass
    values, axes = np.linalg.eigh(J[:3, :3] / mass - np.outer(com, com))
    root = axes * np.sqrt(values)
    stretch = np.eye(3) + spread.shape * np.triu(rng.uniform(-1.0, 1.0, (3, 3)))
    H = np.eye(4)
    H[:3, :3] = root @ stretch @ np.linalg.inv(root)
    H[:3, 3] = com + root @ (spread.com * rng.uniform(-1.0, 1.0, 3)) - H[:3, :3] @ com
    scale = 1.0 + spread.mass * rng.uniform(-1.0, 1.0)
    return from_pseudo_inertia(scale * H @ J @ H.T)


def _draw_friction(
    robot: Robot, truth: FloatArray, rng: np.random.Generator, spread: TruthSpread
) -> None:
    limits, layout = robot.limits, robot.layout
    effort = np.where(np.isfinite(limits.effort), limits.effort, 0.0)
    speed = np.where(np.isfinite(limits.velocity), limits.velocity, np.pi)
    share = {"viscous": effort / speed, "coulomb": effort, "armature": effort / speed}
    for term in RobotDescription.friction_terms:
        nominal = truth[layout.term(term)]
        relative, fresh = rng.uniform(-1.0, 1.0, nominal.shape), rng.uniform(size=nominal.shape)
        if term not in robot.description.friction_terms:
            continue
        if term == "offset":
            drawn = nominal + spread.offset * relative * effort
        else:
            low, high = _UNKNOWN
            unknown = (low + (high - low) * fresh) * share[term]
            drawn = np.where(nominal > 0.0, nominal * (1.0 + spread.friction * relative), unknown)
        # nobody identifies the friction of passive joints
        truth[layout.term(term)] = np.where(robot.actuated, drawn, nominal)


def _draw_couplings(robot: Robot, truth: FloatArray, rng: np.random.Generator) -> None:
    """Draw the terms of coupled motors as shares of what their joints have of them."""
    layout = robot.layout
    for c, coupling in enumerate(robot.couplings):
        moved = coupling.direction != 0.0
        for term in ("viscous", "coulomb", "armature"):
            own = truth[layout.term(term)][moved] / coupling.direction[moved] ** 2
            # below 1 by enough that each joint's own value covers its share of the motor's
            truth[layout.coupling_term(term)][c] = rng.uniform(0.1, 0.4) * own.min()


def read_truth(robot: Robot, path: str | Path) -> tuple[Robot, FloatArray]:
    """Read a ground truth's or an estimate's JSON: its friction terms, as a robot, and parameters.

    Raises
    ------
    DataError
        If the file cannot be read or does not hold parameters (p,) of this robot.
    """
    source = str(path)
    try:
        document = read_json(Path(path))
        chosen = document.get("friction")
        if chosen is not None:
            robot = robot.with_friction(friction_scales(chosen, "friction"))
        bodies = {name: np.array(phi, dtype=float) for name, phi in document["bodies"].items()}
        couplings = document.get("couplings")
        return robot, robot.layout.assemble(bodies, document["joints"], couplings)
    except SysidError as error:
        raise DataError(str(error), source=source) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"holds no parameters: it needs 'bodies' (name: {len(INERTIAL_TERMS)} numbers) and "
            "'joints' (name: friction terms), as ground_truth.json and estimate.json have",
            source=source,
        ) from error


_HEAVIEST = 10.0  # In masses of the robot: more than any lifts, and than the contact solver bears
_LONGEST_LEVER = 10.0  # [m]


def payload_parameters(
    mass: float, com: FloatArray, about_com: npt.ArrayLike | None, carrier: float
) -> FloatArray:
    """Return the parameters (10,) of a payload about the frame that it is attached to.

    It has a mass [kg], a centre of mass (3,) [m] and an inertia (3, 3) [kg·m²] about that, none
    for a point mass; `carrier` [kg] is the robot's mass.

    Raises
    ------
    SimulationError
        If no body can have this mass and inertia, or none that this robot carries.
    """
    inertia = np.zeros((3, 3)) if about_com is None else np.asarray(about_com, dtype=float)
    reach = float(np.sqrt(np.abs(inertia).max() / mass)) if mass > 0.0 else 0.0
    lever, most = max(float(np.abs(com).max(initial=0.0)), reach), _HEAVIEST * carrier
    if mass > most or lever > _LONGEST_LEVER:
        raise SimulationError(
            f"a payload of {mass:g} kg that reaches {lever:g} m is too much: at most "
            f"{most:.3g} kg, {_HEAVIEST:g} times the robot's, and {_LONGEST_LEVER:g} m"
        )
    numbers = [np.array([mass]), com, inertia.ravel()]
    if com.shape != (3,) or inertia.shape != (3, 3) or not np.isfinite(np.hstack(numbers)).all():
        raise SimulationError(
            "a payload needs a mass [kg], a centre of mass of three and an inertia of three by "
            "three finite numbers"
        )
    if mass < 0.0 or np.abs(inertia - inertia.T).max() > 1e-9:
        raise SimulationError(
            f"a payload needs a mass of at least zero and a symmetric inertia, got {mass:g} kg"
        )
    phi = from_mass_com_inertia(mass, com, inertia)
    scale = max(mass, float(np.trace(inertia)))
    if smallest_eigenvalue(phi) < -1e-9 * scale or (mass == 0.0 and inertia.any()):
        raise SimulationError(
            f"no body of {mass:g} kg has this inertia: its principal moments must be positive "
            "and each at most the sum of the others"
        )
    return phi
