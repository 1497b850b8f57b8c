"""No value of a private column raises, is quoted, goes uncharged or changes its neighbours."""

import datetime as dt
import subprocess
import sys
import traceback
import warnings
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from private_ate import (
    Categories,
    Domain,
    Interval,
    Ledger,
    Treatment,
    describe_overlap,
    diagnose_ate,
    estimate_ate,
    plan_ate,
)
from private_ate.data.encoding import encode_arms, encode_covariates, encode_outcome
from private_ate.data.files import read_table
from private_ate.domain import Outcome
from private_ate.errors import ArgumentError, RecordsError, SchemaError, UndeclaredError

SECRET = 4115550199887766554
ROWS = 24
KINDS = {"x": Interval(0, 1), "g": Categories("a", "b")}
DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), KINDS)


def columns(**replaced):
    """Return plain columns; a keyword replaces the entry of row 5."""
    rng = np.random.default_rng(2)
    plain = {
        "x": rng.integers(0, 2, ROWS).tolist(),
        "g": rng.choice(["a", "b"], ROWS).tolist(),
        "t": ([0, 1] * ROWS)[:ROWS],
        "y": rng.integers(0, 11, ROWS).tolist(),
    }
    for name, entry in replaced.items():
        plain[name][5] = entry
    return plain


def encoded(frame):
    """Return what is made of each row but the sixth."""
    table = read_table(frame)
    parts = [
        encode_covariates(table, DOMAIN),
        encode_arms(table, DOMAIN)[0][None],
        encode_outcome(table, DOMAIN)[None],
    ]
    return np.delete(np.vstack(parts), 5, axis=1).tolist()


@pytest.fixture
def ledger(tmp_path):
    with_budget = Ledger.create(tmp_path / "budget.db", "trial", epsilon="10")
    yield with_budget
    with_budget.close()


def spent(ledger):
    account = ledger.accounts()[0]
    return float(Fraction(account.spent.epsilon, 10**9))


def arrow_frames(plain):
    schema = pa.schema(
        [("x", pa.int64()), ("g", pa.string()), ("t", pa.int64()), ("y", pa.int64())]
    )
    table = pa.table(plain, schema=schema)
    yield table
    yield table.to_pandas(types_mapper=pd.ArrowDtype)
    unsigned = table.set_column(3, "y", pc_cast(table["y"], pa.uint64()))
    yield unsigned
    yield table.set_column(3, "y", pc_cast(table["y"], pa.decimal128(38, 0)))


def pc_cast(column, kind):
    import pyarrow.compute as pc

    return pc.cast(column, kind)


@pytest.mark.parametrize("column", ["x", "t", "y"])
@pytest.mark.parametrize("level", ["label", "sample"])
@pytest.mark.parametrize("form", range(4))
def test_an_integer_beyond_two_to_the_53_is_released_like_any_other(column, level, form):
    usual = list(arrow_frames(columns(**{column: 1})))[form]
    odd = list(arrow_frames(columns(**{column: SECRET})))[form]

    assert encoded(odd) == encoded(usual)
    if (column, level) == ("t", "label"):  # public there, and no declared treatment
        with pytest.raises(UndeclaredError, match="is neither '1' nor '0' in 1 of 24 rows"):
            estimate_ate(odd, domain=DOMAIN, level=level, epsilon=1)
        return
    assert np.isfinite(estimate_ate(odd, domain=DOMAIN, level=level, epsilon=1).ate)


ODD_OBJECTS = [
    "n/a", "0.5", b"\xff", None, pd.NA, pd.NaT, 10**30, -(10**400), True, 0.5, float("inf"), 1 + 2j,
    np.complex128(1 + 2j), np.complex64(2), np.longdouble("1e400"), np.timedelta64(3, "D"),
    np.datetime64("2020-01-01"), Decimal("sNaN"), Decimal("1e999999"), Fraction(1, 3),
    dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.timedelta(1), pd.Timestamp(0), [1], [[1]], {"a": 1},
    np.array([1.0]), np.array(1.0), "\ud800", "٣", object(),
]  # fmt: skip


@pytest.mark.parametrize("column", ["x", "t", "y", "g"])
@pytest.mark.parametrize("entry", ODD_OBJECTS, ids=lambda entry: repr(type(entry))[8:-2])
def test_one_odd_entry_of_a_pandas_frame_changes_its_own_row_alone(column, entry):
    usual = pd.DataFrame(columns())
    objects = columns()
    objects[column] = pd.Series([*objects[column][:5], entry, *objects[column][6:]], dtype=object)
    forms = [pd.DataFrame(objects)]
    with warnings.catch_warnings(), suppress(UnicodeEncodeError, OverflowError):
        warnings.simplefilter("ignore")  # what pandas says while its frame is made is not ours
        forms.append(pd.DataFrame(columns(**{column: entry})))
    for odd in forms:
        assert encoded(odd) == encoded(usual)
        assert estimate_ate(odd, domain=DOMAIN, level="sample", epsilon=1).n == ROWS


