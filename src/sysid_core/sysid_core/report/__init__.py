# SPDX-License-Identifier: Apache-2.0
"""Reports of an identification: one self-contained page, and pictures."""

from sysid_core.report.write import write_report

__all__ = ["write_report"]
