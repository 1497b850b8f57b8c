import copy
import pickle
import warnings
from types import SimpleNamespace

import pytest

pytest.importorskip("dowhy", reason="DOWHY WAS NOT TESTED: install the extra dowhy")

from private_ate import Domain, Interval, Treatment
from private_ate.datasets.clinic import draw_clinic
from private_ate.errors import ArgumentError, BudgetError, UndeclaredError

METHOD = "backdoor.private_ate.dowhy.PrivateATE"
CAUSES = ["age", "pressure_before", "weight", "smoker", "diabetes"]
# DoWhy and what it imports warn about their own future.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def study():
    return draw_clinic(1500)


@pytest.fixture
def model(study):
    return model_of(study)


@pytest.fixture
def coded(study):
    """The model and the study with numbers for labels, as some refuters want them."""
    numbers = SimpleNamespace(
        frame=study.frame.with_columns((study.frame["drug"] == "yes").cast(int)),
        domain=Domain("drug", study.domain.outcome, study.domain.covariates),
    )
    return model_of(numbers), numbers


def model_of(study):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from dowhy import CausalModel

        return CausalModel(
            data=study.frame.to_pandas(), treatment="drug", outcome="pressure_drop",
            common_causes=CAUSES,
        )  # fmt: skip


def ask(model, study, **changes):
    estimand = model.identify_effect(proceed_when_unidentifiable=True)
    outer = {key: changes.pop(key) for key in list(changes) if key in OUTER}
    params = {"level": "label", "epsilon": "2.0", "domain": study.domain, **changes}
    return estimand, model.estimate_effect(
        estimand, method_name=METHOD, method_params=params, **outer
    )


OUTER = {"confidence_intervals", "test_significance", "evaluate_effect_strength", "target_units"}


def test_dowhy_gets_the_release_and_its_own_interval(model, study):
    _, estimate = ask(model, study, confidence_intervals=True)

    release = estimate.release
    assert estimate.value == release.ate
    assert estimate.value == pytest.approx(8.0, abs=4)
    assert tuple(estimate.get_confidence_intervals()) == release.interval
    assert estimate.get_standard_error() > 0
    assert release.guarantee == "pure 2-DP, label level"
    assert "private-ate" in str(estimate.realized_estimand_expr)


def test_the_estimate_holds_no_records(model, study):
    _, estimate = ask(model, study)

    stored = pickle.dumps([estimate._data, estimate.estimator.release, estimate.value])

    assert estimate._data is None
    assert not any(hasattr(value, "columns") for value in vars(estimate.estimator).values())
    assert len(stored) < 10_000


RESAMPLED = "rows that are drawn again, mixed among persons or given new columns"


@pytest.fixture(params=["no ledger", "ledger"])
def account(request, tmp_path):
    from private_ate import Ledger

    if request.param == "no ledger":
        return {}
    path = tmp_path / "budget.db"
    Ledger.create(path, "clinic", epsilon="1000").close()
    return {"ledger": str(path), "dataset": "clinic"}


def spent_on(account):
    from private_ate import Ledger

    if not account:
        return None
    opened = Ledger.open(account["ledger"])
    spent = [entry.spent.epsilon_text for entry in opened.accounts()]
    opened.close()
    return spent


@pytest.mark.parametrize(
    ("refuter", "options"),
    [
        ("bootstrap_refuter", {}),
        ("bootstrap_refuter", {"n_jobs": 2}),
        ("bootstrap_refuter", {"sample_size": 3, "required_variables": ["age"]}),  # no repeats
        ("placebo_treatment_refuter", {}),
        ("placebo_treatment_refuter", {"placebo_type": "permute"}),
        ("dummy_outcome_refuter", {}),
        ("random_common_cause", {}),
        (
            "add_unobserved_common_cause",
            {
                "confounders_effect_on_treatment": "binary_flip",
                "confounders_effect_on_outcome": "linear",
                "effect_strength_on_treatment": 0.01,
                "effect_strength_on_outcome": 0.02,
            },
        ),
    ],
)
def test_refuters_that_mix_persons_are_refused_with_and_without_a_ledger(
    coded, account, refuter, options
):
    model, study = coded
    estimand, estimate = ask(model, study, **account)
    before = spent_on(account)

    with pytest.raises(ArgumentError, match=RESAMPLED):
        model.refute_estimate(
            estimand, estimate, method_name=refuter,
            **{"num_simulations": 2, "n_jobs": 1} | options,
        )  # fmt: skip

    assert spent_on(account) == before


