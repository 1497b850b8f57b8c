"""Neighbours whose sampling weight comes, goes or changes: no input moves further than declared."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.domain import Domain, Interval, Outcome
from private_ate.engines.local import LocalStudy
from private_ate.methods.blocks.method import estimate_blocks
from private_ate.methods.blocks.plan import BlocksOptions
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from private_ate.study import Block

ROWS = 400
WAYS = [
    (estimate_blocks, {"options": BlocksOptions(adjust=True)}),
    (estimate_blocks, {"options": BlocksOptions(adjust=False)}),
    (estimate_blocks, {"probability": 0.4, "design": "randomized"}),
]
# Covariate, treated, outcome and weight's share of its bound, before and after.
CORNERS = [
    ((0.0, True, 0, 0.0), (0.0, True, 0, 1.0)),
    ((1.0, True, OUTCOME_STEPS, 1.0), (0.0, False, 0, 1.0)),
    ((1.0, False, OUTCOME_STEPS, 1.0), (1.0, False, 0, 0.3)),
    ((0.0, False, 0, 2.0**-30), (1.0, True, OUTCOME_STEPS, 1.0)),
]


def sampled_study(missing=None, seed=0):
    rng = np.random.default_rng(seed)
    covariates = rng.random((3, ROWS))
    treatment = rng.random(ROWS) < 0.2 + 0.6 * covariates[0]
    outcome = rng.integers(0, OUTCOME_STEPS + 1, ROWS).astype(np.int32)
    names = {f"x{j}": Interval(0, 1) for j in range(3)}
    bounds = Outcome("y", Interval(0, 1), missing)
    domain = Domain("t", bounds, names, weights=("w", Interval(0, 40)))
    weights = rng.random(ROWS) ** 2
    weights[::9] = 0.0
    observed = None if missing is None else rng.random(ROWS) < 0.8
    return LocalStudy(
        domain, covariates, treatment, outcome,
        takes_part=rng.random(ROWS) < 0.95, observed=observed, weights=weights,
    )  # fmt: skip


def with_rows(study, rows, corner):
    x, t, y = study.covariates.copy(), study.treatment.copy(), study.outcome.copy()
    w, part = study.weights.copy(), study.takes_part.copy()
    x[:, rows], t[rows], y[rows], w[rows] = corner
    part[rows] = True
    return replace(study, covariates=x, treatment=t, outcome=y, weights=w, takes_part=part)


def asked(ways, epsilon="2", people=1):
    given = {"design": "observational"} | ways
    return Request("sample", Fraction(epsilon), rows_per_person=people, **given)


@pytest.mark.parametrize(("method", "ways"), WAYS)
@pytest.mark.parametrize("epsilon", ["0.5", "20"])
@pytest.mark.parametrize("people", [1, 3])
def test_a_weight_that_comes_or_goes_moves_no_step_too_far(method, ways, epsilon, people):
    study, request = sampled_study(), asked(ways, epsilon, people)

    for first, second in CORNERS:
        one, other = (with_rows(study, slice(7, 7 + people), corner) for corner in (first, second))
        assert not replay.replay_findings(method, one, other, request)


@pytest.mark.parametrize(("method", "ways"), WAYS)
def test_nor_where_outcomes_are_missing(method, ways):
    study = sampled_study("private")

    for first, second in CORNERS:
        one, other = (with_rows(study, slice(7, 8), corner) for corner in (first, second))
        assert not replay.replay_findings(method, one, other, asked(ways))


@pytest.mark.parametrize(("method", "ways"), WAYS)
def test_what_a_row_of_weight_zero_holds_is_not_looked_at(method, ways):
    study, request = sampled_study(), asked(ways, "20")
    one, other = (
        with_rows(study, slice(7, 8), (*corner, 0.0))
        for corner in ((0.0, True, 0), (1.0, False, OUTCOME_STEPS))
    )

    first = replay.record(method, one, request)
    second = replay.record(method, other, request, source=first.recording)

    for here, there in zip(first.calls, second.calls, strict=True):
        assert replay.moved_share(here, there) == 0


@pytest.mark.parametrize(("method", "ways"), WAYS)
def test_the_sums_of_a_weight_at_its_bound_move_by_their_whole_sensitivity(method, ways):
    """Attack: somebody of weight zero is given the largest weight; the first step feels it."""
    study, request = sampled_study(), asked(ways, "1")
    one, other = (with_rows(study, slice(7, 8), (1.0, True, 0, share)) for share in (0.0, 1.0))

    first = replay.record(method, one, request)
    second = replay.record(method, other, request, source=first.recording)

    counts = [
        (here, there)
        for here, there in zip(first.calls, second.calls, strict=True)
        if here.spend.step in ("treated count", "rows that take part")
    ]
    assert counts
    assert [replay.moved_share(*pair) for pair in counts] == [1.0] * len(counts)


@pytest.mark.parametrize(("method", "ways"), WAYS)
def test_weights_beyond_their_bound_would_be_found(method, ways, monkeypatch):
    """The planted fault: weights that were not clipped to their declared bound."""
    shares = Block.shares
    monkeypatch.setattr(Block, "shares", property(lambda block: 3 * shares.fget(block)))
    study, request = sampled_study(), asked(ways, "1")

    found = [
        finding
        for first, second in CORNERS
        for finding in replay.replay_findings(
            method, *(with_rows(study, slice(7, 8), corner) for corner in (first, second)), request
        )
    ]

    assert any("moves" in finding for finding in found)
