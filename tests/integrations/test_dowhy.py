import pickle
import warnings

import pytest

pytest.importorskip("dowhy", reason="DOWHY WAS NOT TESTED: install the extra dowhy")

from private_ate.datasets.clinic import draw_clinic
from private_ate.errors import ArgumentError, BudgetError

METHOD = "backdoor.private_ate.dowhy.PrivateATE"
CAUSES = ["age", "pressure_before", "weight", "smoker", "diabetes"]
# DoWhy and what it imports warn about their own future.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def study():
    return draw_clinic(1500)


@pytest.fixture
def model(study):
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


def test_hidden_refits_are_refused_without_a_ledger(model, study):
    estimand, estimate = ask(model, study)

    with pytest.raises(BudgetError, match="spends ε again"):
        estimate.get_confidence_intervals(method="bootstrap")
    with pytest.raises(BudgetError, match="spends ε again"):
        estimate.get_standard_error(method="bootstrap")
    with pytest.raises(BudgetError, match="spends ε again"):
        ask(model, study, test_significance=True)
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
