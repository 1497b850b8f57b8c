import numpy as np
import pytest

pytest.importorskip(
    "sklearn", minversion="1.6", reason="SCIKIT-LEARN WAS NOT TESTED: install the extra sklearn"
)

from sklearn import config_context
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from private_ate.errors import ArgumentError, DomainError, UndeclaredError
from private_ate.sklearn import PrivateATE

# Seeded, because the checks fit clones over and over: such releases promise nothing.
SAMPLE = PrivateATE(outcome_bounds=(-3, 3), covariate_bounds=(-3, 3), treatment_column=0, seed=0)


@parametrize_with_checks([SAMPLE])
def test_scikit_learns_own_checks_pass(estimator, check):
    check(estimator)


@pytest.fixture
def study():
    rng = np.random.default_rng(0)
    covariates = rng.normal(size=(2000, 3))
    treatment = (rng.random(2000) < 1 / (1 + np.exp(-covariates[:, 0]))).astype(int)
    outcome = covariates[:, 0] + 2.0 * treatment + rng.normal(size=2000)
    return covariates, outcome, treatment


def test_the_effect_is_found_at_label_level(study):
    covariates, outcome, treatment = study
    estimator = PrivateATE(level="label", epsilon="2", outcome_bounds=(-8, 8))

    fitted = estimator.fit(covariates, outcome, treatment=treatment)

    assert fitted.release_.level == "label"
    assert fitted.ate_ == pytest.approx(2.0, abs=0.6)
    assert fitted.interval_[0] < fitted.ate_ < fitted.interval_[1]


def test_a_pipeline_routes_the_treatment(study):
    covariates, outcome, treatment = study
    with config_context(enable_metadata_routing=True):
        last = PrivateATE(level="label", epsilon="2", outcome_bounds=(-8, 8))
        pipeline = Pipeline(
            [("half", FunctionTransformer(np.tanh)), ("ate", last.set_fit_request(treatment=True))]
        )

        pipeline.fit(covariates, outcome, treatment=treatment)

    assert pipeline[-1].ate_ == pytest.approx(2.0, abs=0.8)


def test_odd_outcomes_pass_without_a_word(study):
    covariates, outcome, treatment = study
    odd = outcome.astype(object)
    odd[:7] = [None, "x", np.nan, np.inf, 10**400, np.complex128(1 + 2j), np.array([1.0])]
    estimator = PrivateATE(outcome_bounds=(-8, 8), covariate_bounds=[(-4, 4)] * 3)

    fitted = estimator.fit(covariates, odd, treatment=treatment)

    assert np.isfinite(fitted.ate_)


@pytest.mark.parametrize(
    ("estimator", "error"),
    [
        (PrivateATE(outcome_bounds=(0, 1)), DomainError),
        (PrivateATE(covariate_bounds=(0, 1)), DomainError),
        (PrivateATE(outcome_bounds=(0, 1), covariate_bounds=[(0, 1)]), ArgumentError),
    ],
)
def test_bounds_that_are_missing_are_asked_for(study, estimator, error):
    covariates, outcome, treatment = study
    with pytest.raises(error):
        estimator.fit(covariates, outcome, treatment=treatment)


def test_a_treatment_that_is_missing_is_asked_for(study):
    with pytest.raises(ArgumentError, match="give fit a treatment"):
        PrivateATE(outcome_bounds=(0, 1), covariate_bounds=(0, 1)).fit(*study[:2])


def test_odd_treatments_are_counted_and_left_out_at_label_level(study):
    covariates, outcome, treatment = study
    odd = treatment.astype(object)
    odd[:30], odd[30:50] = 2, None
    covariates[60:90, 1] = np.nan
    estimator = PrivateATE(level="label", epsilon="2", outcome_bounds=(-8, 8))

    with pytest.raises(UndeclaredError, match=r"missing in 20 of 2000 rows.*'2' in 30"):
        estimator.fit(covariates, outcome, treatment=odd)

    assert (
        "_has_released" not in vars(estimator) or not estimator._has_released
    )  # nothing was spent
    lenient = PrivateATE(
        level="label", epsilon="2", outcome_bounds=(-8, 8), leave_out_undeclared=True
    ).fit(covariates, outcome, treatment=odd)
    assert lenient.release_.n == 1950
    assert "x1 (missing)" in lenient.release_.settings["balance"]


def test_odd_treatments_pass_without_a_word_at_sample_level(study):
    covariates, outcome, treatment = study
    odd = treatment.astype(object)
    odd[:30], odd[30:50] = 2, None
    asked = {"epsilon": "2", "outcome_bounds": (-8, 8), "covariate_bounds": (-4, 4)}
    fitted = PrivateATE(**asked).fit(covariates, outcome, treatment=odd)
    assert fitted.release_.n == 2000
