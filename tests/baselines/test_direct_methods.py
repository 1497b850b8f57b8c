from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from private_ate import AimOptions, ArgumentError, Domain, Interval, Ledger, Treatment, estimate_ate
from private_ate.baselines.difference_in_means import DifferenceInMeansOptions
from private_ate.baselines.doubly_robust import DoublyRobustOptions
from private_ate.baselines.fold_split import FoldSplitOptions, fold_sensitivity
from private_ate.baselines.ipw import IpwOptions
from private_ate.baselines.smooth_matching import SmoothMatchingOptions
from private_ate.baselines.steps import row_hashes, split_folds, split_rows
from private_ate.engines.local import LocalStudy
from private_ate.privacy.entropy import SeededEntropy

NAMES = ["difference_in_means", "ipw", "smooth_matching", "doubly_robust", "fold_split"]


def release(study, method, epsilon="1000000", options=None, seed=7, **more):
    return estimate_ate(
        study, level="sample", epsilon=epsilon, method=method, options=options, seed=seed, **more
    )


def outcomes(study):
    bounds = study.domain.bounds
    return bounds.low + study.outcome / 2**30 * bounds.width


def evaluation_rows(study, share, seed):
    """Return which rows the evaluation part holds for a seed."""
    training, _ = split_rows(study, share, SeededEntropy(seed))
    return row_hashes(0, study.size, training.salt) >= training.high


def test_difference_in_means_without_noise_is_the_difference_in_means(synth):
    treated, values = synth.treatment, outcomes(synth)
    difference = values[treated].mean() - values[~treated].mean()

    assert release(synth, "difference_in_means").ate == pytest.approx(difference, abs=1e-5)


def test_smooth_matching_without_noise_imputes_by_the_other_arm_of_the_cell(synth):
    values, treated = outcomes(synth), synth.treatment
    cell = 2 * (synth.covariates[0] >= 0.5) + (synth.covariates[1] >= 0.5)
    total = 0.0
    for one in range(4):
        arms = [values[(cell == one) & arm] for arm in (treated, ~treated)]
        total += (arms[0].size + arms[1].size) * (arms[0].mean() - arms[1].mean())

    assert release(synth, "smooth_matching").ate == pytest.approx(total / synth.size, abs=1e-4)


def test_ipw_without_noise_is_truncated_inverse_probability_weighting(synth):
    from scipy.optimize import minimize

    ridge, cut = 1e-3, 0.1
    held_out = evaluation_rows(synth, 0.5, 7)
    features = np.vstack((np.ones(synth.size), 2 * synth.covariates - 1)).T / math.sqrt(21)
    sign = np.where(synth.treatment, 1.0, -1.0)

    def loss(weights):
        margin = sign[~held_out] * (features[~held_out] @ weights)
        return np.logaddexp(0, -margin).mean() + ridge / 2 * weights @ weights

    weights = minimize(loss, np.zeros(21), tol=1e-12).x
    score = np.clip(1 / (1 + np.exp(-features @ weights)), cut, 1 - cut)[held_out]
    centred = (outcomes(synth) - synth.domain.bounds.middle)[held_out]
    treated = synth.treatment[held_out]
    expected = np.mean(np.where(treated, centred / score, -centred / (1 - score)))
    options = IpwOptions(ridge=ridge, truncation=cut)

    assert release(synth, "ipw", options=options).ate == pytest.approx(expected, abs=2e-3)


def test_ipw_without_noise_and_without_a_split_weights_all_rows_by_one_model(synth):
    from scipy.optimize import minimize

    ridge, cut = 1e-3, 0.1
    features = np.vstack((np.ones(synth.size), 2 * synth.covariates - 1)).T / math.sqrt(21)
    sign = np.where(synth.treatment, 1.0, -1.0)

    def loss(weights):
        margin = sign * (features @ weights)
        return np.logaddexp(0, -margin).mean() + ridge / 2 * weights @ weights

    weights = minimize(loss, np.zeros(21), tol=1e-12).x
    score = np.clip(1 / (1 + np.exp(-features @ weights)), cut, 1 - cut)
    centred = outcomes(synth) - synth.domain.bounds.middle
    expected = np.mean(np.where(synth.treatment, centred / score, -centred / (1 - score)))
    options = IpwOptions(split=False, ridge=ridge, truncation=cut)

    found = release(synth, "ipw", options=options)

    assert found.ate == pytest.approx(expected, abs=2e-3)
    assert found.settings["split"] == {"training": synth.size, "evaluation": synth.size}
    assert found.settings["same_rows"] is True


