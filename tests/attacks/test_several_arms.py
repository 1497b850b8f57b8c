"""Several arms at sample level: nothing that the records hold raises, or changes what is told."""

import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from private_ate import (
    ArgumentError,
    BlocksOptions,
    Domain,
    Interval,
    Treatment,
    estimate_ate,
)
from private_ate.api import METHODS, estimate_study
from private_ate.engines.local import LocalStudy
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

ROWS = 60
RUNS = {
    "plain": ("blocks", BlocksOptions(adjust=False)),
    "blocks": ("blocks", BlocksOptions(adjust=True, partitions=2)),
    "published": ("published", None),
}
every_run = pytest.mark.parametrize("run", RUNS)


def study_of(arms=3, rows=ROWS, dimension=2, seed=0):
    rng = np.random.default_rng(seed)
    labels = tuple(f"arm {k}" for k in range(arms))
    names = {f"x{j}": Interval(0, 1) for j in range(dimension)}
    return LocalStudy(
        Domain(Treatment("t", arms=labels), ("y", Interval(0, 10)), names),
        rng.random((dimension, rows)),
        rng.integers(0, arms, rows).astype(np.uint8),
        rng.integers(0, OUTCOME_STEPS + 1, rows).astype(np.int32),
        takes_part=np.ones(rows, dtype=np.bool_),
    )


def shapes():
    plain = study_of()
    arm, nobody = plain.arm, np.zeros(ROWS, dtype=np.bool_)
    return {
        "an empty arm": replace(plain, treatment=np.where(arm == 2, 0, arm).astype(np.uint8)),
        "one unit in an arm": replace(plain, treatment=(np.arange(ROWS) == 7).astype(np.uint8)),
        "all in one arm": replace(plain, treatment=np.full(ROWS, 1, dtype=np.uint8)),
        "no declared arm": replace(plain, takes_part=nobody),
        "one row takes part": replace(plain, takes_part=np.arange(ROWS) == 3),
        "separable arms": replace(
            plain, treatment=np.minimum(plain.covariates[0] * 3, 2).astype(np.uint8)
        ),
        "constant covariates": replace(plain, covariates=np.full((2, ROWS), 0.5)),
        "equal outcomes": replace(plain, outcome=np.zeros(ROWS, dtype=np.int32)),
    }


SHAPES = shapes()


def attempt(study, run, epsilon="1", **asked):
    name, options = RUNS[run]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        request = Request("sample", Fraction(epsilon), options=options, **asked)
        release = estimate_study(study, request, METHODS[name])
    told = [release.ate, *(release.interval or ()), *(release.noise_interval or ())]
    assert np.isfinite(told).all()
    assert all(-10 <= number <= 10 for number in told)
    return release


def public_side(release):
    """What may depend on n and the domain alone: which keys there are and what was spent."""
    return set(release.settings), list(release.settings["budget"].items()), release.steps is None


@every_run
@pytest.mark.parametrize("shape", SHAPES)
def test_no_record_decides_what_a_release_tells(run, shape):
    plain, odd = attempt(study_of(), run), attempt(SHAPES[shape], run)

    assert public_side(plain) == public_side(odd)
    assert (plain.interval is None) == (odd.interval is None)
    assert [arm.units for arm in odd.arms] == [None] * 3


@every_run
def test_an_empty_arm_has_a_level_of_noise_within_what_is_possible(run):
    release = attempt(SHAPES["an empty arm"], run)

    assert len(release.arms) == 3
    assert all(arm.mean is None or 0 <= arm.mean <= 10 for arm in release.arms)


@every_run
def test_a_single_row_is_released(run):
    assert len(attempt(study_of(rows=1), run).arms) == 3


@pytest.mark.parametrize("run", ["blocks", "published"])
def test_twenty_arms_are_released(run):
    release = attempt(study_of(20, rows=24), run)

    assert len(release.arms) == 20
    assert len(release.contrasts) == 190


@every_run
def test_without_covariates_nothing_is_adjusted_for(run):
    release = attempt(study_of(dimension=0), run)

    assert release.settings.get("path", "plain") == "plain"


@every_run
@pytest.mark.parametrize("epsilon", ["1e-12", "1e6"])
def test_extreme_budgets_never_wrap(run, epsilon):
    attempt(study_of(rows=20), run, epsilon)


@every_run
def test_many_rows_per_person_never_wrap(run):
    attempt(study_of(rows=20), run, rows_per_person=1000)


def test_the_units_of_one_arm_are_refused_before_any_noise():
    with pytest.raises(ArgumentError, match="among all units"):
        estimate_ate(study_of(), level="sample", epsilon=1, method="blocks", among="arm 1")


@pytest.mark.parametrize("method", ["ipw", "difference_in_means"])
def test_other_methods_refuse_more_than_two_arms(method):
    with pytest.raises(ArgumentError, match="two arms"):
        estimate_ate(study_of(), level="sample", epsilon=1, method=method)
