"""What a release says about itself: schema 2, and releases that version 0.1 wrote."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from private_ate import (
    ArgumentError,
    Domain,
    DomainError,
    Interval,
    Ledger,
    Outcome,
    Release,
    StudyLabel,
    arm_means,
    diagnose_ate,
    estimate_ate,
    standard_error,
)
from private_ate.datasets.clinic import draw_clinic
from private_ate.methods.registry import METHODS
from private_ate.release.release import FIELDS, OLD_FIELDS
from private_ate.report.phrasing import publishable_sentence, python_call
from private_ate.report.text import release_table
from private_ate.report.to_polars import budget_frame, effects_frame

OLD = sorted((Path(__file__).parents[2] / "golden" / "old").glob("*.json"))
STUDY = draw_clinic(400, seed=3)
LABEL = StudyLabel("clinic", "2026-05, after review")
MEASURED = replace(
    STUDY.domain, outcome=replace(STUDY.domain.outcome, unit="mmHg"), study=LABEL
)  # fmt: skip


def ask(level="label", **asked) -> Release:
    return estimate_ate(
        STUDY.frame, **{"domain": MEASURED, "level": level, "epsilon": "1", **asked}
    )


@pytest.mark.parametrize("level", ["label", "sample"])
def test_a_release_says_what_it_is_about(level):
    plain = json.loads(ask(level).to_json())

    assert tuple(plain) == FIELDS
    assert plain["schema"] == 2
    assert plain["treatment"] == {"column": "drug", "arms": ["no", "yes"], "reference": "no"}
    assert plain["outcome"] == {
        "column": "pressure_drop", "bounds": [-40.0, 60.0], "unit": "mmHg",
    }  # fmt: skip
    assert plain["covariates"] == list(MEASURED.covariates)
    assert (plain["dataset"], plain["dataset_version"]) == ("clinic", "2026-05, after review")
    assert plain["design"] == "unknown"
    assert {"treatment", "covariates", "outcome"} <= set(plain["missing"])


def test_the_table_of_effects_holds_the_headline_in_its_one_row():
    release = ask(estimand="att")

    (row,) = release.effects

    assert (row.outcome, row.subgroup, row.arm, row.against) == ("pressure_drop", None, "yes", "no")
    assert row.estimand == release.estimand == "att"
    assert row.estimate == release.ate
    assert row.interval == row.simultaneous == release.interval
    assert row.noise_interval == release.noise_interval


def test_the_time_of_a_release_is_in_utc_and_missing_if_it_was_seeded():
    asked = datetime.now(UTC)
    told = datetime.fromisoformat(ask().released_at)

    assert told.utcoffset() == timedelta(0)
    assert abs(told - asked) < timedelta(minutes=2)
    assert ask(seed=1).released_at is None


def test_the_time_told_is_that_of_the_request_and_not_of_its_end(monkeypatch):
    import private_ate.api as door

    moments = iter([datetime(2026, 1, 1, tzinfo=UTC)])

    class Clock(datetime):
        @classmethod
        def now(cls, _zone=None):
            return next(moments)  # a second look would fail

    monkeypatch.setattr(door, "datetime", Clock)

    assert ask().released_at == "2026-01-01T00:00:00+00:00"


def test_arguments_name_the_data_before_the_domain_does():
    release = ask(dataset="wards 3 and 4", dataset_version="v2")

    assert (release.dataset, release.dataset_version) == ("wards 3 and 4", "v2")
    assert "<td>wards 3 and 4, version v2</td>" in release.to_html()
    for wrong in ("", "two\nlines", "x" * 201):
        with pytest.raises(ArgumentError, match="1 to 200 characters"):
            ask(dataset_version=wrong)


def test_a_data_set_is_named_by_its_ledger_where_nobody_else_does(tmp_path):
    ledger = Ledger.create(tmp_path / "ledger.db", "trial", epsilon="3")

    release = ask(domain=STUDY.domain, ledger=ledger, request_id="once")
    again = ask(domain=STUDY.domain, ledger=ledger, request_id="once")

    assert release.dataset == "trial"
    assert again == release
    assert again.to_json() == release.to_json()


def test_a_domain_with_a_unit_and_a_study_survives_the_way_to_toml_and_back():
    again = Domain.from_toml(MEASURED.to_toml())

    assert again == MEASURED
    assert again.outcome.unit == "mmHg"
    assert again.study == LABEL
    assert "[study]" not in STUDY.domain.to_toml()
    for wrong in ('[study]\nhash = "x"', "study = 3", '[study]\ndataset = ""'):
        with pytest.raises(DomainError):
            Domain.from_toml(f"{wrong}\n{STUDY.domain.to_toml()}")


def test_bounds_that_come_from_the_data_are_not_told():
    frame = STUDY.frame.with_columns(pl.col("pressure_drop") * 1.2345)
    domain = Domain(STUDY.domain.treatment, "pressure_drop", STUDY.domain.covariates)

    release = ask(domain=domain, bounds="from-data")
    page = estimate_ate(
        frame, domain=domain, level="label", epsilon=1, bounds="from-data"
    ).to_html()

    assert release.outcome.bounds is None
    assert str(frame["pressure_drop"].max()) not in page


@pytest.mark.parametrize("name", [name for name, one in METHODS.items() if not one.is_slow])
def test_every_step_tells_its_mechanism_cost_and_public_noise(name):
    level = METHODS[name].levels[-1]

    release = ask(level, method=name)

    assert release.steps
    for step in release.steps:
        assert step.epsilon > 0 or step.rho > 0
        if step.mechanism.startswith("smooth"):  # its scale follows the records
            assert step.sensitivity is None
            assert step.scale is None
        else:
            assert all(size > 0 for size in step.sensitivity)
        if step.mechanism in ("laplace", "staircase", "gaussian"):
            assert all(scale > 0 for scale in step.scale)
    if not any(step.part or step.rho for step in release.steps):
        assert sum(step.epsilon for step in release.steps) == pytest.approx(1)


def test_scales_are_standard_deviations_of_the_noise():
    steps = {step.name: step for step in ask(method="published").steps}
    sums = steps["outcome sums"]

    assert sums.scale == pytest.approx([2**0.5 * size / sums.epsilon for size in sums.sensitivity])


def test_nothing_in_a_release_is_a_hash_of_the_data():
    other = STUDY.frame.with_columns(pl.col("pressure_drop") + 1)
    plain = [
        estimate_ate(frame, domain=MEASURED, level="sample", epsilon=1, seed=1).to_dict()
        for frame in (STUDY.frame, other)
    ]
    moved = {name for name in FIELDS if plain[0][name] != plain[1][name]}

    assert moved <= {"ate", "interval", "noise_interval", "effects", "steps", "settings"}
    assert not re.search(r"[0-9a-f]{32}", json.dumps(plain))


@pytest.mark.parametrize(
    ("level", "words"), [("label", "covariates and treatment"), ("sample", "the number of rows")]
)
def test_a_release_lists_what_it_does_not_protect(level, words):
    release = ask(level, rows_per_person=3)
    listed = " ".join(release.not_protected)

    assert words in listed
    assert "more than 3 rows" in listed
    assert "several people together" in listed
    assert "Not protected:" in release.to_html()
    assert ask(level, seed=1).not_protected == ("anything: this release keeps no promise",)


def test_a_method_that_hides_the_size_does_not_list_it():
    from private_ate import AimOptions

    shown = ask("sample", method="aim", options=AimOptions(adjacency="add_remove"))

    assert "number of rows" not in " ".join(shown.not_protected)


old_release = pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)


@old_release
def test_a_release_that_version_0_1_wrote_is_read_and_written_as_it_was(path):
    text = path.read_text("utf-8")

    release = Release.from_json(text)

    assert release.schema == 1
    assert tuple(release.to_dict()) == OLD_FIELDS
    assert json.loads(release.to_json()) == json.loads(text)
    assert Release.from_json(release.to_json()) == release


@old_release
def test_a_release_that_version_0_1_wrote_is_shown_on_every_page(path):
    release = Release.from_json(path.read_text("utf-8"))
    is_difference = path.stem in ("orthogonal-no-interval", "difference-in-means")
    name = "difference in means" if is_difference else "average treatment effect"

    assert "released by private-ate" in str(release)
    assert name in str(release).lower()
    assert name in release.to_html().lower()
    assert name in publishable_sentence(release)
    assert name in release._repr_html_().lower()
    assert name in diagnose_ate(STUDY.frame, domain=STUDY.domain).to_html(release)
    assert release_table(release).row_count > 5
    assert release.method in python_call(release) or "auto" in python_call(release)
    assert budget_frame(release).columns == ["step", "epsilon", "share"]
    assert effects_frame(release)["estimand"][0] == ("difference" if is_difference else "ate")
    assert effects_frame(release)["estimate"][0] == release.ate
    assert (standard_error(release) is None) is (release.interval is None)


def test_a_release_of_0_1_in_a_ledger_is_recalled_unchanged(tmp_path, monkeypatch):
    asked = {"domain": STUDY.domain, "level": "label", "epsilon": "1", "request_id": "old"}
    ledger = Ledger.create(tmp_path / "ledger.db", "trial", epsilon="3")
    whole = Release.to_dict
    with monkeypatch.context() as patched:  # as version 0.1 wrote it
        patched.setattr(
            Release, "to_dict", lambda self: {name: whole(self)[name] for name in OLD_FIELDS}
        )
        first = estimate_ate(STUDY.frame, ledger=ledger, **asked)

    again = estimate_ate(STUDY.frame, ledger=ledger, **asked)

    assert (first.schema, again.schema) == (2, 1)
    assert (again.ate, again.interval, again.settings) == (
        first.ate, first.interval, first.settings,
    )  # fmt: skip
    assert "Average treatment effect" in str(again)


def test_rules_for_missing_values_are_told_where_the_study_has_some():
    outcome = Outcome("pressure_drop", Interval(-40, 60), missing="public")
    frame = STUDY.frame.with_columns(
        pressure_drop=pl.when(pl.int_range(pl.len()) < 30).then(None).otherwise("pressure_drop")
    )

    told = estimate_ate(
        frame, domain=replace(STUDY.domain, outcome=outcome), level="label", epsilon=1
    ).missing

    assert told["outcome"].startswith("rows without an outcome are left out and counted")
    assert told["left_out_outcome"] == 30
    assert told["left_out_treatment"] == 0


def test_the_number_stands_beside_its_unit():
    (line,) = [line for line in str(ask()).splitlines() if line.startswith("effect (ATE)")]

    assert line.endswith(" mmHg")
    assert "mmHg" not in str(ask(domain=STUDY.domain))


def test_old_arm_means_can_still_be_asked_for():
    (path,) = [path for path in OLD if path.stem == "calibrated-means"]

    assert arm_means(Release.from_json(path.read_text("utf-8"))).treated


def test_an_outcome_of_another_unit_than_a_text_is_refused():
    with pytest.raises(DomainError, match="unit of the outcome"):
        Outcome("y", Interval(0, 1), unit=3)