def test_bootstraps_and_significance_tests_are_refused_always(model, study, account):
    _, estimate = ask(model, study, **account)
    before = spent_on(account)

    for attempt in (
        lambda: estimate.get_confidence_intervals(method="bootstrap"),
        lambda: estimate.get_standard_error(method="bootstrap"),
        lambda: estimate.test_stat_significance(method="bootstrap"),
        lambda: ask(model, study, test_significance=True, **account),
        lambda: ask(model, study, confidence_intervals="bootstrap", **account),
    ):
        with pytest.raises(ArgumentError, match=RESAMPLED):
            attempt()

    assert spent_on(account) == before


def test_rows_drawn_again_by_hand_are_refused(model, study, account):
    _, estimate = ask(model, study, **account)
    frame = study.frame.to_pandas()
    copied = copy.deepcopy(estimate.estimator)

    error, message = (ArgumentError, RESAMPLED) if account else (BudgetError, "spends ε again")
    with pytest.raises(error, match=message):
        copied.fit(frame.sample(len(frame), replace=True, random_state=0))


def test_a_subset_of_the_rows_needs_a_ledger(model, study):
    estimand, estimate = ask(model, study)

    with pytest.raises(BudgetError, match="spends ε again"):
        model.refute_estimate(
            estimand, estimate, method_name="data_subset_refuter", num_simulations=2, n_jobs=1
        )


def test_an_estimate_without_noise_is_refused(model, study):
    with pytest.raises(ArgumentError, match="without noise"):
        ask(model, study, evaluate_effect_strength=True)


def test_other_units_than_the_release_speaks_of_are_refused(model, study):
    with pytest.raises(ArgumentError, match="set estimand"):
        ask(model, study, target_units="att")
    assert (
        ask(model, study, target_units="att", estimand="att")[1].release.settings["estimand"]
        == "att"
    )


def test_a_ledger_counts_refits_and_stops_them(model, study, tmp_path):
    from private_ate import Ledger

    path = tmp_path / "budget.db"
    Ledger.create(path, "clinic", epsilon="4.5").close()
    estimand, estimate = ask(model, study, ledger=str(path), dataset="clinic")

    with pytest.raises(BudgetError, match="left"):
        model.refute_estimate(
            estimand, estimate, method_name="data_subset_refuter", num_simulations=5, n_jobs=1
        )
    assert spent_on({"ledger": str(path)}) == ["4"]


def test_undeclared_treatments_are_counted_and_left_out_at_label_level(study):
    import polars as pl

    third = pl.when(pl.int_range(pl.len()) < 40).then(pl.lit("both")).otherwise(pl.col("drug"))
    odd = SimpleNamespace(frame=study.frame.with_columns(drug=third), domain=study.domain)

    with pytest.raises(UndeclaredError, match=r"in 40 of 1500 rows \('both' in 40\)"):
        ask(model_of(odd), odd)
    _, estimate = ask(model_of(odd), odd, leave_out_undeclared=True)

    assert estimate.release.n == 1460
    _, silent = ask(model_of(odd), odd, level="sample")
    assert silent.release.n == 1500


def test_an_unadjusted_difference_is_called_one_in_the_estimate(model, study):
    from private_ate import BlocksOptions

    _, estimate = ask(model, study, level="sample", options=BlocksOptions(adjust=False))

    assert estimate.release.estimand == "difference"
    told = str(estimate.realized_estimand_expr)
    assert told.startswith("difference in means, not adjusted for covariates; private-ate, blocks")


