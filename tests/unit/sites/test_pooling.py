"""Pooling of textbook data against figures of an independent implementation.

Computed once with R 4.2.2 and metafor 3.8-1 (``rma`` with methods FE and REML, tests "knha" and
"adhoc", threshold 1e-11; prediction with k − 2 degrees of freedom), and agreeing with statsmodels
0.15 and PyMARE where those go as far.
"""

import numpy as np
import pytest

from private_ate.sites.pooling import pool_fixed, pool_random, quantile, reml_variance

EXACT = {"rel": 1e-6, "abs": 1e-9}

# Log risk ratios of the BCG vaccine against tuberculosis, 13 trials (Colditz et al. 1994).
VACCINE = (
    [-0.8893, -1.5854, -1.3481, -1.4416, -0.2175, -0.7861, -1.6209, 0.0120, -0.4694, -1.3713,
     -0.3394, 0.4459, -0.0173],
    [0.3256, 0.1946, 0.4154, 0.0200, 0.0512, 0.0069, 0.2230, 0.0040, 0.0564, 0.0730, 0.0124,
     0.5325, 0.0714],
)  # fmt: skip
# Coaching for a test in eight schools (Rubin 1981).
SCHOOLS = ([28, 8, -3, 7, -1, 1, 18, 12], [225, 100, 256, 121, 81, 121, 100, 324])
# Days in hospital after a stroke, nine hospitals (Normand 1999).
STROKE = (
    [-20, -2, -55, -71, -4, 1, 11, -10, 7], [40.6, 2.0, 15.3, 150.2, 20.2, 1.2, 95.4, 8.0, 20.7],
)  # fmt: skip
TWO = ([1.2, 2.9], [0.25, 0.36])
ALIKE = ([2.00, 2.05, 1.98, 2.03], [0.30, 0.20, 0.25, 0.40])
# By data: estimate, standard error, interval, Q, its p-value and I².
FIXED = {
    "vaccine": (VACCINE, -0.432137240066, 0.0405714324618, (-0.511655786493, -0.35261869364),
                151.814918986, 2.42785949899e-26, 0.92095638505),
    "schools": (SCHOOLS, 7.68561672496, 4.0719191584, (-0.295198173471, 15.6664316234),
                4.7070788644, 0.695659166635, 0.0),
    "stroke": (STROKE, -3.43977691214, 0.775385454899, (-4.95950447787, -1.9200493464),
               241.207451348, 1.2567399378e-47, 0.966833528752),
    "two": (TWO, 1.89672131148, 0.384110639799, (1.14387829139, 2.64956433156),
            4.73770491803, 0.0295084120367, 0.78892733564),
    "alike": (ALIKE, 2.01651685393, 0.259645393445, (1.50762123403, 2.52541247384),
              0.0123033707865, 0.999638379907, 0.0),
}  # fmt: skip
# By data: τ², estimate, Hartung and Knapp's factor, then with the factor kept at 1 or more the
# standard error, the interval, the prediction interval, and both for 90 %.
RANDOM = {
    "vaccine": (VACCINE, 0.313252778731, -0.71453426703, 1.01128011921, 0.180793985455,
                (-1.10845052207, -0.320618011993), (-2.00907890536, 0.5800103713),
                (-1.03676113744, -0.392307396616), (-1.77081265785, 0.341744123786)),
    "schools": (SCHOOLS, 0.0, 7.68561672496, 0.672439837771, 4.0719191584,
                (-1.94294206753, 17.3141755174), (-2.27801052064, 17.6492439706),
                (-0.0289541942091, 15.4001876441), (-0.226856287504, 15.5980897374)),
    "stroke": (STROKE, 685.19338708, -15.1216142923, 1.05630513886, 9.20277058095,
               (-36.3432413073, 6.10001272266), (-80.7323476032, 50.4891190185),
               (-32.234608266, 1.99137968131), (-67.6900896056, 37.4468610209)),
    "two": (TWO, 1.14, 2.01764705882, 1.0, 0.849384063423,
            (-8.77480075068, 12.8100948683), None,
            (-3.34515285816, 7.3804469758), None),
    "alike": (ALIKE, 0.0, 2.01651685393, 0.00410112359551, 0.259645393445,
              (1.19020933088, 2.84282437698), (0.899352893061, 3.1336808148),
              (1.40547687898, 2.62755682888), (1.25835604907, 2.7746776588)),
}  # fmt: skip


