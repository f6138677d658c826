# SPDX-License-Identifier: Apache-2.0
"""From recorded signals to uniform, filtered, differentiated samples."""

from sysid_core.signals.options import SignalOptions
from sysid_core.signals.prepare import Prepared, PrepareReport, prepare

__all__ = ["PrepareReport", "Prepared", "SignalOptions", "prepare"]