@pytest.mark.parametrize("delta", [0, "1e-6", "2e-12"])
def test_ipw_without_a_split_halves_the_budget_between_its_steps(synth, delta):
    found = estimate_ate(
        synth, level="sample", epsilon="1", method="ipw",
        options=IpwOptions(split=False, delta=delta),
    )  # fmt: skip

    assert [step.epsilon for step in found.steps] == [0.5, 0.5]
    assert sum(step.delta for step in found.steps) == pytest.approx(float(delta))
    assert {step.part for step in found.steps} == {""}
    assert found.is_private


def test_a_true_split_is_the_published_half():
    assert IpwOptions(split=True) == IpwOptions()
    with pytest.raises(ArgumentError, match="at least 2e-12"):
        IpwOptions(split=False, delta="1e-12")


@pytest.mark.parametrize("nuisance", ["private", "conditional"])
def test_doubly_robust_without_noise_is_near_the_truth(synth, nuisance):
    options = DoublyRobustOptions(nuisance)
    effects = [release(synth, "doubly_robust", options=options, seed=s).ate for s in range(5)]

    assert np.mean(effects) == pytest.approx(0.484, abs=0.15)


def test_the_published_doubly_robust_mean_without_noise_is_cross_fitted_aipw(synth):
    from scipy.optimize import minimize

    held_out = evaluation_rows(synth, 0.5, 7)
    training = ~held_out
    features = np.vstack((np.ones(synth.size), 2 * synth.covariates - 1)).T
    sign, share = np.where(synth.treatment, 1.0, -1.0), synth.outcome / 2**30

    def loss(weights):
        margin = sign[training] * (features[training] @ weights)
        return np.logaddexp(0, -margin).mean() + 0.001 * 21 / 2 * weights @ weights

    score = 1 / (1 + np.exp(-features @ minimize(loss, np.zeros(21), tol=1e-12).x))
    score = np.clip(score, 0.1, 0.9)
    penalty = 1e-3 * training.sum() * np.eye(21)
    models = []
    for arm in (synth.treatment, ~synth.treatment):
        rows = features[training & arm]
        cross = rows.T @ (share[training & arm] - 0.5)
        fitted = np.linalg.solve(rows.T @ rows + penalty, cross)
        models.append(np.clip(features @ fitted + 0.5, 0, 1))
    residual = np.where(
        synth.treatment, (share - models[0]) / score, (models[1] - share) / (1 - score)
    )
    expected = (models[0] - models[1] + residual)[held_out].mean() * synth.domain.bounds.width
    options = DoublyRobustOptions("conditional")

    found = release(synth, "doubly_robust", options=options, confidence=None)

    assert found.ate == pytest.approx(expected, abs=2e-3)


def test_private_arm_means_equal_the_means_of_the_training_rows(synth):
    from private_ate.baselines.nuisance_models import release_nuisance_models
    from private_ate.baselines.steps import Budget
    from private_ate.privacy.noise import Noise

    noise = Noise(SeededEntropy(7))
    part, _ = split_rows(synth, 0.5, noise.entropy)
    budget = Budget(Fraction(10**6), Fraction("1e-6"), "training")
    models = release_nuisance_models(part, 0.01, budget, noise)
    training = ~evaluation_rows(synth, 0.5, 7)
    share = synth.outcome / 2**30

    assert models.treated[0] == pytest.approx(share[training & synth.treatment].mean(), abs=1e-3)
    assert models.control[0] == pytest.approx(share[training & ~synth.treatment].mean(), abs=1e-3)


def test_output_noise_of_ipw_has_the_reference_scale():
    table = pl.DataFrame({"x": [0.5] * 1000, "t": [0, 1] * 500, "y": [1.0] * 1000})
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 5.3)), {"x": Interval(0, 1)})
    for epsilon, expected in (("1", 0.395), ("4", 0.115)):
        found = estimate_ate(
            table, level="sample", epsilon=epsilon, method="ipw", domain=domain,
            options=IpwOptions(delta="1e-5"), seed=3,
        )  # fmt: skip
        rows = found.settings["split"]["evaluation"]
        scaled = found.settings["noise_standard_deviation"] * rows / 500
        assert scaled == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_repeats_a_release_and_another_seed_does_not(synth, name):
    first, again, other = (release(synth, name, "1", seed=s).ate for s in (1, 1, 2))

    assert first == again != other


