# SPDX-License-Identifier: Apache-2.0
"""Every state of the gate has its evidence, and every refusal says what was missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sysid_core.diagnostics import Diagnostic
from sysid_core.errors import ParameterError
from sysid_core.online.gate import Decision, Evidence, GateConfig, GateState, decide

GOOD = Evidence(
    opened=False,
    fill=1.0,
    r2=0.99,
    rmse_groups=np.array([0.1, 0.1]),
    rmse_nominal_groups=np.array([1.0, 1.0]),
    groups=("shoulder", "elbow"),
    centred_r2=np.array([0.97, 0.91]),
    torque=np.array([5.0, 2.0]),
    consistency=np.array([1e-3, 1e-4]),
    bodies=("upper", "lower"),
    determined=0.8,
    optimality=1e-9,
    change=0.1,
    idle=0.0,
)


OPENED = replace(GOOD, opened=True, adopted=True)
HEAVY = replace(GOOD, torque=np.array([20.0, 8.0]))
"""Torques against which the models' errors hardly count."""
POOR = {"rmse_groups": np.array([0.9, 0.9])}
"""Hardly better than nominal."""
WRONG = Diagnostic("torque_scale", "the torque is 1.5 times too large", subject="elbow")
ABSURD = Diagnostic("total_mass", "the identified total mass is 0.02 times the description's")


def decided(evidence: Evidence) -> Decision:
    return decide(evidence, GateConfig())


def test_good_evidence_opens_the_gate() -> None:
    decision = decided(GOOD)
    assert decision.state is GateState.IDENTIFIED
    assert decision.accepted
    assert "0.990" in str(decision.reasons[0])


def test_states_are_numbered_as_in_the_message() -> None:
    names = ["FILLING", "NOMINAL", "IDENTIFIED", "HOLDING", "REJECTED", "FAULT"]
    assert [GateState(i).name for i in range(6)] == names


