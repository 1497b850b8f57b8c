"""A declared observational design: an unadjusted number is never called an effect, anywhere."""

import json

import pytest

from private_ate import BlocksOptions, Domain, Treatment, estimate_ate
from private_ate.datasets.clinic import draw_clinic
from private_ate.report.phrasing import publishable_sentence

STUDY = draw_clinic(300, seed=5)
OTHERS = {name: kind for name, kind in STUDY.domain.covariates.items() if name != "smoker"}
DOMAINS = {
    2: STUDY.domain,
    3: Domain(
        Treatment("smoker", arms=("never", "former", "current")), STUDY.domain.outcome, OTHERS
    ),
}
REFUSING = {2: BlocksOptions(adjust=False), 3: BlocksOptions(adjust=False)}


def released(level, arms, by, options=None):
    return estimate_ate(
        STUDY.frame, domain=DOMAINS[arms], level=level, epsilon="0.3", design="observational",
        by=by, seed=3, leave_out_undeclared=level == "label", options=options,
    )  # fmt: skip


def forms(release):
    return {
        "text": str(release),
        "page": release.to_html(),
        "card": release._repr_html_(),
        "markdown": release.to_markdown(),
        "sentence": publishable_sentence(release),
    }


@pytest.mark.parametrize("by", [(), ("age<60",)])
@pytest.mark.parametrize("arms", [2, 3])
def test_at_label_level_every_number_is_adjusted(arms, by):
    release = released("label", arms, by)
    assert release.adjusted
    assert {row.estimand for row in release.effects} == {"ate"}


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize(("arms", "by"), [(2, ()), (2, ("age<60",)), (3, ())])
def test_at_sample_level_what_is_not_adjusted_is_a_difference_in_means(arms, by, refuses):
    release = released("sample", arms, by, REFUSING[arms] if refuses else None)
    plain = json.loads(release.to_json())
    assert plain["design"] == "observational"
    assert (release.estimand == "difference") == (not release.adjusted)
    if release.adjusted:
        assert not refuses
        return
    assert plain["estimand"] == "difference"
    if not by:
        assert {row.estimand for row in release.effects} == {"difference"}
    for name, text in forms(release).items():
        found = " ".join(text.lower().split())
        assert "difference" in found, name
        assert "average treatment effect, released" not in found, name
        assert "effect (ate)" not in found, name
