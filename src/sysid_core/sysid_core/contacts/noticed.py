# SPDX-License-Identifier: Apache-2.0
"""What checks of legged samples notice: a diagnostic and the samples that it concerns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sysid_core.arrays import BoolArray
from sysid_core.diagnostics import Diagnostic, Severity

__all__ = ["Noticed", "NoticedLog", "noticed"]

_WORTH_SAYING = {
    "base_uncertain": 0.5,
    "contact_missed": 0.05,
    "contact_false": 0.1,
    "slip": 0.1,
    "flight": np.inf,
    "flight_doubtful": 0.02,
    "no_contact_data": np.inf,
    "stance_doubtful": 0.02,
    "switch": 0.5,
    "twist_disagrees": 0.25,
}
"""Share of the samples [-] that every gait shows; only more is worth saying."""


class Noticed(NamedTuple):
    """A diagnostic and the samples (n,) that it concerns.

    What an error is told of cannot be used.
    """

    diagnostic: Diagnostic
    samples: BoolArray

    @property
    def kind(self) -> str:
        """Its diagnostic's kind."""
        return self.diagnostic.kind

    @property
    def fatal(self) -> bool:
        """Whether the data cannot be used before this is mended."""
        return self.diagnostic.severity == Severity.ERROR

    def among(self, chosen: BoolArray) -> Noticed:
        """Return what is noticed of the samples that a mask (n,) picks."""
        return self._replace(samples=self.samples[chosen])


def noticed(
    kind: str,
    message: str,
    samples: BoolArray,
    *,
    hint: str = "",
    subject: str = "",
    fatal: bool = False,
) -> Noticed:
    """Return a diagnostic of samples (n,), with their share."""
    severity = Severity.ERROR if fatal else Severity.WARNING
    share = float(np.mean(samples)) if samples.size else 0.0
    return Noticed(Diagnostic(kind, message, severity, subject, share, hint), samples)


class NoticedLog:
    """Counts the samples of every diagnostic; memory is bounded by the number of kinds."""

    def __init__(self) -> None:
        self._samples = 0
        self._found: dict[tuple[str, str], tuple[int, Diagnostic]] = {}

    def add(self, samples: int, found: Sequence[Noticed]) -> None:
        """Take what was noticed of a number of samples."""
        self._samples += samples
        for one in found:
            key = (one.kind, one.diagnostic.subject)
            count, _ = self._found.get(key, (0, None))
            self._found[key] = (count + int(one.samples.sum()), one.diagnostic)

    def take(self) -> tuple[Diagnostic, ...]:
        """Return what is worth saying since the last call, most frequent first, and forget it."""
        total = max(self._samples, 1)
        found = [
            (count, replace(diagnostic, share=count / total))
            for count, diagnostic in self._found.values()
            if count > _WORTH_SAYING.get(diagnostic.kind, 0.0) * total
        ]
        self._samples = 0
        self._found.clear()
        return tuple(d for _, d in sorted(found, key=lambda pair: pair[0], reverse=True))
