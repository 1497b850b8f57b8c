"""What was not declared: told at label level, left out on request, silent at sample level."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from private_ate import (
    ArgumentError,
    Categories,
    Domain,
    DomainError,
    Interval,
    Ledger,
    LedgerError,
    SchemaError,
    Treatment,
    UndeclaredError,
    describe_overlap,
    diagnose_ate,
    estimate_ate,
    exact_effect,
    plan_ate,
)
from private_ate.api import estimate_study, method_for
from private_ate.charging import binding_of
from private_ate.data.missing_rules import PAPERS_READING, MissingRules, Reading
from private_ate.data.parse_values import has_decimal_comma, is_missing
from private_ate.data.validate_public import Entries, PublicCounts
from private_ate.engines.open_table import open_table
from private_ate.methods.composition import takes
from private_ate.methods.registry import METHODS
from private_ate.privacy.budget import parse_epsilon
from private_ate.request import Request

ROWS = 600
DOMAIN = Domain(
    Treatment("arm", "A", "placebo"),
    ("y", Interval(0, 20)),
    {"age": Interval(20, 80), "ward": Categories("north", "south")},
)
FORMS = ("polars", "pandas", "arrow", "csv", "streamed csv", "parquet", "streamed parquet")
FILES = {"csv", "streamed csv"}


def study(**replaced):
    """Return a study's columns; a keyword replaces entries by their place."""
    rng = np.random.default_rng(5)
    arm = np.where(rng.random(ROWS) < 0.5, "A", "placebo")
    age = rng.integers(20, 81, ROWS)
    columns = {
        "arm": arm.tolist(),
        "age": [str(value) for value in age],
        "ward": rng.choice(["north", "south"], ROWS).tolist(),
        "y": np.clip(
            8 + 3 * (arm == "A") + (age - 50) / 10 + rng.normal(size=ROWS), 0, 20
        ).tolist(),
    }
    for name, entries in replaced.items():
        for place, entry in entries.items():
            columns[name][place] = entry
    return columns


def shaped(columns, form, folder):
    """Return columns as one kind of data, and what else is asked with it."""
    if form == "pandas":
        return pd.DataFrame(columns), {}
    numbers = form not in FILES
    if numbers:  # typed tables have numbers, and nothing where there is none
        ages = [None if is_missing(entry) else float(entry) for entry in columns["age"]]
        columns = columns | {"age": ages}
    frame = pl.DataFrame(columns)
    if form == "arrow":
        return frame.to_arrow(), {}
    if form == "polars":
        return frame, {}
    path = folder / f"study.{form.removeprefix('streamed ')}"
    (frame.write_csv if path.suffix == ".csv" else frame.write_parquet)(path)
    return path, {"memory_limit": 0} if form.startswith("streamed") else {}


def encoded(data, domain=DOMAIN, *, level="label", leaves_out=True, left_out=False, memory=1 << 30):
    asked = {"treatment": None, "outcome": None, "covariates": None, "domain": domain}
    opened = open_table(
        data, {**asked, "level": level, "from_data": False}, memory=memory, engine="auto",
        master=None,
    )  # fmt: skip
    with opened.encoded(None, Reading(level, leaves_out, left_out)) as one:
        return one


def label(data, domain=DOMAIN, **asked):
    return estimate_ate(data, domain=domain, level="label", epsilon=2, seed=3, **asked)


@pytest.mark.parametrize("form", FORMS)
def test_a_third_arm_is_refused_with_its_count_and_place(form, tmp_path):
    third = dict.fromkeys(range(40, 100), "B")
    data, asked = shaped(study(arm=third), form, tmp_path)

    with pytest.raises(UndeclaredError) as caught:
        label(data, **asked)

    place = "line 42 (line 1 is the header)" if form in FILES else "row 41"
    assert "'arm' is neither 'A' nor 'placebo' in 60 of 600 rows ('B' in 60)" in str(caught.value)
    assert f"first in {place}." in str(caught.value)
    assert "leave_out_undeclared=True" in str(caught.value)
    assert caught.value.parameter == "leave out undeclared"


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_treatment_is_refused_and_left_out_on_request(form, tmp_path):
    columns = study(arm=dict.fromkeys(range(7, 127), None))
    data, asked = shaped(columns, form, tmp_path)
    clean, _ = shaped({n: c[:7] + c[127:] for n, c in columns.items()}, "polars", tmp_path)

    with pytest.raises(UndeclaredError, match="'arm' is missing in 120 of 600 rows, first in"):
        label(data, **asked)

    release = label(data, leave_out_undeclared=True, **asked)
    assert release.n == 480
    assert release.ate == pytest.approx(label(clean).ate, abs=1e-9)
    rules = encoded(data, left_out=True, memory=asked.get("memory_limit", 1 << 30)).rules
    assert rules.to_dict()["left_out_treatment"] == 120
    assert rules.treatment == "rows with a missing or undeclared treatment are left out"


