# SPDX-License-Identifier: Apache-2.0
"""Regression rows ``A x = b`` in base columns, and what turns samples into them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import MAD_TO_STD, BoolArray, FloatArray, IndexArray
from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.base_parameters import BaseParameters
from sysid_core.dynamics.contact_kinematics import ContactKinematics
from sysid_core.errors import DataError, ParameterError
from sysid_core.recording import Samples
from sysid_core.robot.model import Robot

__all__ = [
    "LeftOut",
    "OutsideWrench",
    "PerJoint",
    "Regression",
    "RowBlock",
    "Rows",
    "effective_sample_factor",
    "joint_rows",
    "moving_rows",
    "select_rows",
    "uncut_rows",
]


_NO_WRENCH = Diagnostic(
    "no_wrench", "{share} of the samples are left out: the wrench of a contact is missing"
)


class RowBlock(NamedTuple):
    """The rows of one group."""

    matrix: FloatArray  # (m, b) regressor in the base columns
    target: FloatArray  # (m,) [N·m]: Right-hand side
    sample: IndexArray  # (m,) index of the sample that each row belongs to

    def select(self, index: slice | IndexArray) -> RowBlock:
        """Return the rows that an index picks."""
        return RowBlock(self.matrix[index], self.target[index], self.sample[index])


@dataclass(frozen=True)
class LeftOut:
    """Account of samples that give no rows."""

    samples: int = 0  # Samples looked at
    causes: tuple[tuple[Diagnostic, int], ...] = ()
    """Why samples are left out, and how many for this cause."""

    def __add__(self, other: LeftOut) -> LeftOut:
        counts = {(cause.kind, cause.subject): (cause, count) for cause, count in self.causes}
        for cause, count in other.causes:
            key = cause.kind, cause.subject
            counts[key] = (cause, count + counts.get(key, (cause, 0))[1])
        return LeftOut(self.samples + other.samples, tuple(counts.values()))

    @property
    def count(self) -> int:
        """Number of samples left out."""
        return sum(count for _, count in self.causes)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Why samples are left out, with their share."""
        return tuple(
            replace(cause, share=count / self.samples) for cause, count in self.causes if count
        )


class Rows(NamedTuple):
    """Row blocks, one per group of a regression."""

    blocks: tuple[RowBlock, ...]
    left_out: LeftOut = LeftOut()  # Account of the samples without rows
    carried: tuple[FloatArray, ...] = ()
    """Torque (m,) [N·m] of a known load and against known wrenches, per block, which the targets
    lack; empty: none."""
    by_effort: FloatArray | None = None
    """(m, nj) [-] what the targets of the one group gain by each joint's effort, where groups are
    not joints."""

    def residuals(self, base_vector: FloatArray) -> tuple[FloatArray, ...]:
        """Return target minus prediction (m,) [N·m] per group, for base parameters (b,)."""
        return tuple(block.target - block.matrix @ base_vector for block in self.blocks)

    @property
    def finite(self) -> bool:
        """Whether every number is finite."""
        return all(
            bool(np.isfinite(block.matrix).all() and np.isfinite(block.target).all())
            for block in self.blocks
        )


def select_rows(rows: Rows, keep: Callable[[int, RowBlock], BoolArray]) -> Rows:
    """Return the rows for which ``keep(group, block)`` is true."""
    kept = [np.flatnonzero(keep(g, block)) for g, block in enumerate(rows.blocks)]
    return Rows(
        tuple(block.select(index) for block, index in zip(rows.blocks, kept, strict=True)),
        rows.left_out,
        tuple(torque[index] for torque, index in zip(rows.carried, kept, strict=False)),
    )


def moving_rows(rows: Rows, speed: FloatArray, still: FloatArray | float) -> Rows:
    """Leave out the rows of joints at rest, whose dry friction has no certain sign.

    Takes one group of rows per joint, whose speeds (n, G) count as rest below `still` (G,)
    [rad/s].
    """
    moving = np.abs(speed) >= still
    if moving.all():
        return rows
    return select_rows(rows, lambda g, block: moving[block.sample, g])


def uncut_rows(rows: Rows, cut_off: IndexArray | None, regression: Regression) -> Rows:
    """Leave out the rows of joints whose efforts rest on any that is cut off, as of `Samples`."""
    if cut_off is None or not regression.per_joint:
        return rows
    uncut = cut_off[:, regression.robot.actuated] == 0
    if uncut.all():
        return rows
    return select_rows(rows, lambda g, block: uncut[block.sample, g])


