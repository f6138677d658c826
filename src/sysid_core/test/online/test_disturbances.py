# SPDX-License-Identifier: Apache-2.0
"""What passes leaves the model as it was: pushes, and loads that are put down at once."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.online.update import Update
from sysid_core.recording import Samples

Arm = Any
PUSH = np.array([6.0, -15.0, 5.0, 9.0, -2.0, 2.0, 0.5])  # [N·m]


@pytest.fixture(scope="module")
def panda(arm_of: Callable[[str], Arm]) -> Arm:
    return arm_of("panda")


@pytest.fixture(scope="module")
def calm(panda: Arm) -> OnlineIdentifier:
    """Return an identifier after 12 s without disturbances; to be copied."""
    identifier = OnlineIdentifier(panda.robot)
    run(identifier, panda.samples(0.0, 12.0, noise=0.05))
    return identifier


def run(identifier: OnlineIdentifier, samples: Samples) -> list[Update]:
    updates = []
    for start in range(0, len(samples), 10):
        identifier.ingest(samples.select(slice(start, start + 10)))
        updates.append(identifier.update())
    return updates


def error(panda: Arm, update: Update) -> float:
    """Return a model's error on a motion that was not seen, relative to the nominal model's."""
    s = panda.samples(40.0, 60.0)
    left = [
        np.linalg.norm(s.effort - panda.torque(x, s.position, s.velocity, s.acceleration))
        for x in (update.parameters, panda.robot.nominal)
    ]
    return float(left[0] / left[1]) if update.identified else 1.0


def pushed(samples: Samples, start: float, stop: float) -> Samples:
    """Push at all joints, as a person does who leans on the arm."""
    on = (samples.time >= start) & (samples.time < stop)
    return replace(samples, effort=samples.effort + on[:, None] * PUSH)


@pytest.mark.parametrize("lasts", [0.6, 1.5])
def test_a_push_leaves_the_model_as_it_was(
    panda: Arm, calm: OnlineIdentifier, lasts: float
) -> None:
    identifier = deepcopy(calm)
    before = error(panda, identifier.update())
    updates = run(identifier, pushed(panda.samples(12.0, 24.0, noise=0.05), 13.0, 13.0 + lasts))
    assert all(update.identified for update in updates)
    errors = [error(panda, update) for update in updates if update.time > 17.0]
    assert max(errors) < 1.5 * before


def test_a_push_that_stays_is_learned(panda: Arm, calm: OnlineIdentifier) -> None:
    updates = run(deepcopy(calm), pushed(panda.samples(12.0, 24.0, noise=0.05), 13.0, 24.0))
    truth = panda.truth.copy()
    truth[panda.robot.layout.term("offset")] += PUSH
    leant_on = replace(panda, truth=truth)
    assert updates[-1].identified
    assert error(leant_on, updates[-1]) < 0.2


@pytest.fixture(scope="module")
def load() -> FloatArray:
    return np.array([1.5, 0.03, -0.03, 0.12, 0.012, 0.0, 0.012, 0.0, 0.0, 0.003])


def test_a_load_that_is_put_down_at_once_is_no_part_of_the_model(
    panda: Arm, calm: OnlineIdentifier, load: FloatArray
) -> None:
    identifier = deepcopy(calm)
    before = error(panda, identifier.update())
    lifted = run(identifier, panda.samples(12.0, 13.5, noise=0.05, load=load))
    assert lifted[-1].payload_attached
    updates = run(identifier, panda.samples(13.5, 22.0, noise=0.05))
    late = [update for update in updates if update.time > 14.5]
    assert not any(update.payload_attached for update in late)
    assert max(error(panda, update) for update in late) < 1.5 * before
