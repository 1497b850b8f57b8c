"""The paper's algorithms by name: the whole is its three phases; what its formulas say holds."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from private_ate.domain import Domain, Interval
from private_ate.engines.local import LocalPool, LocalStudy
from private_ate.engines.matching import ScoreOrder
from private_ate.methods.published.effect import LimitRule, estimate_effect, plan_limits
from private_ate.methods.published.matching import ScoreNoise, match_similar_units, train_regression
from private_ate.methods.published.method import estimate_published
from private_ate.models.propensity import fit_propensity
from private_ate.privacy.entropy import SeededEntropy
from private_ate.privacy.noise import Noise
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request
from private_ate.study import ArmSizes

DOMAIN = Domain("t", ("y", Interval(-1, 3)), {"a": Interval(0, 1), "b": Interval(0, 1)})
BUDGETS = (Fraction(1, 10), Fraction(1, 10), Fraction(14, 10), Fraction(4, 10))  # of ε = 2


def draw_study(seed=1, rows=120):
    rng = np.random.default_rng(seed)
    covariates = rng.random((2, rows))
    treatment = rng.random(rows) < 0.2 + 0.5 * covariates[0]
    outcome = rng.integers(0, OUTCOME_STEPS, rows, endpoint=True).astype(np.int32)
    return LocalStudy(DOMAIN, covariates, treatment, outcome)


def steps_of(noise):
    return [(spend.step, spend.epsilon) for spend in noise.spends]


def test_at_label_level_the_whole_is_its_three_phases():
    study, request = draw_study(), Request("label", Fraction(2))
    whole, phases = Noise(SeededEntropy(7)), Noise(SeededEntropy(7))

    estimate = estimate_published(study, request, whole)

    ordered = study.reordered(phases.secret_order(study.size))
    regression = train_regression(ordered, 1 / study.size, phases)
    pool = match_similar_units(ordered, regression, phases)
    assert steps_of(phases) == []
    rule = LimitRule("adaptive", Fraction(2), 0.01, 5, cap_at_peak=True)
    effect = estimate_effect(ordered, pool, rule, 1, phases)
    assert effect.sums.quantities(ordered)[0].value == estimate.ate
    assert steps_of(phases) == steps_of(whole) == [("outcome sums", 2)]


def test_at_sample_level_the_whole_is_its_three_phases_and_pays_for_each():
    study, request = draw_study(), Request("sample", Fraction(2))
    whole, phases = Noise(SeededEntropy(7)), Noise(SeededEntropy(7))

    estimate = estimate_published(study, request, whole)

    ordered = study.reordered(phases.secret_order(study.size))
    regression = train_regression(ordered, 0.01, phases, budgets=BUDGETS[:2])
    assert steps_of(phases) == [("weights", BUDGETS[0])]
    pool = match_similar_units(ordered, regression, phases, epsilon=BUDGETS[2])
    assert steps_of(phases)[1:] == [("scores", BUDGETS[1]), ("treatments", BUDGETS[2])]
    rule = LimitRule("adaptive", BUDGETS[3], 0.001, 5, cap_at_peak=False)
    effect = estimate_effect(ordered, pool, rule, 1, phases)
    assert effect.sums.quantities(ordered)[0].value == estimate.ate
    assert steps_of(phases) == steps_of(whole)
    assert sum(epsilon for _, epsilon in steps_of(phases)) == request.epsilon


def test_the_public_regression_is_the_fit_without_noise():
    study = draw_study()

    found = train_regression(study, 0.01, Noise(SeededEntropy(1)))

    np.testing.assert_array_equal(
        found.model.coefficients, fit_propensity(study.public(), 0.01).coefficients
    )
    assert found.score_noise is None


@pytest.mark.parametrize(("budgets", "epsilon"), [(BUDGETS[:2], None), (None, BUDGETS[2])])
def test_scores_and_treatments_are_private_together_or_public_together(budgets, epsilon):
    study, noise = draw_study(), Noise(SeededEntropy(1))
    regression = train_regression(study, 0.01, noise, budgets=budgets)

    with pytest.raises(TypeError, match="both private or both public"):
        match_similar_units(study, regression, noise, epsilon=epsilon)


@given(
    numerator=st.integers(1, 10**6), denominator=st.integers(1, 10**6), rows=st.integers(1, 1000)
)
def test_the_grid_of_scores_is_a_millionth_of_their_noise_or_finer(numerator, denominator, rows):
    noise = ScoreNoise(Fraction(numerator, denominator), rows)

    assert Fraction(1, 1 << noise.bits) <= rows / noise.epsilon / 2**20


def test_the_rule_for_k_is_a_fourth_root_of_two_below_the_minimum_of_equation_8():
    """The paper divides by 2 where the minimum of its own error has the root of 2."""
    epsilon, c, larger, reuse = 2.0, 0.01, 100_000, 4000.0
    k = np.arange(1, 4001)
    error = 2 * k**2 / epsilon**2 + (c * larger * reuse / k) ** 2

    plan = plan_limits(
        ArmSizes((larger, larger)), neighbors=1, peak_reuse=int(reuse), epsilon=epsilon,
        coefficient=c, cap_at_peak=False,
    )  # fmt: skip

    assert plan.counts[1] == round(math.sqrt(epsilon * c * larger * reuse / 2))
    assert k[np.argmin(error)] / plan.counts[1] == pytest.approx(2**0.25, rel=1e-3)


def test_a_limit_moves_a_sum_by_no_more_than_the_bias_of_theorem_3():
    """The worst outcomes for the limit are 1 where weights fell and 0 where they rose.

    Limits are such that every unit still finds N neighbours, as the theorem supposes.
    """
    moved = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        neighbors = int(rng.integers(1, 5))
        smaller = neighbors + int(rng.integers(2, 12))
        larger = smaller + int(rng.integers(0, 40))
        treatment = rng.permutation(np.repeat([True, False], [smaller, larger]))
        scores = rng.integers(0, int(rng.choice([3, 30, 1000])), treatment.size).astype(np.int64)
        limit = neighbors * -(-larger // (smaller - neighbors))
        pool = LocalPool.sort(scores, treatment)

        free = pool.match(neighbors, (None, None)).values
        held = pool.match(neighbors, (limit, limit)).values

        uses = ScoreOrder.sort(scores, treatment).count_uses(neighbors)
        for arm in (treatment, ~treatment):
            replaced = np.maximum(0, uses[arm] - limit).sum()
            bias = np.maximum(0, free[arm] - held[arm]).sum()
            assert bias <= replaced / neighbors + 1e-6
            moved += bias > 0.5
    assert moved > 50
