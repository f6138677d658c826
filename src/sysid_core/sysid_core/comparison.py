# SPDX-License-Identifier: Apache-2.0
"""Whether two estimates of one robot agree: by their own uncertainty, and by predicted torque."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from sysid_core.arrays import FloatArray
from sysid_core.errors import ModelError
from sysid_core.estimate_file import EstimateFile
from sysid_core.identification import IdentifyConfig
from sysid_core.recording import Recording
from sysid_core.recordings import Source
from sysid_core.robot.model import Robot
from sysid_core.validation import rows_at_learned_cutoff

__all__ = ["Comparison", "Difference", "TorqueDifference", "compare", "compare_torques"]

_FALSE_ALARM = 0.01
"""Probability that two estimates of one truth are said to differ, over all parameters."""
_EQUAL = 1e-9
"""Relative difference of held values that writing and reading them makes [-]."""


@dataclass(frozen=True)
class Difference:
    """One parameter in two estimates, in SI units, with its standard deviations.

    `z` is the difference in standard deviations of both: how many of them lie between.
    """

    kind: str
    name: str
    first: float
    second: float
    first_std: float
    second_std: float

    @property
    def z(self) -> float:
        """Difference over the root of both variances; inf where held values differ [-]."""
        gap, std = self.second - self.first, float(np.hypot(self.first_std, self.second_std))
        if abs(gap) <= _EQUAL * max(abs(self.first), abs(self.second)):
            return 0.0
        return gap / std if std > 0.0 else float(np.copysign(np.inf, gap))


@dataclass(frozen=True)
class Comparison:
    """All parameters of two estimates."""

    differences: tuple[Difference, ...]
    """Bodies, friction, base parameters, each in the first estimate's order."""
    unmatched: tuple[str, ...]  # Base parameters that only one of them has
    bound: float  # [-]: |z| that estimates of one truth exceed in one of a hundred comparisons

    @property
    def beyond(self) -> tuple[Difference, ...]:
        """Differences that chance does not explain, the strongest first."""
        found = [d for d in self.differences if abs(d.z) > self.bound]
        return tuple(sorted(found, key=lambda d: -abs(d.z)))


@dataclass(frozen=True)
class TorqueDifference:
    """Predicted torques of two estimates on a recording."""

    joints: tuple[str, ...]
    # first, second: (G,) [N·m] root mean square errors.
    first: FloatArray
    second: FloatArray
    between: FloatArray  # (G,) [N·m] root mean square of one prediction less the other
    warnings: tuple[str, ...]

    @property
    def beyond(self) -> tuple[str, ...]:
        """Joints whose predictions are further from each other than the better is from truth."""
        differs = self.between > np.minimum(self.first, self.second)
        return tuple(j for j, found in zip(self.joints, differs, strict=True) if found)


def compare(first: EstimateFile, second: EstimateFile) -> Comparison:
    """Compare the parameters of two estimates.

    The bound on |z| is Bonferroni's over all parameters that have a standard deviation.

    Raises
    ------
    ModelError
        If they belong to different models.
    """
    if first.model_hash != second.model_hash:
        raise ModelError(
            f"{first.path} is of robot '{first.robot}' (model {first.model_hash}), {second.path} "
            f"of '{second.robot}' (model {second.model_hash}); compare estimates that were "
            "identified with one robot description"
        )
    one, other = first.quantities(), second.quantities()
    found = tuple(
        Difference(kind, name, value, other[kind, name][0], std, other[kind, name][1])
        for (kind, name), (value, std) in one.items()
        if (kind, name) in other
    )
    tested = sum(d.first_std > 0.0 or d.second_std > 0.0 for d in found)
    unmatched = tuple(name for _, name in sorted(one.keys() ^ other.keys()))
    return Comparison(found, unmatched, float(-ndtri(_FALSE_ALARM / 2.0 / max(tested, 1))))


def compare_torques(
    robot: Robot,
    data: Recording | Source,
    first: EstimateFile,
    second: EstimateFile,
    options: IdentifyConfig,
) -> TorqueDifference:
    """Compare what two estimates predict on a recording, filtered at the lower cut-off of both.

    Raises
    ------
    DataError
        If the recording is not usable.
    ModelError
        If an estimate does not belong to the robot.
    """
    cutoffs = [e.cutoff for e in (first, second) if e.cutoff is not None]
    errors = []
    for estimate in (first, second):
        own = estimate.as_identified(robot)
        vector = estimate.parameters(own)
        regression, rows, warnings = rows_at_learned_cutoff(
            own, data, options, min(cutoffs, default=None), estimate.lag
        )
        rows = regression.with_load(rows, vector)
        errors.append(rows.residuals(regression.base.project(vector)))
    between = [one - other for one, other in zip(*errors, strict=True)]
    return TorqueDifference(
        regression.groups, _sizes(errors[0]), _sizes(errors[1]), _sizes(between), warnings
    )


def _sizes(errors: Iterable[FloatArray]) -> FloatArray:
    """Return the root mean square of each group's errors (m,)."""
    return np.array([np.sqrt(np.mean(e**2)) for e in errors])
