"""Neighbours that differ in all outcomes of one person, outputs replayed: one ε pays for all."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.engines.threads import single_threaded_blas
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.outcomes import estimate_outcomes
from private_ate.methods.registry import METHODS
from private_ate.privacy import composed_noise
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from several_outcomes import outcome_study, replaced

ASKED = [
    {},
    {"confidence": None},
    {"target": "track"},
    {"options": CalibratedOptions(means=True)},
    {"epsilon": Fraction(60)},  # where staircases that share ε are quieter than a cube
    {"rows_per_person": 3},
    {"rows_per_person": 3, "epsilon": Fraction(200)},
    {"rows_per_person": 2, "options": CalibratedOptions(means=True)},
    {"by": ("x0<0.5",)},
    {"by": ("x0<0.5",), "overall": True},
]


def run(study, request, noise):
    with single_threaded_blas():  # as the front door has it
        return estimate_outcomes(study, request, METHODS["calibrated"], noise)


def asked_for(asked):
    return Request("label", **{"epsilon": Fraction(1), **asked})


def neighbours(study, rows):
    """Move all outcomes of some rows from one end to the other, by turns up and down."""
    count = len(study.domain.outcomes)
    ends = [OUTCOME_STEPS * (place % 2) for place in range(count)]
    low, high = study, study
    for row in rows:
        low = replaced(low, row, ends)
        high = replaced(high, row, [OUTCOME_STEPS - end for end in ends])
    return low, high


@pytest.mark.parametrize("asked", ASKED, ids=str)
@pytest.mark.parametrize("arms", [2, 3])
def test_no_input_moves_further_than_declared(arms, asked):
    study = outcome_study(arms, 2 if asked else 3, rows=60)
    request = asked_for(asked)
    first = int(np.argmax(np.abs(study.covariates[0] - 0.5)))
    rows = [(first + place) % study.size for place in range(request.rows_per_person)]

    assert replay.replay_findings(run, *neighbours(study, rows), request) == []


@pytest.mark.parametrize("arms", [2, 3])
def test_public_missingness_of_each_outcome_is_followed(arms):
    study = outcome_study(arms, 2, rows=100, missing="public")
    both = study.observed & study.further[0].observed
    row = int(np.flatnonzero(both)[0])

    assert replay.replay_findings(run, *neighbours(study, [row]), asked_for({})) == []


def test_one_call_holds_all_outcomes():
    study = outcome_study(2, 4, rows=60)
    recorded = replay.record(run, study, asked_for({}))

    assert [call.spend.mechanism for call in recorded.calls] == ["cubes", "cubes"]
    assert [call.values.shape for call in recorded.calls] == [(1, 4), (1, 4)]
    assert recorded.noise.cost.epsilon == 1


def test_arms_are_rows_of_the_draw_and_cells_are_parts():
    study = outcome_study(3, 2, rows=100)
    recorded = replay.record(run, study, asked_for({"by": ("x0<0.5",)}))

    shapes = {call.spend.step: call.values.shape for call in recorded.calls}
    assert set(shapes.values()) == {(3, 2), (1, 2)}  # sums by arm, and a variance of all arms
    assert {call.spend.part for call in recorded.calls} == {"x0<0.5", "x0≥0.5"}
    assert recorded.noise.cost.epsilon == 1


def test_a_person_with_rows_in_several_arms_uses_up_one_share():
    study = outcome_study(3, 2, rows=60)
    rows = [int(np.flatnonzero(study.arm == arm)[0]) for arm in range(3)]
    request = asked_for({"rows_per_person": 3})

    assert replay.replay_findings(run, *neighbours(study, rows), request) == []


def test_an_outcome_whose_sensitivity_is_left_out_is_found(monkeypatch):
    honest = composed_noise._answer

    def halved(one):
        sizes = tuple(max(size // 2, 1) for size in one.spend.sensitivity)
        return replace(one, spend=replace(one.spend, sensitivity=sizes))

    def careless(noise, asked):
        first, *others = asked
        return honest(noise, [first, *map(halved, others)])

    monkeypatch.setattr(composed_noise, "_answer", careless)
    study = outcome_study(2, 2, rows=60)
    found = [
        finding
        for row in range(8)
        for finding in replay.replay_findings(
            run, *neighbours(study, [row]), asked_for({"confidence": None})
        )
    ]
    assert any("'outcome sum' moves by" in finding for finding in found)


@pytest.mark.parametrize(("method", "arms"), [("blocks", 2), ("blocks", 3)])
def test_at_sample_level_a_whole_record_moves_no_input_too_far(method, arms):
    study = outcome_study(arms, 2, rows=150)
    request = Request("sample", Fraction(4))

    def run_method(held, asked, noise):
        with single_threaded_blas():
            return estimate_outcomes(held, asked, METHODS[method], noise)

    low, high = neighbours(study, [5])
    changed = high.covariates.copy()
    changed[:, 5] = 1 - np.round(changed[:, 5])
    treatment = high.treatment.copy()
    treatment[5] = treatment[5] ^ True if arms == 2 else (treatment[5] + 1) % arms
    other = replace(high, covariates=changed, treatment=treatment)

    assert replay.replay_findings(run_method, low, other, request) == []


def test_a_person_who_moves_two_arms_in_full_is_found():
    recordings = [replay.Recording(), replay.Recording()]
    for recording, moved in zip(recordings, (0, 10), strict=True):
        noise = Noise(SeededEntropy(1), recording)
        table = [[moved, 0], [0, moved]]
        noise.cubes("x", table, sensitivities=[[10, 10]] * 2, epsilon=Fraction(1))

    assert any("moves by 2 times" in found for found in replay.broken_promises(*recordings))


def test_a_draw_that_is_not_shared_costs_too_much():
    study = outcome_study(2, 2, rows=60)

    def apart(held, request, noise):
        runs = [
            METHODS["calibrated"].run(held.with_outcome(place), request, noise)
            for place in range(2)
        ]
        return runs[0]

    found = replay.replay_findings(apart, *neighbours(study, [0]), asked_for({}))
    assert any("add up" in finding for finding in found)
