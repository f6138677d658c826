# SPDX-License-Identifier: Apache-2.0
"""A MuJoCo robot in the conventions of Pinocchio and of the robot description."""

from typing import NamedTuple

import mujoco
import numpy as np
import scipy.linalg

from sysid_core.arrays import BoolArray, FloatArray, IndexArray
from sysid_core.dynamics.stance import rest_configuration
from sysid_core.errors import ModelError
from sysid_core.robot import Robot
from sysid_sim.errors import TimeStepError
from sysid_sim.mjcf import PhysicsConfig, brake_name, build_mjcf, foot_prefix

__all__ = ["FootContacts", "Plant", "PlantState", "cross", "rotation_of"]

# Explicit damping is stable below 2; well below it, a step loses little accuracy.
MAX_DAMPING_PER_STEP = 0.5


class PlantState(NamedTuple):
    """Configuration, velocity and acceleration in Pinocchio's convention."""

    q: FloatArray
    """(nq,) [m, -, rad]: a floating base comes first: position in the world, quaternion x, y, z,
    w."""
    v: FloatArray
    """(nv,) [m/s, rad/s]: a floating base comes first: linear and angular velocity in the base
    frame."""
    a: FloatArray  # (nv,) [m/s², rad/s²] time derivative of the components of `v`


class FootContacts(NamedTuple):
    """What the feet feel, in the order of the description's contacts."""

    active: BoolArray  # (nc,)
    wrenches: FloatArray
    """(nc, 6) [N, N·m] force and torque of the ground on the robot, in the contact frame."""


def rotation_of(quaternion: FloatArray) -> FloatArray:
    """Return the rotation (3, 3) of a quaternion x, y, z, w (4,)."""
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quaternion)[[3, 0, 1, 2]])
    return matrix.reshape(3, 3)


