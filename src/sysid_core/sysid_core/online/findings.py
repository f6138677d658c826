# SPDX-License-Identifier: Apache-2.0
"""Gathers what checks of live samples find until someone asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from sysid_core.contacts.findings import Finding, with_share

__all__ = ["FindingLog"]

_WORTH_SAYING = {
    "contact_missed": 0.05,
    "contact_false": 0.1,
    "slip": 0.1,
    "flight": 1.1,
    "flight_doubtful": 0.02,
    "no_contact_data": 1.1,
    "switch": 0.5,
    "twist_disagrees": 0.25,
}
"""Share of the samples from which a finding is more than every gait shows [-]; above 1: never."""


class FindingLog:
    """Counts the samples that findings concern; memory is bounded by the number of kinds."""

    def __init__(self) -> None:
        self._samples = 0
        self._found: dict[tuple[str, str], tuple[int, str]] = {}

    def add(self, samples: int, findings: Sequence[Finding]) -> None:
        """Take the findings of a number of samples."""
        self._samples += samples
        for finding in findings:
            key = (finding.kind, finding.contact)
            count, _ = self._found.get(key, (0, ""))
            self._found[key] = (count + int(finding.samples.sum()), finding.message)

    def take(self) -> tuple[str, ...]:
        """Return what is worth saying since the last call, most frequent first, and forget it."""
        total = max(self._samples, 1)
        found = [
            (count, with_share(message, count / total))
            for (kind, _), (count, message) in self._found.items()
            if count > _WORTH_SAYING.get(kind, 0.0) * total
        ]
        self._samples = 0
        self._found.clear()
        return tuple(message for _, message in sorted(found, reverse=True))