def arrays(data):
    return tuple(np.array(column, dtype=float) for column in data)


def ends(pooled, half):
    return pooled.estimate - half, pooled.estimate + half


@pytest.mark.parametrize("name", FIXED)
def test_the_fixed_effect_model_is_that_of_the_independent_implementation(name):
    data, estimate, error, interval, q, p_value, i_squared = FIXED[name]

    pooled = pool_fixed(*arrays(data))
    found = pooled.heterogeneity

    assert (pooled.estimate, pooled.standard_error) == pytest.approx((estimate, error), **EXACT)
    assert ends(pooled, pooled.half_width(0.95)) == pytest.approx(interval, **EXACT)
    assert (found.q, found.i_squared) == pytest.approx((q, i_squared), **EXACT)
    assert found.p_value == pytest.approx(p_value, rel=1e-6)
    assert found.tau_squared is None
    assert pooled.prediction_half_width(0.95) is None


@pytest.mark.parametrize("name", RANDOM)
def test_the_random_effects_model_is_that_of_the_independent_implementation(name):
    data, between, estimate, factor, error, interval, prediction, *narrower = RANDOM[name]

    pooled = pool_random(*arrays(data))
    found = pooled.heterogeneity

    assert found.tau_squared == pytest.approx(between, **EXACT)
    assert found.hartung_knapp == pytest.approx(factor, **EXACT)
    assert (pooled.estimate, pooled.standard_error) == pytest.approx((estimate, error), **EXACT)
    assert ends(pooled, pooled.half_width(0.95)) == pytest.approx(interval, **EXACT)
    assert ends(pooled, pooled.half_width(0.9)) == pytest.approx(narrower[0], **EXACT)
    for coverage, known in ((0.95, prediction), (0.9, narrower[1])):
        half = pooled.prediction_half_width(coverage)
        if known is None:
            assert half is None
        else:
            assert ends(pooled, half) == pytest.approx(known, **EXACT)


@pytest.mark.parametrize("name", RANDOM)
def test_the_random_effects_interval_is_never_narrower_than_the_fixed_one(name):
    data = arrays(RANDOM[name][0])

    random, fixed = pool_random(*data), pool_fixed(*data)

    assert random.half_width(0.95) > fixed.half_width(0.95)
    assert random.heterogeneity.q == fixed.heterogeneity.q


@pytest.mark.parametrize("scale", [1e-60, 1e-3, 1e7, 1e90])
def test_pooling_does_not_depend_on_the_unit_of_the_outcome(scale):
    y, v = arrays(VACCINE)
    usual, scaled = pool_random(y, v), pool_random(scale * y, scale**2 * v)

    assert scaled.estimate == pytest.approx(scale * usual.estimate, rel=1e-9)
    assert scaled.standard_error == pytest.approx(scale * usual.standard_error, rel=1e-9)
    assert scaled.heterogeneity.i_squared == pytest.approx(usual.heterogeneity.i_squared)


@pytest.mark.parametrize("scale", [1e-60, 1e-3, 1e7])
def test_the_variance_between_sites_maximises_the_restricted_likelihood(scale):
    rng = np.random.default_rng(4)
    for sites in (2, 3, 7, 40):
        v = scale * rng.gamma(1.0, 2.0, sites) + 1e-3 * scale
        y = rng.normal(0, np.sqrt(v + scale), sites)

        found = reml_variance(y, v)

        grid = np.append(scale * np.geomspace(1e-9, 1e4, 3000), [0.0, found])
        whole = v + grid[:, None]
        total = (1 / whole).sum(axis=1)
        mean = (y / whole).sum(axis=1) / total
        squares = ((y - mean[:, None]) ** 2 / whole).sum(axis=1)
        likelihood = -0.5 * (np.log(whole).sum(axis=1) + np.log(total) + squares)
        assert likelihood[-1] >= likelihood.max() - 1e-9


def test_the_example_of_the_documentation_holds():
    import doctest

    from private_ate.sites import pooling

    assert doctest.testmod(pooling) == (0, 2)


def test_one_site_is_the_fixed_effect_model_of_itself():
    pooled = pool_random(np.array([2.5]), np.array([0.25]))

    assert (pooled.estimate, pooled.standard_error, *pooled.weights) == (2.5, 0.5, 1.0)
    assert pooled.heterogeneity.p_value is None
    assert pooled.half_width(0.95) == pytest.approx(0.5 * quantile(0.95, None))
    assert pooled.prediction_half_width(0.95) is None
