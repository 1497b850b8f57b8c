"""Any frame or file becomes the same numbers, and no private value decides about an error."""

import csv
import datetime as dt
from decimal import Decimal

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
    SchemaError,
    Treatment,
    estimate_ate,
)
from private_ate.data.encoding import encode_arms, encode_covariates, encode_outcome
from private_ate.data.files import read_schema, read_table
from private_ate.data.inputs import complete_domain, covariate_names

DOMAIN = Domain(
    Treatment("drug", treated="yes", control="no"),
    ("drop", Interval(-10, 30)),
    {
        "age": Interval(18, 90),
        "dose": Interval(0, 2, missing=0.5),
        "ward": Categories("a", "b", "other"),
        "ill": Categories(True, False),
    },
)


def draw_rows(rows: int = 300) -> dict[str, list[object]]:
    rng = np.random.default_rng(9)
    columns = {
        "age": [int(age) for age in rng.integers(15, 95, rows)],
        "dose": [float(dose) for dose in rng.random(rows).round(3) * 2],
        "ward": [str(ward) for ward in rng.choice(["a", "b", "c", "other"], rows)],
        "ill": [bool(ill) for ill in rng.random(rows) < 0.3],
        "drug": [str(drug) for drug in rng.choice(["yes", "no"], rows)],
        "drop": [float(drop) for drop in rng.normal(10, 10, rows).round(2)],
    }
    for name, missing in (("age", 3), ("dose", 5), ("ward", 7), ("drop", 11)):
        columns[name][missing] = None
    return columns


def every_form(columns: dict[str, list[object]], folder) -> dict[str, object]:
    frame = pl.DataFrame(columns)
    frame.write_csv(folder / "study.csv")
    frame.write_parquet(folder / "study.parquet")
    plain = pd.DataFrame(columns)
    nullable = plain.astype(
        {"age": "Int64", "dose": "Float64", "ward": "string", "ill": "boolean", "drug": "category"}
    )
    return {
        "polars": frame,
        "lazy": frame.lazy(),
        "categorical polars": frame.with_columns(pl.col("ward", "drug").cast(pl.Categorical)),
        "pandas": plain,
        "pandas objects": plain.astype(object),
        "pandas categories": plain.astype({"ward": "category", "drug": "category"}),
        "pandas nullable": nullable,
        "pandas arrow": nullable.astype({"ward": "category"}).convert_dtypes(
            dtype_backend="pyarrow"
        ),
        "pyarrow": pa.table(columns),
        "csv": folder / "study.csv",
        "csv as text": str(folder / "study.csv"),
        "parquet": folder / "study.parquet",
    }


@pytest.mark.parametrize("level", ["label", "sample"])
def test_every_form_of_the_same_table_gives_the_same_release(level, tmp_path):
    forms = every_form(draw_rows(), tmp_path)

    releases = {
        name: estimate_ate(form, domain=DOMAIN, level=level, epsilon=2, seed=4)
        for name, form in forms.items()
    }

    assert {name for name, found in releases.items() if found != releases["polars"]} == set()


def test_undeclared_public_covariates_are_looked_up_the_same_in_every_form(tmp_path):
    domain = Domain(DOMAIN.treatment, DOMAIN.outcome)
    forms = every_form(draw_rows(), tmp_path)

    releases = {
        name: estimate_ate(form, domain=domain, covariates="all", level="label", epsilon=2, seed=4)
        for name, form in forms.items()
    }

    assert {name for name, found in releases.items() if found != releases["polars"]} == set()


@pytest.mark.parametrize(
    ("entries", "treatment"),
    [
        ([1, 0, 0, 1], Treatment("t")),
        ([1.0, 0.0, 2.0, 1.0], Treatment("t")),
        ([True, False, False, True], Treatment("t")),
        ([True, False, False, True], Treatment("t", treated="true", control="false")),
        ([1, 0, None, 1], Treatment("t", treated="True", control="False")),
        (["true", "false", "no", "TRUE"], Treatment("t")),
        (["1.0", "0", "", " 1 "], Treatment("t")),
        (["true", "0", None, "1"], Treatment("t", treated=True, control=False)),
        (["drug", "placebo", None, "drug "], Treatment("t", treated="drug", control="placebo")),
        ([2, 1, None, 2], Treatment("t", treated=2, control=1)),
        ([2, 1, 7, 2], Treatment("t", treated="2", control="1")),
        ([0.5, 1, 7, 0.5], Treatment("t", treated=0.5, control=1)),
        ([0.5, 1, 7, 0.5], Treatment("t", treated="0.5", control="1")),
    ],
)
def test_the_treated_label_is_found_in_whatever_way_it_is_written(entries, treatment, tmp_path):
    domain = Domain(treatment, ("y", Interval(0, 1)))
    frame = pl.DataFrame({"t": entries, "y": [0.0] * 4}, strict=False)
    frame.write_csv(tmp_path / "t.csv")
    forms = [
        frame,
        tmp_path / "t.csv",
        pd.DataFrame({"t": entries, "y": [0.0] * 4}),
        pd.DataFrame({"t": pd.Series(entries, dtype=object), "y": [0.0] * 4}),
        pd.DataFrame({"t": pd.Series(entries, dtype="category"), "y": [0.0] * 4}),
    ]

    for form in forms:
        found = encode_arms(read_table(form), domain)[0]
        assert found.tolist() == [True, False, False, True]


