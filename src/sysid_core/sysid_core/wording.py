# SPDX-License-Identifier: Apache-2.0
"""Fitting what other libraries say, and what files contain, into one line of a message."""

from __future__ import annotations

import math

__all__ = ["number", "one_line", "printable"]

_LIMIT = 120


def number(value: float, digits: int = 3, form: str = "g") -> str:
    """Write a number with some significant digits."""
    return f"{value:.{digits}{form}}" if math.isfinite(value) else "–"


def printable(text: str) -> str:
    """Return a text with a question mark for what would break a line or steer a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def one_line(text: object) -> str:
    """Return an error or a value as one short printable line."""
    words = str(text).split() or ([type(text).__name__] if isinstance(text, Exception) else [])
    line = printable(" ".join(words))
    return line if len(line) <= _LIMIT else f"{line[: _LIMIT - 1]}…"
