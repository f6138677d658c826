# SPDX-License-Identifier: Apache-2.0
"""Kinds of clocks."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["ClockType"]


class ClockType(IntEnum):
    """Kind of a clock."""

    ROS_TIME = 1
    SYSTEM_TIME = 2
    STEADY_TIME = 3
