# SPDX-License-Identifier: Apache-2.0
"""What an estimator is, and where those that have a name are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, Protocol

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.estimation import methods
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.problem import Problem
from sysid_core.settings import check_config, parameter

__all__ = ["METHODS", "SHARE", "Estimator", "Solver", "estimator", "method_names"]

SHARE = (1e-15, 1.0 - 1e-15)
"""Range of settings between 0 and 1 [-]."""


class Solver(Protocol):
    """Solves problems that differ in their data, noise and correlation alone."""

    def __call__(self, problem: Problem, start: FloatArray | None = None, /) -> Estimate:
        """Return the estimate; `start` (p,) is where to start from, for those that iterate.

        Raises
        ------
        EstimationError
            If the problem has no solution.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Estimator(ABC):
    """An estimator with its settings, described by their fields; each adds its own."""

    name: ClassVar[str]
    max_iterations: int = parameter(
        500, "Most Newton, reweighting or solver steps", range=(1, 10**9)
    )
    tolerance: float = parameter(
        1e-6,
        "An iteration stops when the next step would move the estimate by less than this many "
        "posterior standard deviations [-]",
        range=SHARE,
    )
    noise_updates: int = parameter(
        30,
        "Most re-estimations of the noise from the residuals; 0 keeps the first guess",
        range=(0, 10**9),
    )
    noise_floor: float = parameter(
        3e-8,
        "Smallest noise, relative to the root mean square target of the group [-]",
        range=SHARE,
    )
    covariance: str = parameter(
        "full",
        "How much of the posterior is computed: 'none' leaves NaN, for loops that need nothing "
        "but the parameters",
        choices=("full", "diagonal", "none"),
    )

    def __post_init__(self) -> None:
        check_config(self)

    @property
    def needs_rows(self) -> bool:
        """Whether it looks at single rows, so that `Problem.rows` must be there."""
        return False

    @abstractmethod
    def solve(self, problem: Problem, start: FloatArray | None = None) -> Estimate:
        """Return the estimate; see `Solver`."""

    def prepare(self, problem: Problem) -> Solver:
        """Return a solver for many problems with this one's prior and constraints."""
        return self.solve


def method_names() -> tuple[str, ...]:
    """Return the names of the estimators: those of the modules of `methods`."""
    return tuple(sorted(module.name for module in iter_modules(methods.__path__)))


METHODS = method_names()
"""Names of the estimators."""


def estimator(name: str, **settings: Any) -> Estimator:
    """Return the estimator of a name; its module has the class as ``ESTIMATOR``.

    Raises
    ------
    ParameterError
        If there is no such estimator, or a setting is not allowed.
    """
    if name not in method_names():
        raise ParameterError(f"unknown method '{name}'; choose one of {', '.join(method_names())}")
    made: Estimator = import_module(f"{methods.__name__}.{name}").ESTIMATOR(**settings)
    return made
