"""What the label level balances when rows allow, chosen from public columns alone."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from private_ate import ArgumentError, CalibratedOptions, Domain, Interval, Treatment
from private_ate.engines.local import LocalStudy
from private_ate.estimation import METHODS, estimate_study
from private_ate.estimators.calibrated.bends import growth_of
from private_ate.estimators.calibrated.cap_path import walk_caps
from private_ate.estimators.calibrated.features import FeatureMap, fit_features
from private_ate.estimators.calibrated.final_weights import settle_weights
from private_ate.estimators.calibrated.hidden_units import fit_network
from private_ate.estimators.calibrated.method import imbalance_of, pose_caps
from private_ate.estimators.calibrated.rich_features import RichFeatureMap, grow_features
from private_ate.estimators.request import Request
from private_ate.models.logistic import fit_logistic
from private_ate.privacy.sums import OUTCOME_STEPS

LOW, HIGH = -8.0, 10.0


def draw(kind, rows, columns=5, seed=0):
    """Return a study and its units' effects and chances of treatment."""
    rng = np.random.default_rng([seed, rows])
    z = rng.standard_normal((rows, columns))
    if kind == "product":  # treatment and outcome follow a product and an absolute value
        shape = z[:, 0] * z[:, 1] + np.abs(z[:, 2])
        score, level = 1.6 * ((shape - 0.8) / 1.2 + 0.3 * z[:, 3]), shape + 0.5 * z[:, 3]
        effect = 1 + 0.3 * np.tanh(z[:, 0])
    elif kind in ("wave", "weak"):  # little selection, along a wave or along a line
        level = np.sin(1.5 * z[:, 0]) if kind == "wave" else z[:, 0]
        score, effect = 1.0 * level, np.ones(rows)
    elif kind == "knot":  # an interaction of many covariates
        level = 2 * np.tanh(1.5 * z[:, :4].sum(axis=1)) * np.tanh(z[:, 0] - z[:, 1])
        score, effect = level, np.ones(rows)
    else:  # strong selection along a line, a bent outcome, effects that follow the score
        line = z @ np.arange(1, columns + 1) / np.linalg.norm(np.arange(1, columns + 1))
        score, level = 1.6 * line, 4 / (1 + np.exp(-2 * line))
        effect = 1 + 0.6 * np.tanh(line)
    chance = 1 / (1 + np.exp(-score))
    treated = rng.random(rows) < chance
    outcome = level + effect * treated + 0.7 * rng.standard_normal(rows)
    share = np.clip((outcome - LOW) / (HIGH - LOW), 0, 1)
    domain = Domain(
        Treatment("t", treated=1, control=0),
        ("y", Interval(LOW, HIGH)),
        {f"x{index}": Interval(-4, 4) for index in range(columns)},
    )
    covariates = np.ascontiguousarray(np.clip((z.T + 4) / 8, 0, 1))
    study = LocalStudy(domain, covariates, treated, np.rint(share * OUTCOME_STEPS).astype(np.int32))
    return study, effect, chance


def grown(study):
    public = study.public()
    return grow_features(public, fit_features(public, fit_logistic(public, 1 / 5000).coefficients))


def release_of(study, epsilon="1", seed=1, **request):
    asked = Request("label", Fraction(epsilon), **request)
    return estimate_study(study, asked, METHODS["calibrated"], seed=seed)


def covers(release, truth):
    low, high = release.interval
    return low <= truth <= high


def test_features_are_a_fixed_map_of_their_basis():
    study, _, _ = draw("product", 4000)
    features = grown(study)
    rows = study.covariates.T[:50]

    basis = np.vstack([features.basis(rows), np.ones(50)])

    np.testing.assert_allclose(features.map(rows), (features.matrix() @ basis).T, atol=1e-9)


def test_with_few_rows_covariates_squares_and_score_keep_their_shares():
    study, _, _ = draw("product", 4000)
    features = grown(study)
    variances = features.map(study.covariates.T).var(axis=0)
    first = features.terms.size

    assert variances[:5].sum() == pytest.approx(0.40, rel=2e-3)
    assert variances[5:10].sum() == pytest.approx(0.10, rel=2e-3)
    assert variances[first] == pytest.approx(0.15, rel=2e-3)
    bends = variances[first + 1 + features.score.is_flexible :]
    assert bends.sum() == pytest.approx(0.05 * growth_of(4000, 5), rel=0.02)
    assert np.ptp(bends) < 0.05 * bends.mean()


