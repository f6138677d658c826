# SPDX-License-Identifier: Apache-2.0
"""Every state of the gate has its evidence, and every refusal says what was missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_core.errors import ParameterError
from sysid_core.online.gate import Evidence, Gate, GateConfig, GateState

GOOD = Evidence(
    fill=1.0,
    r2=0.99,
    r2_groups=np.array([0.99, 0.98]),
    rmse_groups=np.array([0.1, 0.1]),
    rmse_nominal_groups=np.array([1.0, 1.0]),
    groups=("shoulder", "elbow"),
    consistency=np.array([1e-3, 1e-4]),
    bodies=("upper", "lower"),
    determined=0.8,
    optimality=1e-9,
    change=0.1,
    idle=0.0,
)


@pytest.fixture
def gate() -> Gate:
    return Gate(GateConfig())


@pytest.fixture
def opened(gate: Gate) -> Gate:
    gate.decide(GOOD)
    assert gate.open
    return gate


def test_good_evidence_opens_the_gate(gate: Gate) -> None:
    decision = gate.decide(GOOD)
    assert decision.state is GateState.IDENTIFIED
    assert decision.accepted
    assert gate.open
    assert "0.990" in decision.reasons[0]


def test_states_are_numbered_as_in_the_message() -> None:
    names = ["FILLING", "NOMINAL", "IDENTIFIED", "HOLDING", "REJECTED", "FAULT"]
    assert [GateState(i).name for i in range(6)] == names


@pytest.mark.parametrize(
    ("change", "closed", "open_", "words"),
    [
        ({"fill": 0.4}, GateState.FILLING, GateState.HOLDING, "40 % full"),
        ({"left_out": 0.75}, GateState.NOMINAL, GateState.HOLDING, "75 % of the newest samples"),
        ({"left_out": 0.75, "fill": 0.4}, GateState.FILLING, GateState.HOLDING, "cannot be used"),
        ({"r2": 0.2}, GateState.NOMINAL, GateState.NOMINAL, "R² 0.200 is below"),
        ({"r2": np.nan}, GateState.NOMINAL, GateState.NOMINAL, "R² nan is below"),
        ({"rmse_groups": np.array([2.0, 2.0])}, GateState.NOMINAL, GateState.NOMINAL, "worse"),
        (
            {
                "r2_groups": np.array([0.99, 0.1]),
                "rmse_groups": np.array([0.1, 1.001]),
                "rmse_nominal_groups": np.array([5.0, 1.0]),
            },
            GateState.NOMINAL,
            GateState.REJECTED,
            "elbow",
        ),
        ({"determined": 0.01}, GateState.NOMINAL, GateState.HOLDING, "poor excitation"),
        (
            {"consistency": np.array([1e-3, -1e-3])},
            GateState.REJECTED,
            GateState.REJECTED,
            "lower",
        ),
        (
            {"consistency": np.array([np.nan, 1.0])},
            GateState.REJECTED,
            GateState.REJECTED,
            "upper",
        ),
        ({"optimality": 0.1}, GateState.REJECTED, GateState.REJECTED, "optimality"),
        ({"optimality": np.nan}, GateState.REJECTED, GateState.REJECTED, "optimality"),
        ({"idle": 3.0}, GateState.NOMINAL, GateState.HOLDING, "no informative samples for 3.0 s"),
        (
            {"idle": 3.0, "fill": 0.5},
            GateState.FILLING,
            GateState.HOLDING,
            "no informative samples",
        ),
        ({"fault": "the solver failed"}, GateState.FAULT, GateState.FAULT, "the solver failed"),
    ],
)
def test_poor_evidence_has_its_state_and_reason(
    change: dict[str, object], closed: GateState, open_: GateState, words: str
) -> None:
    evidence = replace(GOOD, **change)  # type: ignore[arg-type]
    for opened, state in ((False, closed), (True, open_)):
        gate = Gate(GateConfig())
        if opened:
            gate.decide(GOOD)
        decision = gate.decide(evidence)
        assert decision.state is state
        assert not decision.accepted
        assert words in " ".join(decision.reasons)
        # only a misfit of a model in use sends the controller back to nominal
        assert decision.fallback == (opened and state is GateState.NOMINAL)
        assert gate.open == (opened and state is not GateState.NOMINAL)


def test_a_jump_is_refused_only_once_a_model_is_in_use(gate: Gate) -> None:
    jump = replace(GOOD, change=10.0)
    assert gate.decide(jump).accepted  # the first model may be far from nominal
    refused = gate.decide(jump)
    assert refused.state is GateState.REJECTED
    assert "predicted torque would change" in refused.reasons[0]


def test_an_open_gate_closes_only_below_the_hysteresis(opened: Gate) -> None:
    between = replace(GOOD, r2=0.92)
    assert not Gate(GateConfig()).decide(between).accepted
    assert opened.decide(between).accepted
    closed = opened.decide(replace(GOOD, r2=0.89))
    assert closed.state is GateState.NOMINAL
    assert closed.fallback
    assert not opened.decide(between).accepted
    assert opened.decide(replace(GOOD, r2=0.951)).accepted


def test_a_joint_that_is_hard_to_predict_passes_if_it_is_better_than_nominal(gate: Gate) -> None:
    hard = replace(
        GOOD,
        r2_groups=np.array([0.99, -1.0]),
        rmse_groups=np.array([0.1, 0.2]),
        rmse_nominal_groups=np.array([1.0, 0.3]),
    )
    assert gate.decide(hard).accepted


def test_all_misfits_are_told_at_once(gate: Gate) -> None:
    decision = gate.decide(replace(GOOD, r2=-1.0, rmse_groups=np.array([3.0, 3.0])))
    assert len(decision.reasons) == 2


def test_reset_closes_the_gate(opened: Gate) -> None:
    opened.reset()
    assert not opened.open
    assert opened.decide(replace(GOOD, idle=2.0)).state is GateState.NOMINAL


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("r2_threshold", 1.0),
        ("r2_threshold", 0.0),
        ("hysteresis", -0.1),
        ("hysteresis", 0.96),
        ("r2_joint_threshold", 1.0),
        ("max_change", 0.0),
        ("max_optimality", -1.0),
        ("stale_after", 0.0),
        ("r2_threshold", np.nan),
        ("min_consistency", np.inf),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=name):
        GateConfig(**{name: value})
