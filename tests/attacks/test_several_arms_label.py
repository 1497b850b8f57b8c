"""Attacks on several arms at label level: odd outcomes, orders of rows, extreme numbers."""

import logging
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from private_ate import estimate_ate
from private_ate.api import METHODS, estimate_study
from private_ate.domain import Domain, Interval, Outcome
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from replay import replay_findings
from several_arms import arm_domain, arm_study, arm_table

LABEL = [METHODS["calibrated"], METHODS["published"]]
every_method = pytest.mark.parametrize("method", LABEL, ids=lambda method: method.name)
ODD = [None, float("nan"), float("inf"), float("-inf"), 1e308, -5e-324]


def ends(study, changed):
    """Two studies that differ in the outcomes of some rows."""
    low, high = study.outcome.copy(), study.outcome.copy()
    low[changed], high[changed] = 0, OUTCOME_STEPS
    return replace(study, outcome=low), replace(study, outcome=high)


@every_method
def test_odd_outcomes_are_neither_told_nor_felt_beyond_their_noise(method, caplog, capfd):
    frame = arm_table(arm_study(3, rows=60))
    told = []
    for odd in (0.5, *ODD):
        values = frame["y"].to_list()
        values[7] = odd
        caplog.clear()
        with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
            warnings.simplefilter("always")
            release = estimate_ate(
                frame.with_columns(pl.Series("y", values, dtype=pl.Float64)),
                domain=arm_domain(3), level="label", epsilon=1, method=method.name, seed=3,
            )  # fmt: skip
        logged = [r.getMessage() for r in caplog.records if r.name.startswith("private_ate")]
        assert (logged, caught, capfd.readouterr()) == ([], [], ("", ""))
        told.append(
            (release.settings["arms"], release.warnings, [arm.units for arm in release.arms])
        )
    assert all(each == told[0] for each in told)


@every_method
def test_a_person_with_more_rows_than_declared_is_found(method):
    study = arm_study(3, rows=60)
    request = Request("label", Fraction(1), confidence=None, rows_per_person=2)
    heavy = np.arange(0, 60, 3)  # twenty rows of one person, where two are declared

    assert replay_findings(method.run, *ends(study, heavy), request)
    assert not replay_findings(method.run, *ends(study, heavy[:2]), request)


@every_method
def test_a_public_column_that_moves_is_no_neighbour(method):
    study = arm_study(3, rows=60)
    codes = study.arm.copy()
    codes[10] = (codes[10] + 1) % 3
    request = Request("label", Fraction(1), confidence=None)

    assert replay_findings(method.run, study, replace(study, treatment=codes), request)


@every_method
def test_rows_in_any_order_give_the_same_means(method, monkeypatch):
    study = arm_study(4, rows=200, seed=5)
    order = np.random.default_rng(1).permutation(study.size)
    request = Request("label", Fraction(10**6), confidence=None)
    orders = iter([np.arange(study.size), np.argsort(order)])
    monkeypatch.setattr(Noise, "secret_order", lambda *_: next(orders))

    here, there = (
        estimate_study(one, request, method, seed=1) for one in (study, study.reordered(order))
    )

    for arm, other in zip(here.arms, there.arms, strict=True):
        assert arm.mean == pytest.approx(other.mean, abs=1e-6)


@every_method
@pytest.mark.parametrize("epsilon", ["1e-12", "0.001", "1000000"])
@pytest.mark.parametrize("bounds", [(-1e150, 1e150), (0.0, 1e-150), (1e15, 1e15 + 1)])
def test_extreme_budgets_and_bounds_never_wrap(method, epsilon, bounds):
    study = arm_study(3, rows=40)
    domain = Domain(
        study.domain.treatment, Outcome("y", Interval(*bounds)), study.domain.covariates
    )
    request = Request("label", Fraction(epsilon))

    release = estimate_study(replace(study, domain=domain), request, method, seed=2)

    assert all(bounds[0] <= arm.mean <= bounds[1] for arm in release.arms)
    assert all(np.isfinite(row.estimate) for row in release.effects)
