# SPDX-License-Identifier: Apache-2.0
"""The answer to something offered from outside: taken, or refused with a reason."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ACCEPTED", "Verdict", "refused"]


class Verdict(NamedTuple):
    """Whether something offered is used; if not, `reason` says why not and how to mend it."""

    accepted: bool
    reason: str = ""


ACCEPTED = Verdict(True)


def refused(reason: str) -> Verdict:
    """Return a refusal."""
    return Verdict(False, reason)
