"""The curator's check: what is found in studies that are not what was declared."""

import json
import re
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

from private_ate import (
    ArgumentError,
    Binary,
    Categories,
    DataCheck,
    Domain,
    DomainError,
    Interval,
    Outcome,
    SchemaError,
    Treatment,
    check_data,
)
from private_ate.checking.rendering import shortened
from private_ate.datasets.clinic import draw_clinic

ROWS = 1000
DOMAIN = Domain(
    Treatment("drug", treated="A", control="placebo"),
    ("drop", Interval(-40, 40)),
    {"age": Interval(18, 90), "ward": Categories("north", "south", "east")},
)


def study(**changed) -> pl.DataFrame:
    """Return a study in order, with some columns changed or added."""
    rng = np.random.default_rng(7)
    columns = {
        "age": rng.integers(20, 80, ROWS),
        "ward": rng.choice(["north", "south", "east"], ROWS),
        "drug": np.where(rng.random(ROWS) < 0.4, "A", "placebo"),
        "drop": np.clip(rng.normal(5, 8, ROWS), -30, 35).round(3),
    }
    return pl.DataFrame(columns | changed)


def replaced(column, rows, entry):
    """Return a column of the study with some of its first entries replaced."""
    entries = study()[column].to_list()
    return [entry] * rows + entries[rows:]


def found(check, topic, column):
    """Return the one finding on a topic about a column."""
    (one,) = (item for item in check.findings if (item.topic, item.column) == (topic, column))
    return one


def look(frame, domain=DOMAIN, **options):
    return check_data(frame, domain=domain, **options)


def test_a_study_in_order_has_no_finding_that_is_a_problem_and_no_note():
    check = look(study())

    assert {item.severity for item in check.findings} == {"ok"}
    assert check.bends == ()
    assert not any(item.remedy for item in check.findings)
    assert check.proposed == ""
    assert (check.arms.treated, check.arms.control) == (
        study().filter(pl.col("drug") == "A").height,
        study().filter(pl.col("drug") == "placebo").height,
    )


@pytest.mark.parametrize(("low", "high", "is_wide"), [(-40, 40, False), (-400, 400, True)])
def test_bounds_far_wider_than_the_outcomes_are_noted_without_their_values(low, high, is_wide):
    domain = Domain(DOMAIN.treatment, ("drop", Interval(low, high)), DOMAIN.covariates)
    noted = [one for one in look(study(), domain).findings if one.topic == "wide bounds"]
    assert len(noted) == is_wide
    for one in noted:
        assert one.severity == "note"
        assert "never the file" in one.remedy
        assert one.counts == {}


def test_the_bundled_study_is_in_order():
    clinic = draw_clinic()

    assert check_data(clinic.frame, domain=clinic.domain).bends == ()


def test_a_third_arm_that_is_not_declared_bias_the_estimate_and_is_counted():
    arms = np.random.default_rng(3).choice(["A", "B", "placebo"], ROWS)
    check = look(study(drug=arms))
    finding = found(check, "undeclared labels", "drug")

    assert finding.severity == "bends"
    assert finding.counts["labels"] == {"B": int((arms == "B").sum())}
    assert check.arms.treated == (arms == "A").sum()
    assert check.arms.control == (arms == "placebo").sum()
    assert sum(check.support.overlap.control) == (arms == "placebo").sum()


def test_rows_of_neither_arm_that_are_left_out_on_purpose_are_worth_knowing():
    arms = np.random.default_rng(3).choice(["A", "B", "placebo"], ROWS)
    check = look(study(drug=arms), leave_out_undeclared=True)

    assert check.bends == ()
    assert found(check, "undeclared labels", "drug").severity == "note"


def test_rows_of_an_arm_that_the_domain_names_for_other_labels_belong_to_it():
    arms = np.random.default_rng(3).choice(["A", "B", "placebo"], ROWS)
    named = Domain(
        Treatment("drug", "A", "placebo", other="placebo"), DOMAIN.outcome, DOMAIN.covariates
    )
    outcomes = np.where(arms == "B", np.nan, study()["drop"])
    check = look(study(drug=arms, drop=outcomes), named)

    assert found(check, "undeclared labels", "drug").severity == "note"
    assert found(check, "missing", "drop").counts["control"] == (arms == "B").sum()


