# SPDX-License-Identifier: Apache-2.0
"""From recorded or live signals to uniform, filtered, differentiated samples."""

from sysid_core.signals.align import Aligned, align
from sysid_core.signals.cutoff import CutoffChoice, highest_cutoff
from sysid_core.signals.filters import settling_time
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.prepare import PrepareReport, filter_aligned, prepare
from sysid_core.signals.rotation import angular_motion, continuous, normalised
from sysid_core.signals.synchronise import Track, synchronise

__all__ = [
    "Aligned",
    "CutoffChoice",
    "PrepareReport",
    "SignalConfig",
    "Track",
    "align",
    "angular_motion",
    "continuous",
    "filter_aligned",
    "highest_cutoff",
    "normalised",
    "prepare",
    "settling_time",
    "synchronise",
]