@pytest.fixture(scope="module")
def doses():
    """A study of three arms whose effects against none are 2 and 5."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(5)
    x = rng.random(1200)
    arm = np.clip(np.floor(3 * (0.6 * x + 0.4 * rng.random(1200))), 0, 2).astype(int)
    outcome = 3 * x + np.array([0.0, 2.0, 5.0])[arm] + rng.normal(0, 0.3, 1200)
    frame = pl.DataFrame(
        {"drug": np.array(["none", "low", "high"])[arm], "pressure_drop": outcome, "age": x}
    )
    treatment = Treatment("drug", arms=("none", "low", "high"))
    domain = Domain(treatment, ("pressure_drop", Interval(-2, 10)), {"age": Interval(0, 1)})
    return SimpleNamespace(frame=frame, domain=domain)


def model_of_doses(doses):
    from dowhy import CausalModel

    return CausalModel(
        data=doses.frame.to_pandas(), treatment="drug", outcome="pressure_drop",
        common_causes=["age"],
    )  # fmt: skip


def test_values_of_treatment_and_control_pick_the_contrast_of_one_release(doses):
    model = model_of_doses(doses)
    estimand, first = ask(model, doses, epsilon="8")
    release = first.release
    again = {"method_name": METHOD, "fit_estimator": False}
    low = model.estimate_effect(
        estimand, treatment_value="low", control_value="none", confidence_intervals=True, **again
    )
    turned = model.estimate_effect(
        estimand, treatment_value="low", control_value="high", confidence_intervals=True, **again
    )

    assert low.release is turned.release is release  # one charge for all of them
    assert first.value == release.ate == release.contrast("high", "none").effect
    assert first.value == pytest.approx(5.0, abs=1)
    assert low.value == pytest.approx(2.0, abs=1)
    assert turned.value == -release.contrast("high", "low").effect
    # Asked after the last one was made: every estimate keeps its own contrast.
    for estimate, pair in ((low, ("low", "none")), (turned, ("low", "high")), (first, None)):
        wanted = release.interval if pair is None else release.contrast(*pair).interval
        assert tuple(estimate.get_confidence_intervals()) == wanted
        assert estimate.get_standard_error() > 0


@pytest.mark.parametrize(
    "values", [("low", "low"), ("low", "odd"), ("odd", "none"), (["low"], ["none"]), (None, 0)]
)
def test_values_that_are_no_two_declared_arms_are_refused(doses, values):
    model = model_of_doses(doses)
    estimand, _ = ask(model, doses)
    with pytest.raises(ArgumentError, match=r"two of the declared arms 'none', 'low', 'high'"):
        model.estimate_effect(
            estimand, method_name=METHOD, fit_estimator=False,
            treatment_value=values[0], control_value=values[1],
        )  # fmt: skip


def test_one_and_zero_are_a_contrast_of_their_own_where_they_are_declared(doses):
    codes = {"none": 0, "low": 1, "high": 2}
    frame = doses.frame.with_columns(doses.frame["drug"].replace_strict(codes))
    numbered = SimpleNamespace(
        frame=frame,
        domain=Domain(
            Treatment("drug", arms=(0, 1, 2)), doses.domain.outcome, doses.domain.covariates
        ),
    )
    _, estimate = ask(model_of_doses(numbered), numbered, epsilon="8")
    assert estimate.value == estimate.release.contrast(1, 0).effect
    assert estimate.value == pytest.approx(2.0, abs=1)


def test_a_subset_of_the_rows_keeps_the_contrast(doses, tmp_path):
    from private_ate import Ledger

    path = tmp_path / "budget.db"
    Ledger.create(path, "clinic", epsilon="100").close()
    model = model_of_doses(doses)
    estimand, _ = ask(model, doses, epsilon="8", ledger=str(path), dataset="clinic")
    low = model.estimate_effect(
        estimand, method_name=METHOD, fit_estimator=False, treatment_value="low",
        control_value="none",
    )  # fmt: skip
    refuted = model.refute_estimate(
        estimand, low, method_name="data_subset_refuter", num_simulations=2, n_jobs=1
    )
    assert refuted.new_effect == pytest.approx(2.0, abs=1)
    assert spent_on({"ledger": str(path)}) == ["24"]


def test_the_release_knows_the_design_and_the_version_of_the_data(model, study):
    _, estimate = ask(
        model, study, design="randomized", dataset="clinic", dataset_version="2024-05"
    )
    release = estimate.release
    assert (release.design, release.dataset) == ("randomized", "clinic")
    assert release.dataset_version == "2024-05"


def test_a_column_of_ids_says_how_many_rows_a_person_has(study):
    import polars as pl

    frame = study.frame.with_row_index("id").with_columns(pl.col("id") // 2)
    visits = SimpleNamespace(frame=frame, domain=study.domain)
    _, estimate = ask(model_of(visits), visits, person="id")

    assert estimate.release.settings["rows_per_person"] == 2


def test_subgroups_are_in_the_release(study, model):
    _, estimate = ask(model, study, by=["age<60"])
    rows = {row.subgroup: row.estimate for row in estimate.release.effects}
    assert set(rows) == {None, "age<60", "age≥60"}
    assert estimate.value == rows[None]
