# SPDX-License-Identifier: Apache-2.0
"""Laws of the finite differences: exactness on polynomials and fourth order."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.errors import DataError, ParameterError
from sysid_core.signals.differences import differentiate


@pytest.mark.parametrize("derivative", [1, 2])
@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4])
def test_polynomials_up_to_quartics_are_exact_everywhere(degree: int, derivative: int) -> None:
    dt = 0.1
    time = np.arange(12) * dt
    polynomial = np.polynomial.Polynomial(np.arange(1.0, degree + 2.0))
    expected = polynomial.deriv(derivative)(time) if degree else np.zeros_like(time)
    got = differentiate(polynomial(time), dt, derivative=derivative)
    np.testing.assert_allclose(got, expected, atol=1e-9)


@pytest.mark.parametrize("derivative", [1, 2])
def test_halving_the_period_divides_the_error_by_sixteen(derivative: int) -> None:
    errors = []
    for n in (200, 400):
        time = np.linspace(0.0, 2.0, n + 1)
        exact = {1: np.cos(3 * time) * 3, 2: -9 * np.sin(3 * time)}[derivative]
        got = differentiate(np.sin(3 * time), 2.0 / n, derivative=derivative)
        errors.append(np.abs(got - exact).max())
    assert 12.0 < errors[0] / errors[1] < 40.0


def test_the_shortest_records_work_and_shorter_ones_are_refused() -> None:
    quartic = np.arange(6.0) ** 4
    np.testing.assert_allclose(
        differentiate(quartic, 1.0, derivative=2), 12 * np.arange(6.0) ** 2, atol=1e-8
    )
    with pytest.raises(DataError, match="too few"):
        differentiate(np.zeros(4), 1.0)
    with pytest.raises(DataError, match="too few"):
        differentiate(np.zeros(5), 1.0, derivative=2)


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ParameterError):
        differentiate(np.zeros(9), 0.0)
    with pytest.raises(ParameterError):
        differentiate(np.zeros(9), 1.0, derivative=3)
