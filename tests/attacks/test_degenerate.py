"""Degenerate studies and extreme requests: released like any other, or refused with a sentence."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from studies import CASES, DOMAIN, every_case, make_study

from private_ate import Domain, DomainError, Interval, PrivateAteError, Treatment
from private_ate.api import estimate_study
from private_ate.engines.local import LocalStudy
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

sample_cases = pytest.mark.parametrize(
    ("method", "level"), [case for case in CASES if case.values[1] == "sample"]
)


def shapes():
    """Yield studies that break estimators which look at records where they should not."""
    plain = make_study(7, rows=30)
    everybody, nobody = np.ones(30, dtype=np.bool_), np.zeros(30, dtype=np.bool_)
    one = LocalStudy(DOMAIN, np.zeros((2, 1)), np.array([True]), np.array([5], dtype=np.int32))
    return {
        "all treated": replace(plain, treatment=everybody),
        "none treated": replace(plain, treatment=nobody),
        "one treated": replace(plain, treatment=np.arange(30) == 11),
        "constant covariates": replace(plain, covariates=np.full((2, 30), 0.5)),
        "separable treatment": replace(plain, treatment=plain.covariates[0] > 0.5),
        "equal outcomes": replace(plain, outcome=np.zeros(30, dtype=np.int32)),
        "extreme outcomes": replace(
            plain, outcome=np.where(np.arange(30) % 2, OUTCOME_STEPS, 0).astype(np.int32)
        ),
        "one row": one,
        "two rows": make_study(1, rows=2),
    }


SHAPES = shapes()


def attempt(study, method, level, **asked):
    """Return a finite release, or None for a typed refusal; anything else fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            release = estimate_study(
                study, Request(level, asked.pop("epsilon", Fraction(1)), **asked), method
            )
        except PrivateAteError:
            return None
    numbers = [release.ate, *(release.interval or ()), *(release.noise_interval or ())]
    assert np.isfinite(numbers).all()
    release.to_json()
    return release


@every_case
@pytest.mark.parametrize("shape", SHAPES)
def test_a_degenerate_study_is_released_or_refused_in_words(method, level, shape):
    attempt(SHAPES[shape], method, level)


@sample_cases
@pytest.mark.parametrize("shape", [name for name in SHAPES if "row" not in name])
def test_at_sample_level_the_records_never_decide_about_a_refusal(method, level, shape):
    # All of these have the same n and domain as the plain study, which is all that is public.
    plain = attempt(make_study(7, rows=30), method, level)
    other = attempt(SHAPES[shape], method, level)
    assert (plain is None) == (other is None)
    if plain is not None:
        assert set(plain.settings) == set(other.settings)
        assert (plain.interval is None) == (other.interval is None)


@every_case
@pytest.mark.parametrize("epsilon", [Fraction(1, 10**12), Fraction(1, 10**6), Fraction(10**6)])
def test_extreme_budgets_never_wrap(method, level, epsilon):
    attempt(make_study(2, rows=20), method, level, epsilon=epsilon)


@every_case
@pytest.mark.parametrize("bounds", [(-1e150, 1e150), (0.0, 1e-300), (1e9, 1e9 + 1e-3)])
def test_extreme_bounds_never_wrap(method, level, bounds):
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(*bounds)), dict(DOMAIN.covariates))
    attempt(replace(make_study(2, rows=20), domain=domain), method, level)


@pytest.mark.parametrize("bound", [1e300, float("inf"), float("nan"), 10**400])
def test_bounds_beyond_reason_are_refused(bound):
    with pytest.raises(DomainError):
        Interval(0, bound)
