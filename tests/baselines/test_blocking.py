"""Blocks along a private score: the estimate, its steps between neighbours, and odd blocks."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from private_ate import ArgumentError, BlockingOptions, Domain, Interval, Treatment, estimate_ate
from private_ate.baselines.blocking import CellCounts, block_effect, kept_blocks
from private_ate.engines.local import LocalStudy
from private_ate.request import Request
from replaced_records import assert_promises_hold

ESTIMANDS = ("ate", "att", "atc", "ato")
DOMAIN = Domain(
    Treatment("t", 1, 0), ("y", Interval(-1, 3)), {"a": Interval(0, 1), "b": Interval(0, 1)}
)


def draw_study(seed, rows=3000, domain=DOMAIN):
    rng = np.random.default_rng(seed)
    covariates = rng.random((2, rows))
    treated = rng.random(rows) < 1 / (1 + np.exp(-(4 * covariates[0] - 2)))
    share = np.clip(0.1 + 0.5 * covariates[0] + 0.2 * treated + rng.normal(0, 0.05, rows), 0, 1)
    used = covariates[: len(domain.covariates)]
    return LocalStudy(domain, used, treated, np.rint(share * 2**30).astype(np.int32))


def release(study, epsilon="1000000", seed=7, **asked):
    return estimate_ate(
        study, level="sample", epsilon=epsilon, method="blocking", seed=seed, **asked
    )


def test_without_noise_blocks_remove_most_of_the_confounding():
    study = draw_study(1, 8_000)
    values = study.outcome / 2**30 * 4
    raw = values[study.treatment].mean() - values[~study.treatment].mean()
    five = release(study).ate
    many = release(study, options=BlockingOptions(blocks=40)).ate

    assert raw - 0.8 > 0.4
    assert abs(five - 0.8) < 0.1 * (raw - 0.8)
    assert many == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("estimand", ESTIMANDS)
def test_blocks_are_averaged_over_the_units_of_the_estimand(estimand):
    cells = CellCounts(
        np.array([30.0, 10.0]), np.array([10.0, 50.0]), np.array([6.0, 1.0]), np.array([1.0, 0.0])
    )
    effects = np.array([6 / 30 - 1 / 10, 1 / 10])
    shares = {"ate": [40, 60], "att": [30, 10], "atc": [10, 50], "ato": [300 / 40, 500 / 60]}
    expected = np.average(effects, weights=shares[estimand])

    found = block_effect(cells, np.array([True, True]), estimand)

    assert float(found) == pytest.approx(expected)


def test_blocks_without_an_arm_are_left_out_and_never_all():
    few = np.array([100.0, -3.0, 1.0])
    cells = CellCounts(few, np.full(3, 50.0), few / 4, np.zeros(3))

    assert kept_blocks(cells, 1.0).tolist() == [True, False, False]
    assert kept_blocks(cells, 1000.0).all()
    assert math.isfinite(block_effect(cells, kept_blocks(cells, 1000.0), "ate"))


@pytest.mark.parametrize("estimand", ESTIMANDS)
@pytest.mark.parametrize("dimension", [2, 0])
def test_replacing_a_record_moves_no_step_further_than_it_declares(estimand, dimension):
    domain = DOMAIN if dimension else Domain(Treatment("t", 1, 0), ("y", Interval(-1, 3)), {})
    request = Request("sample", Fraction(1), estimand=estimand)
    assert_promises_hold("blocking", request, lambda seed: draw_study(seed, 40, domain))


def test_a_release_is_pure_and_pays_for_five_steps():
    found = estimate_ate(draw_study(2, 300), level="sample", epsilon="1", method="blocking")

    assert found.guarantee == (
        "pure 1-DP, sample level, up to a chance of 3e-27 in the rounding of its solver"
    )
    spent = {step.name: step.epsilon for step in found.steps}
    assert sum(spent.values()) == pytest.approx(1)
    assert spent["cell counts"] == pytest.approx(0.2)
    assert spent["cell sums"] == pytest.approx(0.3)
    assert found.interval is None  # what five blocks and a noisy score leave has no known size
    assert found.noise_interval[0] <= found.ate <= found.noise_interval[1]


@pytest.mark.parametrize(("asked", "text"), [
    ({"blocks": 0}, "blocks"), ({"blocks": 2.5}, "blocks"), ({"shares": ("0.5",) * 4}, "leave"),
    ({"shares": "0.1"}, "four shares"),
])  # fmt: skip
def test_impossible_options_are_refused(asked, text):
    with pytest.raises(ArgumentError, match=text):
        BlockingOptions(**asked)
