# SPDX-License-Identifier: Apache-2.0
"""Random attacks move no robot faster than its limits for long, and end at rest, by name."""

from __future__ import annotations

import pytest

attacks = pytest.importorskip("bench.attacks", reason="the benchmarks are not at hand")

SEEDS = (2, 3, 8, 9, 113, 122)  # before there was a watch, most of them were runaways


@pytest.mark.parametrize(
    ("robot", "seed"),
    [(robot, seed) for robot in ("panda", "digit_left_leg") for seed in SEEDS]
    + [("solo12", 2), ("solo12", 5)],
)
def test_no_attack_makes_a_robot_run_away(robot: str, seed: int) -> None:
    attack = attacks.attack(robot, seed)
    assert attack.overspeed <= 0.05
    assert attack.to_rest <= 1.0
    assert attack.unnamed == 0