@pytest.mark.parametrize("rule", ["public", "private"])
def test_missing_outcomes_that_a_declared_rule_leaves_out_are_worth_knowing(rule):
    ruled = Domain(
        DOMAIN.treatment, Outcome("drop", Interval(-40, 40), missing=rule), DOMAIN.covariates
    )
    check = look(study(drop=replaced("drop", 100, None)), ruled)

    assert found(check, "missing", "drop").severity == "note"
    assert found(check, "missing", "drop").remedy == ""


def test_missing_treatments_are_counted_apart_from_other_labels():
    check = look(study(drug=replaced("drug", 200, None)))
    finding = found(check, "missing", "drug")

    assert finding.severity == "bends"
    assert finding.counts == {"rows": 200, "share": 0.2}
    assert check.arms.undeclared == {}


def test_labels_that_nobody_has_are_proposed_as_the_data_spell_them():
    frame = study(drug=np.where(study()["drug"] == "A", "yes", "no"))
    check = look(frame, Domain("drug", DOMAIN.outcome, DOMAIN.covariates))

    assert found(check, "arms", "drug").severity == "bends"
    assert 'treated = "yes"  # from the data: confirm with the code book' in check.proposed
    assert 'control = "no"' in check.proposed


@pytest.mark.parametrize("share", [0.4, 0.005])
def test_missing_outcomes_that_nobody_declared_are_an_error_and_counted_by_arm(share):
    frame = study()
    gone = (frame["drug"] == "A").to_numpy() & (np.arange(ROWS) < share * ROWS)
    check = look(frame.with_columns(drop=pl.when(pl.Series(~gone)).then("drop")))
    finding = found(check, "missing", "drop")

    assert finding.severity == "bends"
    assert (finding.counts["treated"], finding.counts["control"]) == (gone.sum(), 0)
    assert not finding.counts["declared"]
    assert "missing = ???" in check.proposed


def test_missing_outcomes_with_a_declared_number_are_worth_knowing():
    domain = Domain(DOMAIN.treatment, ("drop", Interval(-40, 40, missing=0)), DOMAIN.covariates)
    check = look(study(drop=replaced("drop", 100, None)), domain)

    assert found(check, "missing", "drop").severity == "note"
    assert found(check, "missing", "drop").counts["declared"]


def with_commas(column):
    return [str(entry).replace(".", ",") for entry in study()[column].to_list()]


@pytest.mark.parametrize("is_declared", [True, False])
def test_decimal_commas_are_recognised(is_declared, tmp_path):
    weights = np.random.default_rng(4).normal(80, 10, ROWS).round(2)
    frame = study(weight=[str(weight).replace(".", ",") for weight in weights])
    frame.write_csv(tmp_path / "study.csv", quote_style="always")
    covariates = {**DOMAIN.covariates, **({"weight": Interval(30, 200)} if is_declared else {})}
    domain = Domain(DOMAIN.treatment, DOMAIN.outcome, covariates)
    check = look(tmp_path / "study.csv", domain, covariates="all")
    finding = found(check, "decimal commas", "weight")

    assert finding.severity == "bends"
    assert finding.counts["rows"] == sum("," in text for text in frame["weight"])
    assert "decimal points" in finding.remedy


def test_outcomes_with_decimal_commas_bias_the_estimate(tmp_path):
    study(drop=with_commas("drop")).write_csv(tmp_path / "study.csv", quote_style="always")
    check = look(tmp_path / "study.csv")

    assert found(check, "decimal commas", "drop").severity == "bends"


def test_decimal_commas_without_quotes_are_lines_with_too_many_fields(tmp_path):
    lines = study().with_columns(drop=pl.lit("3,5")).write_csv(quote_style="never")
    (tmp_path / "study.csv").write_text(lines, "utf-8")
    check = look(tmp_path / "study.csv")

    assert found(check, "fields", None).counts == {"rows": ROWS, "first_line": 2}
    assert found(check, "fields", None).severity == "bends"