def joint_rows(
    matrices: Iterable[FloatArray],
    effort: FloatArray,
    pushed: FloatArray | None,
    sample: IndexArray,
    left_out: LeftOut,
) -> Rows:
    """Return the rows of joints' regressors, each (m, b), and efforts (m, G) [N·m].

    Torques of measured wrenches, `pushed` (m, G) [N·m], are on the right-hand side. Their samples
    (m,) have no rows where they are NaN.
    """
    if pushed is None:
        blocks = zip(matrices, effort.T, strict=True)
        return Rows(tuple(RowBlock(A, own, sample) for A, own in blocks), left_out)
    known = np.isfinite(pushed).all(axis=1)
    left_out += LeftOut(0, ((_NO_WRENCH, int((~known).sum())),))
    target, sample = (effort + pushed)[known], sample[known]
    rows = joint_rows((A[known] for A in matrices), target, None, sample, left_out)
    return rows._replace(carried=tuple(-pushed[known].T))


def effective_sample_factor(residuals: FloatArray) -> float:
    """Return by what factor ≥ 1 coloured residuals (n,) count for less than their number.

    The integrated autocorrelation time τ = 1 + 2 Σ ρ_k of evenly spaced residuals, summed up to
    the first lag that exceeds 5 τ (Sokal's window); outliers are clipped at 4 robust standard
    deviations first.
    """
    e = np.asarray(residuals, dtype=float)
    if e.ndim != 1 or not np.isfinite(e).all():
        raise ParameterError("the sample factor needs a finite, one-dimensional series")
    if len(e) < 4:
        return 1.0
    e = e - np.median(e)
    spread = MAD_TO_STD * np.median(np.abs(e))
    if spread > 0.0:
        e = np.clip(e, -4.0 * spread, 4.0 * spread)
    e = e - e.mean()
    size = 1 << (2 * len(e) - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(e, size)) ** 2
    autocovariance = np.fft.irfft(spectrum, size)[: len(e)]
    if autocovariance[0] <= 0.0:
        return 1.0
    times = 2.0 * np.cumsum(autocovariance / autocovariance[0]) - 1.0
    beyond = np.flatnonzero(np.arange(len(e)) >= 5.0 * times)
    window = int(beyond[0]) if len(beyond) else len(e) - 1
    return float(np.clip(times[window], 1.0, len(e)))


class OutsideWrench(NamedTuple):
    """What a wrench at the base's origin would add to rows of samples, and what these leave."""

    sample: IndexArray  # (m,) indices of the samples
    columns: FloatArray  # (m, r, 6) of a force [N] and a torque [N·m] in the world frame
    left: FloatArray  # (m, r) the rows less what the parameters explain


class Regression(ABC):
    """What turns samples of one robot into rows; one class per kind of robot.

    Attributes
    ----------
    groups : tuple[str, ...]
        Names of the row groups.
    per_joint : bool
        Whether each group stands for one actuated joint, so that `moving_rows` can leave out
        rows at rest afterwards. Else they must be asked for with `rows`.
    """

    groups: tuple[str, ...]
    per_joint: bool

    def __init__(self, robot: Robot) -> None:
        self.robot, self.layout = robot, robot.layout

    @property
    @abstractmethod
    def base(self) -> BaseParameters:
        """Structural base of the regressor."""

    @property
    def supports(self) -> tuple[IndexArray, ...]:
        """Per group the base columns that its rows can fill; unless it is known better, all."""
        return (np.arange(self.base.size),) * len(self.groups)

    @abstractmethod
    def rows(self, samples: Samples, still_velocity: FloatArray | float = 0.0) -> Rows:
        """Return the rows of the samples.

        Parameters
        ----------
        still_velocity : (nj,) [rad/s]
            Below it a joint is at rest and its dry friction unknown: its rows are left out, or
            count little where rows mix joints.
        """

    def with_friction(self, chosen: Mapping[str, Mapping[str, float]]) -> Regression:
        """Return the same of the robot with other chosen terms, as `Robot.with_friction`.

        Friction of its rows takes the load that was assumed before.
        """
        return type(self)(self.robot.with_friction(chosen))

    def assume_load(self, parameters: FloatArray) -> None:  # noqa: B027
        """Let friction of later rows take the load of parameters (p,); at first the nominal."""

    def with_load(self, rows: Rows, parameters: FloatArray | None = None) -> Rows:
        """Return rows whose friction takes the load of parameters (p,), or the one assumed."""
        return rows

    def load_friction(self, rows: Rows, parameters: FloatArray) -> tuple[FloatArray, ...]:
        """Return the friction (m,) [N·m] of a gear that loses all of its load: |τ_rigid| sign q̇.

        Parameters (p,) tell the load. It is zero for groups without dry friction of their own.
        """
        return tuple(np.zeros(len(block.target)) for block in rows.blocks)

    def outside_wrenches(
        self, samples: Samples, parameters: FloatArray, still_velocity: FloatArray | float = 0.0
    ) -> Iterator[OutsideWrench]:
        """Yield what a wrench on a floating base would add to the rows of samples.

        Other robots have none. Takes the parameters (p,) that explain the rows, and
        `still_velocity` as `rows` does.
        """
        return iter(())

    @abstractmethod
    def correlation(self, rows: Rows, samples: Samples, parameters: FloatArray) -> FloatArray:
        """Return by what factor ≥ 1 (G,) residuals count for less than their number of rows.

        `rows` are the samples' rows to learn from, and `parameters` (p,) those of the residuals.
        """


