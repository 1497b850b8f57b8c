"""Families of studies: the truth is what it says, and confounding misleads as named."""

import math

import numpy as np
import pytest

from private_ate.experiments.families import FAMILIES, GROUPS, SETTINGS, Setting, make_study
from private_ate.experiments.references import boosted_contrasts, plain_contrasts, records_of

CONFOUNDED = (
    "linear", "linear-opposite", "nonlinear", "rules-1", "rules-2", "rules-2-opposite", "tree-2",
    "tree-3", "k-of-m", "threefold", "classes", "curved", "poor-overlap",
)  # fmt: skip
TWO_ARMS = [family for family in FAMILIES if family != "three-arms"]
SHARES = {"rare": 0.1, "few": 0.02, "nonlinear-rare": 0.1, "trial-rare": 0.1, "never-treated": 0.4}


def treated_of(study):
    return study.frame["t"].to_numpy() == 1


def plain_bias(family, seed):
    """The plain difference's error, in standard errors of the difference."""
    study = make_study(family, 20_000, 20, seed=seed)
    (effect,), (half,) = plain_contrasts(records_of(study))
    return (effect - study.effects["ate"]) / (half / 1.96)


@pytest.mark.parametrize("family", TWO_ARMS)
def test_a_study_has_the_size_shares_and_bounds_of_its_family(family):
    study = make_study(family, 4000, 6, seed=3)
    outcome, share = study.frame["y"].to_numpy(), SHARES.get(family, 0.5)

    assert study.frame.height == 4000
    assert len(study.domain.covariates) == 6
    assert treated_of(study).mean() == pytest.approx(
        share, abs=5 * math.sqrt(share * (1 - share) / 4000)
    )
    assert study.domain.bounds.low <= outcome.min() <= outcome.max() <= study.domain.bounds.high
    assert study.effects["ate"] > 0
    assert study.contrasts == {("1", "0"): study.effects["ate"]}


@pytest.mark.parametrize("family", TWO_ARMS)
def test_gaps_of_units_explain_what_treatment_changes(family):
    """Weight units by their known chances: that is unbiased wherever everybody could be treated."""
    study = make_study(family, 60_000, 5, seed=8)
    units, outcome = study.units, study.frame["y"].to_numpy()
    open_rows = (units.chances > 0.02) & (units.chances < 0.98)
    chance = units.chances[open_rows]
    signed = np.where(units.takes[open_rows], 1 / chance, -1 / (1 - chance))
    # Centred, so that weights spread less.
    found = signed * (outcome[open_rows] - outcome[open_rows].mean())

    error = found.std() / math.sqrt(found.size)
    assert found.mean() == pytest.approx(units.gaps[open_rows].mean(), abs=4.5 * error)


@pytest.mark.parametrize("family", CONFOUNDED)
def test_confounding_misleads_a_plain_difference(family):
    assert max(abs(plain_bias(family, seed)) for seed in (1, 2)) > 6


@pytest.mark.parametrize("family", ["trial", *(name for name in FAMILIES if "quiet" in name)])
def test_nothing_misleads_it_in_a_trial_or_a_quiet_study(family):
    assert max(abs(plain_bias(family, seed)) for seed in (1, 2)) < 4


def test_opposite_confounding_has_the_other_sign():
    assert plain_bias("linear", 2) > 6
    assert plain_bias("linear-opposite", 2) < -6


def test_nobody_is_treated_in_a_closed_stratum_with_twice_the_effect():
    study = make_study("never-treated", 5000, 5, seed=2)
    closed = study.units.chances == 0

    assert closed.mean() == pytest.approx(0.2, abs=0.001)
    assert not treated_of(study)[closed].any()
    gaps = study.units.gaps
    assert gaps[closed].mean() > 1.8 * gaps[~closed].mean()


def test_poor_overlap_leaves_chances_near_both_ends():
    chances = make_study("poor-overlap", 5000, 5, seed=2).units.chances

    assert min((chances < 0.02).mean(), (chances > 0.98).mean()) > 0.05


def test_wide_bounds_change_the_declaration_alone():
    narrow, wide = (make_study(name, 500, 5, seed=2) for name in ("linear", "wide-20"))

    assert narrow.frame.equals(wide.frame)
    assert (wide.domain.bounds.low, wide.domain.bounds.high) == (-95.0, 105.0)
    assert narrow.domain.bounds.width == 10.0


@pytest.mark.parametrize(("family", "width"), [("quiet-normal-8", 8), ("quiet-normal-20", 20)])
def test_quiet_normal_outcomes_spread_as_named(family, width):
    assert 1 / make_study(family, 20_000, 5, seed=1).unit == pytest.approx(width, rel=0.02)


def test_a_tenth_of_quiet_binary_outcomes_are_yes():
    study = make_study("quiet-binary", 20_000, 5, seed=1)

    assert study.domain.bounds.is_binary
    assert study.frame["y"].to_numpy()[~treated_of(study)].mean() == pytest.approx(0.1, abs=0.01)


def test_a_study_is_decided_by_its_family_and_seed_and_settings_share_no_numbers():
    setting = SETTINGS["linear-n1000-d20"]

    assert setting.draw(7).frame.equals(setting.draw(7).frame)
    assert not setting.draw(7).frame["x1"].equals(setting.draw(8).frame["x1"])
    other = Setting("any", "tree-2", 1000)
    assert not setting.draw(7).frame["x1"].equals(other.draw(7).frame["x1"])


def test_the_design_covers_what_it_promises():
    assert sum(map(len, GROUPS.values())) == len(SETTINGS)
    families = {setting.family for setting in SETTINGS.values()}
    assert families == set(FAMILIES)
    for family in ("linear", "nonlinear", "rules-1", "rules-2"):
        chosen = {s.size for s in SETTINGS.values() if s.family == family and s.dimension == 20}
        assert chosen == {1000, 10_000, 100_000}
    quiet = {s.size for s in SETTINGS.values() if s.family == "quiet-binary"}
    assert quiet == {300, 700, 1500}
    assert {setting.dimension for setting in SETTINGS.values()} == {5, 20, 60}


def test_boosted_models_come_closer_to_the_truth_than_a_plain_difference():
    for family in ("tree-2", "three-arms"):
        study = make_study(family, 4000, 5, seed=4)
        truth, records = np.array(list(study.contrasts.values())), records_of(study)
        plain, boosted = plain_contrasts(records)[0], boosted_contrasts(records)

        assert np.abs(boosted[0] - truth).sum() < 0.5 * np.abs(plain - truth).sum()
        assert boosted[1].shape == truth.shape
        assert (boosted[1] > 0).all()


def test_a_trials_chances_are_known_to_the_boosted_estimate():
    study = make_study("trial-rare", 2000, 5, seed=4)

    (found,), (half,) = boosted_contrasts(records_of(study), study.probability)

    assert study.probability == 0.1
    assert abs(found - study.effects["ate"]) < 2 * half