def test_a_few_unreadable_entries_are_counted_with_examples():
    ages = [str(age) for age in study()["age"]]
    ages[:5] = ["n/a", "n/a", "forty", "30 years", ""]
    check = check_data(study(age=ages).to_pandas(), domain=DOMAIN)
    finding = found(check, "unreadable", "age")

    assert finding.counts["rows"] == 4
    assert finding.counts["examples"] == {"n/a": 2, "30 years": 1, "forty": 1}
    assert found(check, "missing", "age").counts["rows"] == 1


def test_undeclared_labels_are_counted_and_bias_what_they_are_mixed_with():
    wards = replaced("ward", 80, "North")
    wards[80:90] = ["west"] * 10
    finding = found(look(study(ward=wards)), "undeclared labels", "ward")

    assert finding.counts["labels"] == {"North": 80, "west": 10}
    assert finding.counts["rows"] == 90
    assert finding.severity == "bends"


def test_undeclared_labels_in_a_catch_all_are_worth_knowing():
    kinds = {**DOMAIN.covariates, "ward": Categories("north", "south", "other", other="other")}
    domain = Domain(DOMAIN.treatment, DOMAIN.outcome, kinds)

    finding = found(look(study(), domain), "undeclared labels", "ward")

    assert finding.counts["labels"] == {"east": study().filter(pl.col("ward") == "east").height}
    assert finding.severity == "note"


def test_clipping_is_counted_and_measured_in_units_and_widths():
    drops = study()["drop"].to_list()
    drops[:20] = [48.0] * 19 + [-120.0]
    finding = found(look(study(drop=drops)), "clipped", "drop")

    assert finding.severity == "bends"
    assert finding.counts == {
        "rows": 20, "share": 0.02, "below": 1, "above": 19, "furthest": 80.0, "widths": 1.0,
    }  # fmt: skip


def test_a_single_clipped_outcome_is_worth_knowing():
    drops = study()["drop"].to_list()
    drops[0] = float("inf")
    check = look(study(drop=drops))

    assert found(check, "clipped", "drop").severity == "note"
    assert found(check, "clipped", "drop").counts["furthest"] is None
    assert json.loads(check.to_json())["bends"] == 0


def test_a_code_for_missing_is_named():
    ages = study()["age"].to_list()
    ages[:60] = [999] * 60
    finding = found(look(study(age=ages)), "clipped", "age")

    assert finding.severity == "bends"
    assert "60 of them are 999" in finding.sentence
    assert "code for missing" in finding.remedy


def test_a_constant_column_is_worth_knowing():
    domain = Domain(DOMAIN.treatment, DOMAIN.outcome, {"site": Interval(0, 9)})

    finding = found(look(study(site=[3] * ROWS), domain), "constant", "site")

    assert (finding.severity, finding.counts) == ("note", {"value": "3"})


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("row", list(range(ROWS))),
        ("patient_id", list(np.random.default_rng(1).permutation(10**6)[:ROWS])),
        ("token", [f"p{number:05}" for number in range(ROWS)]),
    ],
)
def test_an_id_is_recognised_and_not_proposed(name, entries):
    check = look(study(**{name: entries}), covariates="all")

    assert found(check, "id", name).counts["distinct"] == ROWS
    assert f'"{name}": better left out' in check.proposed


def test_a_column_without_a_name_is_shown_as_one(tmp_path):
    study(**{"": range(ROWS)}).write_csv(tmp_path / "rows.csv")  # as pandas writes its index
    text = look(tmp_path / "rows.csv", covariates="all", level="label").to_text()

    assert re.search(r"^  \(no name\) +All entries are different", text, re.MULTILINE)
    assert "; without (no name)." in " ".join(text.split())


def test_measurements_are_no_ids_though_they_differ():
    incomes, weights = np.random.default_rng(1).permutation(10**6)[: 2 * ROWS].reshape(2, ROWS)
    check = look(study(income=incomes, weight=weights / 7), covariates="all")

    assert {item.topic for item in check.about("income") + check.about("weight")} == {"in order"}


