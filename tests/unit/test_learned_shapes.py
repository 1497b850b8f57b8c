"""What the label level balances beyond straight lines, learnt from public columns alone."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from private_ate import ArgumentError, CalibratedOptions, Domain, Interval, Treatment
from private_ate.api import METHODS, estimate_study
from private_ate.engines.local import LocalStudy
from private_ate.methods.calibrated.design import pose
from private_ate.methods.calibrated.features import evidence_of
from private_ate.privacy.quantization import OUTCOME_STEPS
from private_ate.request import Request

LOW, HIGH = -8.0, 10.0


def draw(kind, rows, columns=5, seed=0):
    """Return a study and its units' effects and chances of treatment."""
    rng = np.random.default_rng([seed, rows])
    z = rng.standard_normal((rows, columns))
    effect = np.ones(rows)
    match kind:
        case "product":  # treatment and outcome follow a product and an absolute value
            level = (z[:, 0] * z[:, 1] + np.abs(z[:, 2]) - 0.8) / 1.2
            score = 1.2 * level + 0.4 * z[:, 3]
        case "rule":  # two conditions that must hold together
            level = 2.0 * ((z[:, 0] > 0) & (z[:, 1] > 0.3))
            score = 1.2 * level - 0.6
        case "plateau":  # a line that stops to count at both ends
            level = 2 * np.clip(z[:, :4].sum(axis=1), -0.6, 0.9)
            score = level
        case _:  # along a line
            level = z[:, :3].sum(axis=1) / 2
            score, effect = 0.8 * level, 1 + 0.5 * np.tanh(level)
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


def release_of(study, epsilon="1", seed=1, **request):
    asked = Request("label", Fraction(epsilon), **request)
    return estimate_study(study, asked, METHODS["calibrated"], seed=seed)


def evidence(study):
    x = study.covariates.T
    return evidence_of((x - x.mean(axis=0)) / x.std(axis=0), study.treatment.astype(float))


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [("line", 0.0, 0.1), ("product", 0.8, 1.0), ("rule", 0.3, 1.0), ("plateau", 0.3, 1.0)],
)
def test_held_out_rows_tell_shapes_from_lines(kind, least, most):
    assert least <= evidence(draw(kind, 4000)[0]) <= most


def test_nothing_is_told_by_few_rows_or_by_one_arm():
    columns = np.random.default_rng(1).standard_normal((500, 3))

    assert evidence_of(columns[:150], (columns[:150, 0] > 0).astype(float)) == 0
    assert evidence_of(columns, np.ones(500)) == 0


@pytest.mark.parametrize("kind", ["product", "rule"])
def test_non_linear_confounding_goes_and_the_release_says_so(kind):
    study, effect, _ = draw(kind, 5000)

    grown = release_of(study, "4")
    plain = release_of(study, "4", options=CalibratedOptions(terms="plain"))

    truth = effect.mean()
    assert abs(grown.ate - truth) < abs(plain.ate - truth) / 4
    assert grown.interval[0] <= truth <= grown.interval[1]
    assert any("more than a straight line" in note for note in grown.settings["notes"])
    assert not any("straight line" in note for note in plain.settings.get("notes", ()))


def test_a_straight_line_is_covered_and_no_shape_is_claimed():
    study, effect, _ = draw("line", 3000)

    release = release_of(study)

    assert release.interval[0] <= effect.mean() <= release.interval[1]
    assert not any("straight line" in note for note in release.settings.get("notes", ()))


@pytest.mark.usefixtures("learn_anew")
def test_features_never_look_at_an_outcome_and_are_the_same_every_time():
    study, _, _ = draw("product", 1500)
    other = replace(study, outcome=OUTCOME_STEPS - study.outcome)
    request = Request("label", Fraction(1))

    first, second = (pose(one.public(), request).arms[1].features for one in (study, other))

    rows = study.covariates.T
    np.testing.assert_array_equal(first.map(rows), second.map(rows))


def test_plain_terms_are_straight_and_no_other_word_is_taken():
    study, _, _ = draw("product", 1500)
    request = Request("label", Fraction(1), options=CalibratedOptions(terms="plain"))

    features = pose(study.public(), request).arms[1].features

    assert features.trees is None
    assert features.size == 5 + 1
    with pytest.raises(ArgumentError, match="growing"):
        CalibratedOptions(terms="rich")


def test_leaves_in_which_an_arm_is_rare_are_left_out_and_noted():
    study, _, _ = draw("line", 3000)
    rare = study.covariates[0] > 0.55
    study = replace(study, treatment=study.treatment & ~rare)

    release = release_of(study)

    assert any("five times rarer" in note for note in release.settings["notes"])


@pytest.mark.parametrize("estimand", ["att", "atc", "ato"])
def test_other_estimands_weigh_effects_by_their_own_population(estimand):
    study, effect, chance = draw("line", 6000)
    counted = {
        "att": study.treatment, "atc": ~study.treatment, "ato": chance * (1 - chance)
    }[estimand]  # fmt: skip

    release = release_of(study, "8", estimand=estimand)

    assert release.ate == pytest.approx(np.average(effect, weights=counted), abs=0.08)
    assert release.estimand == estimand


@pytest.mark.parametrize(
    ("method", "level"), [("published", "label"), ("difference_in_means", "sample")]
)
def test_methods_without_overlap_weights_refuse_the_ato(method, level):
    study, _, _ = draw("line", 100)
    with pytest.raises(ArgumentError, match="ATE only"):
        estimate_study(study, Request(level, Fraction(1), estimand="ato"), METHODS[method])


@pytest.mark.parametrize("seed", range(3))
def test_a_stratum_that_is_never_treated_heads_the_release_and_good_overlap_does_not(seed):
    good, _, _ = draw("line", 4000, seed=seed)
    bad = replace(good, treatment=good.treatment & (good.covariates[3] < 0.605))  # a fifth above

    warned = {
        estimand: " ".join(release_of(bad, estimand=estimand).warnings)
        for estimand in ("ate", "att", "atc")
    }

    assert "% of the units are where treated units are ten times rarer" in warned["ate"]
    assert "estimand 'att'" in warned["ate"]
    assert "% of the control units are where treated units are ten times" in warned["atc"]
    assert warned["att"] == ""
    assert release_of(good).warnings == ()


def test_a_stratum_that_is_always_treated_points_to_the_controls():
    study, _, _ = draw("product", 4000)
    always = replace(study, treatment=study.treatment | (study.covariates[4] > 0.605))

    (warning,) = release_of(always).warnings

    assert "where control units are ten times rarer" in warning
    assert "estimand 'atc'" in warning
    assert release_of(study).warnings == ()
