"""Fuzzing of every door: typed errors only, no other exception, no partial file."""

import io
import json
import shutil
import string
import warnings

import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from private_ate import (
    Domain,
    Interval,
    Ledger,
    LedgerError,
    PrivateAteError,
    Release,
    Treatment,
    estimate_ate,
)
from private_ate.cli.app import app

DOMAIN = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"a": Interval(0, 1)})
many = pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.audit)])
few = pytest.mark.parametrize("count", [40, pytest.param(10_000, marks=pytest.mark.audit)])


def fuzz(count, strategy, attack):
    """Run an attack on many generated inputs, warnings being errors."""

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(strategy)
    def run(value):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            attack(value)

    run()


def refused_or_finite(make):
    """Accept a finite release or one of our errors; let everything else through to the test."""
    try:
        release = make()
    except PrivateAteError:
        return
    assert abs(release.ate) < float("inf")
    json.loads(release.to_json())


cells = st.one_of(
    st.text(max_size=12),
    st.floats(allow_nan=True, allow_infinity=True).map(repr),
    st.sampled_from(
        ["", '"', '""', "1e999", "-0.0", "0x1p3", "1_0", "NaN", "\x00", ",", "\r", "٣"]
    ),
)
tables = st.lists(st.lists(cells, min_size=1, max_size=5), min_size=0, max_size=6)


def written(rows, header="t,y,a"):
    return (header + "\n" + "\n".join(",".join(row) for row in rows)).encode("utf-8", "replace")


@few
@pytest.mark.parametrize("level", ["label", "sample"])
def test_csv_files(tmp_path, count, level):
    path = tmp_path / "data.csv"

    def attack(content):
        path.write_bytes(content)
        refused_or_finite(
            lambda: estimate_ate(path, domain=DOMAIN, level=level, epsilon="1", method="published")
        )

    fuzz(count, st.one_of(tables.map(written), st.binary(max_size=200)), attack)


def test_parquet_files(tmp_path):
    # Not more of them: some damaged files end the whole process inside the reader (polars).
    path = tmp_path / "data.parquet"
    buffer = io.BytesIO()
    pl.DataFrame({"t": [0, 1] * 20, "y": [0.5, 1.0] * 20, "a": [0.1] * 40}).write_parquet(buffer)
    whole = buffer.getvalue()

    def attack(change):
        place, byte, cut = change
        broken = bytearray(whole)
        broken[place % len(whole)] ^= byte
        path.write_bytes(bytes(broken[: len(whole) - cut]))
        refused_or_finite(
            lambda: estimate_ate(
                path, domain=DOMAIN, level="sample", epsilon="1", method="published"
            )
        )

    places = st.one_of(st.integers(0, 2000), st.integers(len(whole) - 600, len(whole) - 1))
    fuzz(
        150,
        st.tuples(places, st.integers(1, 255), st.sampled_from([0, 0, 0, 1, 9, 300])),
        attack,
    )


class Awkward:
    """An object whose every conversion fails in a way of its own."""

    def __float__(self):
        raise RuntimeError

    def __eq__(self, other):
        raise RuntimeError

    def __str__(self):
        raise RuntimeError

    __hash__ = None


odd_values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.binary(max_size=3), st.decimals(allow_nan=True), st.complex_numbers(), st.dates(),
    st.lists(st.integers(), max_size=2),
    st.sampled_from([10**400, -(10**5000), "\ud800", pd.NA, pd.NaT, Awkward()]),
)  # fmt: skip


@few
@pytest.mark.parametrize("column", ["t", "y", "a"])
def test_columns_of_objects(count, column):
    plain = {"t": [0, 1] * 4, "y": [0.5] * 8, "a": [0.25] * 8}

    def attack(value):
        frame = pd.DataFrame(plain).astype({column: object})
        frame.isetitem(frame.columns.get_loc(column), pd.Series([*([0] * 7), value], dtype=object))
        release = estimate_ate(
            frame, domain=DOMAIN, level="sample", epsilon="1", method="published"
        )
        assert abs(release.ate) < float("inf")

    fuzz(count, odd_values, attack)


toml_values = st.one_of(
    st.integers().map(str), st.just("1" + "0" * 400), st.just("1" + "0" * 5000),
    st.floats().map(repr), st.text(string.printable, max_size=8).map(json.dumps),
    st.sampled_from(["true", "[]", "[1, 2]", '["a", "b"]', "{}", "1979-05-27"]),
    st.sampled_from(["inf", "nan", "{a=1}"]),
)  # fmt: skip
toml_keys = st.sampled_from(
    ["column", "treated", "control", "low", "high", "missing", "binary", "categories", "other", "x"]
)
toml_tables = st.sampled_from(
    ["treatment", "outcome", "covariates", 'covariates."a b"', "covariates.age", "other"]
)
toml_texts = st.lists(
    st.tuples(toml_tables, st.dictionaries(toml_keys, toml_values, max_size=4)), max_size=5
).map(
    lambda parts: "\n".join(
        f"[{name}]\n" + "\n".join(f"{key} = {value}" for key, value in entries.items())
        for name, entries in parts
    )
)


