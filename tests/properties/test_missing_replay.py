"""Neighbours of which one lacks an outcome or a treatment: no input moves further than declared."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.domain import Domain, Interval, Outcome
from private_ate.engines.local import LocalStudy
from private_ate.methods.blocks.method import estimate_blocks
from private_ate.methods.blocks.plan import BlocksOptions
from private_ate.methods.calibrated import private
from private_ate.methods.calibrated.method import estimate_calibrated
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

ROWS = 151
REQUESTS = [
    {},
    {"target": "track"},
    {"estimand": "att"},
    {"estimand": "atc"},
    {"estimand": "ato"},
    {"confidence": None},
    {"options": CalibratedOptions(means=True)},
    {"rows_per_person": 2},
    {"options": CalibratedOptions(clip_share="0.1")},
    {"rows_per_person": 2, "options": CalibratedOptions(clip_share="0.1")},
    {"options": CalibratedOptions(outcome_sd=0.03)},
    {"rows_per_person": 2, "options": CalibratedOptions(outcome_sd=0.03)},
]
MASKING = [
    (estimate_blocks, BlocksOptions(adjust=True)),
    (estimate_blocks, BlocksOptions(adjust=False)),
]


def study_with(rule, rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    covariates = rng.random((3, rows))
    treatment = rng.random(rows) < 0.2 + 0.6 * covariates[0]
    outcome = rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32)
    domain = Domain(
        "t", Outcome("y", Interval(0, 1), rule), {f"x{j}": Interval(0, 1) for j in range(3)}
    )
    observed, takes_part = rng.random(rows) < 0.8, rng.random(rows) < 0.9
    return LocalStudy(
        domain, covariates, treatment, outcome, takes_part=takes_part, observed=observed
    )


def with_outcomes(study, rows, outcome, observed):
    outcomes, seen = study.outcome.copy(), study.observed.copy()
    outcomes[rows], seen[rows] = outcome, observed
    return replace(study, outcome=outcomes, observed=seen)


def neighbours(study, rows):
    """Pairs of which one lacks the outcomes, beside two that have them at opposite bounds."""
    low, high = (with_outcomes(study, rows, end, observed=True) for end in (0, OUTCOME_STEPS))
    none = with_outcomes(study, rows, OUTCOME_STEPS // 2, observed=False)
    return [(low, high), (none, low), (high, none)]


@pytest.mark.parametrize("asked", REQUESTS)
@pytest.mark.parametrize("row", [0, 150])
def test_an_outcome_that_comes_or_goes_moves_no_step_too_far(asked, row):
    request = Request("label", Fraction(1), **asked)
    rows = [row] if request.rows_per_person == 1 else [row, (row + 1) % ROWS]

    for first, second in neighbours(study_with("private"), rows):
        assert not replay.replay_findings(estimate_calibrated, first, second, request)


def test_the_unit_of_largest_weight_moves_the_observed_sums_by_their_whole_sensitivity():
    request = Request("label", Fraction(1), confidence=None)
    study = study_with("private", rows=31)
    shares = {pair: [] for pair in range(3)}
    for row in range(study.size):
        for pair, both in enumerate(neighbours(study, [row])):
            first, second = (replay.record(estimate_calibrated, one, request).calls for one in both)
            shares[pair].append(replay.moved_share(first[0], second[0]))

    assert [max(moved) for moved in shares.values()] == [1.0, 1.0, 1.0]


def test_a_weight_that_counts_for_more_than_its_share_is_found(monkeypatch):
    honest = Noise.laplace_disjoint

    def heavier(self, step, values, *, sensitivities, epsilon):
        values = [value if place % 2 == 0 else 2 * value for place, value in enumerate(values)]
        return honest(self, step, values, sensitivities=sensitivities, epsilon=epsilon)

    monkeypatch.setattr(Noise, "laplace_disjoint", heavier)
    request = Request("label", Fraction(1))

    found = [
        finding
        for row in range(12)
        for first, second in neighbours(study_with("private"), [row])
        for finding in replay.replay_findings(estimate_calibrated, first, second, request)
    ]

    assert any("'observed sums' moves" in finding for finding in found)


def test_a_share_that_is_told_without_noise_is_found(monkeypatch):
    honest = private.release_observed_means

    def peeking(sums, largest, kept, size, *, epsilon, rows, noise):
        exact = sums[1][1] / (1 << 24) / size
        released = honest(sums, largest, kept, size, epsilon=epsilon, rows=rows, noise=noise)
        return replace(released, treated=replace(released.treated, share=exact))

    monkeypatch.setattr("private_ate.methods.calibrated.method.release_observed_means", peeking)
    request = Request("label", Fraction(1), confidence=None)
    study = study_with("private")
    first, second = neighbours(study, [int(np.flatnonzero(study.treatment)[0])])[1]

    found = replay.replay_findings(estimate_calibrated, first, second, request)

    assert "the estimate depends on more than the released numbers" in found


@pytest.mark.parametrize(
    "asked", [{}, {"estimand": "att"}, {"options": CalibratedOptions(means=True)}]
)
def test_where_missingness_is_public_an_observed_outcome_moves_no_step_too_far(asked):
    request = Request("label", Fraction(1), **asked)
    study = study_with("public")

    for row in np.flatnonzero(study.observed)[:8]:
        first, second = neighbours(study, [row])[0]
        assert not replay.replay_findings(estimate_calibrated, first, second, request)


def test_where_missingness_is_public_a_missing_outcome_is_not_looked_at():
    study = study_with("public")
    row = int(np.flatnonzero(~study.observed)[0])
    first, second = (with_outcomes(study, [row], end, observed=False) for end in (0, OUTCOME_STEPS))

    calls = [
        replay.record(estimate_calibrated, one, Request("label", Fraction(1))).calls
        for one in (first, second)
    ]

    assert [call.values for call in calls[0]] == [call.values for call in calls[1]]


def test_a_public_view_shows_who_lacks_an_outcome_only_if_that_is_public():
    shown, hidden, undeclared = (study_with(rule).public() for rule in ("public", "private", None))

    assert shown.observed is not None
    assert hidden.observed is None
    assert undeclared.observed is None


def masked(study, rows, corner):
    covariate, treated, outcome, takes_part, observed = corner
    x, t, y = study.covariates.copy(), study.treatment.copy(), study.outcome.copy()
    part, seen = study.takes_part.copy(), study.observed.copy()
    x[:, rows], t[rows], y[rows], part[rows], seen[rows] = (
        covariate, treated, outcome, takes_part, observed,
    )  # fmt: skip
    return replace(study, covariates=x, treatment=t, outcome=y, takes_part=part, observed=seen)


CORNERS = [
    ((0.0, True, 0, True, True), (1.0, True, OUTCOME_STEPS, True, False)),
    ((1.0, False, OUTCOME_STEPS, True, True), (0.0, True, 0, False, True)),
    ((1.0, True, OUTCOME_STEPS, True, True), (1.0, False, 0, True, True)),
    ((0.5, True, 0, False, False), (0.0, True, 0, True, True)),
]


@pytest.mark.parametrize(("method", "options"), MASKING)
@pytest.mark.parametrize("epsilon", ["0.5", "20"])
@pytest.mark.parametrize("people", [1, 3])
def test_a_row_that_comes_or_goes_moves_no_step_too_far(method, options, epsilon, people):
    request = Request(
        "sample", Fraction(epsilon), options=options, rows_per_person=people,
        design="observational",
    )  # fmt: skip
    study = study_with("private", rows=400)

    for first, second in CORNERS:
        one, other = (masked(study, slice(7, 7 + people), corner) for corner in (first, second))
        assert not replay.replay_findings(method, one, other, request)


@pytest.mark.parametrize(("method", "options"), MASKING)
def test_what_a_row_that_takes_no_part_holds_is_not_looked_at(method, options):
    request = Request("sample", Fraction(20), options=options, design="observational")
    study = study_with("private", rows=400)
    for mask in ((False, True), (True, False)):
        one, other = (
            masked(study, slice(7, 8), (*corner, *mask))
            for corner in ((0.0, True, 0), (1.0, False, OUTCOME_STEPS))
        )

        first = replay.record(method, one, request)
        second = replay.record(method, other, request, source=first.recording)

        for here, there in zip(first.calls, second.calls, strict=True):
            assert replay.moved_share(here, there) == 0


@pytest.mark.parametrize(("method", "options"), MASKING)
def test_masks_decide_about_what_the_steps_see(method, options):
    request = Request("sample", Fraction(20), options=options, design="observational")
    study = study_with("private", rows=400)
    everyone = np.ones(400, dtype=np.bool_)

    here = replay.record(method, study, request)
    there = replay.record(
        method,
        replace(study, takes_part=everyone, observed=everyone),
        request,
        source=here.recording,
    )

    assert max(
        replay.moved_share(one, other) for one, other in zip(here.calls, there.calls, strict=True)
    ) > 1  # fmt: skip