@pytest.mark.parametrize("is_typed", [True, False])
def test_dates_are_recognised(is_typed):
    days = [date(2020, 1, 1) + timedelta(days=row % 700) for row in range(ROWS)]
    frame = study(visit=days if is_typed else [day.isoformat() for day in days])
    check = look(frame, covariates="all")

    assert found(check, "dates", "visit").counts["rows"] == ROWS
    assert found(check, "dates", "visit").severity == "bends"
    assert '"visit": better left out' in check.proposed
    assert check.support.left_out == ("visit",)


def test_a_type_that_the_estimate_refuses_is_a_finding():
    frame = study(age=[date(2020, 1, 1)] * ROWS)

    assert found(look(frame), "type", "age").severity == "bends"
    assert found(look(frame), "dates", "age").counts["rows"] == ROWS


@pytest.mark.parametrize("entry", [[1, 2], timedelta(days=3)])
def test_a_column_of_a_type_that_holds_neither_numbers_nor_labels_is_a_finding(entry):
    check = look(study(odd=[entry] * ROWS), covariates="all")

    assert found(check, "type", "odd").severity == "bends"
    assert check.support.left_out == ("odd",)


def test_pandas_reads_dates_as_objects_and_they_are_recognised_all_the_same():
    frame = study().to_pandas()
    frame["age"] = np.datetime64("2020-01-01") + np.arange(ROWS).astype("timedelta64[D]")

    assert found(look(frame), "dates", "age").counts["rows"] == ROWS


def test_labels_of_which_most_are_not_declared_bias_the_estimate_in_a_catch_all_too():
    kinds = {"ward": Categories("North", "South", "other", other="other")}
    domain = Domain(DOMAIN.treatment, DOMAIN.outcome, kinds)
    finding = found(look(study(), domain), "undeclared labels", "ward")

    assert finding.severity == "bends"
    assert 'never seen: "North", "South"' in finding.remedy


def after_treatment(kind):
    is_treated = (study()["drug"] == "A").to_numpy()
    noise = np.random.default_rng(2).random(ROWS)
    return {
        "another name": np.where(is_treated, 1, 0),
        "several values": np.where(is_treated, 3 + (noise > 0.5), noise > 0.5),
        "apart": np.where(is_treated, 10 + noise, noise),
        "only one arm": pl.Series(noise).set(pl.Series(~is_treated), None),
        "nearly": np.where(np.arange(ROWS) < 3, 1, is_treated),
    }[kind]


@pytest.mark.parametrize(
    "kind", ["another name", "several values", "apart", "only one arm", "nearly"]
)
def test_a_column_that_follows_treatment_biases_the_estimate(kind):
    check = look(study(dose=after_treatment(kind)), covariates="all")

    assert found(check, "follows treatment", "dose").severity == "bends"
    # The overlap is that of the other covariates, which is fine.
    assert check.support.left_out == ("dose",)
    assert found(check, "overlap", None).severity == "ok"


def test_a_column_that_only_leans_on_treatment_does_not():
    is_treated = (study()["drug"] == "A").to_numpy()
    leaning = np.where(np.random.default_rng(2).random(ROWS) < 0.9, is_treated, ~is_treated)
    check = look(study(dose=leaning.astype(int)), covariates="all", level="label")

    assert check.bends == ()


def test_rows_of_a_person_are_counted_against_the_declared_number():
    persons = [f"p{row // 2}" for row in range(ROWS - 3)] + ["p0"] * 3
    frame = study(person=persons)
    finding = found(look(frame, person="person"), "duplicates", "person")

    assert finding.severity == "bends"
    assert finding.counts["largest"] == 5
    assert finding.counts["persons"] == len(set(persons))
    assert "rows_per_person=5" in finding.remedy
    assert look(frame, person="person", rows_per_person=5).bends == ()


