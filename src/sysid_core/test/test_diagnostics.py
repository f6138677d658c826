# SPDX-License-Identifier: Apache-2.0
"""Diagnostics read as lines, one for all subjects of which the same is said."""

from __future__ import annotations

from sysid_core.diagnostics import Diagnostic, as_lines


def test_the_same_of_several_subjects_is_one_line_with_the_largest_share() -> None:
    found = [
        Diagnostic("slip", "slips in {share}", subject=foot, share=share, hint="mend it")
        for foot, share in (("FL", 0.1), ("FR", 0.3), ("FL", 0.2))
    ]
    other = Diagnostic("late", "is late", subject="FL")
    assert as_lines([found[0]]) == ["FL: slips in 10.0 %; mend it"]
    assert as_lines([*found, other]) == ["FL, FR: slips in up to 30.0 %; mend it", "FL: is late"]
