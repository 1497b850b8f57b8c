"""Where the arms cannot be made alike, a release at label level says so before anything else."""

import json
import re

import numpy as np
import polars as pl
import pytest

from private_ate import Domain, Interval, Outcome, Release, Treatment, estimate_ate
from private_ate.datasets.clinic import draw_clinic
from private_ate.diagnostics.exact import diagnose_ate
from private_ate.engines.local import LocalStudy
from private_ate.methods.public_arms import ArmBalance, measure_arms, warn_of_overlap
from private_ate.models.propensity import PropensityModel
from private_ate.report.phrasing import publishable_sentence

ONE_SLOPE = PropensityModel.from_coordinates(np.array([0.0, 1.0]), 2)

EARNINGS = Interval(0, 40_000)
DOMAIN = Domain(
    Treatment("treat", 1, 0),
    Outcome("re78", Interval(0, 60_000), unit="dollars"),
    {
        "age": Interval(16, 60), "education": Interval(0, 18), "black": Interval(0, 1),
        "married": Interval(0, 1), "re74": EARNINGS, "re75": EARNINGS,
    },
)  # fmt: skip


def training_beside_a_survey(treated: int = 185, control: int = 15_815) -> pl.DataFrame:
    """Return trainees who earned next to nothing among people with jobs and families."""
    rng = np.random.default_rng(11)
    size = treated + control
    treat = np.arange(size) < treated
    idle = rng.random(size) < np.where(treat, 0.7, 0.12)
    earned = np.where(treat, rng.exponential(6000, size), rng.normal(16_000, 8000, size))
    re74 = np.where(idle, 0.0, earned).clip(0, 40_000)
    re75 = (re74 * rng.uniform(0.7, 1.2, size)).clip(0, 40_000)
    education = np.where(treat, rng.normal(10.3, 2, size), rng.normal(12, 2.9, size)).clip(0, 18)
    later = 2000 + 0.6 * re75 + 200 * education + 1800 * treat + rng.normal(0, 4000, size)
    return pl.DataFrame(
        {
            "treat": treat.astype(int),
            "age": np.where(treat, rng.normal(26, 7, size), rng.normal(33, 11, size)).clip(16, 60),
            "education": education,
            "black": (rng.random(size) < np.where(treat, 0.84, 0.07)).astype(float),
            "married": (rng.random(size) < np.where(treat, 0.19, 0.71)).astype(float),
            "re74": re74,
            "re75": re75,
            "re78": later.clip(0, 60_000),
        }
    )


FRAME = training_beside_a_survey()


def ask(frame: pl.DataFrame = FRAME, domain: Domain = DOMAIN, **asked) -> Release:
    return estimate_ate(frame, domain=domain, **{"level": "label", "epsilon": "1", **asked})


@pytest.mark.parametrize("method", ["calibrated", "published"])
def test_a_release_without_overlap_is_headed_by_a_warning(method):
    release = ask(method=method)
    (warning,) = json.loads(release.to_json())["warnings"]
    page = release.to_html()

    assert warning.startswith("poor overlap of the arms: standardised differences of up to")
    assert re.search(r"left \((married|re75|re74)", warning)
    assert "estimand 'att'" in warning
    assert "estimand 'ato'" in warning
    assert "control units have scores beyond those of every treated unit" in warning
    assert str(release).splitlines()[1].startswith("WARNING: poor overlap of the arms")
    assert 0 < page.index("Warning: poor overlap") < page.index('class="effect"')
    assert "Caveat: poor overlap" in publishable_sentence(release)
    assert "poor overlap" in release._repr_html_().partition("<table")[0]


def test_the_warning_counts_the_few_units_that_carry_the_weight():
    release = ask(epsilon="8")
    worth = release.settings["effective_arms"]["treated"]

    assert worth < 30
    assert f"185 treated units are worth {worth:.0f} of equal weight" in release.warnings[0]


def test_the_method_that_has_no_other_estimand_names_the_one_that_does():
    (warning,) = ask(method="published").warnings

    assert warning.endswith("with method 'auto'")


@pytest.mark.parametrize("estimand", ["att", "ato"])
def test_the_remedies_that_the_warning_names_help(estimand):
    assert ask(estimand=estimand).warnings == ()


def test_nothing_about_overlap_is_told_at_sample_level():
    for method in ("auto", "published"):
        release = ask(level="sample", method=method)

        assert release.warnings == ()
        assert "overlap of the arms" not in str(release) + release.to_html()


def test_the_warning_follows_public_columns_alone():
    other = FRAME.with_columns(re78=pl.lit(0.0))

    assert ask(other, seed=1).warnings == ask(seed=1).warnings


