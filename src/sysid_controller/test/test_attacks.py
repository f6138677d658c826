# SPDX-License-Identifier: Apache-2.0
"""Random attacks move no robot faster than its limits for long, and end at rest, by name."""

from __future__ import annotations

import numpy as np
import pytest

from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.settings import OnlineConfig
from sysid_core.online.stream import SampleStream
from sysid_core.online.stream_config import StreamConfig

attacks = pytest.importorskip("bench.attacks", reason="the benchmarks are not at hand")

SEEDS = (2, 3, 8, 9, 113, 122)  # before there was a watch, most of them were runaways


@pytest.mark.parametrize(
    ("robot", "seed"),
    [
        pytest.param(robot, seed, marks=pytest.mark.heavy if k else ())
        for robot, seeds in (("panda", SEEDS), ("digit_left_leg", SEEDS), ("solo12", (2, 5)))
        for k, seed in enumerate(seeds)
    ],
)
def test_no_attack_makes_a_robot_run_away(robot: str, seed: int) -> None:
    attack = attacks.attack(robot, seed)
    assert attack.overspeed <= 0.05
    assert attack.to_rest <= 1.0
    assert attack.unnamed == 0


def test_an_identifier_that_forgets_at_once_drives_no_joint_too_fast() -> None:
    """Settings that are legal, and leave it the noise of a robot that stands still."""
    loop = attacks.Loop("panda", 0)
    rate = 1.0 / attacks.PERIOD
    stream = SampleStream(loop.robot, StreamConfig(rate=rate, cutoff=10.0, sample_rate=100.0))
    settings = OnlineConfig(sample_rate=100.0, window=0.5, memory=0.0, still_velocity=0.0)
    identifier = OnlineIdentifier(loop.robot, settings)
    names, limit = loop.robot.joint_names, loop.controller.limits.velocity
    fastest = 0.0
    for k in range(2000):
        if k == 200:
            loop.follow()
        fastest = max(fastest, float((np.abs(loop.tick()) / limit).max()))
        position, effort = loop.controller.joint_states.position, loop.effort
        identifier.ingest(
            stream.push_joint_states(np.array([loop.time]), names, position[None], effort[None])
        )
        if k % 50 == 0:
            loop.offer(identifier.update().parameters)
    assert fastest < 1.0