class Plant:
    """A robot with known parameters, simulated by MuJoCo.

    While a joint slides, the torque on it obeys the layout's model exactly: ``τ = Y(q, q̇, q̈) φ +
    Fc·sign(q̇) + Fv·q̇ + Ia·q̈ + β``; at rest, dry friction takes whatever value holds the joint,
    up to Fc.

    Raises
    ------
    SimulationError
        If no such robot can exist, its loops cannot close, or the time step is too long for
        its damping.
    """

    def __init__(
        self, robot: Robot, parameters: FloatArray, config: PhysicsConfig | None = None
    ) -> None:
        self.robot = robot
        self.config = config or PhysicsConfig()
        self._compile(np.array(parameters, dtype=float))
        self.reset(rest_configuration(robot))
        self._check_time_step()

    # -- construction -----------------------------------------------------------------------

    def _compile(self, parameters: FloatArray) -> None:
        self.parameters = parameters
        self.mjcf = build_mjcf(self.robot, parameters, self.config)
        self.model = mujoco.MjModel.from_xml_string(self.mjcf)
        self.data = mujoco.MjData(self.model)
        joints = [self.model.joint(name) for name in self.robot.joint_names]
        self._qpos = np.array([int(joint.qposadr[0]) for joint in joints])
        self._dof = np.array([int(joint.dofadr[0]) for joint in joints])
        self._brakes = np.array(
            [self.model.equality(brake_name(name)).id for name in self.robot.actuated_names],
            dtype=int,
        )
        self._loops = [
            (
                self.model.site(f"loop/{loop.name}/a").id,
                self.model.site(f"loop/{loop.name}/b").id,
                loop.type == "fixed",
            )
            for loop in self.robot.description.loops
        ]
        self._offset = parameters[self.robot.layout.term("offset")]
        self._feet = self._find_feet()
        self._foot_sites = [
            self.model.site(foot_prefix(contact.name)).id
            for contact in self.robot.description.contacts
        ]

    def _find_feet(self) -> IndexArray:
        """Return the index of the contact that each geometry belongs to, or -1."""
        feet = np.full(self.model.ngeom, -1)
        for index, contact in enumerate(self.robot.description.contacts):
            for geom in range(self.model.ngeom):
                if self.model.geom(geom).name.startswith(foot_prefix(contact.name)):
                    feet[geom] = index
        return feet

    def _check_time_step(self) -> None:
        M, D = self.mass_matrix(), np.diag(self.model.dof_damping)
        for coupling, damping in zip(self.robot.couplings, self.model.tendon_damping, strict=True):
            direction = np.zeros(self.model.nv)
            direction[self._dof] = coupling.direction
            D = D + damping * np.outer(direction, direction)
        N = scipy.linalg.null_space(self.loop_jacobian()) if self._loops else np.eye(len(M))
        rate = float(scipy.linalg.eigh(N.T @ D @ N, N.T @ M @ N, eigvals_only=True)[-1])
        if rate * self.config.time_step > MAX_DAMPING_PER_STEP:
            raise TimeStepError(
                f"robot '{self.robot.name}' is damped too strongly for a time step of "
                f"{self.config.time_step:g} s; it allows {MAX_DAMPING_PER_STEP / rate:.2g} s: "
                "lower its joints' damping, or correct the inertias that they move"
            )

    # -- state ------------------------------------------------------------------------------

    def reset(self, q: FloatArray, v: FloatArray | None = None) -> None:
        """Set configuration (nq,) and velocity (nv,), clear torques, and set time to zero.

        Raises
        ------
        ModelError
            If an array has the wrong length or is not finite.
        """
        v = np.zeros(self.robot.model.nv) if v is None else np.asarray(v, dtype=float)
        for name, value, size in (("q", q, self.robot.model.nq), ("v", v, self.robot.model.nv)):
            if np.shape(value) != (size,) or not np.isfinite(value).all():
                raise ModelError(f"{name} must be {size} finite numbers, got {value!r}")
        mujoco.mj_resetData(self.model, self.data)
        self._write_configuration(np.asarray(q, dtype=float), v)
        mujoco.mj_forward(self.model, self.data)

    def _write_configuration(self, q: FloatArray, v: FloatArray) -> None:
        qpos, qvel = self.data.qpos, self.data.qvel
        nj = len(self._dof)
        qpos[self._qpos], qvel[self._dof] = q[-nj:], v[-nj:]
        if self.robot.floating:
            qpos[:3], qpos[3:7] = q[:3], q[[6, 3, 4, 5]]
            qvel[:3], qvel[3:6] = rotation_of(q[3:7]) @ v[:3], v[3:6]

    def configuration(self) -> FloatArray:
        """Return the configuration (nq,) in Pinocchio's convention."""
        joints = self.data.qpos[self._qpos]
        if not self.robot.floating:
            return joints
        base = self.data.qpos[:7]
        return np.concatenate([base[:3], base[[4, 5, 6, 3]], joints])

    def velocity(self) -> FloatArray:
        """Return the velocity (nv,) in Pinocchio's convention."""
        joints = self.data.qvel[self._dof]
        if not self.robot.floating:
            return joints
        rotation = rotation_of(self.data.qpos[[4, 5, 6, 3]])
        return np.concatenate([rotation.T @ self.data.qvel[:3], self.data.qvel[3:6], joints])

    def _acceleration(self, q: FloatArray, v: FloatArray) -> FloatArray:
        """Return the last computed acceleration (nv,), at q and v, in Pinocchio's convention."""
        joints = self.data.qacc[self._dof]
        if not self.robot.floating:
            return joints
        linear = rotation_of(q[3:7]).T @ self.data.qacc[:3] - cross(v[3:6], v[:3])
        return np.concatenate([linear, self.data.qacc[3:6], joints])

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return float(self.data.time)

    # -- dynamics ---------------------------------------------------------------------------

    def advance(self, torque: FloatArray, steps: int = 1) -> PlantState:
        """Hold motor torques (nj,) [N·m], zero for passive joints, for some time steps.

        Returns the state at the beginning, whose acceleration they cause. Contacts, brakes and
        forces that are asked for afterwards belong to it too if `steps` is 1.
        """
        q, v = self.configuration(), self.velocity()
        self.data.qfrc_applied[self._dof] = torque - self._offset
        mujoco.mj_step(self.model, self.data)
        state = PlantState(q, v, self._acceleration(q, v))
        if steps > 1:
            mujoco.mj_step(self.model, self.data, nstep=steps - 1)
        return state

    def mass_matrix(self) -> FloatArray:
        """Return the joint-space inertia (nv, nv) in MuJoCo's order, armature included."""
        nv = self.model.nv
        M, column = np.empty((nv, nv)), np.empty(nv)
        for i, unit in enumerate(np.eye(nv)):
            mujoco.mj_mulM(self.model, self.data, column, unit)
            M[:, i] = column
        return M

    def change_parameters(self, parameters: FloatArray) -> None:
        """Give the moving robot other parameters (p,), e.g. a payload, without a jump in state."""
        old, before = self.model, self.data
        self._compile(np.array(parameters, dtype=float))
        for name in ("qpos", "qvel", "qfrc_applied", "qacc_warmstart", "eq_active"):
            getattr(self.data, name)[:] = getattr(before, name)
        self.data.time = before.time
        self.model.eq_data[:] = old.eq_data

    def set_friction(self, coulomb: FloatArray) -> None:
        """Set the joints' dry friction (nj,) [N·m], for effects that the layout lacks."""
        self.model.dof_frictionloss[self._dof] = coulomb

    # -- brakes, loops and contacts -----------------------------------------------------------

    @property
    def braked(self) -> bool:
        """Whether the brakes hold the actuated joints."""
        return bool(self.data.eq_active[self._brakes].any())

    def brake(self, on: bool) -> None:
        """Let brakes hold the actuated joints where they are, or release them."""
        actuated = self._qpos[self.robot.actuated]
        self.model.eq_data[self._brakes, 0] = self.data.qpos[actuated]
        self.data.eq_active[self._brakes] = on

    def brake_torque(self) -> FloatArray:
        """Return the torque (nj,) [N·m] by which brakes hold the joints."""
        torque = np.zeros(len(self._dof))
        data = self.data
        equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        forces = dict(zip(data.efc_id[equality], data.efc_force[equality], strict=True))
        for joint, brake in zip(np.flatnonzero(self.robot.actuated), self._brakes, strict=True):
            torque[joint] = forces.get(brake, 0.0)
        return torque

    def loop_jacobian(self) -> FloatArray:
        """Return the velocity of the loops' gaps per joint velocity, (rows, nv)."""
        nv, rows = self.model.nv, []
        for a, b, fixed in self._loops:
            linear, angular = np.zeros((2, 3, nv)), np.zeros((2, 3, nv))
            for i, site in enumerate((a, b)):
                mujoco.mj_jacSite(self.model, self.data, linear[i], angular[i], site)
            rows.append(linear[0] - linear[1])
            if fixed:
                rows.append(angular[0] - angular[1])
        return np.vstack(rows) if rows else np.zeros((0, nv))

    def contacts(self, *, wrenches: bool = True) -> FootContacts:
        """Return what the feet felt at the beginning of the last step; forces if asked for."""
        sites = self._foot_sites
        state = FootContacts(np.zeros(len(sites), dtype=bool), np.zeros((len(sites), 6)))
        contacts, force = self.data.contact, np.zeros(6)
        touching = np.flatnonzero(contacts.efc_address >= 0)
        for index, geoms in zip(touching, self._feet[contacts.geom[touching]], strict=True):
            foot, sign = (geoms[1], 1.0) if geoms[1] >= 0 else (geoms[0], -1.0)
            if foot < 0:
                continue
            state.active[foot] = True
            if wrenches:
                mujoco.mj_contactForce(self.model, self.data, index, force)
                world = sign * contacts.frame[index].reshape(3, 3).T @ force[:3]
                arm = contacts.pos[index] - self.data.site_xpos[sites[foot]]
                axes = self.data.site_xmat[sites[foot]].reshape(3, 3).T
                state.wrenches[foot, :3] += axes @ world
                state.wrenches[foot, 3:] += axes @ cross(arm, world)
        return state


def cross(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return the cross product of two vectors (3,); NumPy's costs ten times as much."""
    ax, ay, az = a.tolist()
    bx, by, bz = b.tolist()
    return np.array([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx])
