"""Generated studies of several arms are confounded as asked and know the mean of every arm."""

from itertools import combinations

import numpy as np
import pytest

from private_ate.datasets import SeveralArms, birth_weight, generate
from private_ate.datasets.birth_weight import BINS, LABELS
from private_ate.datasets.dataset import pairs_of_arms
from private_ate.errors import ArgumentError
from private_ate.experiments.references import (
    adjusted_means,
    contrast_error,
    contrasts_of,
    plain_means,
    records_of,
)

# Plain differences of 100 000 units move by about one per cent from seed to seed.
SAMPLING = 0.03
SKEWED = (0.70, 0.15, 0.10, 0.05)


def plain_error(study, seed=1):
    dataset = generate(study, seed)
    truth = np.array(list(dataset.true_contrasts.values()))
    return contrast_error(contrasts_of(plain_means(records_of(dataset))), truth)


@pytest.mark.parametrize(
    ("study", "error"),
    [
        (SeveralArms(100_000, 3), 0.970),
        (SeveralArms(100_000, 4), 0.324),
        (SeveralArms(100_000, 6), 0.720),
        (SeveralArms(100_000, 3, strength=0.3), 0.400),
        (SeveralArms(100_000, 4, shares=SKEWED), 0.333),
        (SeveralArms(100_000, 3, binary=True), 1.15),
    ],
    ids=["three", "four", "six", "weak", "skewed", "binary"],
)
def test_plain_differences_miss_the_truth_as_the_recipe_says(study, error):
    assert plain_error(study) == pytest.approx(error, abs=SAMPLING)


def test_a_randomised_study_has_nothing_to_adjust_for():
    assert plain_error(SeveralArms(100_000, 3, strength=0.0)) < 0.02


def test_true_means_rise_in_equal_steps_to_one_and_a_half():
    dataset = generate(SeveralArms(500, 4), seed=2)
    means = dataset.true_means

    assert list(means) == ["A", "B", "C", "D"]
    assert np.diff(list(means.values())) == pytest.approx([0.5, 0.5, 0.5], abs=1e-12)
    assert dataset.true_effect == pytest.approx(1.5, abs=1e-12)


def test_true_contrasts_name_the_reference_first_then_the_other_pairs():
    contrasts = generate(SeveralArms(500, 3), seed=2).true_contrasts

    assert list(contrasts) == [("B", "A"), ("C", "A"), ("C", "B")]
    assert list(contrasts.values()) == pytest.approx([0.75, 1.5, 0.75], abs=1e-12)
    assert pairs_of_arms(("x", "y")) == [("y", "x")]


def test_shares_of_the_arms_are_as_asked():
    dataset = generate(SeveralArms(50_000, 4, shares=SKEWED), seed=3)

    sizes = [(dataset.frame["arm"] == label).mean() for label in "ABCD"]
    # Five standard errors of a share of one half.
    assert sizes == pytest.approx(SKEWED, abs=5 * 0.5 / np.sqrt(50_000))
    assert (dataset.control, dataset.treated) == tuple(
        int((dataset.frame["arm"] == label).sum()) for label in "AD"
    )


def test_binary_outcomes_have_the_risks_that_the_true_means_say():
    dataset = generate(SeveralArms(50_000, 3, strength=0.0, binary=True), seed=4)

    assert set(dataset.frame["y"].unique()) == {0.0, 1.0}
    assert dataset.domain.bounds.is_binary
    assert plain_means(records_of(dataset)) == pytest.approx(
        list(dataset.true_means.values()), abs=0.02
    )


def test_units_change_with_the_seed_and_coefficients_do_not():
    first, again, other = (generate(SeveralArms(2000), seed=seed) for seed in (5, 5, 6))

    assert first.frame.equals(again.frame)
    assert not first.frame.equals(other.frame)
    assert plain_error(SeveralArms(20_000), 5) == pytest.approx(
        plain_error(SeveralArms(20_000), 6), abs=0.06
    )


def test_the_domain_covers_every_value_and_declares_every_arm():
    dataset = generate(SeveralArms(5000, 20), seed=7)

    for name, bounds in dataset.domain.covariates.items():
        assert bounds.low <= dataset.frame[name].min() <= dataset.frame[name].max() <= bounds.high
        assert not bounds.is_binary or set(dataset.frame[name].unique()) == {0.0, 1.0}
    assert [bounds.is_binary for bounds in dataset.domain.covariates.values()] == [False] * 3 + [
        True
    ] * 2
    assert dataset.domain.treatment.size == 20
    assert set(dataset.frame["arm"].unique()) <= set(dataset.domain.treatment.labels)


def test_two_arms_are_a_treatment_of_two_labels():
    dataset = generate(SeveralArms(5000, 2), seed=8)

    assert (dataset.domain.treatment.control, dataset.domain.treatment.treated) == ("A", "B")
    assert dataset.treated + dataset.control == dataset.size
    assert abs(dataset.exact_effect() - dataset.true_effect) < 0.3


@pytest.mark.parametrize(
    "wrong",
    [
        {"arms": 1},
        {"arms": 21},
        {"size": 5},
        {"strength": -0.1},
        {"shares": (0.5, 0.5)},
        {"shares": (0.5, 0.6, -0.1)},
        {"shares": (0.5, 0.5, 0.5)},
    ],
)
def test_a_study_that_cannot_be_generated_is_refused(wrong):
    with pytest.raises(ArgumentError):
        SeveralArms(**wrong)


def test_birth_weights_have_arms_of_the_sizes_that_such_studies_have():
    dataset = birth_weight()

    sizes = [int((dataset.frame["smoking"] == label).sum()) for label in LABELS]
    assert dataset.size == sum(sizes) == 4642
    assert sizes == pytest.approx([3778, 200, 337, 327], abs=60)


def test_birth_weights_are_confounded_and_adjusting_finds_the_effects():
    dataset = birth_weight(100_000, seed=1)
    effects = [dataset.true_contrasts[label, LABELS[0]] for label in LABELS[1:]]

    assert effects == pytest.approx([-173, -220, -264], abs=1e-6)
    plain, adjusted = (
        contrasts_of(means(records_of(dataset)))[:3] for means in (plain_means, adjusted_means)
    )
    assert np.all(plain < np.array(effects) - 30)
    # Four standard errors: 540 grams over the roots of about 4300 to 7200 units, weighted.
    assert adjusted == pytest.approx(effects, abs=40)


def test_cigarettes_lie_in_the_bin_of_their_arm():
    frame = birth_weight(2000, seed=2).frame

    arms = np.searchsorted(BINS, frame["cigarettes"].to_numpy(), side="right") - 1
    assert frame["smoking"].to_list() == [LABELS[arm] for arm in arms]


def test_birth_weights_are_those_of_the_seed_and_inside_the_declared_bounds():
    first, again, other = (birth_weight(500, seed=seed) for seed in (3, 3, 4))

    assert first.frame.equals(again.frame)
    assert not first.frame.equals(other.frame)
    for name, kind in {**first.domain.covariates, "weight": first.domain.bounds}.items():
        assert kind.low <= first.frame[name].min() <= first.frame[name].max() <= kind.high


def test_too_few_mothers_are_refused():
    with pytest.raises(ArgumentError, match="at least 100 mothers"):
        birth_weight(99)


def test_every_contrast_is_a_difference_of_two_means():
    dataset = birth_weight(200)

    for (one, other), (arm, against) in zip(
        dataset.true_contrasts, ((b, a) for a, b in combinations(LABELS, 2)), strict=True
    ):
        assert (one, other) == (arm, against)
