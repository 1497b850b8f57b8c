"""The benchmarks hold what the paper says, and their domains cover them."""

import hashlib
from importlib.metadata import PackageNotFoundError, distribution

import numpy as np
import pytest

from private_ate import Categories, estimate_ate
from private_ate.datasets import load, packaged, registry, synth
from private_ate.datasets.dataset import Dataset
from private_ate.errors import ArgumentError, DatasetError

PACKAGES = {"ihdp": "skcausal", "lalonde": "causaldata", "acic": "causallib"}
ARMS = {"ihdp": (139, 608), "lalonde": (185, 260), "acic": (858, 3944), "synth": (489, 511)}
DIMENSIONS = {"ihdp": 25, "lalonde": 8, "acic": 58, "synth": 20}
# What outcomes are beyond their declared range: the paper's ranges are rounded to four digits.
ROUNDING = 0.003


def load_or_skip(name):
    package = PACKAGES.get(name.split("-")[0])
    if package is not None:
        try:
            distribution(package)
        except PackageNotFoundError:
            pytest.skip(f"DATA SET NOT TESTED: {package} is not installed; run `make data`")
    return load(name)


@pytest.mark.parametrize("name", ARMS)
def test_each_benchmark_has_the_arms_and_covariates_of_the_paper(name):
    dataset = load_or_skip(name)

    assert (dataset.treated, dataset.control) == ARMS[name]
    assert len(dataset.domain.covariates) == DIMENSIONS[name]
    assert dataset.size == sum(ARMS[name]) == dataset.frame.height


@pytest.mark.parametrize(
    ("name", "effect"), [("ihdp", 4.0161), ("lalonde", None), ("acic", 2.1281), ("synth", 0.5)]
)
def test_the_true_effect_is_known_where_outcomes_are_simulated(name, effect):
    dataset = load_or_skip(name)

    assert dataset.true_effect == (None if effect is None else pytest.approx(effect, abs=5e-5))


@pytest.mark.parametrize(
    ("name", "effect"),
    [("ihdp", 3.98051), ("lalonde", 1832.81), ("acic", 3.68755), ("acic-codes", 3.20994),
     ("synth", 0.459357)],
)  # fmt: skip
def test_the_matching_estimate_without_noise_stays_where_it_was(name, effect):
    dataset = load_or_skip(name)

    # Two machines may order scores that differ in the last bits differently.
    assert dataset.exact_effect() == pytest.approx(effect, rel=2e-3)


@pytest.mark.parametrize("name", registry)
def test_domains_cover_every_value_and_the_frame_holds_nothing_else(name):
    dataset = load_or_skip(name)
    domain = dataset.domain

    declared = {domain.treatment.column, domain.outcome.column, *domain.covariates}
    assert set(dataset.frame.columns) == declared
    for column, kind in domain.covariates.items():
        values = dataset.frame[column]
        if isinstance(kind, Categories):
            assert set(values.unique()) == set(kind.labels)
        else:
            assert kind.low <= values.min()
            assert values.max() <= kind.high
    outcome = dataset.frame[domain.outcome.column].to_numpy()
    clipped = np.clip(outcome, domain.bounds.low, domain.bounds.high)
    assert np.abs(outcome - clipped).max() <= ROUNDING
    assert np.ptp(outcome) >= 0.999 * domain.bounds.width


def test_acic_settings_have_their_own_true_effects():
    effects = [load_or_skip(f"acic-{setting}").true_effect for setting in range(2, 11)]

    assert len(set(effects)) == 9
    assert effects[0] == pytest.approx(4.6792, abs=5e-5)


def test_acic_refuses_a_setting_that_does_not_exist():
    with pytest.raises(ArgumentError, match="settings 1 to 10"):
        packaged.load_acic(11)


def test_coded_letters_leave_58_columns_of_numbers():
    dataset = load_or_skip("acic-codes")

    assert len(dataset.domain.features) == 58


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ArgumentError, match="ihdp, lalonde, acic, synth"):
        load("twins")


def test_synth_is_the_same_every_time_and_its_draws_differ():
    first, again = synth.load(), synth.load()
    drawn = [synth.draw(seed) for seed in (0, 1)]

    assert first.frame.equals(again.frame)
    assert not drawn[0].frame.equals(drawn[1].frame)
    assert drawn[0].true_effect == 0.5


def test_matching_misses_the_truth_by_an_eighth_over_draws_of_synth():
    errors = [abs(synth.draw(seed).exact_effect() - 0.5) / 0.5 for seed in range(20)]

    assert 0.08 < np.mean(errors) < 0.15


def test_a_benchmark_can_be_handed_to_the_front_door():
    dataset = synth.load()

    release = estimate_ate(
        dataset.frame, domain=dataset.domain, level="label", epsilon=1000,
        method="published", seed=1,
    )  # fmt: skip

    assert release.ate == pytest.approx(dataset.exact_effect(), rel=0.05)


def test_wrong_arms_are_an_error():
    dataset = synth.load()

    with pytest.raises(DatasetError, match="490 treated and 510"):
        Dataset("synth", dataset.frame, dataset.domain, 0.5, 490, 510, "")


def test_a_missing_package_is_one_sentence_that_says_make_data():
    file = packaged.PackagedFile("no-such-package-here", "1.0", "a/b.csv", "")

    with pytest.raises(DatasetError, match=r"no-such-package-here 1\.0.*run `make data`") as caught:
        file.read()

    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_the_expected_one_is_refused():
    content = distribution("numpy").locate_file("numpy/__init__.py").read_bytes()
    digest = hashlib.sha256(content).hexdigest()

    assert packaged.PackagedFile("numpy", "2", "numpy/__init__.py", digest).read() == content
    with pytest.raises(DatasetError, match="is not the file of version 2"):
        packaged.PackagedFile("numpy", "2", "numpy/__init__.py", digest[::-1]).read()
