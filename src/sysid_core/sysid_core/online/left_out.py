# SPDX-License-Identifier: Apache-2.0
"""Follows which of the newest samples a regression could not use, and why."""

from __future__ import annotations

from collections import deque

from sysid_core.dynamics.closed_chain import LeftOut
from sysid_core.dynamics.rows import Regression

__all__ = ["RecentlyLeftOut"]


class RecentlyLeftOut:
    """Account of the newest samples that closed chains leave out; other robots leave out none.

    Parameters
    ----------
    samples : int
        How many of the newest samples it covers.
    """

    def __init__(self, samples: int) -> None:
        self._span = samples
        self._accounts: deque[LeftOut] = deque()

    def note(self, regression: Regression) -> None:
        """Take in what the last call of the regression's `rows` left out."""
        account: LeftOut | None = getattr(regression, "left_out", None)
        if account is None:
            return
        self._accounts.append(account)
        count = self._total.samples
        while count - self._accounts[0].samples >= self._span:
            count -= self._accounts.popleft().samples

    @property
    def _total(self) -> LeftOut:
        total = LeftOut(0, 0, 0, 0.0, 0.0)
        for account in self._accounts:
            total = total.merge(account)
        return total

    @property
    def share(self) -> float:
        """Share of the newest samples that were left out [-]."""
        total = self._total
        return (total.open + total.singular) / max(total.samples, 1)

    @property
    def warnings(self) -> tuple[str, ...]:
        """How many were left out and why, in words."""
        return self._total.warnings
