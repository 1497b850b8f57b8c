"""Files of Stata, SPSS, Excel and R: read like their twins, silent about what they hold."""

import bz2
import gzip
import lzma
import random
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest

pytest.importorskip("pyreadstat", reason="FORMATS WERE NOT READ: install the extra formats")
pytest.importorskip("rdata", reason="FORMATS WERE NOT READ: install the extra formats")

import pandas as pd
import pyreadstat
import rdata
from typer.testing import CliRunner

from private_ate import (
    ArgumentError,
    Categories,
    Domain,
    Interval,
    PrivateAteError,
    SchemaError,
    Treatment,
    estimate_ate,
)
from private_ate.cli.app import app
from private_ate.data.files import (
    StreamedTable,
    open_schema,
    open_table,
    read_schema,
    without_words,
)
from private_ate.engines.local import LocalStudy
from workbooks import write_workbook

CANARY = "canary-4711"
DOMAIN = Domain(
    Treatment("t", 1, 0),
    ("y", Interval(0, 10)),
    {"x": Interval(0, 10), "ward": Categories("north", "süd", "other")},
)
ENDINGS = [".dta", ".sav", ".zsav", ".xlsx", ".rds"]


def study(rows=60):
    rng = np.random.default_rng(2)
    frame = pl.DataFrame(
        {
            "x": rng.random(rows).round(4) * 10,
            "t": rng.integers(0, 2, rows).astype(float),
            "ward": rng.choice(["north", "süd", "other", CANARY], rows),
            "y": rng.random(rows).round(4) * 10,
        }
    )
    # A column that is missing in every row keeps the type that the file declares.
    gone = pl.when(pl.int_range(pl.len()) % 7 == 0).then(None).otherwise(pl.col("x")).alias("x")
    return frame.with_columns(gone)


def write(path, frame):
    """Write a frame in the format that the path's ending names."""
    match path.suffix:
        case ".dta":
            pyreadstat.write_dta(frame, str(path))
        case ".sav" | ".zsav":
            pyreadstat.write_sav(frame, str(path), compress=path.suffix == ".zsav")
        case ".xlsx":
            write_workbook(path, [frame.columns, *frame.rows()])
        case ".rds":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                objects = {
                    name: pd.Series(
                        frame[name].to_list(),
                        dtype=object if frame[name].dtype == pl.String else float,
                    )
                    for name in frame.columns
                }
                rdata.write_rds(path, pd.DataFrame(objects))
    return path


def encode_file(path, memory):
    return encoded(open_table(path, memory))


def encoded(table):
    read = LocalStudy.encode(table, DOMAIN)
    return np.vstack([read.covariates[:, 0 : read.size], read.treatment, read.outcome])


@pytest.fixture(params=ENDINGS)
def path(request, tmp_path):
    return write(tmp_path / f"study{request.param}", study())


def test_a_file_is_read_as_its_twin_in_memory(path):
    table = open_table(path)

    assert table.rows == 60
    assert np.allclose(encoded(table), encoded(open_table(study())), atol=1e-9)


def test_an_estimate_is_that_of_the_same_frame(path):
    level = "label" if path.suffix == ".xlsx" else "sample"
    asked = {"domain": DOMAIN, "level": level, "epsilon": 1, "seed": 1}

    assert estimate_ate(path, **asked).ate == pytest.approx(estimate_ate(study(), **asked).ate)


def test_types_come_from_the_dictionary_and_no_value_changes_them(tmp_path):
    for ending in ENDINGS:
        plain = read_schema(write(tmp_path / f"a{ending}", study()))
        odd = study().with_columns(
            pl.lit(None, pl.Float64).alias("y"), pl.lit("", pl.String).alias("ward")
        )
        assert read_schema(write(tmp_path / f"b{ending}", odd)) == plain
        expected = {"x": "number", "t": "number", "ward": "label", "y": "number"}
        assert plain == (dict.fromkeys(expected) if ending == ".xlsx" else expected)


@pytest.mark.parametrize("ending", [".dta", ".sav", ".zsav"])
@pytest.mark.parametrize("chunk", [1, 7, 60, 1000])
def test_what_can_be_streamed_reads_the_same_in_parts(tmp_path, ending, chunk):
    path = write(tmp_path / f"study{ending}", study())
    streamed = open_table(path, 0)

    assert isinstance(streamed, StreamedTable)
    assert np.array_equal(encoded(replace(streamed, chunk=chunk)), encoded(open_table(path)))


def test_labelled_columns_hold_their_codes(tmp_path):
    frame = pl.DataFrame({"k": [1.0, 2.0, 9.0]})
    labels = {"k": {1: "one", 2: "two", 9: "refused"}}
    pyreadstat.write_dta(frame, str(tmp_path / "k.dta"), variable_value_labels=labels)
    pyreadstat.write_sav(
        frame, str(tmp_path / "k.sav"), variable_value_labels=labels, missing_ranges={"k": [9]}
    )

    assert open_table(tmp_path / "k.dta").numbers("k").tolist() == [1, 2, 9]
    # What SPSS was told to take for missing is missing.
    assert np.isnan(open_table(tmp_path / "k.sav").numbers("k")).tolist() == [False, False, True]


def test_factors_are_their_levels_and_missing_entries_are_missing(tmp_path):
    levels = pd.Index(["u", "v"], dtype=object)
    frame = pd.DataFrame({"k": pd.Categorical(["u", None, "v"], categories=levels), "i": [1, 2, 3]})
    rdata.write_rds(tmp_path / "k.rds", frame)
    table = open_table(tmp_path / "k.rds")

    assert table.equals("k", "v").tolist() == [False, False, True]
    assert table.missing("k").tolist() == [False, True, False]
    assert table.numbers("i").tolist() == [1, 2, 3]


