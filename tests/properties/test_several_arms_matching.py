"""Matching among several arms against a quadratic matcher, and two arms against their own code."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracles import match_within_limits, share_ties
from private_ate.engines.local import LocalArmPool, LocalPool
from private_ate.methods.published.effect import LimitsInUse, plan_limits
from private_ate.models.propensity import fit_propensity
from private_ate.privacy.quantization import WEIGHT_BITS
from private_ate.study import ArmSizes
from several_arms import arm_study

WEIGHT_STEP = 2.0 ** (1 - WEIGHT_BITS)


def draw_case(rng):
    """Draw arms, one column of tied scores per arm and a number of neighbours."""
    arms, rows = int(rng.integers(3, 6)), int(rng.integers(8, 50))
    codes = rng.integers(0, arms, rows).astype(np.uint8)
    codes[:arms] = np.arange(arms)
    rng.shuffle(codes)
    spread = int(rng.choice([1, 3, 10, 1 << 40]))
    scores = rng.integers(0, spread, (arms, rows), endpoint=True)
    return codes, scores, int(rng.integers(1, 8))


@pytest.mark.parametrize("seed", range(4))
def test_each_arm_is_matched_by_its_own_score_as_a_quadratic_matcher_does(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        codes, scores, neighbors = draw_case(rng)
        arms = len(scores)
        limits = [None if rng.random() < 0.2 else int(rng.integers(1, 20)) for _ in range(arms)]
        pool = LocalArmPool(codes, scores.__getitem__, arms)

        limited = pool.match(neighbors, tuple(limits)).values
        shared = pool.match_sharing_ties(neighbors).values
        peak = pool.peak_reuse(neighbors)

        most = 0
        for arm, limit in enumerate(limits):
            inside = codes == arm
            bounds = {True: math.inf if limit is None else limit, False: math.inf}
            _, mass, _ = match_within_limits(
                scores[arm].tolist(), inside.tolist(), neighbors, bounds
            )
            wanted = 1 + np.array([float(m) for m in mass])[inside]
            np.testing.assert_allclose(limited[inside], wanted, atol=WEIGHT_STEP)
            ties = share_ties(scores[arm], inside, neighbors, same=0)
            np.testing.assert_allclose(shared[inside], 1 + ties[inside], atol=WEIGHT_STEP)
            free = dict.fromkeys((True, False), math.inf)
            uses, _, _ = match_within_limits(scores[arm].tolist(), inside.tolist(), neighbors, free)
            most = max(most, *np.array(uses)[inside].tolist())
        assert peak == most


@pytest.mark.parametrize("values", [None, 3])
def test_two_arms_through_the_code_of_several_have_the_weights_of_two(values):
    study = arm_study(2, rows=400, seed=3, values=values)
    model = fit_propensity(study.public(), 1 / study.size)
    slopes = model.coefficients[1] - model.coefficients[0]
    two, several = study.pool(slopes), study.pool(model.coefficients)

    assert several.arms == two.arms
    assert several.peak_reuse(5) == two.peak_reuse(5)
    asked = {"neighbors": 5, "epsilon": 1.0, "coefficient": 0.01, "cap_at_peak": True}
    plans = [plan_limits(pool.arms, peak_reuse=pool.peak_reuse(5), **asked)
             for pool in (two, several)]  # fmt: skip
    assert plans[0] == plans[1]
    for weights in (
        (two.match(5, plans[0].limits), several.match(5, plans[1].limits)),
        (two.match_sharing_ties(5), several.match_sharing_ties(5)),
    ):
        np.testing.assert_array_equal(weights[0].steps, weights[1].steps)
        assert weights[0].largest == weights[1].largest
        assert weights[0].imbalance == weights[1].imbalance
    np.testing.assert_allclose(
        slopes, fit_propensity(study.public(), 1 / study.size).coordinates, atol=1e-8
    )


@example(sizes=[20, 21, 219], k=1, neighbors=1, peak=1, epsilon=1.0)  # in proportion: 11.43
@given(
    sizes=st.lists(st.integers(1, 60), min_size=2, max_size=6),
    k=st.one_of(st.integers(1, 8), st.just("adaptive")),
    neighbors=st.integers(1, 6),
    peak=st.integers(1, 200),
    epsilon=st.floats(0.01, 100),
)
def test_limits_leave_a_match_for_everybody(sizes, k, neighbors, peak, epsilon):
    arms = ArmSizes(tuple(sizes))
    plan = plan_limits(
        arms, neighbors=neighbors, peak_reuse=peak, epsilon=epsilon, coefficient=0.01,
        cap_at_peak=True, k=k,
    )  # fmt: skip

    for size, limit in zip(sizes, plan.limits, strict=True):
        assert size * limit >= (arms.total - size) * neighbors


def test_the_limit_of_the_smallest_arm_is_the_one_that_is_given():
    asked = {"neighbors": 5, "peak_reuse": 0, "epsilon": 1.0, "coefficient": 0.01}
    sizes = ArmSizes((400, 100, 50))

    fixed = plan_limits(sizes, **asked, cap_at_peak=True, k=30)
    raised = plan_limits(sizes, **asked, cap_at_peak=True, k=1)

    assert fixed == LimitsInUse((4, 15, 30), 5)  # in proportion to the sizes
    assert raised == LimitsInUse((1, 5, 10), 5)  # below that some would find nobody
    assert plan_limits(sizes, **asked, cap_at_peak=True, k=None).counts == (None, None, None)
    emptied = plan_limits(ArmSizes((400, 0, 50)), **asked, cap_at_peak=True, k=30)
    assert emptied.counts == (4, None, 30)


def test_the_adaptive_limit_knows_how_many_the_smallest_arm_stands_in_for():
    plan = plan_limits(
        ArmSizes((200, 100, 150)), neighbors=5, peak_reuse=200, epsilon=4.0, coefficient=0.01,
        cap_at_peak=True,
    )  # fmt: skip

    ideal = round(math.sqrt(4.0 * 0.01 * 350 * 40 / 2))
    assert plan.counts == (round(ideal * 100 / 200), ideal, round(ideal * 100 / 150))


@pytest.mark.parametrize("arms", [3, 4, 20])
@pytest.mark.parametrize("values", [None, 2])
def test_the_weights_of_each_arm_add_up_to_all_units(arms, values):
    study = arm_study(arms, rows=600, seed=arms, values=values)
    pool = study.pool(fit_propensity(study.public(), 1 / study.size).coefficients)
    plan = plan_limits(
        pool.arms, neighbors=5, peak_reuse=pool.peak_reuse(5), epsilon=1.0, coefficient=0.01,
        cap_at_peak=True,
    )  # fmt: skip

    for weights in (pool.match(5, plan.limits).values, pool.match_sharing_ties(5).values):
        sums = np.bincount(study.arm, weights)
        np.testing.assert_allclose(sums, study.size, atol=study.size * WEIGHT_STEP)


def test_equal_rows_have_equal_scores_in_every_block():
    study = arm_study(4, rows=40_000, values=3)
    model = fit_propensity(study.public(), 1 / study.size)
    scores = study.arm_scores(model.coefficients)

    columns, kind = np.unique(study.covariates.T, axis=0, return_inverse=True)
    kind = kind.reshape(-1)  # of shape (n, 1) in numpy 2.0
    probabilities = model.probabilities(columns)
    for arm in range(4):
        values = scores(arm)
        for each in range(len(columns)):
            found = np.unique(values[kind == each])
            assert found.size == 1
            assert found[0] == pytest.approx(2.0**40 * probabilities[each, arm], rel=1e-9)


def test_only_members_of_the_arm_receive_anything():
    codes, scores, _ = draw_case(np.random.default_rng(9))
    pool = LocalArmPool(codes, scores.__getitem__, len(scores))

    alone = LocalPool.sort(scores[0], codes == 0).match(2, (None, None))

    np.testing.assert_array_equal(
        pool.match(2, (None,) * len(scores)).steps[codes == 0],
        alone.steps[codes == 0],
    )
