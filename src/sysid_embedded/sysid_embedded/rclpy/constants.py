# SPDX-License-Identifier: Apache-2.0
"""Unit conversions."""

from __future__ import annotations

__all__ = ["S_TO_NS"]

S_TO_NS = 1000 * 1000 * 1000
