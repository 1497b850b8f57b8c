"""Table 1 of a release, and the released estimator without its noise."""

from dataclasses import replace

import numpy as np
import pytest

from private_ate import (
    Binary,
    CalibratedOptions,
    Domain,
    Interval,
    PublicFacts,
    Treatment,
    describe_arms,
    diagnose_ate,
    estimate_ate,
    risk_ratio_interval,
)
from private_ate.data.inputs import prepare_table
from private_ate.datasets.clinic import draw_clinic
from private_ate.diagnostics.noiseless import used_weights
from private_ate.engines.local import LocalStudy
from private_ate.errors import ArgumentError
from private_ate.methods.registry import METHODS
from private_ate.release.public_facts import CovariateRow, Moments


@pytest.fixture(scope="module")
def study():
    return draw_clinic(600)


@pytest.fixture(scope="module")
def release(study):
    return estimate_ate(study.frame, domain=study.domain, level="label", epsilon=1)


@pytest.fixture(scope="module")
def doses(study):
    """Three arms, the reference among them."""
    code = np.arange(600) % 3
    frame = study.frame.with_columns(drug=np.array(["none", "low", "high"])[code])
    arms = Treatment("drug", arms=["none", "low", "high"], reference="none")
    return frame, Domain(arms, study.domain.outcome, study.domain.covariates)


def test_the_differences_are_those_of_the_release(study, release):
    table = describe_arms(release, study.frame, domain=study.domain)

    told = release.settings["balance"]
    assert [row.name for row in table.rows] == list(told)
    for row in table.rows:
        found = row.difference(row.before), row.difference(row.after)
        assert found == pytest.approx(tuple(told[row.name]), abs=1e-9)
    worth = release.settings["effective_arms"]
    assert table.effective == pytest.approx((worth["control"], worth["treated"]))


def test_moments_are_in_the_units_of_the_covariate(study, release):
    table = describe_arms(release, study.frame, domain=study.domain)

    ages = study.frame.filter(study.frame["drug"] == "no")["age"]
    row = table.rows[0]
    assert row.before[0].mean == pytest.approx(ages.mean())
    assert row.before[0].deviation == pytest.approx(ages.std(ddof=0))
    assert table.sizes[0] == len(ages)


def test_three_arms_have_a_table_under_the_weights_of_the_release(doses):
    frame, domain = doses
    release = estimate_ate(frame, domain=domain, level="label", epsilon=2)

    table = describe_arms(release, frame, domain=domain)

    told = release.settings["effective_arms"]
    assert dict(zip(table.labels, table.effective, strict=True)) == pytest.approx(told)
    for row in table.rows:
        after = abs(row.difference(row.after))
        assert after == pytest.approx(abs(release.settings["balance"][row.name][1]), abs=0.02)


def test_weights_that_cannot_be_found_again_are_not_shown(study, release):
    other = estimate_ate(
        study.frame, domain=study.domain, level="label", epsilon=1,
        options=CalibratedOptions(terms="plain"),
    )  # fmt: skip
    fewer = describe_arms(release, study.frame.head(500), domain=study.domain)
    sizes = {"effective_arms": {"treated": 200.0, "control": 210.0}}  # of other weights, same cap
    unlike = replace(release, settings={**release.settings, **sizes})
    matched = estimate_ate(
        study.frame, domain=study.domain, level="label", epsilon=1, method="published"
    )

    assert fewer.effective == ()
    assert describe_arms(unlike, study.frame, domain=study.domain).effective == ()
    assert describe_arms(matched, study.frame, domain=study.domain).rows[0].after == ()
    assert describe_arms(
        other, study.frame, domain=study.domain, options=CalibratedOptions(terms="plain")
    ).effective  # fmt: skip


def test_covariates_by_arm_are_refused_where_they_are_private(study):
    release = estimate_ate(study.frame, domain=study.domain, level="sample", epsilon=1)

    with pytest.raises(ArgumentError, match="label level"):
        describe_arms(release, study.frame, domain=study.domain)


@pytest.mark.parametrize(
    ("means", "deviations", "verdict"),
    [
        ((0.0, 0.05), (1, 1), "balanced"),
        ((0.0, 0.2), (1, 1), "nearly"),
        ((0.0, 0.5), (1, 1), "not balanced"),
        ((0.0, 0.0), (1, 1.6), "not balanced"),
    ],
)
def test_a_verdict_looks_at_means_and_variances(means, deviations, verdict):
    moments = tuple(map(Moments, means, deviations))
    assert CovariateRow("x", False, moments).verdict == verdict