def test_terms_on_which_treatment_leans_are_found_and_the_score_bends():
    features = grown(draw("product", 4000)[0])
    pairs = set(zip(features.terms.left.tolist(), features.terms.right.tolist(), strict=True))

    assert (0, 1) in pairs
    assert 2 in features.terms.hinged
    assert features.score.is_flexible


def test_a_bent_score_comes_close_to_the_chances_of_treatment():
    study, _, chance = draw("product", 12_000)
    plain = fit_features(study.public(), fit_logistic(study.public(), 1e-4).coefficients)

    miss = [
        np.abs(f.probability(study.covariates.T) - chance).mean() for f in (grown(study), plain)
    ]

    assert miss[0] < miss[1] / 5


def test_bends_of_the_score_are_new_to_all_other_terms():
    study, _, _ = draw("product", 4000)
    features = grown(study)
    mapped = features.map(study.covariates.T)
    straight = features.scale.size

    together = np.corrcoef(mapped.T)

    assert np.abs(together[straight:, :straight]).max() < 0.02
    assert np.abs(together[straight:, straight:] - np.eye(mapped.shape[1] - straight)).max() < 0.02


def test_bends_gain_their_share_with_the_rows_per_covariate():
    shares = [growth_of(rows, 10) for rows in (500, 1000, 3000, 10_000, 10**6)]

    assert shares == sorted(shares)
    assert shares[0] == shares[1] == pytest.approx(0.01)
    assert shares[3] == pytest.approx(1.0)
    assert shares[4] == pytest.approx(10.0)


def test_an_interval_doubts_bends_where_arms_hardly_overlap():
    line, _, _ = draw("line", 4000)
    random = replace(line, treatment=np.random.default_rng(1).random(4000) < 0.5)

    strong, none = (grown(study).doubt[-1] for study in (line, random))

    assert strong > 2.5 * none


def test_without_evidence_few_rows_keep_nearly_the_plain_weights():
    study, _, _ = draw("line", 500)
    features = grown(study)
    plain, growing = (
        release_of(study, epsilon="1000", options=CalibratedOptions(terms=terms))
        for terms in ("plain", "growing")
    )

    assert features.terms.hinged.size == features.terms.left.size == 0
    assert not features.score.is_flexible
    assert growing.ate == pytest.approx(plain.ate, abs=0.05)


def test_many_rows_need_no_evidence_for_bends_and_products():
    terms = grown(draw("line", 200_000)[0]).terms

    assert terms.hinged.size > 0
    assert terms.left.size > 0


def test_an_arm_of_a_few_rows_keeps_the_plain_features():
    study, _, _ = draw("line", 200)
    study.treatment[:] = np.arange(200) < 40

    assert isinstance(grown(study), FeatureMap)


def test_features_never_look_at_an_outcome():
    study, _, _ = draw("product", 4000)
    other = replace(study, outcome=np.zeros_like(study.outcome))
    request = Request("label", Fraction(1))

    first, second = (pose_caps(one.public(), request).features for one in (study, other))

    assert study.public().outcome is None
    np.testing.assert_array_equal(first.scale, second.scale)
    np.testing.assert_array_equal(first.score.slopes, second.score.slopes)


def test_following_matching_is_not_touched_by_the_choice_of_terms():
    study, _, _ = draw("product", 1500)

    first, second = (
        release_of(study, target="track", options=CalibratedOptions(terms=terms))
        for terms in ("plain", "growing")
    )

    assert first.ate == second.ate
    assert first.noise_interval == second.noise_interval


def test_plain_terms_are_those_of_the_plain_map_and_no_other_word_is_taken():
    study, _, _ = draw("product", 1500)
    request = Request("label", Fraction(1), options=CalibratedOptions(terms="plain"))

    assert isinstance(pose_caps(study.public(), request).features, FeatureMap)
    with pytest.raises(ArgumentError, match="growing"):
        CalibratedOptions(terms="wild")