class PerJoint(Regression):
    """A regression with one group per actuated joint."""

    per_joint = True

    def __init__(self, robot: Robot) -> None:
        super().__init__(robot)
        self.groups = robot.actuated_names

    @cached_property
    def _frames(self) -> ContactKinematics:
        return ContactKinematics(self.robot)

    def pushed(self, samples: Samples, q: FloatArray) -> FloatArray | None:
        """Return the joint torques (n, nv) [N·m] of measured wrenches; None where there are none.

        They act on the robot at configurations q (n, nq).

        Raises
        ------
        DataError
            If there is not one wrench per contact of the description.
        """
        contacts, wrenches = self.robot.description.contacts, samples.wrenches
        if wrenches is None or not contacts:
            return None
        if wrenches.shape[1] != len(contacts):
            raise DataError(
                f"the data have {wrenches.shape[1]} wrenches, but the description names "
                f"{len(contacts)} contacts: name each that is measured"
            )
        return self._frames.evaluate(q).generalised(wrenches)

    @abstractmethod
    def all_rows(self, samples: Samples) -> Rows:
        """Return the rows of the samples, one block per joint, those at rest included."""

    def rows(self, samples: Samples, still_velocity: FloatArray | float = 0.0) -> Rows:
        """Return the rows of the samples; see `Regression.rows`."""
        actuated = self.robot.actuated
        still = np.broadcast_to(still_velocity, actuated.shape)[actuated]
        return moving_rows(self.all_rows(samples), samples.velocity[:, actuated], still)

    def rigid_torques(self, rows: Rows, parameters: FloatArray) -> tuple[FloatArray, ...]:
        """Return what the rigid bodies of parameters (p,) and a known load need (m,) [N·m]."""
        inertial = self.layout.inertial
        count = int(np.searchsorted(self.base.columns, inertial.stop))
        bodies = self.base.mapping[:count, inertial] @ parameters[inertial]
        torques = tuple(block.matrix[:, :count] @ bodies for block in rows.blocks)
        if not rows.carried:
            return torques
        return tuple(own + load for own, load in zip(torques, rows.carried, strict=True))

    def load_friction(self, rows: Rows, parameters: FloatArray) -> tuple[FloatArray, ...]:
        """Return the friction (m,) [N·m] of gears; see `Regression.load_friction`."""
        places = self.base.places(np.arange(self.layout.size)[self.layout.term("coulomb")])
        rigid = self.rigid_torques(rows, parameters)
        return tuple(
            np.abs(torque) * (block.matrix[:, place] if place >= 0 else 0.0)
            for torque, block, place in zip(
                rigid, rows.blocks, places[self.robot.actuated], strict=True
            )
        )

    def correlation(self, rows: Rows, samples: Samples, parameters: FloatArray) -> FloatArray:
        """Return the factors (G,) from the residuals of the rows; see `Regression`."""
        residuals = rows.residuals(self.base.project(parameters))
        return np.array([effective_sample_factor(e) for e in residuals])