def test_numpy_scalars_and_decimals_in_object_columns_are_numbers_and_labels():
    entries = [np.int64(1), np.bool_(True), np.float32(1.0), 1, "1", np.int8(0), None, pd.NA]
    frame = pd.DataFrame({"t": pd.Series(entries, dtype=object), "y": 0.0})
    mixed = [Decimal("0.25"), "0.25", np.float32(0.25), 10**400, "x", [1], pd.NaT, float("nan")]
    frame["x"] = pd.Series(mixed, dtype=object)
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})

    table = read_table(frame)

    assert encode_arms(table, domain)[0].tolist() == [True] * 5 + [False] * 3
    assert encode_covariates(table, domain)[0].tolist() == [0.25] * 3 + [0.5] * 5


def test_missing_and_undeclared_labels_fall_into_the_catch_all():
    kinds = {"ward": Categories("a", "b", "rest", other="a")}
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), kinds)
    frame = pl.DataFrame({"ward": ["a", "b", "z", None, " b "], "t": [0] * 5, "y": [0.0] * 5})

    encoded = encode_covariates(read_table(frame), domain)

    assert encoded.tolist() == [[1, 0, 1, 1, 0], [0, 1, 0, 0, 1], [0, 0, 0, 0, 0]]


def test_without_a_catch_all_they_are_a_category_of_their_own():
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"ward": Categories("a", "b")})
    frame = pl.DataFrame({"ward": ["a", "b", "z", None], "t": [0] * 4, "y": [0.0] * 4})

    encoded = encode_covariates(read_table(frame), domain)

    assert encoded.tolist() == [[1, 0, 0, 0], [0, 1, 0, 0]]


@pytest.mark.parametrize("entries", [[3, 4, 5], [3.0, 4.0, 9.5], ["3", "4.0", "x"]])
def test_numbers_serve_as_categories(entries):
    domain = Domain(
        Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Categories(3, 4, 5, other=5)}
    )
    frame = pl.DataFrame({"x": entries, "t": [0] * 3, "y": [0.0] * 3})

    encoded = encode_covariates(read_table(frame), domain)

    assert encoded.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_covariates_are_clipped_scaled_and_filled_without_a_warning():
    values = [np.nan, np.inf, -np.inf, -0.0, 1.7e308, -1.7e308, 0.125, None]
    domain = Domain(
        Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 0.5, missing=0.125)}
    )
    frame = pl.DataFrame({"x": values, "t": [0] * 8, "y": [0.0] * 8}, strict=False)

    encoded = encode_covariates(read_table(frame), domain)

    assert encoded[0].tolist() == [0.25, 1, 0, 0, 1, 0, 0.25, 0.25]


def test_a_constant_declared_covariate_is_one_half():
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(3, 3)})
    frame = pl.DataFrame({"x": [3.0, 9.0], "t": [0, 1], "y": [0.0, 1.0]})

    assert encode_covariates(read_table(frame), domain).tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("replaced", ["7", 7.0, None, "x", float("nan"), b"x", dt.date.min])
def test_one_record_of_a_pandas_object_column_never_decides_about_an_error(replaced):
    texts = ["1.5", "2.5", "3.5"]
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 4)), {"x": Interval(0, 4)})

    for base in (texts, [1.5, 2.5, 3.5], [None, None, None]):
        entries = pd.Series([*base[:2], replaced], dtype=object)
        frame = pd.DataFrame({"x": entries, "y": entries, "t": pd.Series([1, 0, 1], dtype=object)})
        release = estimate_ate(frame, domain=domain, level="sample", epsilon=1, seed=1)
        assert release.n == 3


def test_a_missing_label_in_a_pandas_text_column_is_control_and_no_error():
    for kind in ("str", "category", "string", object):
        frame = pd.DataFrame({"t": pd.Series(["yes", None, "no"], dtype=kind), "y": 0.5})
        domain = Domain(Treatment("t", treated="yes", control="no"), ("y", Interval(0, 1)))
        assert encode_arms(read_table(frame), domain)[0].tolist() == [True, False, False]