@pytest.mark.parametrize("name", NAMES)
def test_a_release_states_its_delta_and_adjacency(synth, name):
    found = estimate_ate(synth, level="sample", epsilon="1", method=name)

    assert found.delta == 1e-6
    assert found.guarantee == "(1, 1e-06)-DP, sample level"
    assert found.adjacency.startswith("replace-one")
    assert found.is_private


def test_the_published_doubly_robust_method_promises_nothing(synth):
    options = DoublyRobustOptions("conditional")
    found = estimate_ate(
        synth, level="sample", epsilon="1", method="doubly_robust", options=options
    )

    assert not found.is_private
    assert found.guarantee.startswith("none (the published method fits its models")
    assert "nothing: do not publish" in str(found)


def test_a_training_record_moves_the_published_mean_beyond_its_stated_sensitivity():
    """The flaw: the models are fitted without noise, so one training row moves every score."""
    rows, bounds = 400, Interval(0, 1)
    domain = Domain(Treatment("t", 1, 0), ("y", bounds), {"x": Interval(0, 1)})
    blank = LocalStudy(
        domain, np.full((1, rows), 0.5), np.zeros(rows, np.bool_), np.zeros(rows, np.int32)
    )
    row = int(np.flatnonzero(~evaluation_rows(blank, 0.1, 7))[0])
    effects = []
    for value in (0, 1 << 30):
        treatment, outcome = blank.treatment.copy(), blank.outcome.copy()
        treatment[row], outcome[row] = True, value
        study = replace(blank, treatment=treatment, outcome=outcome)
        options = DoublyRobustOptions("conditional", split=0.1)
        effects.append(release(study, "doubly_robust", options=options, confidence=None))

    stated = 2 * bounds.width / (0.1 * effects[0].settings["split"]["evaluation"])
    assert abs(effects[0].ate - effects[1].ate) > 10 * stated


def test_cauchy_releases_say_that_their_numerics_are_idealized(synth):
    options = DifferenceInMeansOptions(delta=0)
    found = estimate_ate(
        synth, level="sample", epsilon="1", method="difference_in_means", options=options
    )

    assert found.delta == 0
    assert found.guarantee == "pure 1-DP, sample level, idealized numerics"


def test_the_smooth_sensitivity_is_not_part_of_the_release(synth):
    found = release(synth, "smooth_matching", "1")

    assert found.noise_interval is None
    keys = {"cells", "confidence", "budget", "noise", "population", "notes"}
    assert set(found.settings) == keys


def test_doubly_robust_intervals_are_wider_than_the_noise_alone(synth):
    found = release(synth, "doubly_robust", "1", confidence=0.9)
    without = release(synth, "doubly_robust", "1", confidence=None)

    assert (
        found.interval[0] <= found.noise_interval[0] < found.noise_interval[1] <= found.interval[1]
    )
    assert without.interval is None
    assert (without.noise_interval[1] - without.noise_interval[0]) < (
        found.noise_interval[1] - found.noise_interval[0]
    ) * 1.3


ODD = {
    "one row": ([0.2], [1], [1.0]),
    "empty arm": ([0.2, 0.4, 0.9], [1, 1, 1], [0.0, 1.0, 5.0]),
    "constant covariate": ([0.5] * 6, [0, 1] * 3, [1.0] * 6),
    "odd values": ([float("nan"), -9.0, 7.0, 0.5], [0, 1, 0, 1], [float("nan"), 9e9, -9e9, 1.0]),
}


@pytest.mark.parametrize("name", [*NAMES, "aim", "privsyn"])
@pytest.mark.parametrize("case", ODD)
def test_odd_records_still_give_a_release(name, case):
    x, t, y = ODD[case]
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 5)), {"x": Interval(0, 1)})
    table = pl.DataFrame({"x": x, "t": t, "y": y})

    found = estimate_ate(table, level="sample", epsilon="1", method=name, domain=domain)

    assert math.isfinite(found.ate)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: IpwOptions(split=1.0), "split"),
        (lambda: IpwOptions(truncation=0.5), "truncation"),
        (lambda: IpwOptions(ridge=0), "ridge"),
        (lambda: DoublyRobustOptions(nuisance="public"), "nuisance"),
        (lambda: DoublyRobustOptions(delta=0), "positive delta"),
        (lambda: SmoothMatchingOptions(delta=2), "delta"),
        (lambda: FoldSplitOptions(folds=1), "folds"),
        (lambda: FoldSplitOptions("matching"), "score"),
    ],
)
def test_impossible_options_are_argument_errors(make, text):
    with pytest.raises(ArgumentError, match=text):
        make()


