# SPDX-License-Identifier: Apache-2.0
"""Joint states of a second node are told from the driver's by what they say and when they come."""

from __future__ import annotations

import pytest

from sysid_core.signals.senders import Senders

ARM, ALL = ("a", "b"), ("finger", "b", "a")
NONE: tuple[float, ...] = ()
SAID = (0.1, 0.2)
PERIOD = 0.01


def _driven(senders: Senders, start: float, count: int = 20, **said: tuple[float, ...]) -> None:
    """Let the driver publish, and check that it is believed."""
    given = {"velocity": SAID, "effort": SAID, **said}
    for k in range(count):
        assert not senders.foreign(ARM, start + PERIOD * k, **given)


@pytest.mark.parametrize(
    ("velocity", "effort"),
    [(NONE, NONE), (SAID, NONE), (SAID, (0.0, 0.0)), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))],
)
def test_who_says_less_is_foreign_while_the_driver_comes(
    velocity: tuple[float, ...], effort: tuple[float, ...]
) -> None:
    senders = Senders(ARM, {})
    assert not senders.foreign(ALL, -0.5, velocity, effort)  # nobody else was there
    _driven(senders, 0.0)
    assert senders.foreign(ALL, 0.195, velocity, effort)
    assert senders.foreign(ALL, 0.21, velocity, effort)
    assert senders.foreign(ALL, 1.3, velocity, effort)  # the driver's computer stood still
    assert not senders.foreign(ALL, 2.26, velocity, effort)  # the driver has fallen silent
    _driven(senders, 2.3)
    assert senders.foreign(ALL, 2.495, velocity, effort)


def test_joints_of_others_and_other_names_of_its_own() -> None:
    senders = Senders(ARM, {"left/a": "a"})
    _driven(senders, 0.0)
    assert not senders.foreign(("finger",), 0.195, NONE, NONE)
    assert senders.foreign(("left/a",), 0.195, NONE, NONE)


def test_a_driver_whose_efforts_become_zero_is_believed() -> None:
    senders = Senders(ARM, {})
    _driven(senders, 0.0)
    _driven(senders, 0.2, effort=(0.0, 0.0))
    # in another order, as some drivers change it
    assert not senders.foreign(("b", "a"), 0.4, SAID, SAID)
    assert not senders.foreign(("b", "a"), 0.41, SAID, (0.0, 0.0))


def test_pauses_and_clocks_that_are_set_back_are_borne() -> None:
    senders = Senders(ARM, {})
    _driven(senders, 1000.0)
    _driven(senders, 1100.0)
    assert senders.foreign(ALL, 1100.195, NONE, NONE)
    _driven(senders, 5.0)
    assert senders.foreign(ALL, 5.195, NONE, NONE)
    assert not senders.foreign(ALL, 8.0, NONE, NONE)
