# SPDX-License-Identifier: Apache-2.0
"""The one type for what a check noticed, rendered as text only where a person reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

__all__ = ["Diagnostic", "Severity", "as_lines"]


class Severity(IntEnum):
    """How bad a diagnostic is; the values are those of ``diagnostic_msgs/DiagnosticStatus``."""

    OK = 0
    WARNING = 1
    ERROR = 2
    STALE = 3


@dataclass(frozen=True)
class Diagnostic:
    """One thing that a check noticed."""

    kind: str  # Stable identifier, e.g. ``slip``: what programs compare.
    message: str  # What is wrong, in one clause. ``{share}`` in it stands for the share.
    severity: Severity = Severity.WARNING
    subject: str = ""
    """The joint, foot, body or topic concerned; empty: the whole robot or recording."""
    share: float | None = None  # [-] share of the samples concerned
    hint: str = ""  # What to do about it, in the imperative
    values: Mapping[str, str] = field(default_factory=dict)  # Figures that explain it, by name

    def __str__(self) -> str:
        """Return the diagnostic as one line: ``subject: message; hint``."""
        text = self.message
        if self.share is not None:
            text = text.replace("{share}", f"{100.0 * self.share:.1f} %")
        if self.subject:
            text = f"{self.subject}: {text}"
        return f"{text}; {self.hint}" if self.hint else text


def as_lines(found: Iterable[Diagnostic]) -> list[str]:
    """Return diagnostics as lines; those that differ in subject and share alone make one line.

    Such a line tells the largest share.
    """
    alike: dict[tuple[str, str, str], list[Diagnostic]] = {}
    for one in found:
        alike.setdefault((one.kind, one.message, one.hint), []).append(one)
    lines = []
    for first, *more in alike.values():
        if more:
            subject = ", ".join(dict.fromkeys(one.subject for one in (first, *more)))
            share = max(
                (one.share for one in (first, *more) if one.share is not None), default=None
            )
            message = first.message.replace("{share}", "up to {share}")
            first = replace(first, subject=subject, share=share, message=message)
        lines.append(str(first))
    return lines
