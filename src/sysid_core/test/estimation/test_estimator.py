# SPDX-License-Identifier: Apache-2.0
"""Estimators are found by name, and a new one is a module of its own."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.errors import ParameterError
from sysid_core.estimation import METHODS, Entropic, Estimate, Estimator, Problem, estimator
from sysid_core.estimation import methods as methods_package
from sysid_core.estimation.estimator import method_names

if TYPE_CHECKING:
    from test.estimation.conftest import Synthetic


@dataclass(frozen=True, kw_only=True)
class Shrunk(Estimator):
    """Weighted least squares with the noise made out to be larger: what a new estimator is."""

    name = "shrunk"
    factor: float = 2.0

    def solve(self, problem: Problem, start: FloatArray | None = None) -> Estimate:
        noise = estimator("wls", covariance="none").solve(problem).noise_std
        return Entropic().solve(replace(problem, noise_std=self.factor * noise), start)


def test_every_name_gives_its_estimator() -> None:
    assert set(METHODS) >= {"ols", "wls", "prior", "qp", "sdp", "entropic"}
    for name in METHODS:
        assert estimator(name).name == name


def test_unknown_names_are_refused_with_those_that_exist() -> None:
    with pytest.raises(ParameterError, match=r"magic.*entropic"):
        estimator("magic")


def test_a_new_estimator_needs_one_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = "from test_estimator_shrunk import Shrunk as ESTIMATOR\n"
    (tmp_path / "shrunk.py").write_text(module)
    monkeypatch.setattr(methods_package, "__path__", [*methods_package.__path__, str(tmp_path)])
    monkeypatch.setitem(sys.modules, "test_estimator_shrunk", sys.modules[__name__])
    try:
        assert "shrunk" in method_names()
        assert estimator("shrunk", factor=3.0) == Shrunk(factor=3.0)
    finally:
        sys.modules.pop(f"{methods_package.__name__}.shrunk", None)
    monkeypatch.undo()
    assert "shrunk" not in method_names()


def test_a_new_estimator_is_used_like_any_other(panda: Synthetic) -> None:
    problem = panda.problem(noise=0.2)
    once, thrice = (Shrunk(factor=f).prepare(problem)(problem) for f in (1.0, 3.0))
    np.testing.assert_allclose(thrice.noise_std, 3.0 * once.noise_std)


@pytest.mark.parametrize("name", METHODS)
def test_a_prepared_solver_serves_other_data(panda: Synthetic, name: str) -> None:
    first, second = panda.problem(noise=0.2), panda.problem(seed=5, noise=0.2)
    solver = estimator(name).prepare(first)
    solver(first)
    np.testing.assert_array_equal(
        solver(second).parameters, estimator(name).solve(second).parameters
    )