@pytest.mark.parametrize("name", ["id", "patient_id", "SubjectID", "pid"])
def test_an_id_that_repeats_is_named_with_its_persons(name):
    twice = np.arange(ROWS) // 2
    finding = found(look(study(**{name: twice})), "persons", name)

    assert finding.severity == "bends"
    assert f"{ROWS // 2} persons with 2 rows each" in finding.sentence


def test_an_id_that_repeats_is_not_proposed_as_a_covariate():
    check = look(study(nr=np.arange(ROWS) // 2), covariates=["age", "nr"])

    assert found(check, "persons", "nr").severity == "bends"
    assert '# "nr": better left out' in check.proposed


def test_an_outcome_of_labels_leads_to_its_event_label():
    domain = Domain(DOMAIN.treatment, Outcome("drop"), DOMAIN.covariates)
    check = look(study(drop=["yes", "no"] * (ROWS // 2)), domain)

    assert "event_label" in found(check, "unreadable", "drop").remedy
    assert "event_label = ???" in check.proposed


@pytest.mark.parametrize(("rows", "declared"), [(2, 2), (1, 1)])
def test_an_id_that_repeats_as_often_as_declared_is_in_order(rows, declared):
    check = look(study(id=np.arange(ROWS) // rows), rows_per_person=declared)

    assert not any(one.topic == "persons" for one in check.findings)


def test_rows_that_repeat_in_every_column_are_worth_knowing():
    frame = study(weight=np.random.default_rng(9).normal(size=ROWS))
    finding = found(look(pl.concat([frame, frame.head(30)])), "duplicates", None)

    assert (finding.severity, finding.counts) == ("note", {"rows": 30})


def test_poor_overlap_biases_the_estimate():
    rng = np.random.default_rng(5)
    treated = np.arange(ROWS * 4) < 100
    earned = np.where(treated, rng.exponential(1500, ROWS * 4), 5000 + rng.normal(9000, 3000, 4000))
    frame = pl.DataFrame({"t": treated.astype(int), "earned": earned, "y": rng.random(4000)})
    domain = Domain("t", ("y", Interval(0, 1)), {"earned": Interval(-9000, 40000)})
    check = check_data(frame, domain=domain)
    finding = found(check, "overlap", None)

    assert finding.severity == "bends"
    assert "ato" in finding.remedy
    assert next(iter(check.support.outside.values())) > 2000  # of the reference
    assert sum(check.support.overlap.treated) == 100


def test_missing_covariates_are_a_problem_only_where_they_get_no_indicator():
    frame = study(age=replaced("age", 100, None))

    assert found(look(frame), "missing", "age").severity == "bends"
    assert found(look(frame, level="sample"), "missing", "age").severity == "bends"
    assert found(look(frame, level="label"), "missing", "age").severity == "note"
    assert found(look(frame), "missing", "age").counts["rows"] == 100


def test_what_is_not_declared_is_proposed_in_toml_that_can_be_read():
    frame = study(smoker=["yes", "no"] * (ROWS // 2))
    check = check_data(
        frame, treatment=Treatment("drug", "A", "placebo"), outcome="drop", level="sample"
    )
    text = f'[treatment]\ncolumn = "drug"\ntreated = "A"\ncontrol = "placebo"\n{check.proposed}\n'
    domain = Domain.from_toml(text)

    assert check.proposed.count("from the data: confirm with the code book") == 6
    assert {item.column for item in check.bends} == {"drop", None}
    assert domain.covariates["smoker"].labels == ("no", "yes")
    assert domain.covariates["age"] == Interval(20, 80)
    assert domain.bounds == Interval(-30, 40)
    assert look(frame, domain).bends == ()


def test_a_binary_outcome_with_other_values_biases_the_estimate():
    domain = Domain(DOMAIN.treatment, ("drop", Binary()), DOMAIN.covariates)
    check = look(study(drop=[0.0, 0.5, 1.0, 1.0] * (ROWS // 4)), domain)

    assert found(check, "not binary", "drop").counts == {"rows": ROWS // 4}


def test_an_arm_that_is_empty_and_an_outcome_that_is_missing_are_findings_not_errors():
    frame = study(drug=["A"] * ROWS, drop=pl.Series([None] * ROWS, dtype=pl.Float64))
    check = look(frame)

    assert found(check, "arms", "drug").severity == "bends"
    assert found(check, "missing", "drop").severity == "bends"
    assert check.support is None
    assert "an arm is empty" in found(check, "overlap", None).sentence


def messy():
    """Return a study with a bit of everything."""
    rng = np.random.default_rng(11)
    frame = study(
        drug=replaced("drug", 10, None),
        age=[None, 17, *study()["age"].to_list()[2:]],
        ward=replaced("ward", 7, "west"),
        drop=[None, 99.5, *study()["drop"].to_list()[2:]],
        weight=rng.normal(80, 10, ROWS).round(1),
        smoker=rng.choice(["yes", "no", None], ROWS),
        visit=["2021-03-04"] * ROWS,
        row=list(range(ROWS)),
    )
    return pl.concat([frame, frame.tail(5)])


def test_csv_parquet_streams_and_frames_of_any_kind_give_the_same(tmp_path):
    frame = messy()
    frame.write_csv(tmp_path / "study.csv")
    frame.write_parquet(tmp_path / "study.parquet")
    first, *others = [
        look(data, covariates="all", memory_limit=memory).to_dict()
        for data, memory in (
            (frame, "1GB"),
            (frame.to_pandas(), "1GB"),
            (frame.to_arrow(), "1GB"),
            (frame.lazy(), "1GB"),
            (tmp_path / "study.csv", "1GB"),
            (tmp_path / "study.csv", "0"),
            (tmp_path / "study.parquet", "1GB"),
            (tmp_path / "study.parquet", "0"),
        )
    ]

    assert first["bends"] >= 3
    for other in others:
        assert other == first


def test_chunks_of_rows_give_the_same_as_all_at_once(tmp_path, monkeypatch):
    messy().write_csv(tmp_path / "study.csv")
    messy().write_parquet(tmp_path / "study.parquet")
    whole = look(tmp_path / "study.csv", covariates="all").to_dict()
    told = []
    monkeypatch.setattr("private_ate.data.files._SMALLEST_CHUNK", 64)
    parts = look(
        tmp_path / "study.parquet", covariates="all", memory_limit=0,
        progress=lambda *step: told.append(step),
    )  # fmt: skip

    assert parts.to_dict() == whole
    assert ("reading the rows", ROWS + 5, ROWS + 5) in told


def test_the_result_is_marked_and_shows_no_value_unasked():
    check = look(messy(), covariates="all")
    plain = json.loads(check.to_json())

    for text in (str(check), repr(check), f"{check}", repr(check.findings), repr(check.arms)):
        assert "not private, do not share" in text or text == "Arms()"
        assert "age" not in text
        assert "bends" not in text
        assert not any(letter.isdigit() for letter in text)
    assert repr(check) == "DataCheck(note='not private, do not share')"
    assert repr(check.support) == "Support()"
    assert (plain["private"], plain["note"]) == (False, "not private, do not share")
    assert list(plain) == [
        "private", "note", "rows", "bends", "arms", "findings", "overlap", "proposed",
    ]  # fmt: skip
    assert {tuple(item) for item in plain["findings"]} == {
        ("topic", "column", "severity", "sentence", "remedy", "counts")
    }
    assert isinstance(check, DataCheck)


@pytest.mark.parametrize("width", [80, 100])
def test_the_text_is_watermarked_at_both_ends_and_fits_its_width(width):
    lines = look(messy()).to_text(width).splitlines()

    assert "NOT PRIVATE" in lines[0]
    assert "NOT PRIVATE" in lines[-1]
    assert all(len(line) <= width for line in lines[1:-1])
    assert len(lines[0]) <= 80


def test_a_long_list_of_labels_is_proposed_in_lines_that_fit():
    labels = [f"a label of some length, number {row % 30}" for row in range(ROWS)]
    check = look(study(kind=labels), covariates="all")
    ward, age = DOMAIN.covariates["ward"], DOMAIN.covariates["age"]
    bare = Domain(DOMAIN.treatment, DOMAIN.outcome, {"age": age, "ward": ward})

    assert all(len(line) <= 78 for line in check.proposed.splitlines())
    assert len(Domain.from_toml(f"{bare.to_toml()}\n{check.proposed}").features) == 34


def test_the_text_and_the_page_fold_a_long_list_of_labels():
    labels = [f"a label of some length, number {row % 30}" for row in range(ROWS)]
    check = look(study(kind=labels), covariates="all")
    last = f'"{max(labels)}"'

    shown = check.to_text(100)

    assert "???,  # … and 22 more labels; the JSON lists all" in shown
    assert shown.count("a label of some length") == 8
    assert last not in shown
    assert last in check.proposed
    assert last in json.loads(check.to_json())["proposed"]
    with pytest.raises(DomainError, match="kind"):
        Domain.from_toml(f"{DOMAIN.to_toml()}\n{shortened(check.proposed)}")
    assert "<summary>with all labels</summary>" in check.to_html()
    assert "with all labels" not in look(study()).to_html()


@pytest.mark.parametrize("form", ["frame", "text"])
@pytest.mark.parametrize("entries", [[0, 1], [0.0, 1.0], [False, True]])
def test_a_column_of_zeros_and_ones_is_proposed_as_binary(entries, form, tmp_path):
    frame = study(smoker=entries * (ROWS // 2))
    frame.write_csv(tmp_path / "a.csv")
    data = frame if form == "frame" else tmp_path / "a.csv"

    as_covariate = look(data, covariates="all")
    as_outcome = check_data(data, treatment=DOMAIN.treatment, outcome="smoker", covariates=["age"])

    assert '[covariates."smoker"]\nbinary = true' in as_covariate.proposed
    assert '[outcome]\ncolumn = "smoker"\nbinary = true' in as_outcome.proposed


@pytest.mark.parametrize("entries", [[0, 1, 2, 1], [0.0, 0.5, 1.0, 1.0], [1, 2, 1, 2]])
def test_a_column_of_other_numbers_is_proposed_with_its_ends(entries):
    check = look(study(smoker=entries * (ROWS // 4)), covariates="all")

    assert '[covariates."smoker"]\nlow = ' in check.proposed


def test_labels_that_would_move_a_cursor_are_shown_without():
    odd = "\x1b[2J\nwest" + "x" * 100
    text = look(study(ward=replaced("ward", 200, odd))).to_text()

    assert "\x1b" not in text
    assert "x" * 40 not in text


def test_a_file_with_semicolons_is_refused_with_the_reason(tmp_path):
    study().write_csv(tmp_path / "study.csv", separator=";")

    with pytest.raises(SchemaError, match="semicolons"):
        look(tmp_path / "study.csv")


def test_wrong_arguments_are_refused():
    with pytest.raises(ArgumentError, match="level is"):
        look(study(), level="both")
    with pytest.raises(ArgumentError, match="rows_per_person"):
        look(study(), rows_per_person=0)
    with pytest.raises(SchemaError, match="no person column"):
        look(study(), person="nobody")
    with pytest.raises(SchemaError, match="no rows"):
        look(study().head(0))


@pytest.mark.parametrize(
    ("column", "rule", "level", "severity"),
    [
        ("drop", "public", "label", "note"),
        ("drop", "private", "sample", "note"),
        ("drop", None, "label", "bends"),
        ("age", "public", "label", "note"),
        ("age", "public", "sample", "bends"),
    ],
)
def test_words_for_missing_are_as_good_as_empty_fields(column, rule, level, severity):
    """R writes NA; what becomes of a missing entry is declared, or public."""
    texts = [*map(str, replaced(column, 200, "NA"))]
    domain = Domain(DOMAIN.treatment, Outcome("drop", Interval(-40, 40), rule), DOMAIN.covariates)
    check = look(study(**{column: texts}), domain, level=level)

    assert found(check, "unreadable", column).severity == severity
    spread_bits = look(study(**{column: [*texts[:-1], "high"]}), domain, level=level)
    assert found(spread_bits, "unreadable", column).severity == "bends"
