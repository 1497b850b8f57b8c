"""The curator's look at several arms, against references written apart from the package."""

import numpy as np
import pytest

from private_ate import diagnose_ate, estimate_ate, exact_effect, exact_means
from private_ate.datasets import SeveralArms
from private_ate.datasets.clinic import draw_clinic
from private_ate.datasets.several_arms import generate_several_arms
from private_ate.diagnostics.overlap import describe_overlap
from private_ate.errors import SchemaError
from private_ate.experiments.references import fit_chances, matched_means, plain_means, records_of
from private_ate.report.html import PublicFacts


@pytest.fixture(scope="module")
def study():
    return generate_several_arms(SeveralArms(size=900, arms=4), seed=3)


@pytest.fixture(scope="module")
def diagnostics(study):
    return diagnose_ate(study.frame, domain=study.domain)


def test_exact_means_are_those_of_matching_on_each_arms_own_score(study):
    found = exact_means(study.frame, domain=study.domain)
    wanted = matched_means(records_of(study))
    assert list(found) == ["A", "B", "C", "D"]
    assert list(found.values()) == pytest.approx(wanted, abs=1e-6)
    effect = exact_effect(study.frame, domain=study.domain)
    assert effect == pytest.approx(wanted[3] - wanted[0], abs=1e-6)


def test_exact_means_of_two_arms_differ_by_the_exact_effect():
    clinic = draw_clinic(300)
    found = exact_means(clinic.frame, domain=clinic.domain)
    control, treated = found.values()
    assert treated - control == pytest.approx(
        exact_effect(clinic.frame, domain=clinic.domain), abs=1e-9
    )


def test_the_curators_numbers_are_those_of_the_records(study, diagnostics):
    records = records_of(study)
    assert list(diagnostics.plain_means.values()) == pytest.approx(plain_means(records), abs=1e-5)
    assert list(diagnostics.exact_means.values()) == pytest.approx(matched_means(records), abs=1e-5)
    assert list(diagnostics.sizes.values()) == np.bincount(records.codes).tolist()
    for label, size in diagnostics.sizes.items():
        assert 1 < diagnostics.effective[label] <= size
        assert diagnostics.weights[label][0] >= 1
    assert {pair[1] < pair[0] for pair in diagnostics.balance.values()} == {True}
    assert "A" not in repr(diagnostics).replace("ArmDiagnostics", "")


def test_overlap_counts_every_unit_once_in_every_panel(study, diagnostics):
    overlap = describe_overlap(study.frame, domain=study.domain)
    assert overlap == diagnostics.overlap
    records = records_of(study)
    chances = fit_chances(records.covariates, records.codes, 4)
    for arm in range(4):
        for own in range(4):
            inside = chances[records.codes == own, arm]
            wanted = np.histogram(inside, bins=20, range=(0, 1))[0]
            assert np.abs(wanted - overlap.counts[arm][own]).sum() <= 2  # at an edge of a bin
            assert sum(overlap.counts[arm][own]) == inside.size


def test_an_arm_that_nobody_is_in_is_named(study):
    frame = study.frame.filter(study.frame["arm"] != "C")
    for look in (diagnose_ate, exact_means, exact_effect):
        with pytest.raises(SchemaError, match="'C'"):
            look(frame, domain=study.domain)


def test_the_curators_page_compares_every_contrast_and_is_watermarked(study, diagnostics):
    release = estimate_ate(study.frame, domain=study.domain, level="label", epsilon=2, seed=1)
    page = diagnostics.to_html(release)
    assert page.count("Not private, do not share") > 10
    for row in release.contrasts:
        assert f"{row.arm} against {row.against}" in page
    assert page.count(">released<") == 6
    assert "of 6 released intervals hold the contrast by matching" in page
    alone = diagnostics.to_html()
    assert ">released<" not in alone
    shown = release.to_html(PublicFacts(overlap=diagnostics.overlap))
    assert shown.count("Box plots of the probability of") == 4