def test_dates_are_neither_numbers_nor_labels(tmp_path):
    frame = pl.DataFrame({"when": [pl.date(2024, 1, 2)], "x": [1.0]}).select(
        pl.lit("2024-01-02").str.to_date().alias("when"), pl.lit(1.0).alias("x")
    )
    pyreadstat.write_dta(frame, str(tmp_path / "d.dta"))
    pyreadstat.write_sav(frame, str(tmp_path / "d.sav"))

    for ending in (".dta", ".sav"):
        assert read_schema(tmp_path / f"d{ending}") == {"when": "other", "x": "number"}
        with pytest.raises(SchemaError, match="its type is date"):
            open_schema(tmp_path / f"d{ending}") and open_table(tmp_path / f"d{ending}").numbers(
                "when"
            )


@pytest.mark.parametrize("ending", [".dta", ".sav", ".zsav", ".rds"])
@pytest.mark.parametrize("row", [0, 30, 59])
@pytest.mark.parametrize(
    "record",
    [
        (None, None, None, None),
        (8.9e307, float("nan"), "", -8.9e307),
        (5e-324, 1.0, "\x00\x01", 8.98e307),
        (-(2.0**63), 2.0**53, "ü" * 200, 0.1),
    ],
    ids=["empty", "huge", "control", "large"],
)
def test_no_record_changes_the_number_of_rows_the_types_or_another_record(
    tmp_path, ending, row, record
):
    plain = write(tmp_path / f"a{ending}", study())
    rows = study().rows()
    rows[row] = record
    odd = write(tmp_path / f"b{ending}", pl.DataFrame(rows, study().schema, orient="row"))
    others = [place for place in range(60) if place != row]

    assert read_schema(odd) == read_schema(plain)
    assert open_table(odd).rows == 60
    assert np.array_equal(
        encode_file(odd, 1 << 30)[:, others], encode_file(plain, 1 << 30)[:, others]
    )


@pytest.mark.parametrize("unpacked", [gzip.compress, bz2.compress, lzma.compress])
def test_a_saved_data_frame_is_unpacked_only_as_far_as_memory_allows(
    tmp_path, monkeypatch, unpacked
):
    path = write(tmp_path / "a.rds", study())
    monkeypatch.setattr("private_ate.data.formats.MOST_BYTES", 1 << 20)
    path.write_bytes(unpacked(bytes(1 << 22)))

    for door in (read_schema, open_schema, open_table):
        with pytest.raises(PrivateAteError, match=r"too large once it is unpacked.*Parquet"):
            door(path)


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_bytes_that_are_no_text_are_replaced_in_their_entry_alone(tmp_path, ending):
    path = write(tmp_path / f"a{ending}", pl.DataFrame({"näme": ["süd", "north", "abcdef"]}))
    path.write_bytes(path.read_bytes().replace(b"abcdef", b"\xff\xfe\x80\xc3\xc3f"))
    table = open_table(path)

    assert table.names == ("näme",)
    assert table.equals("näme", "süd").tolist() == [True, False, False]
    assert table.equals("näme", "north").tolist() == [False, True, False]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_damaged_file_is_read_or_refused_without_a_word_of_it(tmp_path, ending, capfd):
    whole = write(tmp_path / f"whole{ending}", study()).read_bytes()
    chance = random.Random(7)
    path = tmp_path / f"damaged{ending}"
    damages = [whole[: chance.randrange(len(whole))] for _ in range(8)]
    for _ in range(12):
        flipped = bytearray(whole)
        for _ in range(3):
            flipped[chance.randrange(len(flipped))] ^= 1 << chance.randrange(8)
        damages.append(bytes(flipped))
    texts = []
    for damaged in [*damages, b"", CANARY.encode() * 50]:
        path.write_bytes(damaged)
        for memory in (1 << 30, 0):
            try:
                without_words(partial(encode_file, path, memory))  # as the doors do
            except PrivateAteError as refusal:
                texts += [str(refusal), repr(refusal.__context__)]
    out, err = capfd.readouterr()

    assert texts
    assert not any(CANARY in text for text in [*texts, out, err])
    kinds = "cannot be read as|has no rows|has no .* column|could not be read|^None$"
    assert {text for text in texts if not pd.Series([text]).str.contains(kinds).item()} == set()


def test_a_saved_object_that_is_no_data_frame_is_refused(tmp_path):
    rdata.write_rds(tmp_path / "list.rds", {"x": [1.0, 2.0]})

    with pytest.raises(PrivateAteError, match="data frame"):
        open_table(tmp_path / "list.rds")


def test_a_draft_takes_the_types_of_the_file(tmp_path):
    write(tmp_path / "s.dta", study())
    out = tmp_path / "s.toml"
    asked = ["domain", str(tmp_path / "s.dta"), "--out", str(out), "--treatment", "t"]
    done = CliRunner().invoke(app, [*asked, "--outcome", "y"])

    assert done.exit_code == 0
    assert "\nward = { categories" in out.read_text("utf-8")
    assert CANARY not in out.read_text("utf-8")


def test_a_cluster_refuses_what_spark_does_not_read(tmp_path):
    pytest.importorskip("pyspark", reason="pyspark is not here")
    with pytest.raises(ArgumentError, match="Spark reads CSV and Parquet"):
        estimate_ate(
            write(tmp_path / "s.dta", study()), domain=DOMAIN, level="label", epsilon=1,
            engine="spark",
        )  # fmt: skip