def test_a_csv_with_garbage_in_private_columns_is_read_value_by_value(tmp_path):
    path = tmp_path / "odd.csv"
    odd = ["", "abc", 'say "hi"', "1,5", "bare\rreturn", "NaN", "inf", "-inf", "1e999", "0x10", "½",
           "'", "\t", " 7 ", "-0.0", "TRUE", "\x00", "#", "None", "null"]  # fmt: skip
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["x", "t", "y"])
        writer.writerows([entry, odd[-position], entry] for position, entry in enumerate(odd))
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 10)})
    table = read_table(path)

    outcome = encode_outcome(table, domain) / 2**30 * 10

    expected = [5.0] * 20
    for position, value in ((6, 10), (7, 0), (8, 10), (13, 7), (14, 0), (15, 1)):
        expected[position] = value
    assert outcome.tolist() == pytest.approx(expected, abs=1e-6)
    release = estimate_ate(path, domain=domain, level="sample", epsilon=1, seed=2)
    assert release.n == len(odd)


def test_bytes_that_are_no_text_do_not_stop_the_reader(tmp_path):
    path = tmp_path / "bytes.csv"
    path.write_bytes(b"x,t,y\n1,1,2\n\xff\xfe,0,\x80\n3,1\n4,0,1,extra\n")
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 10)})

    assert estimate_ate(path, domain=domain, level="sample", epsilon=1, seed=2).n == 4


@pytest.mark.parametrize(
    "record",
    [
        '"ab,0,3',
        'a"b,0,3',
        '"a"b,0,3',
        '""",0,3',
        "",
        ",,",
        "\r",
        "x" * 200_000,
        '"' * 5,
        "5'11\",1,2",
    ],
    ids=lambda record: record[:9],
)
def test_a_stray_quotation_mark_in_one_record_is_not_an_error(record, tmp_path):
    path = tmp_path / "quotes.csv"
    path.write_text(f"x,t,y\n1,1,2\n{record}\n3,0,4\n", "utf-8", newline="")
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 8)), {"x": Interval(0, 8)})

    table = read_table(path)

    assert table.rows == 3
    assert encode_covariates(table, domain)[0, [0, 2]].tolist() == [1 / 8, 3 / 8]
    assert encode_arms(table, domain)[0][[0, 2]].tolist() == [True, False]
    assert estimate_ate(path, domain=domain, level="sample", epsilon=1, seed=1).n == 3


@pytest.mark.parametrize("header", ["x,,y", '"a,b",c,d', "\ufeffx,y,z"])
def test_both_readers_of_a_csv_give_the_same_columns(header, tmp_path):
    for name, record in (("plain", "1,2,3"), ("quotes", 'a"b,2,3')):
        (tmp_path / f"{name}.csv").write_text(f"{header}\n{record}\n", "utf-8")

    plain, quotes = (read_table(tmp_path / f"{name}.csv") for name in ("plain", "quotes"))

    assert plain.names == quotes.names
    assert plain.frame.schema == quotes.frame.schema
    assert quotes.frame.rows() == [('a"b', "2", "3")]


def test_a_column_whose_type_is_no_number_is_refused_by_its_type():
    frame = pl.DataFrame({"x": ["1", "2"], "t": [0, 1], "y": [0.0, 1.0]})
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
    with pytest.raises(SchemaError, match="'x' is declared as numbers but its type is string"):
        estimate_ate(frame, domain=domain, level="sample", epsilon=1)
    dates = frame.with_columns(x=pl.Series([dt.date(2020, 1, 1)] * 2))
    labels = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Categories("a", "b")})
    with pytest.raises(SchemaError, match="'x' is declared by labels but its type is date"):
        estimate_ate(dates, domain=labels, level="sample", epsilon=1)


@pytest.mark.parametrize("data", [{"t": [1]}, 5, None, np.zeros((2, 2)), [[1, 2]]])
def test_data_that_is_no_table_is_refused_with_a_sentence(data):
    with pytest.raises(ArgumentError, match="cannot be read; give a pandas, polars or pyarrow"):
        read_table(data)


def test_tables_without_rows_or_columns_are_refused():
    with pytest.raises(SchemaError, match="no rows"):
        read_table(pl.DataFrame({"t": [], "y": []}))
    table = read_table(pd.DataFrame({0: [1.0], "y": [2.0]}))
    with pytest.raises(SchemaError, match="no treatment column 't' among its 2 columns"):
        table.require("t", "treatment")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["age", "drug", "drop"], "found: 'age', 'drug', 'drop'"),
        (["age;drug;drop"], "its first line holds semicolons"),
        (["ann", "red", "king"], "the first line of a file is taken for its header"),
        (["41", "red", "5.5"], "the first line of a file is taken for its header"),
        (["drug", *(f"c{place}" for place in range(24))], "… 5 more"),
        (["drug", "gr\ufffd\ufffde"], "not of this encoding: say which one it is"),
    ],
)
def test_a_column_that_is_not_there_is_told_with_those_that_are(names, words):
    with pytest.raises(SchemaError, match="no outcome column 'y'") as refused:
        read_table(pl.DataFrame({name: [1] for name in names})).require(
            "y", "outcome", ["drug", "y"]
        )

    assert words in str(refused.value)
    assert "red" not in str(refused.value)