@pytest.mark.parametrize(
    ("change", "closed", "open_", "words"),
    [
        ({"absurdity": ABSURD}, GateState.NOMINAL, GateState.REJECTED, "0.02 times"),
        (
            {"absurdity": ABSURD, "leaning": True},
            GateState.NOMINAL,
            GateState.NOMINAL,
            "0.02 times",
        ),
        ({"fill": 0.4}, GateState.FILLING, GateState.HOLDING, "40 % full"),
        ({"left_out": 0.75}, GateState.NOMINAL, GateState.HOLDING, "75 % of the newest samples"),
        ({"left_out": 0.75, "fill": 0.4}, GateState.FILLING, GateState.HOLDING, "cannot be used"),
        ({"r2": 0.2, **POOR}, GateState.NOMINAL, GateState.NOMINAL, "R² 0.200 is below"),
        ({"r2": np.nan, **POOR}, GateState.NOMINAL, GateState.NOMINAL, "R² nan is below"),
        ({"rmse_groups": np.array([2.0, 2.0])}, GateState.NOMINAL, GateState.NOMINAL, "worse"),
        (
            {
                "rmse_groups": np.array([0.1, 1.01]),
                "rmse_nominal_groups": np.array([5.0, 1.0]),
            },
            GateState.NOMINAL,
            GateState.REJECTED,
            "elbow",
        ),
        ({"determined": 0.001}, GateState.NOMINAL, GateState.HOLDING, "poor excitation"),
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
    for opened, state in ((False, closed), (True, open_)):
        evidence = replace(GOOD, opened=opened, adopted=opened)
        decision = decided(replace(evidence, **change))  # type: ignore[arg-type]
        assert decision.state is state
        assert not decision.accepted
        assert words in " ".join(map(str, decision.reasons))
        # only a misfit of a model in use sends the controller back to nominal
        assert decision.fallback == (opened and state is GateState.NOMINAL)


def test_a_jump_is_refused_only_once_a_model_is_in_use() -> None:
    assert decided(replace(GOOD, change=10.0)).accepted  # the first may be far from nominal
    refused = decided(replace(OPENED, change=10.0))
    assert refused.state is GateState.REJECTED
    assert "predicted torque would change" in str(refused.reasons[0])


def test_a_wrong_torque_is_refused_by_joint_and_the_model_learned_from_it_with_it() -> None:
    first = decided(replace(GOOD, wrong_torques=(WRONG,)))
    assert (first.state, first.accepted) == (GateState.NOMINAL, False)
    assert first.reasons[0].subject == "elbow"
    # a model that was learned from such a torque goes, one from before it stays
    from_it = decided(replace(OPENED, wrong_torques=(WRONG,)))
    assert (from_it.state, from_it.fallback) == (GateState.NOMINAL, True)
    before = decided(replace(OPENED, wrong_torques=(WRONG,), changed=True))
    assert (before.state, before.fallback) == (GateState.REJECTED, False)


def test_an_estimate_that_saves_half_of_the_error_may_have_a_poor_r2() -> None:
    assert decided(replace(GOOD, r2=0.3)).accepted


def test_an_open_gate_closes_only_below_the_hysteresis() -> None:
    assert not decided(replace(GOOD, r2=0.92, **POOR)).accepted  # type: ignore[arg-type]
    assert decided(replace(OPENED, r2=0.92, **POOR)).accepted  # type: ignore[arg-type]
    closed = decided(replace(OPENED, r2=0.89, **POOR))  # type: ignore[arg-type]
    assert closed.state is GateState.NOMINAL
    assert closed.fallback
    assert decided(replace(GOOD, r2=0.951)).accepted


def test_a_joint_may_be_worse_than_nominal_by_what_a_model_errs_anyway() -> None:
    nominal = np.array([5.0, 1.0])
    for error, accepted in ((1.004, True), (1.01, False)):
        rmse = np.array([0.1, error])
        evidence = replace(GOOD, rmse_groups=rmse, rmse_nominal_groups=nominal)
        assert decided(evidence).accepted is accepted


@pytest.mark.parametrize("ratio", [0.9, 1.01, 1.05])
def test_a_nominal_model_that_predicts_as_well_is_confirmed(ratio: float) -> None:
    alike = replace(HEAVY, rmse_groups=ratio * HEAVY.rmse_nominal_groups)
    for evidence in (alike, replace(alike, opened=True)):
        decision = decided(evidence)
        assert (decision.state, decision.accepted) == (GateState.IDENTIFIED, False)
        assert decision.confirmed
        assert not decision.fallback
        assert "confirm the nominal model" in str(decision.reasons[0])


def test_what_is_in_use_stays_unless_the_other_is_clearly_better() -> None:
    def accepted(ratio: float, *, adopted: bool) -> bool:
        rmse = ratio * HEAVY.rmse_nominal_groups
        return decided(replace(HEAVY, opened=True, adopted=adopted, rmse_groups=rmse)).accepted

    assert [accepted(r, adopted=False) for r in (0.8, 0.85, 1.01)] == [True, False, False]
    assert [accepted(r, adopted=True) for r in (0.8, 1.01, 1.04)] == [True, True, False]


def test_a_nominal_model_is_confirmed_by_a_joint_that_the_estimate_worsens() -> None:
    worse = {"rmse_groups": np.array([0.1, 1.01]), "rmse_nominal_groups": np.array([5.0, 1.0])}
    decision = decided(replace(OPENED, adopted=False, **worse))  # type: ignore[arg-type]
    assert decision.confirmed


def test_all_misfits_are_told_at_once() -> None:
    decision = decided(replace(GOOD, r2=-1.0, rmse_groups=np.array([3.0, 3.0])))
    assert [reason.kind for reason in decision.reasons] == ["misfit", "worse"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("r2_threshold", 1.0),
        ("r2_threshold", 0.0),
        ("r2_threshold", 0.04),
        ("max_change", 0.0),
        ("r2_threshold", np.nan),
        ("min_determined", np.inf),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=name):
        GateConfig(**{name: value})