@pytest.mark.parametrize("entry", ["n/a", 0.5, None, 1 + 2j, 10**30, pd.Timestamp(0)])
@pytest.mark.parametrize("column", ["x", "t", "y", "g"])
def test_one_entry_does_not_change_what_a_ledger_is_bound_to(ledger, column, entry):
    asked = {"domain": DOMAIN, "level": "sample", "epsilon": 1, "ledger": ledger}
    estimate_ate(pd.DataFrame(columns()), **asked, request_id="one")

    odd = pd.DataFrame(columns(**{column: entry}))
    repeated = estimate_ate(odd, **asked, request_id="one")
    second = estimate_ate(odd, **asked, request_id="two")

    assert repeated.settings["ledger"]["request"] == "one"  # the plan does not follow it either
    assert second.settings["ledger"]["left"] == 8.0


@pytest.mark.parametrize("kind", ["datetime64[ns]", "timedelta64[ns]", "string", "complex128"])
@pytest.mark.parametrize("level", ["label", "sample"])
def test_no_type_that_pandas_infers_is_an_error(kind, level):
    frame = pd.DataFrame(columns())
    texts = pd.Series(["1", "2", "x"] * (ROWS // 3))
    frame["y"] = texts.astype(kind) if kind == "string" else pd.Series([1, 2, 3] * 8).astype(kind)
    assert estimate_ate(frame, domain=DOMAIN, level=level, epsilon=1).n == ROWS


def not_text(column):
    """Return an arrow table with bytes that are no text in one row of a column of texts."""
    plain = columns(**{column: "z"})
    entries = [str(entry).encode() for entry in plain[column]]
    entries[5] = b"secret\xff\xfe"
    length = np.cumsum([0, *map(len, entries)], dtype=np.int32)
    buffers = [None, pa.py_buffer(length.tobytes()), pa.py_buffer(b"".join(entries))]
    raw = pa.Array.from_buffers(pa.string(), ROWS, buffers)
    return pa.table(plain | {column: raw})


@pytest.mark.parametrize("form", ["arrow", "pandas"])
def test_bytes_that_are_no_text_in_a_column_of_texts_are_one_missing_label(form):
    usual = pa.table(columns(g="z"))
    odd = not_text("g")
    if form == "pandas":
        odd = odd.to_pandas(types_mapper=pd.ArrowDtype)
    assert encoded(odd) == encoded(usual)


@pytest.mark.parametrize("memory_limit", [0, "1GB"])
def test_bytes_that_are_no_text_stop_a_parquet_file_in_a_used_column_only_and_at_a_price(
    ledger, memory_limit, tmp_path
):
    path = tmp_path / "odd.parquet"
    pq.write_table(not_text("g"), path)
    asked = {"level": "sample", "epsilon": 1, "ledger": ledger, "memory_limit": memory_limit}
    numbers = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 1)})

    assert estimate_ate(path, domain=numbers, **asked).n == ROWS
    with pytest.raises(RecordsError, match="cannot be read as Parquet") as caught:
        estimate_ate(path, domain=DOMAIN, **asked)
    assert "secret" not in whole_story(caught.value)
    assert spent(ledger) == 2.0


def whole_story(error):
    """Return all that can be printed about an error: its chain, as a debugger would show it."""
    assert error.__context__ is None
    assert error.__cause__ is None
    return "".join(traceback.format_exception(error)) + repr(error)


class Broken:
    """A lazy frame whose computation fails with a record's value in the message."""

    @staticmethod
    def frame():
        texts = columns() | {"y": [str(entry) for entry in columns(y=f"secret{SECRET}")["y"]]}
        return pl.LazyFrame(texts).with_columns(pl.col("y").cast(pl.Int64, strict=True))


@pytest.mark.parametrize("level", ["label", "sample"])
def test_what_another_package_says_while_reading_is_charged_and_not_repeated(ledger, level):
    with pytest.raises(RecordsError, match="the records could not be read") as caught:
        estimate_ate(Broken.frame(), domain=DOMAIN, level=level, epsilon=1, ledger=ledger)

    assert str(SECRET) not in whole_story(caught.value)
    assert spent(ledger) == 1.0


def test_a_schema_that_does_not_fit_is_free_and_told_before_a_record_is_read(ledger):
    for domain in (
        Domain(Treatment("t", 1, 0), ("z", Interval(0, 1)), KINDS),
        Domain(Treatment("t", 1, 0), ("g", Interval(0, 1)), {"x": Interval(0, 1)}),
        Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"g": Interval(0, 1)}),
        Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"w": Interval(0, 1)}),
    ):
        with pytest.raises(SchemaError, match="column") as caught:
            estimate_ate(Broken.frame(), domain=domain, level="sample", epsilon=1, ledger=ledger)
        assert type(caught.value) is SchemaError
    assert spent(ledger) == 0