def test_the_page_shows_the_table_and_what_is_known_of_the_request(study, release):
    table = describe_arms(release, study.frame, domain=study.domain)
    page = release.to_html(PublicFacts(table=table, analyst="R. Fisher", spent_before=2.5))

    assert page.count(">balanced<") == sum(row.verdict == "balanced" for row in table.rows) - 1
    assert "by R. Fisher" in page
    assert "ε = 2.5 was spent on these data before" in page
    assert "drug = yes against no" in page


def encoded(study, level):
    prepared = prepare_table(
        study.frame, treatment=None, outcome=None, covariates=None, domain=study.domain,
        level=level, from_data=False,
    )  # fmt: skip
    return LocalStudy.encode(prepared.table, prepared.domain)


def test_the_curator_sees_the_released_estimator_by_its_own_weights(study, release):
    found = diagnose_ate(study.frame, domain=study.domain, release=release).without_noise

    rows = encoded(study, "label")
    weights = used_weights(rows, release)
    outcome = study.frame["pressure_drop"].to_numpy()
    signed = np.where(rows.treated, weights, -weights)
    assert found.by_weights
    assert found.effect == pytest.approx(float(signed @ (outcome - outcome.mean())) / 600, abs=0.01)
    low, high = release.noise_interval
    assert abs(found.effect - release.ate) < 3 * (high - low)


@pytest.mark.parametrize(("rule", "by_weights"), [("public", True), ("private", False)])
def test_the_released_estimator_leaves_out_who_has_no_outcome(study, rule, by_weights):
    frame = study.frame.to_pandas()
    frame.loc[::7, "pressure_drop"] = np.nan
    domain = replace(study.domain, outcome=study.domain.outcome.with_missing(rule))
    release = estimate_ate(frame, domain=domain, level="label", epsilon=200)

    found = diagnose_ate(frame, domain=domain, release=release).without_noise

    assert found.by_weights == by_weights
    assert found.effect == pytest.approx(release.ate, abs=0.2)
    assert found.table is not None


@pytest.mark.parametrize(
    "method", [name for name, one in METHODS.items() if "sample" in one.levels]
)
def test_every_method_runs_without_noise_for_the_curator(study, method):
    release = estimate_ate(
        study.frame, domain=study.domain, level="sample", epsilon=4, method=method
    )

    first, again = (
        diagnose_ate(study.frame, domain=study.domain, release=release).without_noise
        for _ in range(2)
    )

    assert not first.by_weights
    assert np.isfinite(first.effect)
    if method == "difference_in_means":
        assert first.effect == again.effect


def test_without_noise_the_difference_in_means_is_that_of_the_records(study):
    release = estimate_ate(
        study.frame, domain=study.domain, level="sample", epsilon=4, method="difference_in_means"
    )
    found = diagnose_ate(study.frame, domain=study.domain, release=release)

    assert found.without_noise.effect == pytest.approx(found.plain_difference, abs=0.05)


def test_the_curator_sees_what_was_missing_clipped_or_undeclared(study):
    frame = study.frame.to_pandas()
    frame.loc[:4, "pressure_drop"] = 1e6
    frame.loc[5:6, "pressure_drop"] = np.nan
    frame.loc[7:9, "age"] = -5
    frame.loc[10, "smoker"] = "sometimes"

    lost = diagnose_ate(frame, domain=study.domain).lost

    assert (lost["pressure_drop"].above, lost["pressure_drop"].missing) == (5, 2)
    assert lost["age"].below == 3
    assert lost["smoker"].undeclared == 1
    assert not lost["weight"].any
    page = diagnose_ate(frame, domain=study.domain).to_html()
    assert "clipped above" in page


def test_only_what_is_exact_is_called_so(study, release):
    page = diagnose_ate(study.frame, domain=study.domain, release=release).to_html(release)

    assert "exact" not in page.lower()
    assert "the released estimator, no noise, by its own weights" in page


def test_an_interval_declared_as_zero_to_one_is_still_a_number(study, release):
    table = describe_arms(release, study.frame, domain=study.domain)
    shares = {row.name for row in table.rows if row.is_share}
    assert all("=" in name for name in shares)
    assert Interval(0, 1).is_binary is False


def test_risk_ratios_of_several_arms_have_intervals_on_the_page(doses):
    frame, domain = doses
    sick = Domain(domain.treatment, ("diabetes", Binary()))
    release = estimate_ate(frame, domain=sick, covariates=["age"], level="label", epsilon=20)

    low, high = risk_ratio_interval(release, arm="low", against="none")
    assert f"(95 % interval from {low:.3g} to {high:.3g})" in release.to_html()