@pytest.mark.parametrize("method", ["calibrated", "published"])
def test_a_study_with_overlap_is_released_without_a_warning(method):
    study = draw_clinic(3000, seed=5)

    release = ask(study.frame, study.domain, method=method)

    assert release.warnings == ()
    assert str(release).splitlines()[1] == "Average treatment effect, released by private-ate"


def test_the_curators_numbers_are_those_that_the_warning_looks_at():
    from private_ate.models.propensity import fit_propensity

    frame = FRAME[::20]
    study = LocalStudy.encode(_table(frame), DOMAIN)
    public = study.public()
    pool = public.pool(fit_propensity(public, 1 / study.size).coordinates)
    weights = pool.match(5, (None, None))

    found = measure_arms(public, weights)
    before, after = (means[1] - means[0] for means in (found.before, found.after))
    difference = dict(zip(DOMAIN.features, zip(before, after, strict=True), strict=True))

    treated, values = study.treatment, weights.values
    for arm, members in enumerate((~treated, treated)):
        own = values[members]
        assert found.sizes[arm] == own.size
        assert found.effective[arm] == pytest.approx(own.sum() ** 2 / (own**2).sum())
    for name, column in zip(DOMAIN.features, study.covariates, strict=True):
        spread = np.sqrt((column[treated].var() + column[~treated].var()) / 2)
        before = (column[treated].mean() - column[~treated].mean()) / spread
        after = (
            np.average(column[treated], weights=values[treated])
            - np.average(column[~treated], weights=values[~treated])
        ) / spread
        assert difference[name] == pytest.approx((before, after), abs=1e-9)
    assert diagnose_ate(frame, domain=DOMAIN).balance["re75"][0] == pytest.approx(
        difference["re75"][0], abs=1e-6
    )


def _table(frame: pl.DataFrame):
    from private_ate.data.inputs import prepare_table

    return prepare_table(
        frame, treatment=None, outcome=None, covariates=None, domain=DOMAIN, level="label",
        from_data=False,
    ).table  # fmt: skip


def arms_with(effective: tuple[float, float], **differences: tuple[float, float]) -> ArmBalance:
    """Return 500 units in either arm, treated first in what is given."""
    before, after = zip(*(differences or {"x": (0.3, 0.02)}).values(), strict=True)
    none = np.zeros(len(before))
    return ArmBalance(
        tuple(differences or "x"), ("0", "1"), (500, 500), effective[::-1],
        np.array([none, before]), np.array([none, after]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def public():
    """Arms of 500 rows each whose one covariate has the same values in both."""
    values = np.repeat(np.linspace(0, 1, 500), 2)
    frame = pl.DataFrame({"treat": [0, 1] * 500, "x": values, "y": [0.0] * 1000})
    domain = Domain(Treatment("treat", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
    from private_ate.data.inputs import prepare_table

    table = prepare_table(
        frame, treatment=None, outcome=None, covariates=None, domain=domain, level="label",
        from_data=False,
    )  # fmt: skip
    return LocalStudy.encode_public(table.table, table.domain)


@pytest.mark.parametrize(
    ("arms", "estimand", "words"),
    [
        (arms_with((60.0, 400.0)), "ate", None),
        (arms_with((49.0, 400.0)), "ate", "500 treated units are worth 49"),
        (arms_with((400.0, 49.0)), "att", None),
        (arms_with((400.0, 29.0)), "att", "control units are worth 29"),
        (arms_with((400.0, 29.0)), "ato", "Compare fewer or other units"),
        (arms_with((400.0, 400.0), x=(0.3, -0.1)), "ate", None),
        (arms_with((400.0, 400.0), x=(0.3, -0.101)), "ate", "up to 0.1 are"),
        (arms_with((400.0, 400.0), x=(0.3, 0.2)), "ate", "larger ε"),
        (arms_with((400.0, 20.0)), "ate", "differ most in x"),
    ],
)
def test_the_alarm_sounds_at_its_limits_and_not_before(public, arms, estimand, words):
    found = warn_of_overlap(public, ONE_SLOPE, arms, estimand)

    assert (found == ()) if words is None else (words in found[0])


def test_many_covariates_are_named_by_the_five_that_differ_most(public):
    balance = {f"x{index}": (0.0, 0.2 + index / 100) for index in range(8)}
    arms = arms_with((400.0, 400.0), **balance)

    (warning,) = warn_of_overlap(public, ONE_SLOPE, arms, "ate")

    assert "(x7, x6, x5, x4, x3 and 3 more)" in warning