@many
def test_domain_files(count):
    def attack(text):
        try:
            domain = Domain.from_toml(text)
        except PrivateAteError:
            return
        assert Domain.from_toml(domain.to_toml()) == domain

    fuzz(count, st.one_of(toml_texts, st.text(max_size=60)), attack)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)  # fmt: skip


@many
def test_releases_in_json(count):
    frame = pl.DataFrame({"t": [0, 1] * 4, "y": [0.5] * 8, "a": [0.25] * 8})
    release = estimate_ate(frame, domain=DOMAIN, level="label", epsilon="1", method="published")
    plain = release.to_dict()

    def attack(change):
        name, value = change
        text = value if name is None else json.dumps(plain | {name: value})
        try:
            read = Release.from_json(text)
        except PrivateAteError:
            return
        assert Release.from_json(read.to_json()) == read
        str(read)

    changes = st.one_of(
        st.tuples(st.sampled_from([*plain, "extra"]), json_values),
        st.tuples(
            st.none(),
            st.one_of(st.text(max_size=30), st.just("1" * 5000), json_values.map(json.dumps)),
        ),
    )  # fmt: skip
    fuzz(count, changes, attack)


@many
def test_ledger_files(tmp_path, count):
    source, path = tmp_path / "whole.db", tmp_path / "broken.db"
    ledger = Ledger.create(source, "trial", epsilon="1", caps={"bob": "0.5"})
    frame = pl.DataFrame({"t": [0, 1] * 4, "y": [0.5] * 8, "a": [0.25] * 8})
    asked = {"domain": DOMAIN, "level": "label", "epsilon": "0.25", "method": "published"}
    release = estimate_ate(frame, ledger=ledger, analyst="bob", **asked)
    story = (ledger.accounts(), ledger.history())
    ledger.close()
    whole = source.read_bytes()

    def attack(change):
        place, byte, cut = change
        broken = bytearray(whole)
        broken[place % len(whole)] ^= byte
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        path.write_bytes(bytes(broken[: len(whole) - cut]))
        opened = None
        try:
            opened = Ledger.open(path)
            opened.verify(release.settings["ledger"]["head"])
            assert (opened.accounts(), opened.history()) == story, "an edit went unseen"
        except LedgerError:
            pass
        finally:
            if opened is not None:
                opened.close()

    fuzz(
        count,
        st.tuples(
            st.integers(0, len(whole) - 1), st.integers(1, 255), st.sampled_from([0, 0, 0, 7, 4096])
        ),
        attack,
    )


arguments = st.lists(
    st.one_of(
        st.sampled_from([
            "estimate", "domain", "ledger", "create", "show", "history", "verify", "--level",
            "label", "sample", "--epsilon", "1", "1e999999999", "-1", "--treatment", "t",
            "--outcome", "y",
            "--outcome-bounds", "0", "--bounds", "a=0:1", "a=1", "a=nan:inf", "--categories",
            "a=x|y", "--json", "--seed", "--set", "k=1", "ridge=0", "shares=1", "--confidence",
            "none", "2",
            "--ledger", "--dataset", "trial", "--cap", "bob=1", "--neighbors", "--rows-per-person",
            "--head", "--version", "--help", "--method", "published", "DATA", "LEDGER",
        ]),
        st.text(max_size=6),
    ),
    max_size=14,
)  # fmt: skip


@many
def test_command_line_arguments(tmp_path, count, monkeypatch):
    data, ledger = tmp_path / "data.csv", tmp_path / "budget.db"
    data.write_text("t,y,a\n0,0.5,0.1\n1,0.25,0.9\n0,1,0.4\n")
    Ledger.create(ledger, "trial", epsilon="100").close()
    work = tmp_path / "work"
    monkeypatch.chdir(tmp_path)
    places = {"DATA": str(data), "LEDGER": str(ledger)}
    started = [["estimate", "DATA", "--level", "label", "--epsilon", "1"], ["ledger"], []]

    def attack(value):
        start, words = value
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        monkeypatch.chdir(work)
        words = [places.get(word, word) for word in (*start, *words)]
        done = CliRunner().invoke(app, words)
        problem = done.exception
        assert problem is None or isinstance(problem, SystemExit | PrivateAteError), words
        if isinstance(problem, SystemExit):
            assert problem.code in {0, 1, 2}
        left = [path.name for path in work.iterdir() if path.name.endswith((".part", ".tmp"))]
        assert left == []

    fuzz(count, st.tuples(st.sampled_from(started), arguments), attack)
    opened = Ledger.open(ledger)
    opened.verify()
    opened.close()