def test_non_linear_confounding_goes_and_the_interval_covers_the_effect():
    covered = {"plain": 0, "growing": 0}
    for seed in range(5):
        study, effect, _ = draw("product", 10_000, seed=seed)
        for terms in covered:
            release = release_of(study, seed=seed, options=CalibratedOptions(terms=terms))
            covered[terms] += covers(release, effect.mean())
            if terms == "growing":
                assert abs(release.ate - effect.mean()) < 0.25

    assert covered["growing"] >= 4
    assert covered["plain"] == 0


def test_strong_selection_with_effects_that_follow_the_score_is_covered():
    covered, halves = 0, {}
    for rows, count in ((2000, 6), (10_000, 6), (50_000, 2)):
        for seed in range(count):
            study, effect, _ = draw("line", rows, seed=seed)
            release = release_of(study, seed=seed)
            covered += covers(release, effect.mean())
            halves[rows] = (release.interval[1] - release.interval[0]) / 2

    assert covered >= 13
    assert halves[50_000] < halves[10_000] / 2 < halves[2000] / 4


def test_a_network_finds_what_hinges_and_products_cannot_follow():
    rng = np.random.default_rng(4)
    covariates = rng.standard_normal((4, 12_000))
    score = 2 * np.tanh(1.5 * covariates.sum(axis=0)) * np.tanh(covariates[0] - covariates[1])
    treated = rng.random(12_000) < 1 / (1 + np.exp(-score))

    network = fit_network(covariates[:, :8000], treated[:8000])

    found = network.score(covariates[:, 8000:])
    assert np.corrcoef(found, score[8000:])[0, 1] > 0.85


def test_what_pairs_leave_is_doubted_where_a_network_tells_treatment_best():
    knot, weak = (grown(draw(kind, 12_000)[0]) for kind in ("knot", "weak"))

    assert knot.score.hidden is not None
    assert weak.score.hidden is None
    assert knot.doubt[-1] > 6 * weak.doubt[-1]  # 8 against .65; without the rule at most 3.6


def test_evidence_that_weights_do_not_follow_is_doubted():
    study, _, _ = draw("wave", 2000)

    assert not grown(study).score.is_flexible
    assert grown(study).doubt[-1] > 2 * grown(draw("weak", 2000)[0]).doubt[-1]


@pytest.mark.parametrize("estimand", ["att", "atc", "ato"])
def test_other_estimands_weigh_effects_by_their_own_population(estimand):
    study, effect, chance = draw("line", 20_000)
    tilt = {"att": chance, "atc": 1 - chance, "ato": chance * (1 - chance)}[estimand]

    release = release_of(study, epsilon="50", estimand=estimand)

    assert release.ate == pytest.approx(np.average(effect, weights=tilt), abs=0.06)
    assert release.settings["estimand"] == estimand


def test_the_overlap_population_needs_less_noise():
    study, _, _ = draw("line", 10_000)

    widths = {
        estimand: float(np.diff(release_of(study, estimand=estimand).noise_interval)[0])
        for estimand in ("ate", "ato")
    }

    assert widths["ato"] < 0.75 * widths["ate"]


@pytest.mark.parametrize(
    ("method", "level"), [("published", "label"), ("difference_in_means", "sample")]
)
def test_methods_without_overlap_weights_refuse_the_ato(method, level):
    study, _, _ = draw("line", 500)
    with pytest.raises(ArgumentError, match="ATE only"):
        estimate_study(study, Request(level, Fraction(1), estimand="ato"), METHODS[method])


def test_an_interval_counts_more_imbalance_than_weights_were_asked_to_remove():
    study, _, _ = draw("line", 2000)
    public = study.public()
    path = walk_caps(public, pose_caps(public, Request("label", Fraction(1))))
    weights = settle_weights(public, path, path.points[0])
    features = weights.problem.features

    counted = imbalance_of(weights.problem, weights.solutions)
    asked = sum(float((one.sums.features**2).sum()) for one in weights.solutions)

    assert isinstance(features, RichFeatureMap)
    assert counted > 2 * asked