@pytest.mark.parametrize("name", [*NAMES, "aim", "privsyn"])
def test_baselines_refuse_what_they_cannot_answer(synth, name):
    with pytest.raises(ArgumentError, match="one row per person"):
        release(synth, name, rows_per_person=2)
    with pytest.raises(ArgumentError, match="ATE only"):
        release(synth, name, estimand="att")
    with pytest.raises(ArgumentError, match="takes"):
        release(synth, name, options=object())
    with pytest.raises(ArgumentError, match="sample level, not at label"):
        estimate_ate(synth, level="label", epsilon=1, method=name)


def test_smooth_noise_refuses_an_epsilon_that_floats_cannot_serve(synth):
    with pytest.raises(ArgumentError, match="at least 1e-6"):
        release(synth, "smooth_matching", "0.0000001")
    assert math.isfinite(release(synth, "difference_in_means", "0.00001").ate)


def test_cells_of_unknown_covariates_are_refused(synth):
    with pytest.raises(ArgumentError, match="'age' is not one"):
        release(synth, "smooth_matching", options=SmoothMatchingOptions(cells=("age",)))
    names = tuple(f"x{column}" for column in range(18))
    with pytest.raises(ArgumentError, match="fewer than"):
        release(synth, "smooth_matching", options=SmoothMatchingOptions(cells=names))


@pytest.mark.parametrize("score", ["doubly_robust", "weighted", "outcome_model"])
def test_fold_split_without_noise_is_near_the_truth(synth, score):
    options = FoldSplitOptions(score, folds=5, ridge=0.001)

    assert release(synth, "fold_split", options=options).ate == pytest.approx(0.484, abs=0.12)


def test_fold_split_states_the_published_kind_of_sensitivity():
    steps = fold_sensitivity(FoldSplitOptions(folds=20), 1000) / 2**24 / 1000

    assert steps == pytest.approx(2 / (0.1 * 1000) + 19 / 19, rel=2e-3)


def test_folds_cover_all_rows_once(synth):
    parts = split_folds(synth, 7, SeededEntropy(1))
    places = row_hashes(0, synth.size, parts[0].salt)

    assert sum(part.size for part in parts) == synth.size
    assert parts[0].low == 0
    assert [part.high for part in parts[:-1]] == [part.low for part in parts[1:]]
    assert all(((places >= p.low) & (places < p.high)).sum() == p.size for p in parts)


def test_parts_are_disjoint_cover_all_rows_and_ignore_the_records(synth):
    held_out = evaluation_rows(synth, 0.3, 1)
    other = replace(synth, outcome=synth.outcome[::-1].copy(), treatment=~synth.treatment)
    training, evaluation = split_rows(synth, 0.3, SeededEntropy(1))

    assert training.size + evaluation.size == synth.size
    assert evaluation.size == held_out.sum()
    assert 200 < training.size < 400
    assert np.array_equal(held_out, evaluation_rows(other, 0.3, 1))


def test_the_summary_says_what_delta_means(synth):
    text = str(estimate_ate(synth, level="sample", epsilon="1", method="ipw"))

    assert "more than 2.72×, except with probability 1e-06" in " ".join(text.split())
    assert "units (n)" in text


@pytest.mark.parametrize(
    ("method", "options", "text"),
    [
        ("doubly_robust", DoublyRobustOptions("conditional"), "nothing is promised"),
        ("aim", AimOptions(adjacency="add_remove"), "replace-one"),
    ],
)
def test_a_ledger_refuses_before_charging_what_it_cannot_add_up(
    tmp_path, synth, method, options, text
):
    ledger = Ledger.create(tmp_path / "budget.db", "trial", epsilon="1", delta="1e-5")

    with pytest.raises(ArgumentError, match=text):
        estimate_ate(
            synth, level="sample", epsilon="1", method=method, options=options, ledger=ledger
        )
    paid = estimate_ate(synth, level="sample", epsilon="1", method="ipw", ledger=ledger)

    assert paid.is_private  # the whole of ε was still there
