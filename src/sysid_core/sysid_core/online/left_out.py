# SPDX-License-Identifier: Apache-2.0
"""Follows which of the newest samples could not be learned from, and why."""

from __future__ import annotations

from collections import deque

from sysid_core.diagnostics import Diagnostic
from sysid_core.dynamics.rows import LeftOut

__all__ = ["RecentlyLeftOut"]


class RecentlyLeftOut:
    """Account of how many of the newest samples are of no use."""

    def __init__(self, samples: int) -> None:
        self._span = samples
        self._samples = 0  # In all accounts
        self._accounts: deque[LeftOut] = deque()

    def note(self, account: LeftOut) -> None:
        """Take in an account of newer samples."""
        if not account.samples:
            return
        self._accounts.append(account)
        self._samples += account.samples
        while self._samples - self._accounts[0].samples >= self._span:
            self._samples -= self._accounts.popleft().samples

    @property
    def share(self) -> float:
        """Share of the newest samples that were left out [-]."""
        return sum(account.count for account in self._accounts) / max(self._samples, 1)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """How many were left out and why."""
        spoiled = [account for account in self._accounts if account.causes]
        return sum(spoiled, LeftOut(self._samples - sum(a.samples for a in spoiled))).diagnostics
