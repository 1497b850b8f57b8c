"""Fits behind the scenes: no search, clone or copy makes a release that nothing counts."""

import copy
import pickle

import numpy as np
import pytest

pytest.importorskip(
    "sklearn", minversion="1.6", reason="SCIKIT-LEARN WAS NOT ATTACKED: install the extra sklearn"
)

from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import private_ate.sklearn
from private_ate import BudgetError, DomainError, Ledger
from private_ate.sklearn import PrivateATE

ASKED = {
    "epsilon": "1", "outcome_bounds": (0, 1), "covariate_bounds": (0, 1), "treatment_column": 0,
    "confidence": None,
}  # fmt: skip
GRID = {"epsilon": ["0.5", "1"]}


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    covariates = rng.random((60, 2))
    covariates[:, 0] = covariates[:, 0] > 0.5
    return covariates, rng.random(60)


@pytest.fixture
def releases(monkeypatch):
    """Every release that is made through the estimator, whatever happens to it later."""
    made = []
    door = private_ate.sklearn.estimate_ate

    def watched(*arguments, **asked):
        made.append(door(*arguments, **asked))
        return made[-1]

    monkeypatch.setattr(private_ate.sklearn, "estimate_ate", watched)
    return made


def by_effect():
    """A scorer that reads releases; made here so that it travels to other processes by value."""
    return lambda estimator, _covariates, _outcome: estimator.ate_


@pytest.mark.filterwarnings("ignore:Some fits failed", "ignore:.*fits failed")
@pytest.mark.parametrize("jobs", [1, 2])
def test_searches_and_cross_validation_release_nothing_without_a_ledger(records, releases, jobs):
    search = GridSearchCV(PrivateATE(**ASKED), GRID, scoring=by_effect(), cv=4, n_jobs=jobs)
    piped = Pipeline([("same", FunctionTransformer()), ("effect", PrivateATE(**ASKED))])

    for attempt in (
        lambda: search.fit(*records),
        lambda: cross_val_score(PrivateATE(**ASKED), *records, scoring=by_effect(), n_jobs=jobs),
        lambda: cross_val_score(piped, *records, scoring=by_effect(), n_jobs=jobs),
    ):
        with pytest.raises(ValueError, match="give ledger= and dataset="):
            attempt()

    assert releases == []


def test_a_second_fit_of_an_object_is_refused_without_a_ledger(records, releases):
    estimator = PrivateATE(**ASKED).fit(*records)

    for again in (estimator, copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):  # noqa: S301
        with pytest.raises(BudgetError, match="give ledger= and dataset="):
            again.fit(*records)

    assert len(releases) == 1


@pytest.mark.parametrize("change", [{}, {"seed": None}, {"ledger": None}, {"epsilon": "2"}])
def test_a_clone_stays_a_clone(records, releases, tmp_path, change):
    place = tmp_path / "budget.db"
    Ledger.create(place, "trial", epsilon="1").close()
    origins = (PrivateATE(**ASKED), PrivateATE(**ASKED, seed=1), PrivateATE(**ASKED, ledger=place))

    for origin in origins:
        made = clone(clone(origin)).set_params(**{"seed": None, "ledger": None} | change)
        for attempt in (made, pickle.loads(pickle.dumps(made)), copy.copy(made)):  # noqa: S301
            with pytest.raises(BudgetError, match="and a clone"):
                attempt.fit(*records)

    assert releases == []


def test_bagging_cannot_resample_persons(records, releases, tmp_path):
    place = tmp_path / "budget.db"
    Ledger.create(place, "trial", epsilon="9").close()

    with pytest.raises(ValueError, match="predict"):
        BaggingRegressor(PrivateATE(**ASKED, ledger=place)).fit(*records)

    assert releases == []


def test_with_a_ledger_every_fit_of_a_search_is_charged(records, releases, tmp_path):
    place = tmp_path / "budget.db"
    Ledger.create(place, "trial", epsilon="4.5").close()
    estimator = PrivateATE(**ASKED, ledger=str(place), dataset="trial")

    GridSearchCV(estimator, GRID, scoring=by_effect(), cv=2, refit=False).fit(*records)
    estimator.fit(*records)

    opened = Ledger.open(place)
    spent = [account.spent.epsilon_text for account in opened.accounts()]
    opened.close()
    assert (len(releases), spent) == (5, ["4"])
    with pytest.raises(BudgetError, match="left"):
        estimator.fit(*records)


def test_a_seeded_estimator_promises_nothing_and_may_be_refitted(records):
    estimator = PrivateATE(**ASKED, seed=3)

    scores = cross_val_score(estimator, *records, scoring=by_effect(), cv=3)

    assert np.isfinite(scores).all()
    assert estimator.fit(*records).fit(*records).release_.guarantee == "none (seeded)"


def test_a_fit_that_was_refused_can_be_put_right(records):
    estimator = PrivateATE(**ASKED | {"outcome_bounds": None})
    with pytest.raises(DomainError):
        estimator.fit(*records)

    fitted = estimator.set_params(outcome_bounds=(0, 1)).fit(*records)

    assert fitted.release_.is_private
