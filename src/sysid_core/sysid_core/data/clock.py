# SPDX-License-Identifier: Apache-2.0
"""Deciding between the time in message headers and the time of recording."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sysid_core.arrays import FloatArray
from sysid_core.data.storage import StoredMessage

__all__ = ["Stream", "stamp_times"]

_NANOSECONDS = 1_000_000_000
_FRESH_SIMULATION = 10 * _NANOSECONDS


@dataclass(frozen=True)
class Stream:
    """The decoded messages of one topic with both of their times."""

    topic: str
    messages: list[Any]  # Message objects with a `header`
    # stamps, log_times: (n,) [ns] from the header; of recording.
    stamps: npt.NDArray[np.int64]
    log_times: npt.NDArray[np.int64]

    @staticmethod
    def of(topic: str, stored: list[StoredMessage], messages: list[Any]) -> Stream:
        """Collect the times of decoded messages."""
        stamps = [
            message.header.stamp.sec * _NANOSECONDS + message.header.stamp.nanosec
            for message in messages
        ]
        logged = [message.log_time for message in stored]
        return Stream(
            topic, messages, np.array(stamps, dtype=np.int64), np.array(logged, dtype=np.int64)
        )


def stamp_times(streams: list[Stream]) -> tuple[list[FloatArray], tuple[str, ...]]:
    """Return the time [s] of every message, all from the same clock, and warnings.

    Header stamps say when something was measured, so they are preferred; where those of one
    topic are unusable, all topics fall back on the time of recording, since two clocks cannot be
    compared.
    """
    troubles = [trouble for stream in streams if (trouble := _stamp_trouble(stream))]
    apart = _apart([stream.stamps for stream in streams])
    if not troubles and apart and not _apart([stream.log_times for stream in streams]):
        troubles.append("header stamps of different topics do not overlap")
    if troubles:
        warning = f"{'; '.join(troubles)}: the time of recording is used instead"
        return [stream.log_times / _NANOSECONDS for stream in streams], (warning,)
    return [stream.stamps / _NANOSECONDS for stream in streams], ()


def _stamp_trouble(stream: Stream) -> str:
    stamps = stream.stamps
    if not len(stamps):
        return ""
    zeros = int(np.count_nonzero(stamps == 0))
    if zeros == len(stamps):
        return f"{stream.topic} has no header stamps"
    # A simulation starts at zero, so one zero at the start of small stamps is a stamp like others.
    fresh = stamps[0] == 0 and zeros == 1 and stamps[1] < _FRESH_SIMULATION
    if zeros and not fresh:
        return f"{zeros} of {len(stamps)} messages of {stream.topic} have no header stamp"
    if np.any(stamps < 0):
        return f"{stream.topic} has negative header stamps"
    if len(stamps) > 2 and len(np.unique(stamps)) <= len(stamps) // 4:
        return f"header stamps of {stream.topic} stand still"
    return ""


def _apart(times: list[npt.NDArray[np.int64]]) -> bool:
    """Whether some stream ends before another begins."""
    filled = [series for series in times if len(series)]
    if len(filled) < 2:
        return False
    return max(series.min() for series in filled) > min(series.max() for series in filled)
