"""Non-private references of several arms agree with slow and obvious versions of themselves."""

import numpy as np
import pytest

from oracles import fit_propensity, share_ties
from private_ate import Categories, Domain, Interval
from private_ate.datasets import Confounded, SeveralArms, generate
from private_ate.datasets.dataset import Dataset
from private_ate.errors import ArgumentError
from private_ate.experiments.references import (
    adjusted_means,
    contrast_error,
    contrasts_of,
    fit_chances,
    matched_means,
    matched_weights,
    plain_means,
    records_of,
)


@pytest.mark.parametrize("neighbors", [1, 3, 5, 50])
@pytest.mark.parametrize("decimals", [1, 12], ids=["many ties", "no ties"])
def test_weights_are_those_of_sharing_ties_unit_by_unit(neighbors, decimals):
    rng = np.random.default_rng(neighbors)
    # Eighths, so that equal distances are equal to the last bit.
    score = np.round(rng.random(120) * 8**decimals) / 8**decimals
    inside = rng.random(120) < 0.3

    weights = matched_weights(score, inside, neighbors)

    expected = 1.0 + share_ties(score, inside, neighbors, 0.0)[inside]
    assert weights == pytest.approx(expected, abs=1e-12)
    assert weights.sum() == pytest.approx(120)


def test_an_arm_of_one_unit_stands_in_for_everybody():
    inside = np.arange(9) == 4

    assert matched_weights(np.linspace(0, 1, 9), inside, 5) == pytest.approx([9.0])


def test_two_arms_have_the_chances_of_the_logistic_fit():
    rng = np.random.default_rng(2)
    covariates = rng.random((300, 3))
    codes = (rng.random(300) < 0.3 + 0.4 * covariates[:, 0]).astype(int)

    chances = fit_chances(covariates, codes, 2)

    slopes = fit_propensity(covariates, codes, 1 / 300)
    expected = 1 / (1 + np.exp(-slopes[0] - covariates @ slopes[1:]))
    assert chances[:, 1] == pytest.approx(expected, abs=1e-9)


def test_chances_do_not_depend_on_the_order_of_arms():
    records = records_of(generate(SeveralArms(600, 4), seed=3))
    turned = np.array([2, 0, 3, 1])

    first = fit_chances(records.covariates, records.codes, 4)
    other = fit_chances(records.covariates, turned[records.codes], 4)

    assert other[:, turned] == pytest.approx(first, abs=1e-9)


def test_separated_arms_still_have_chances():
    codes = np.repeat([0, 1, 2], 20)

    chances = fit_chances(codes[:, None] / 2.0, codes, 3)

    assert np.all(np.isfinite(chances))
    assert chances.argmax(axis=1).tolist() == codes.tolist()


def test_matching_of_two_arms_is_the_matching_estimate():
    dataset = generate(Confounded(size=2000, dimension=4, overlap=0.1), seed=4)

    means = matched_means(records_of(dataset))

    assert means[1] - means[0] == pytest.approx(dataset.exact_effect(), rel=1e-6)


def test_matching_and_adjusting_come_closer_to_the_truth_than_plain_means():
    dataset = generate(SeveralArms(10_000, 3), seed=5)
    records, truth = records_of(dataset), np.array(list(dataset.true_contrasts.values()))

    errors = [
        contrast_error(contrasts_of(means(records)), truth)
        for means in (plain_means, matched_means, adjusted_means)
    ]

    assert errors[0] > 0.9
    assert errors[1] < 0.2
    assert errors[2] < 0.08


def test_contrasts_are_all_pairs_with_the_reference_first():
    assert contrasts_of(np.array([1.0, 3.0, 7.0])).tolist() == [2.0, 6.0, 4.0]


def test_an_error_is_relative_to_the_mean_size_of_the_true_contrasts():
    assert contrast_error(np.array([1.5, -2.5]), np.array([1.0, -3.0])) == pytest.approx(0.25)


def test_categories_are_refused_by_the_references():
    plain = generate(Confounded(size=50, dimension=2), seed=6)
    domain = Domain(
        plain.domain.treatment,
        ("y", Interval(-8, 8)),
        {"x1": Interval(-4, 4), "x2": Categories("a", "b")},
    )
    dataset = Dataset("x", plain.frame, domain, None, plain.treated, plain.control, "")

    with pytest.raises(ArgumentError, match="'x2'"):
        records_of(dataset)
