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


@pytest.fixture
def three_arms():
    rng = np.random.default_rng(7)
    covariates = rng.random((1500, 2))
    arm = np.clip(np.floor(3 * (0.6 * covariates[:, 0] + 0.4 * rng.random(1500))), 0, 2).astype(int)
    outcome = 3 * covariates[:, 0] + np.array([0.0, 2.0, 5.0])[arm] + rng.normal(0, 0.3, 1500)
    return covariates, outcome, arm


@pytest.mark.parametrize("kind", ["texts", "numbers", "objects", "doses"])
def test_several_classes_are_compared_pair_by_pair(three_arms, kind):
    covariates, outcome, arm = three_arms
    names = np.array(["none", "low", "high"])[arm]
    given, declared = {
        "texts": (names, {"arms": ("none", "low", "high")}),
        "numbers": (arm.astype(float), {"arms": [0, 1, 2]}),
        "objects": (names.astype(object), {"arms": ("none", "low", "high")}),
        "doses": (arm * 4.0, {"bins": (0, 1, 6, 100)}),
    }[kind]
    fitted = PrivateATE(
        level="label", epsilon="8", outcome_bounds=(-2, 10), seed=1, **declared
    ).fit(covariates, outcome, treatment=given)

    assert len(fitted.arms_) == 3
    assert [row.effect for row in fitted.contrasts_] == pytest.approx([2.0, 5.0, 3.0], abs=0.8)
    assert fitted.ate_ == fitted.contrasts_[1].effect
    assert fitted.interval_ == fitted.contrasts_[1].interval


def test_odd_labels_are_counted_and_nothing_of_them_runs(three_arms):
    covariates, outcome, arm = three_arms
    names = np.array(["none", "low", "high"], dtype=object)[arm]

    class Loud:
        def __str__(self):
            raise AssertionError(self.__class__)

        __repr__ = __eq__ = __hash__ = __str__

    names[:4] = [None, Loud(), "odd", float("nan")]
    asked = {"level": "label", "epsilon": "8", "outcome_bounds": (-2, 10)}
    estimator = PrivateATE(arms=("none", "low", "high"), **asked)
    with pytest.raises(UndeclaredError, match=r"missing in 3 of 1500 rows.*'odd' in 1"):
        estimator.fit(covariates, outcome, treatment=names)
    fitted = PrivateATE(
        arms=("none", "low", "high"), leave_out_undeclared=True, **asked
    ).fit(covariates, outcome, treatment=names)  # fmt: skip
    assert fitted.release_.n == 1496


def test_a_reference_and_units_of_one_arm_are_parameters(three_arms):
    covariates, outcome, arm = three_arms
    asked = {"level": "label", "epsilon": "8", "outcome_bounds": (-2, 10), "arms": (0, 1, 2)}
    turned = PrivateATE(reference=2, **asked).fit(covariates, outcome, treatment=arm)
    assert {row.against for row in turned.contrasts_[:2]} == {"2"}
    few = PrivateATE(among=1, **asked).fit(covariates, outcome, treatment=arm)
    assert len(few.contrasts_) == 3
    with pytest.raises(ArgumentError, match="among names one of the arms"):
        PrivateATE(among=7, **asked).fit(covariates, outcome, treatment=arm)


def test_two_labels_by_name_are_the_usual_treatment(study):
    covariates, outcome, treatment = study
    asked = {"level": "label", "epsilon": "2", "outcome_bounds": (-8, 8), "seed": 4}
    usual = PrivateATE(**asked).fit(covariates, outcome, treatment=treatment)
    named = PrivateATE(arms=("no", "yes"), **asked)
    named.fit(covariates, outcome, treatment=np.where(treatment == 1, "yes", "no"))
    assert named.ate_ == usual.ate_
    assert named.arms_ == usual.arms_ == ()
    assert len(named.contrasts_) == 1


def test_the_release_knows_the_design_and_the_version_of_the_data(study):
    covariates, outcome, treatment = study
    release = PrivateATE(
        level="label", epsilon="2", outcome_bounds=(-8, 8), design="randomized", dataset="trial",
        dataset_version="2024-05", seed=4,
    ).fit(covariates, outcome, treatment=treatment).release_  # fmt: skip
    assert (release.design, release.dataset) == ("randomized", "trial")
    assert release.dataset_version == "2024-05"


def test_subgroups_are_in_the_release(study):
    covariates, outcome, treatment = study
    asked = {"level": "label", "epsilon": "2", "outcome_bounds": (-8, 8), "seed": 1}
    estimator = PrivateATE(covariate_bounds=(-4, 4), by=["x0<0", "x1<0"], overall=True, **asked)
    fitted = estimator.fit(covariates, outcome, treatment=treatment)
    rows = {row.subgroup: row.estimate for row in fitted.release_.effects}
    assert set(rows) >= {None, "x0<0", "x0<0, x1<0"}
    assert fitted.ate_ == rows[None] == pytest.approx(2.0, abs=0.6)
    with pytest.raises(ArgumentError, match="covariates that the domain declares"):
        PrivateATE(by=["x0<0"], **asked).fit(covariates, outcome, treatment=treatment)
