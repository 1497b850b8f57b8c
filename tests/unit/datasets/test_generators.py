"""Generated studies are confounded as asked and know their effect."""

import numpy as np
import pytest

from private_ate.datasets import Confounded, generate
from private_ate.errors import ArgumentError


def naive_difference(dataset):
    outcome = dataset.frame["y"].to_numpy()
    treated = dataset.frame["treatment"].to_numpy() == 1
    return outcome[treated].mean() - outcome[~treated].mean()


def test_selection_confounds_and_matching_removes_most_of_it():
    dataset = generate(Confounded(size=4000, selection=1.5), seed=1)

    naive = abs(naive_difference(dataset) - dataset.true_effect)
    matched = abs(dataset.exact_effect() - dataset.true_effect)

    assert naive > 0.5
    assert matched < naive / 4


def test_without_selection_the_naive_difference_is_right():
    dataset = generate(Confounded(size=20_000, selection=0.0), seed=2)

    # Four standard errors of a difference of two means of 10 000 outcomes with variance 2.
    assert naive_difference(dataset) == pytest.approx(1.0, abs=4 * np.sqrt(2 * 2 / 10_000))


def test_the_true_effect_of_binary_outcomes_is_a_difference_of_risks():
    dataset = generate(Confounded(size=20_000, selection=0.0, binary=True), seed=3)

    assert set(dataset.frame["y"].unique()) == {0.0, 1.0}
    assert dataset.domain.bounds.is_binary
    assert naive_difference(dataset) == pytest.approx(dataset.true_effect, abs=0.03)


@pytest.mark.parametrize("tails", ["bounded", "normal", "heavy"])
def test_few_outcomes_fall_outside_the_declared_bounds(tails):
    dataset = generate(Confounded(size=20_000, tails=tails), seed=4)
    bounds, outcome = dataset.domain.bounds, dataset.frame["y"].to_numpy()

    assert np.mean((outcome < bounds.low) | (outcome > bounds.high)) < 2e-3


def test_heavier_tails_give_larger_extremes():
    largest = [
        generate(Confounded(size=20_000, tails=tails), seed=5).frame["y"].abs().max()
        for tails in ("bounded", "normal", "heavy")
    ]

    assert largest == sorted(largest)


def test_overlap_keeps_propensities_away_from_zero_and_one():
    far, near = (
        generate(Confounded(size=20_000, selection=6.0, overlap=overlap), seed=6)
        for overlap in (0.0, 0.3)
    )

    assert abs(naive_difference(near)) < abs(naive_difference(far))


def test_heterogeneous_effects_average_to_the_true_effect_of_the_units():
    same, different = (
        generate(Confounded(heterogeneity=heterogeneity), seed=7) for heterogeneity in (0.0, 1.0)
    )

    assert same.true_effect == pytest.approx(1.0, abs=1e-12)
    assert different.true_effect != same.true_effect
    assert different.true_effect == pytest.approx(1.0, abs=0.05)


def test_the_same_seed_gives_the_same_rows():
    first, again, other = (generate(Confounded(size=100), seed=seed) for seed in (8, 8, 9))

    assert first.frame.equals(again.frame)
    assert not first.frame.equals(other.frame)


@pytest.mark.parametrize(
    "wrong", [{"size": 1}, {"dimension": 0}, {"selection": -1.0}, {"overlap": 0.5}, {"tails": "x"}]
)
def test_a_study_that_cannot_be_generated_is_refused(wrong):
    with pytest.raises(ArgumentError):
        Confounded(**wrong)