@pytest.mark.parametrize("form", ["csv", "streamed csv", "pandas"])
def test_decimal_commas_are_refused_with_a_hint(form, tmp_path):
    columns = study()
    columns["age"] = [f"{entry},5" for entry in columns["age"]]
    data, asked = shaped(columns, form, tmp_path)

    with pytest.raises(UndeclaredError) as caught:
        label(data, **asked)

    said = str(caught.value)
    assert "column 'age' is declared as numbers but holds other text in 600 of 600 rows" in said
    assert "600 of them with a decimal comma" in said
    assert "decimal point" in said
    assert not any(f"{age},5" in said for age in range(20, 81))


def test_decimal_commas_in_a_looked_up_column_are_refused_too():
    columns = study()
    columns["age"] = [f"{entry},5" for entry in columns["age"]]
    bare = Domain(DOMAIN.treatment, DOMAIN.outcome)
    with pytest.raises(SchemaError, match="'age' holds numbers with a decimal comma"):
        label(pd.DataFrame(columns), bare, covariates=["age"])


@pytest.mark.parametrize("form", ["csv", "streamed csv", "pandas"])
def test_rows_with_unreadable_numbers_are_left_out_on_request_and_counted(form, tmp_path):
    data, asked = shaped(study(age={3: "old", 5: "very old"}, arm={5: "B"}), form, tmp_path)

    assert label(data, leave_out_undeclared=True, **asked).n == ROWS - 2

    rules = encoded(data, left_out=True, memory=asked.get("memory_limit", 1 << 30)).rules
    assert (rules.left_out_treatment, rules.left_out_unreadable) == (1, 1)
    assert rules.to_dict()["left_out_unreadable"] == 1


@pytest.mark.parametrize("word", ["", "NA", "nan", "null", "n/a", ".", "None", "<NA>", " na "])
def test_words_for_nothing_are_missing_and_no_error(word, tmp_path):
    data, _ = shaped(study(age={0: word, 9: word}), "csv", tmp_path)
    found = encoded(data)
    assert found.domain.features[-1] == "age (missing)"
    assert found.rules.filled == {"age": 2}


@pytest.mark.parametrize("form", FORMS)
def test_a_missing_covariate_has_a_fill_and_an_indicator(form, tmp_path):
    places = [0, 10, 11, 599]
    data, asked = shaped(study(age=dict.fromkeys(places)), form, tmp_path)
    domain = Domain(
        DOMAIN.treatment, DOMAIN.outcome, DOMAIN.covariates | {"age": Interval(20, 80, missing=35)}
    )

    found = encoded(data, domain, memory=asked.get("memory_limit", 1 << 30))

    assert found.domain.features == ("age", "ward=north", "ward=south", "age (missing)")
    assert found.dimension == 4
    columns = found.covariates[:, :]
    assert np.flatnonzero(columns[3]).tolist() == places
    assert columns[0, places].tolist() == [0.25] * 4
    assert found.rules.filled == {"age": 4}
    assert "age (missing)" in label(data, domain, **asked).settings["balance"]


def test_a_table_without_gaps_has_no_indicator_and_the_same_features():
    found = encoded(pd.DataFrame(study()))
    assert found.domain == DOMAIN
    assert found.domain.features == DOMAIN.features
    assert found.rules.filled == found.rules.undeclared == {}


