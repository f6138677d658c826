# SPDX-License-Identifier: Apache-2.0
"""What an estimator is, and where those that have a name are found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, ClassVar, Literal, Protocol

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.estimation import methods
from sysid_core.estimation.estimate import Estimate
from sysid_core.estimation.problem import Problem

__all__ = ["METHODS", "Estimator", "Solver", "estimator", "method_names"]

Covariance = Literal["full", "diagonal", "none"]
_COVARIANCES = ("full", "diagonal", "none")


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
    """An estimator with its settings; each has fields of its own beside these.

    Attributes
    ----------
    name : str
        Of the method.
    max_iterations : int
        Most Newton, reweighting or solver steps.
    tolerance : float [-]
        An iteration stops when the next step would move the estimate by less than this many
        posterior standard deviations.
    noise_updates : int
        Most re-estimations of the noise from the residuals; 0 keeps the first guess.
    noise_floor : float [-]
        Smallest noise standard deviation, relative to the root mean square target of the group.
    covariance : str
        "diagonal" fills only the diagonal; "none" leaves NaN and no `determined` shares, for
        loops that need nothing but the parameters.
    """

    name: ClassVar[str]
    max_iterations: int = 500
    tolerance: float = 1e-6
    noise_updates: int = 30
    noise_floor: float = 3e-8
    covariance: Covariance = "full"

    def __post_init__(self) -> None:
        if self.covariance not in _COVARIANCES:
            raise ParameterError(
                f"unknown covariance '{self.covariance}'; choose one of {', '.join(_COVARIANCES)}"
            )
        if self.max_iterations < 1 or self.noise_updates < 0:
            raise ParameterError(
                "max_iterations must be at least 1 and noise_updates at least 0, "
                f"got {self.max_iterations} and {self.noise_updates}"
            )
        self._require_shares("tolerance", "noise_floor")

    def _require_shares(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                raise ParameterError(f"{name} must lie between 0 and 1, got {value}")

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