def test_a_file_is_read_inside_the_charge(ledger, tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    pl.DataFrame(columns()).write_csv(path)

    def fail(*_, **__):
        message = f"cannot parse {SECRET}"
        raise ValueError(message)

    monkeypatch.setattr("private_ate.data.files.read_lines", fail)
    with pytest.raises(RecordsError) as caught:
        estimate_ate(path, domain=DOMAIN, level="sample", epsilon=2, ledger=ledger)

    assert str(SECRET) not in whole_story(caught.value)
    assert spent(ledger) == 2.0


def test_a_repeated_request_reads_no_record(ledger):
    asked = {"domain": DOMAIN, "level": "sample", "epsilon": 1, "ledger": ledger}
    first = estimate_ate(pl.DataFrame(columns()), **asked, request_id="one")
    again = estimate_ate(Broken.frame(), **asked, request_id="one")
    assert again == first


@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_the_program_tells_nothing_of_a_record_that_it_cannot_read(debug, tmp_path):
    DOMAIN.write(tmp_path / "d.toml")
    path = tmp_path / "data.parquet"
    pl.DataFrame(columns()).write_parquet(path, compression="uncompressed")
    whole = path.read_bytes()
    path.write_bytes(b"PAR1" + b"\xff" * 200 + whole[204:])  # pages are damaged, the footer is not
    done = subprocess.run(
        [sys.executable, "-m", "private_ate", *debug, "estimate", path, "--domain",
         tmp_path / "d.toml", "--level", "sample", "--epsilon", "1"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == (1 if debug else 2)
    assert done.stdout == ""
    assert "cannot be read as Parquet" in done.stderr
    assert "polars" not in done.stderr.replace("import polars", "")


PEOPLE = {
    "name": [f"Person{row:03d}" for row in range(60)],
    "age": [20.0 + row % 30 for row in range(60)],
    "t": [0, 1] * 30,
    "y": [row / 60 for row in range(60)],
}
BARE = {"treatment": "t", "domain": Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)))}


@pytest.mark.parametrize(
    "door",
    [
        lambda **asked: estimate_ate(pl.DataFrame(PEOPLE), level="label", epsilon=1, **asked),
        lambda **asked: plan_ate(pl.DataFrame(PEOPLE), level="label", **asked),
        lambda **asked: describe_overlap(pl.DataFrame(PEOPLE), **asked),
    ],
    ids=["estimate", "plan", "overlap"],
)
def test_a_column_becomes_public_only_by_its_name_or_the_word_all(door):
    with pytest.raises(ArgumentError, match="covariates are public at label level, so name them"):
        door(**BARE)
    with pytest.raises(ArgumentError, match="a list of column names, or the word 'all'"):
        door(**BARE, covariates="age")
    with pytest.raises(SchemaError, match="column 'name' has a label of its own for most rows"):
        door(**BARE, covariates="all")
    assert door(**BARE, covariates=["age"]) is not None
    assert door(**BARE, covariates=[]) is not None


@pytest.mark.parametrize("form", ["polars", "pandas", "csv", "streamed"])
def test_names_are_refused_and_never_printed(form, tmp_path):
    limits = {}
    data = {"polars": pl.DataFrame, "pandas": pd.DataFrame}.get(form, pl.DataFrame)(PEOPLE)
    if form in ("csv", "streamed"):
        data.write_csv(tmp_path / "people.csv")
        data = tmp_path / "people.csv"
        limits = {"memory_limit": 0} if form == "streamed" else {}
    with pytest.raises(SchemaError, match="'name' has a label of its own") as caught:
        estimate_ate(data, **BARE, covariates="all", level="label", epsilon=1, **limits)
    assert "Person0" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(SchemaError, match="'name' has a label of its own") as caught:
        diagnose_ate(data, **BARE)
    assert "Person0" not in "".join(traceback.format_exception(caught.value))


def test_labels_that_rows_share_are_categories_and_sparse_notes_are_not():
    def look(labels):
        frame = pl.DataFrame(PEOPLE | {"name": labels})
        return estimate_ate(frame, **BARE, covariates="all", level="label", epsilon=1)

    shared = [f"ward {row % 12}" for row in range(60)]
    assert look(shared).n == 60
    few = [f"note {row}" if row < 9 else None for row in range(60)]
    assert look(few).n == 60
    sparse = [f"note {row}" if row < 15 else "" for row in range(60)]
    with pytest.raises(SchemaError, match="'name' has a label of its own"):
        look(sparse)


def test_declared_categories_of_a_column_stay_the_declarers_choice():
    kinds = {"name": Categories(*PEOPLE["name"][:12], "other"), "age": Interval(0, 99)}
    domain = Domain(Treatment("t"), Outcome("y", Interval(0, 1)), kinds)
    release = estimate_ate(pl.DataFrame(PEOPLE), domain=domain, level="label", epsilon=1)
    assert release.n == 60


def test_an_error_about_a_type_does_not_list_the_labels_it_is_made_of():
    kind = pl.Enum([f"secret{row}" for row in range(3)])
    frame = pl.DataFrame(columns()).with_columns(y=pl.Series(["secret1"] * ROWS, dtype=kind))
    with pytest.raises(SchemaError, match="its type is enum") as caught:
        estimate_ate(frame, domain=DOMAIN, level="sample", epsilon=1)
    assert "secret" not in str(caught.value)
