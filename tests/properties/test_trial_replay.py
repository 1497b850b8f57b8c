"""Trials: neighbours replayed, and no step moves further than it declares."""

from fractions import Fraction

import numpy as np
import pytest

import replay
from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalStudy
from private_ate.methods.blocks.method import estimate_blocks
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

ROWS = 320


def study_of(seed=0, *, masked):
    rng = np.random.default_rng(seed)
    domain = Domain(
        "t", ("y", Interval(0, 1)), {"p": Interval(0.2, 0.7), "x": Interval(0, 1)},
    )  # fmt: skip
    return LocalStudy(
        domain, rng.random((2, ROWS)), rng.random(ROWS) < 0.4,
        rng.integers(0, OUTCOME_STEPS + 1, ROWS).astype(np.int32),
        takes_part=rng.random(ROWS) < 0.9 if masked else None,
    )  # fmt: skip


def with_record(study, places, treated, outcome, part, rows=1):
    x, t, y = study.covariates.copy(), study.treatment.copy(), study.outcome.copy()
    x[:, :rows], t[:rows], y[:rows] = np.reshape(places, (2, 1)), treated, outcome
    mask = study.takes_part
    if mask is not None:
        mask = mask.copy()
        mask[:rows] = part
    return LocalStudy(study.domain, x, t, y, takes_part=mask)


CORNERS = [
    (((0.0, 0.0), True, 0, True), ((1.0, 1.0), False, OUTCOME_STEPS, True)),
    (((0.0, 1.0), True, OUTCOME_STEPS, True), ((1.0, 0.0), False, OUTCOME_STEPS, True)),
    (((0.0, 1.0), True, OUTCOME_STEPS, True), ((0.0, 1.0), True, 0, True)),
    (((1.0, 0.5), False, 0, True), ((0.0, 0.5), True, 0, False)),
]


@pytest.mark.parametrize("probability", [0.3, "p"])
@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(("epsilon", "rows"), [("0.3", 1), ("8", 1), ("8", 3)])
def test_no_step_of_a_trial_moves_further_than_it_declares(probability, masked, epsilon, rows):
    request = Request(
        "sample", Fraction(epsilon), design="randomized", probability=probability,
        rows_per_person=rows,
    )  # fmt: skip
    for number, (first, second) in enumerate(CORNERS):
        one, other = (
            with_record(study_of(masked=masked), *record, rows=rows) for record in (first, second)
        )
        assert not replay.replay_findings(estimate_blocks, one, other, request, seed=number)
