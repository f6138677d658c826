# SPDX-License-Identifier: Apache-2.0
"""From recorded or live signals to uniform, filtered, differentiated samples."""

from sysid_core.signals.align import Aligned, align
from sysid_core.signals.cutoff import CutoffChoice, choose_cutoff, highest_cutoff
from sysid_core.signals.differences import differentiate
from sysid_core.signals.filters import low_pass, settling_time
from sysid_core.signals.options import SignalConfig
from sysid_core.signals.outliers import HampelResult, hampel
from sysid_core.signals.prepare import Prepared, PrepareReport, filter_aligned, prepare
from sysid_core.signals.rotation import (
    AngularMotion,
    angular_motion,
    continuous,
    normalised,
    rotate_into_body,
)
from sysid_core.signals.synchronise import (
    Segment,
    Synchronised,
    SynchroniseReport,
    Track,
    synchronise,
)
from sysid_core.signals.timing import ClockEstimate, estimate_clock

__all__ = [
    "Aligned",
    "AngularMotion",
    "ClockEstimate",
    "CutoffChoice",
    "HampelResult",
    "PrepareReport",
    "Prepared",
    "Segment",
    "SignalConfig",
    "SynchroniseReport",
    "Synchronised",
    "Track",
    "align",
    "angular_motion",
    "choose_cutoff",
    "continuous",
    "differentiate",
    "estimate_clock",
    "filter_aligned",
    "hampel",
    "highest_cutoff",
    "low_pass",
    "normalised",
    "prepare",
    "rotate_into_body",
    "settling_time",
    "synchronise",
]
