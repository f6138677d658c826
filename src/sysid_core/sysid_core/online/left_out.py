# SPDX-License-Identifier: Apache-2.0
"""Follows which of the newest samples a regression could not use, and why."""

from __future__ import annotations

from collections import deque

from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import LeftOut

__all__ = ["RecentlyLeftOut"]


class RecentlyLeftOut:
    """Account of how many of the newest samples give no rows."""

    def __init__(self, samples: int) -> None:
        self._span = samples
        self._accounts: deque[LeftOut] = deque()

    def note(self, account: LeftOut) -> None:
        """Take in what the newest rows left out; most regressions use all samples and say none."""
        if not account.samples:
            return
        self._accounts.append(account)
        count = self._total.samples
        while count - self._accounts[0].samples >= self._span:
            count -= self._accounts.popleft().samples

    @property
    def _total(self) -> LeftOut:
        return sum(self._accounts, LeftOut())

    @property
    def share(self) -> float:
        """Share of the newest samples that were left out [-]."""
        total = self._total
        return total.count / max(total.samples, 1)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """How many were left out and why."""
        return self._total.diagnostics