def test_an_indicator_keeps_clear_of_a_column_of_its_name():
    kinds = {"age": Interval(0, 1), "age (missing)": Interval(0, 1)}
    domain = Domain(Treatment("t", 1, 0), "y", kinds).with_indicators(["age"])
    assert domain.features == ("age", "age (missing)", "age (missing) (missing)")
    assert "indicator" not in domain.to_toml()


def test_missingness_that_confounds_is_balanced_by_its_indicator():
    """Sicker people lack the laboratory value and are treated more often."""
    rng = np.random.default_rng(11)
    rows = 20_000
    sick = rng.random(rows) < 0.4
    arm = rng.random(rows) < np.where(sick, 0.75, 0.25)
    frame = pl.DataFrame({
        "t": arm.astype(int),
        "lab": np.where(sick, np.nan, rng.uniform(0, 1, rows)),
        "y": np.clip(4 + 1.0 * arm - 3.0 * sick + rng.normal(size=rows) / 2, 0, 10),
    })  # fmt: skip
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"lab": Interval(0, 1)})

    release = estimate_ate(frame, domain=domain, level="label", epsilon=5, seed=1)

    assert release.ate == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("form", FORMS)
def test_an_undeclared_category_is_one_of_its_own(form, tmp_path):
    data, asked = shaped(study(ward={2: "east", 4: "west", 6: None}), form, tmp_path)

    found = encoded(data, memory=asked.get("memory_limit", 1 << 30))

    columns = found.covariates[:, :]
    assert columns[1:3, [2, 4, 6]].tolist() == [[0.0] * 3] * 2
    assert columns[3, [2, 4, 6]].tolist() == [0.0, 0.0, 1.0]
    assert found.rules.undeclared == {"ward": 2}
    assert found.rules.filled == {"ward": 1}
    assert label(data, **asked).n == ROWS


def test_a_declared_other_category_takes_them_in():
    kinds = {"ward": Categories("north", "south", other="south")}
    domain = Domain(DOMAIN.treatment, DOMAIN.outcome, kinds)
    found = encoded(pd.DataFrame(study(ward={2: "east"})), domain)
    assert found.covariates[:, 2].tolist() == [0.0, 1.0]
    assert found.rules.undeclared == {"ward": 1}


def test_a_declared_word_is_a_label_and_not_missing():
    kinds = {"ward": Categories("north", "NA")}
    domain = Domain(Treatment("arm", "A", "none"), DOMAIN.outcome, kinds)
    columns = study()
    columns["arm"] = ["none" if arm == "placebo" else arm for arm in columns["arm"]]
    columns["ward"] = ["NA" if ward == "south" else ward for ward in columns["ward"]]
    found = encoded(pd.DataFrame(columns), domain)
    assert found.size == ROWS
    assert found.rules.filled == {}


def test_looked_up_labels_leave_out_words_for_nothing(tmp_path):
    bare = Domain(DOMAIN.treatment, DOMAIN.outcome)
    asked = {"treatment": None, "outcome": None, "covariates": ["age", "ward"], "domain": bare}
    data, _ = shaped(study(age={1: "NA"}, ward={2: "NA", 3: "none"}), "csv", tmp_path)
    opened = open_table(
        data, {**asked, "level": "label", "from_data": False}, memory=1 << 30, engine="auto",
        master=None,
    )  # fmt: skip
    with opened.encoded(None, Reading("label")) as found:
        assert isinstance(found.domain.covariates["age"], Interval)
        assert found.domain.covariates["ward"] == Categories("none", "north", "south")
        assert found.domain.indicators == ("age", "ward")


def test_a_looked_up_column_of_one_text_is_a_constant():
    frame = pd.DataFrame(study()).assign(site="Rome")
    bare = Domain(DOMAIN.treatment, DOMAIN.outcome)
    assert label(frame, bare, covariates=["site"]).n == ROWS


