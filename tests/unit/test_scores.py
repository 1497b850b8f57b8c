"""Scores, folds and sums of the local engine."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_ate.domain import Domain, Interval
from private_ate.engines import local
from private_ate.engines.local import LocalStudy
from private_ate.privacy.quantization import (
    OUTCOME_STEPS,
    quantize_outcomes,
    quantize_weights,
    weighted_sum,
)
from private_ate.study import ArmSizes


def make_study(covariates: np.ndarray, treatment: np.ndarray) -> LocalStudy:
    domain = Domain("t", ("y", Interval(0, 1)))
    outcome = np.arange(treatment.size, dtype=np.int32)
    return LocalStudy(domain, covariates, treatment, outcome)


@pytest.mark.parametrize("rows", [1, 3, 7, 64, 1001, 40_001])
def test_equal_rows_get_equal_scores_wherever_they_stand(rows):
    rng = np.random.default_rng(rows)
    row = rng.random(6)
    study = make_study(np.repeat(row[:, None], rows, axis=1), np.zeros(rows, dtype=bool))

    for _ in range(20):
        scores = study._scores(rng.normal(0, 3, 7), 40)
        assert np.unique(scores).size == 1


def test_scores_of_enormous_coefficients_stay_on_their_grid_without_a_warning():
    covariates = np.array([[0.0, 1.0, 0.5]])
    study = make_study(covariates, np.array([True, False, True]))

    assert study._scores(np.array([0.0, 1e300]), 20).tolist() == [1 << 19, 1 << 20, 1 << 20]
    assert study._scores(np.array([0.0, -1e300]), 0).tolist() == [0, 0, 0]


def test_a_fold_adds_up_the_same_whatever_the_size_of_blocks(monkeypatch):
    rng = np.random.default_rng(1)
    treatment = rng.random(5000) < 0.3
    study = make_study(np.zeros((0, treatment.size)), treatment)

    def count(block):
        treated = int(np.count_nonzero(block.treatment))
        return ArmSizes((block.treatment.size - treated, treated))

    whole = study.fold(count)
    monkeypatch.setattr(local, "_BLOCK_ROWS", 17)
    heard = []
    watched = LocalStudy(
        study.domain, study.covariates, study.treatment, study.outcome,
        lambda *news: heard.append(news),
    )  # fmt: skip

    assert watched.fold(count, title="counting") == whole
    assert whole == ArmSizes((int((~treatment).sum()), int(treatment.sum())))
    assert heard == [("counting", done, 295) for done in range(1, 296)]


def test_a_public_view_holds_no_outcomes_and_a_study_is_not_pickled():
    study = make_study(np.zeros((0, 3)), np.array([True, False, True]))

    assert study.public().outcome is None
    assert study.public().fold(lambda b: ArmSizes((int(b.outcome is None),))).total == 1
    with pytest.raises(TypeError, match="holds records"):
        pickle.dumps(study)
    assert "array" not in repr(study)
    weights = study.public().pool(np.zeros(1)).match_sharing_ties(1)
    with pytest.raises(TypeError, match="outcomes"):
        study.public().arm_sums(weights)


@given(
    st.lists(
        st.tuples(st.integers(0, (1 << 36) - 1), st.integers(-(1 << 29), 1 << 29)), max_size=60
    )
)
def test_weighted_sums_are_exact_integers(pairs):
    weights = np.array([weight for weight, _ in pairs], dtype=np.int64)
    values = np.array([value for _, value in pairs], dtype=np.int32)

    assert weighted_sum(weights, values) == sum(weight * value for weight, value in pairs)


def test_weighted_sums_of_extreme_values_do_not_wrap():
    weights = np.full(40_000, (1 << 33) - 1, dtype=np.int64)
    values = np.full(40_000, OUTCOME_STEPS, dtype=np.int32)

    assert weighted_sum(weights, values) == 40_000 * ((1 << 33) - 1) * OUTCOME_STEPS
    assert weighted_sum(weights, -values) == -40_000 * ((1 << 33) - 1) * OUTCOME_STEPS


def test_outcomes_are_clipped_rounded_once_and_filled():
    values = np.array([-np.inf, -1.0, 0.0, -0.0, 2.5, 10.0, 1e308, np.inf, np.nan])

    steps = quantize_outcomes(values, 0.0, 10.0, 7.5)

    quarter = OUTCOME_STEPS // 4
    ends = [0, 0, 0, 0, quarter, OUTCOME_STEPS, OUTCOME_STEPS, OUTCOME_STEPS, 3 * quarter]
    assert steps.tolist() == ends


@pytest.mark.parametrize(
    "bounds", [(0.0, 0.0), (0.0, 5e-324), (0.0, 1e-300), (-1e150, 1e150), (1e150, 1e150)]
)
def test_the_oddest_bounds_give_steps_on_the_grid_without_a_warning(bounds):
    values = np.array([np.nan, -np.inf, np.inf, 0.0, 1.7e308, -1.7e308])

    steps = quantize_outcomes(values, *bounds, bounds[0])

    assert steps.dtype == np.int32
    assert steps.min() >= 0
    assert steps.max() <= OUTCOME_STEPS


def test_weights_lie_on_a_grid_of_two_to_the_minus_24():
    assert quantize_weights(np.array([1.0, 1.2])).tolist() == [1 << 24, round(1.2 * (1 << 24))]