def test_two_columns_of_the_same_name_are_refused():
    frame = pd.DataFrame([[1, 2, 3.0]], columns=["t", "t", "y"])
    with pytest.raises(SchemaError, match="same name"):
        read_table(frame)


def test_files_that_cannot_be_read_are_named_without_quoting_them(tmp_path):
    (tmp_path / "secret.parquet").write_bytes(b"canary-4711")
    (tmp_path / "table.ods").write_bytes(b"")
    (tmp_path / "empty.csv").write_bytes(b"")
    with pytest.raises(SchemaError, match="cannot be read as Parquet") as caught:
        read_table(tmp_path / "secret.parquet")
    assert caught.value.__cause__ is None
    with pytest.raises(SchemaError, match="comma-separated values with a header line"):
        read_table(tmp_path / "empty.csv")
    with pytest.raises(ArgumentError, match=r"neither \.csv nor \.parquet"):
        read_table(tmp_path / "table.ods")
    with pytest.raises(ArgumentError, match="there is no file"):
        read_table(tmp_path / "absent.csv")


def test_the_schema_of_a_file_is_read_without_its_values(tmp_path):
    (tmp_path / "a.csv").write_text("x,t,y\n1,2,3\n", "utf-8")
    (tmp_path / "b.csv").write_text("x,t,y\ncanary,,\n\n\n1,2,3,4,5,6\n", "utf-8")
    frame = pl.DataFrame({"x": ["canary"], "t": [True], "d": [dt.date(2020, 1, 1)]})
    frame.write_parquet(tmp_path / "c.parquet")

    assert read_schema(tmp_path / "a.csv") == {"x": None, "t": None, "y": None}
    assert read_schema(tmp_path / "b.csv") == read_schema(tmp_path / "a.csv")
    assert read_schema(tmp_path / "c.parquet") == {"x": "label", "t": "binary", "d": "other"}


def test_covariates_are_those_asked_for_declared_or_left_over():
    frame = pl.DataFrame({"a": [1.0], "b": [1.0], "t": [1], "y": [1.0]})
    table = read_table(frame)
    bare = Domain(Treatment("t", 1, 0), "y")
    declared = Domain(Treatment("t", 1, 0), "y", {"b": Interval(0, 1)})

    assert covariate_names(table, bare, None) == ("a", "b")
    assert covariate_names(table, declared, None) == ("b",)
    assert covariate_names(table, declared, ("a",)) == ("a",)
    with pytest.raises(SchemaError, match="no covariate column 'z'"):
        covariate_names(table, bare, ("z",))
    with pytest.raises(ArgumentError, match="'t' cannot be a covariate"):
        covariate_names(table, bare, ("t",))


def test_bounds_are_looked_up_only_where_that_is_allowed():
    frame = pl.DataFrame(
        {"a": [2.0, 4.0], "w": ["u", "v"], "e": [None, None], "one": ["q", "q"], "t": [1, 0],
         "y": [1.0, 3.0]}
    )  # fmt: skip
    table, names = read_table(frame), ("a", "w", "e", "one")

    found = complete_domain(
        table, Domain(Treatment("t", 1, 0), "y"), names, outcome=True, looked_up=True
    )

    assert found.covariates == {
        "a": Interval(2, 4), "w": Categories("u", "v"), "e": Interval(0, 1), "one": Interval(0, 1)
    }  # fmt: skip
    assert found.bounds == Interval(1, 3)
    with pytest.raises(DomainError, match=r"'a' has no .*Interval\(lo, hi\) or Categories"):
        complete_domain(
            table, Domain(Treatment("t", 1, 0), "y"), names, outcome=False, looked_up=False
        )
    with pytest.raises(DomainError, match="outcome 'y' has no declared bounds"):
        complete_domain(
            table, Domain(Treatment("t", 1, 0), "y"), names, outcome=False, looked_up=True
        )


def test_a_public_column_with_hundreds_of_labels_is_refused():
    frame = pl.DataFrame(
        {"w": [f"label {row}" for row in range(300)], "t": [0, 1] * 150, "y": [0.0] * 300}
    )
    with pytest.raises(SchemaError, match="more than 200 labels"):
        estimate_ate(
            frame, domain=Domain("t", ("y", Interval(0, 1))), covariates=["w"], level="label",
            epsilon=1,
        )  # fmt: skip