@pytest.mark.parametrize("level", ["label", "sample"])
@pytest.mark.parametrize("arm", ["A", "placebo"])
def test_rows_with_other_labels_count_as_the_arm_that_is_declared(level, arm):
    odd = {3: None, 4: "B", 50: "", 51: "a"}
    named = Domain(Treatment("arm", "A", "placebo", other=arm), DOMAIN.outcome, DOMAIN.covariates)

    found = encoded(pd.DataFrame(study(arm=odd)), named, level=level)
    plain = encoded(pd.DataFrame(study(arm=dict.fromkeys(odd, arm))), level=level)

    assert found.treatment.tolist() == plain.treatment.tolist()
    assert found.everyone_takes_part
    assert found.rules.treatment == (
        f"a missing or undeclared treatment counts as {arm!r}, as declared"
    )


def test_the_other_arm_is_one_of_the_two_and_survives_toml():
    named = Domain(Treatment("arm", 1, 0, other=True), "y", {"g": Categories("a", "b")})
    assert "other = true\n" in named.to_toml()
    assert named.to_toml().count("other") == 1
    assert Domain.from_toml(named.to_toml()) == named
    with pytest.raises(DomainError, match="'B', is neither 'A' nor 'placebo'"):
        Treatment("arm", "A", "placebo", other="B")


def test_the_rest_is_told_with_the_other_faults_in_one_error():
    frame = pd.DataFrame(study(arm={8: "B", 9: None}, age={4: "x"}))
    with pytest.raises(UndeclaredError) as caught:
        label(frame)
    for said in ("missing in 1 of 600 rows, first in row 10", "'B' in 1", "first in row 5."):
        assert said in str(caught.value)


def test_many_undeclared_labels_are_counted_and_not_quoted():
    frame = pd.DataFrame(study(arm={place: f"Person {place}" for place in range(30)}))
    with pytest.raises(UndeclaredError, match="in 30 of 600 rows, first in row 1") as caught:
        label(frame)
    assert "Person" not in str(caught.value)


def test_many_faulty_columns_make_a_short_error():
    columns = study() | {f"x{place}": ["?"] * ROWS for place in range(9)}
    kinds = {f"x{place}": Interval(0, 1) for place in range(9)}
    with pytest.raises(UndeclaredError, match="4 more columns hold such text") as caught:
        label(pd.DataFrame(columns), Domain(DOMAIN.treatment, DOMAIN.outcome, kinds))
    assert "'x5'" not in str(caught.value)


def test_no_row_that_is_left_is_an_error():
    frame = pd.DataFrame(study(arm=dict.fromkeys(range(ROWS), "B")))
    with pytest.raises(SchemaError, match="no row is left"):
        label(frame, leave_out_undeclared=True)


@pytest.mark.parametrize("asked", [{"level": "sample", "leave_out_undeclared": True},
                                   {"level": "label", "leave_out_undeclared": "yes"}])  # fmt: skip
def test_leaving_out_is_a_matter_of_label_level(asked):
    with pytest.raises(ArgumentError, match="leave_out_undeclared"):
        estimate_ate(pd.DataFrame(study()), domain=DOMAIN, epsilon=1, **asked)


