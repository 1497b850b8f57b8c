"""Squared differences of pairs: what one outcome can move, and that the declared bound is met."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_ate.domain import Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.methods.calibrated.clipping import DECLARED_RANGE
from private_ate.methods.calibrated.design import pose
from private_ate.methods.calibrated.options import CalibratedOptions
from private_ate.methods.calibrated.variance import PairVariance, release_pair_variance
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

DOMAIN = Domain(Treatment("t", arms=("a", "b", "c")), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
PLAIN = Request("label", Fraction(1), options=CalibratedOptions(terms="plain"))


class Listener:
    """Takes the place of the choke point and notes what goes in."""

    outcomes = 1

    def laplace(self, _, values, *, sensitivity, **__):
        self.total, self.sensitivity = values[0], sensitivity
        return [2 * values[0]]


def heard(study, rows=1):
    noise = Listener()
    design = pose(study.public(), PLAIN)
    variance = release_pair_variance(study, design, DECLARED_RANGE, 0.125, Fraction(1), rows, noise)
    return noise, variance


def study_of(seed, rows=None):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(5, 14)) if rows is None else rows
    arm = np.concatenate([[0, 1, 2], rng.integers(0, 3, size - 3)]).astype(np.uint8)
    outcome = rng.integers(0, OUTCOME_STEPS, size, endpoint=True).astype(np.int32)
    outcome[rng.random(size) < 0.5] = 0
    return LocalStudy(DOMAIN, rng.random((1, size)), arm, outcome)


@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1))
def test_no_outcome_moves_the_sum_by_more_than_the_sensitivity(seed):
    study = study_of(seed)
    before, _ = heard(study)
    for row in range(3):
        for end in (0, OUTCOME_STEPS):
            moved = study.outcome.copy()
            moved[row] = end
            after, _ = heard(replace(study, outcome=moved))
            assert abs(after.total - before.total) <= before.sensitivity
            assert after.sensitivity == before.sensitivity


def test_a_pair_at_both_bounds_of_the_smallest_arm_uses_the_sensitivity_up():
    outcome = np.zeros(8, dtype=np.int32)
    arm = np.array([0, 0, 0, 1, 1, 1, 2, 2], dtype=np.uint8)
    study = LocalStudy(DOMAIN, np.linspace(0, 1, 8)[None], arm, outcome)
    moved = outcome.copy()
    moved[7] = OUTCOME_STEPS

    before, after = heard(study)[0], heard(replace(study, outcome=moved))[0]

    assert after.total - before.total == before.sensitivity
    assert heard(study, rows=3)[0].sensitivity == 3 * before.sensitivity


def test_without_noise_the_variance_is_that_of_pairs_drawn_alike():
    study = study_of(3, rows=6_000)
    values = np.random.default_rng(5).random(6_000)

    _, found = heard(replace(study, outcome=(values * OUTCOME_STEPS).astype(np.int32)))

    assert found.released == pytest.approx(1 / 12, rel=0.05)
    assert found.ceiling == 0.25


def test_arms_without_a_pair_have_the_largest_variance_there_is():
    arm = np.array([0, 1, 2], dtype=np.uint8)
    study = LocalStudy(DOMAIN, np.array([[0.1, 0.5, 0.9]]), arm, np.zeros(3, dtype=np.int32))

    _, found = heard(study)

    np.testing.assert_allclose(found.likely_values(), 0.25)


@pytest.mark.parametrize("outcomes", [1, 3])
@pytest.mark.parametrize("released", [-1.0, 0.0, 0.01, 0.1, 0.25, 2.0])
def test_likely_variances_are_those_of_a_uniform_prior(released, outcomes):
    values = PairVariance(released, 0.02, 0.25, 0.125, outcomes=outcomes).likely_values(400)

    assert (np.diff(values) >= 0).all()
    assert values[0] >= 0
    assert values[-1] <= 0.25
    if outcomes == 1:  # Laplace likelihood: the posterior is a truncated Laplace distribution
        grid = (np.arange(200_000) + 0.5) / 200_000 / 4
        density = np.exp(-np.abs(grid - released) / 0.02 + min(abs(released), abs(released - 0.25)))
        mass = np.cumsum(density) / density.sum()
        expected = np.interp((np.arange(400) + 0.5) / 400, mass, grid)
        np.testing.assert_allclose(values, expected, atol=2e-4)
