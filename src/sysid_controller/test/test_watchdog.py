# SPDX-License-Identifier: Apache-2.0
"""The states of the controller follow from what arrived and when."""

from __future__ import annotations

from sysid_controller.command import ControlState, Watchdog


def test_waits_for_the_first_joint_states_then_drives() -> None:
    watchdog = Watchdog(0.1, enabled=True)
    assert watchdog.decide(0.0, moving=False).after is ControlState.WAITING
    assert watchdog.decide(9.0, moving=True).after is ControlState.WAITING
    watchdog.feed(10.0)
    change = watchdog.decide(10.0, moving=False)
    assert change.after is ControlState.HOLDING
    assert change.takes_over
    assert not change.recovers
    assert watchdog.decide(10.05, moving=True).after is ControlState.TRACKING


def test_stale_joint_states_stop_it_and_fresh_ones_bring_it_back() -> None:
    watchdog = Watchdog(0.1, enabled=True)
    watchdog.feed(0.0)
    watchdog.decide(0.0, moving=True)
    assert watchdog.decide(0.09, moving=True).after is ControlState.TRACKING
    assert watchdog.decide(0.11, moving=True).after is ControlState.STALE
    assert watchdog.decide(5.0, moving=False).after is ControlState.STALE
    watchdog.feed(5.1)
    change = watchdog.decide(5.1, moving=True)
    assert change.after is ControlState.TRACKING
    assert change.recovers


def test_disabled_stays_disabled_until_enabled() -> None:
    watchdog = Watchdog(0.1, enabled=False)
    watchdog.feed(0.0)
    assert watchdog.decide(0.0, moving=True).after is ControlState.DISABLED
    watchdog.enabled = True
    assert watchdog.decide(0.05, moving=False).takes_over
    watchdog.enabled = False
    assert watchdog.decide(0.06, moving=False).after is ControlState.DISABLED


def test_enabled_on_old_joint_states_it_waits_for_new_ones() -> None:
    watchdog = Watchdog(0.1, enabled=False)
    watchdog.feed(0.0)
    watchdog.decide(0.0, moving=False)
    watchdog.enabled = True
    assert watchdog.decide(1.0, moving=False).after is ControlState.WAITING
    watchdog.feed(1.1)
    assert watchdog.decide(1.1, moving=False).takes_over