def test_doors_that_release_nothing_leave_such_rows_out():
    odd = pd.DataFrame(study(arm=dict.fromkeys(range(60), "B"), age={70: "x", 80: None}))
    clean = pd.DataFrame(study(age={80: None})).drop(index=[*range(60), 70])

    assert exact_effect(odd, domain=DOMAIN) == pytest.approx(exact_effect(clean, domain=DOMAIN))
    assert describe_overlap(odd, domain=DOMAIN) == describe_overlap(clean, domain=DOMAIN)
    seen, plain = (diagnose_ate(each, domain=DOMAIN) for each in (odd, clean))
    assert (seen.treated, seen.control) == (plain.treated, plain.control)
    assert "age (missing)" in seen.balance
    plans = [plan_ate(each, domain=DOMAIN, level="label") for each in (odd, clean)]
    assert plans[0] == plans[1]


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_the_exact_effect_of_a_file_leaves_them_out_as_well(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("private_ate.data.inputs.open_table", _with_memory(memory))
    odd, _ = shaped(study(arm=dict.fromkeys(range(60), "B")), "csv", tmp_path)
    clean = pd.DataFrame(study()).drop(index=[*range(60)])
    assert exact_effect(odd, domain=DOMAIN) == pytest.approx(exact_effect(clean, domain=DOMAIN))


def _with_memory(memory):
    from private_ate.data import files

    return lambda data, _, columns=None, **more: files.open_table(data, memory, columns, **more)


READINGS = {
    "calibrated": "rows with a missing or undeclared treatment are refused",
    "blocks": "a row with a missing or undeclared treatment takes no part",
}
PAPER = PAPERS_READING


@pytest.mark.parametrize(
    "method", [m for m in METHODS.values() if not m.is_slow], ids=lambda m: m.name
)
def test_each_method_says_how_it_reads_an_undeclared_treatment(method):
    level = "label" if method.name == "calibrated" else "sample"
    leaves_out = takes(method.name, level, "undeclared")
    rules = encoded(pd.DataFrame(study(arm={3: None}) if level == "sample" else study()),
                    level=level, leaves_out=leaves_out).rules  # fmt: skip
    assert rules.treatment == READINGS.get(method.name, PAPER)


def test_rules_say_what_is_in_force_and_count_what_is_public():
    frame = pd.DataFrame(study(age={3: None}, ward={4: "east"}))
    public = encoded(frame).rules.to_dict()
    assert public["left_out_treatment"] == public["left_out_unreadable"] == 0
    assert (public["filled"], public["undeclared"]) == ({"age": 1}, {"ward": 1})
    assert "indicator" in public["covariates"]

    private = encoded(frame, level="sample").rules.to_dict()
    assert set(private) == {"treatment", "covariates", "outcome"}
    assert "the middle of its bounds" in private["covariates"]
    assert "indicator" not in private["covariates"]

    bare = Domain(DOMAIN.treatment, DOMAIN.outcome)
    bare = encoded(frame[["arm", "y"]], bare, level="sample").rules
    assert bare.covariates == "no covariates are used"
    assert MissingRules("a", "b", "c").to_dict() == {
        "treatment": "a", "covariates": "b", "outcome": "c",
    }  # fmt: skip


def test_counts_add_up_over_runs_of_rows():
    one = PublicCounts(
        5, Entries(1, 4), labels={"B": 2}, unreadable={"x": Entries(2, 3)}, missing={"x": 1}
    )
    other = one.after(5)
    assert other.missing_arms == Entries(1, 9)
    assert other.undeclared_arms == Entries()
    total = one + other
    assert total.unreadable == {"x": Entries(4, 3)}
    assert total.labels == {"B": 4}
    assert (total.rows, total.missing) == (10, {"x": 2})
    many = PublicCounts(labels={f"{label:02d}": 1 for label in range(9)})
    assert len((many + PublicCounts(labels={"a": 1, "b": 1, "c": 1})).labels) == 11


@pytest.mark.parametrize("entry", [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, "", b"NA"])
def test_what_stands_for_no_value_is_missing(entry):
    assert is_missing(entry)


@pytest.mark.parametrize("entry", [0, "0", "x", math.inf, [], object(), 1 + 2j, "not a number"])
def test_what_is_something_is_not_missing(entry):
    assert not is_missing(entry)


def test_decimal_commas_are_told_from_texts():
    assert all(map(has_decimal_comma, ["1,5", "-0,25", " 12,0 ", "1.234,5", "1,5e-3"]))
    assert not any(map(has_decimal_comma, ["1.5", "a,b", "1,", ",", "", "1,5x", "May 5, 2020"]))


def ledger_with(tmp_path, **asked):
    return Ledger.create(tmp_path / "budget.db", "trial", epsilon="5", **asked)


@pytest.mark.parametrize("form", ["polars", "csv", "streamed csv"])
def test_undeclared_public_entries_cost_nothing_and_bind_the_columns(form, tmp_path):
    data, asked = shaped(study(arm={0: "B"}), form, tmp_path)
    ledger = ledger_with(tmp_path)

    with pytest.raises(UndeclaredError):
        estimate_ate(data, domain=DOMAIN, level="label", epsilon=1, ledger=ledger, **asked)

    assert ledger.accounts()[0].left.epsilon_text == "5"
    roles = ledger.roles("trial")
    assert (roles.level, roles.public) == ("label", {"arm", "age", "ward"})
    assert ledger.verify().entries == 2
    # What was told of a public column cannot have been told of an outcome.
    swapped = Domain(DOMAIN.treatment, ("age", Interval(20, 80)))
    with pytest.raises(LedgerError, match="'age' is public"):
        estimate_ate(
            data, domain=swapped, covariates=[], level="label", epsilon=1, ledger=ledger, **asked
        )
    release = estimate_ate(
        data, domain=DOMAIN, level="label", epsilon=1, ledger=ledger, leave_out_undeclared=True,
        **asked,
    )  # fmt: skip
    assert release.n == ROWS - 1
    ledger.close()


def test_leaving_out_is_part_of_what_was_asked(tmp_path):
    ledger = ledger_with(tmp_path)
    asked = {"domain": DOMAIN, "level": "label", "epsilon": 1, "ledger": ledger}
    frame = pd.DataFrame(study())
    estimate_ate(frame, **asked, request_id="one")
    with pytest.raises(LedgerError, match="with other parameters"):
        estimate_ate(frame, **asked, request_id="one", leave_out_undeclared=True)
    ledger.close()


def test_a_binding_with_the_last_label_as_other_still_matches(tmp_path, monkeypatch):
    """Earlier versions wrote the last label where no other category was declared."""
    from private_ate import charging

    ledger = ledger_with(tmp_path)
    frame = pd.DataFrame(study())
    asked = {"level": "label", "epsilon": 1, "ledger": ledger}
    now = charging._declaration

    def earlier(kind, rule=None):
        text = now(kind, rule)
        return (
            text
            if isinstance(kind, Interval) or kind.other
            else f"{text}, else {kind.labels[-1]!r}"
        )

    monkeypatch.setattr(charging, "_declaration", earlier)
    first = estimate_ate(frame, domain=DOMAIN, **asked, request_id="old")
    assert binding_of(DOMAIN).declared["ward"] == '"north" | "south", else \'south\''
    monkeypatch.setattr(charging, "_declaration", now)
    assert binding_of(DOMAIN).declared["ward"] == '"north" | "south"'

    assert estimate_ate(frame, domain=DOMAIN, **asked, request_id="old") == first
    estimate_ate(frame, domain=DOMAIN, **asked)
    written = Domain(  # as earlier versions wrote it to TOML
        DOMAIN.treatment, DOMAIN.outcome,
        DOMAIN.covariates | {"ward": Categories("north", "south", other="south")},
    )  # fmt: skip
    estimate_ate(frame, domain=written, **asked)
    assert estimate_ate(frame, domain=written, **asked, request_id="old") == first
    ledger.verify()
    ledger.close()


def test_a_new_binding_tells_an_other_category_from_none(tmp_path):
    ledger = ledger_with(tmp_path)
    frame = pd.DataFrame(study())
    asked = {"level": "label", "epsilon": 1, "ledger": ledger}
    estimate_ate(frame, domain=DOMAIN, **asked, request_id="one")
    named = Domain(
        DOMAIN.treatment, DOMAIN.outcome,
        DOMAIN.covariates | {"ward": Categories("north", "south", other="south")},
    )  # fmt: skip
    with pytest.raises(LedgerError, match="declares column 'ward' as"):
        estimate_ate(frame, domain=named, **asked)
    with pytest.raises(LedgerError, match="with other parameters"):
        estimate_ate(frame, domain=named, **asked, request_id="one")
    arm = Domain(Treatment("arm", "A", "placebo", other="A"), DOMAIN.outcome, DOMAIN.covariates)
    with pytest.raises(LedgerError, match="declares column 'arm' as"):
        estimate_ate(frame, domain=arm, **asked)
    ledger.close()


@pytest.mark.parametrize("labels", [("a", "b | c"), ('say "hi"', "x, else 'y'"), ("1", "2")])
def test_odd_labels_keep_their_older_text(labels):
    domain = Domain(Treatment("t", 1, 0), "y", {"g": Categories(*labels), "x": Interval(0, 1)})
    named = Domain(
        Treatment("t", 1, 0), "y", {"g": Categories(*labels, other=labels[-1]), "x": Interval(0, 1)}
    )
    assert binding_of(domain).as_before() == binding_of(named)
    assert binding_of(named).as_before() == binding_of(named)


def test_synthesisers_have_a_code_for_rows_without_a_declared_label():
    from private_ate.baselines.synthetic_records import RecordCoding

    found = encoded(pd.DataFrame(study(ward={0: "east"})), level="sample")
    coding = RecordCoding.of(found.domain, 4, 4)
    assert coding.sizes == (4, 3, 2, 4)
    codes = coding.codes(found._block(0))
    assert codes[0, 1] == 2
    assert set(codes[1:, 1].tolist()) == {0, 1}
    again = coding.decode(codes, np.random.default_rng(0))
    np.testing.assert_array_equal(again.covariates[1:], found.covariates[1:])


def test_an_array_of_arrow_nulls_is_missing():
    columns = pl.DataFrame(study()).to_arrow()
    ages = pa.array([None, *map(float, study()["age"][1:])])
    found = encoded(columns.set_column(1, "age", ages))
    assert found.rules.filled == {"age": 1}


def test_b_takes_no_part_at_sample_level():
    three = study(arm=dict.fromkeys(range(200), "B"))
    found = encoded(pd.DataFrame(three), level="sample")
    assert np.flatnonzero(~found.takes_part).tolist() == list(range(200))
    request = Request("sample", parse_epsilon(1))
    moved = encoded(pd.DataFrame(three | {"y": [0.0] * 200 + three["y"][200:]}), level="sample")
    releases = [
        estimate_study(one, request, method_for("blocks", request), seed=4)
        for one in (found, moved)
    ]
    assert releases[0] == releases[1]


@pytest.mark.parametrize("asked", [{"method": "published"}, {"target": "track"},
                                   {"estimand": "att"}, {"estimand": "ato"}], ids=str)  # fmt: skip
@pytest.mark.parametrize("form", ["polars", "streamed csv"])
def test_every_label_method_takes_indicators(asked, form, tmp_path):
    odd = study(age=dict.fromkeys(range(0, ROWS, 7)), ward={4: "east"}, arm={5: None})
    data, limits = shaped(odd, form, tmp_path)
    release = label(data, leave_out_undeclared=True, **asked, **limits)
    assert release.n == ROWS - 1
    assert np.isfinite(release.ate)


@pytest.mark.parametrize("treatment", ["t", Treatment("t"), Treatment("t", treated=2)])
def test_sample_level_refuses_labels_that_nobody_declared_before_anything_is_spent(
    treatment, tmp_path
):
    rng = np.random.default_rng(1)
    rows = {"t": rng.integers(1, 3, 100), "y": rng.random(100), "x": rng.random(100)}
    ledger = Ledger.create(tmp_path / "budget.db", "study", epsilon="1")
    domain = Domain(treatment, ("y", Interval(0, 1)), {"x": Interval(0, 1)})

    with pytest.raises(DomainError, match="not assumed") as refused:
        estimate_ate(
            pl.DataFrame(rows), domain=domain, level="sample", epsilon=1, ledger=ledger,
            dataset="study",
        )  # fmt: skip

    assert refused.value.parameter == "labels"
    assert [account.spent.epsilon for account in ledger.accounts("study")] == [0]


@pytest.mark.parametrize(
    ("treatment", "arms"),
    [
        (Treatment("t", treated=2, control=1), [1, 2]),
        (Treatment("t", arms=("1", "2")), [1, 2]),
        (Treatment("t", bins=(0, 1.5, 3)), [1, 2]),
        ("t", [False, True]),  # a type without other labels
    ],
)
def test_sample_level_takes_labels_that_are_declared_or_follow_from_the_type(treatment, arms):
    rng = np.random.default_rng(1)
    rows = {"t": rng.choice(arms, 100), "y": rng.random(100), "x": rng.random(100)}
    domain = Domain(treatment, ("y", Interval(0, 1)), {"x": Interval(0, 1)})

    assert estimate_ate(pl.DataFrame(rows), domain=domain, level="sample", epsilon=1, seed=1)


def test_labels_that_are_assumed_equal_the_ones_they_stand_for():
    assert Treatment("t") == Treatment("t", 1, 0)
    assert Treatment("t").is_assumed
    assert not Treatment("t", 1, 0).is_assumed
    assert Domain.from_toml(Domain("t", "y").to_toml()).treatment.is_assumed
