"""A file that is streamed through disk gives the release that it gives in memory."""

import os
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from private_ate import (
    ArgumentError,
    Categories,
    Domain,
    Interval,
    SchemaError,
    Treatment,
    estimate_ate,
    exact_effect,
    plan_ate,
)
from private_ate.arguments import parse_memory
from private_ate.data.files import StreamedTable, open_table
from private_ate.engines.disk_columns import CompactColumns, encode_columns
from private_ate.engines.local import LocalStudy

ROWS = 40_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(5)
    x = rng.random((ROWS, 2))
    treated = rng.random(ROWS) < 1 / (1 + np.exp(1 - 2 * x[:, 0]))
    frame = pl.DataFrame(
        {
            "x1": x[:, 0],
            "x2": x[:, 1],
            "colour": np.array(["red", "green", "blue"])[rng.integers(0, 3, ROWS)],
            "t": treated.astype(np.int8),
            "y": np.clip(3 + x[:, 0] + 2 * treated + rng.normal(size=ROWS), 0, 10),
        }
    )
    path = tmp_path_factory.mktemp("streams")
    frame.write_parquet(path / "study.parquet", row_group_size=7001)
    frame.write_csv(path / "study.csv")
    return path


DOMAIN = Domain(
    Treatment("t", 1, 0),
    ("y", Interval(0, 10)),
    {"x1": Interval(0, 1), "x2": Interval(0, 1), "colour": Categories("red", "green", "blue")},
)


@pytest.mark.parametrize("name", ["study.parquet", "study.csv"])
@pytest.mark.parametrize("level", ["label", "sample"])
def test_streaming_changes_no_bit_of_a_release(folder, name, level):
    asked = {"domain": DOMAIN, "level": level, "epsilon": "1.0", "seed": 7}

    held = estimate_ate(folder / name, memory_limit="1GB", **asked)
    streamed = estimate_ate(folder / name, memory_limit=0, **asked)

    assert streamed == held


@pytest.mark.parametrize("name", ["study.parquet", "study.csv"])
def test_ranges_are_looked_up_in_one_pass_over_the_chunks(folder, name):
    names = ["x1", "x2", "colour", "y"]

    held, streamed = (open_table(folder / name, limit) for limit in (1 << 40, 0))

    assert isinstance(streamed, StreamedTable)
    assert streamed.observe(names) == held.observe(names)
    assert streamed.rows == held.rows == ROWS
    assert streamed.numbers("y").tolist() == held.numbers("y").tolist()
    assert [streamed.kind(one) for one in names] == [held.kind(one) for one in names]


def test_plans_and_exact_effects_read_files_that_are_streamed(folder, monkeypatch):
    path = folder / "study.csv"
    before = exact_effect(path, domain=DOMAIN), plan_ate(path, domain=DOMAIN, level="sample")
    monkeypatch.setattr("private_ate.data.files._TEXT_COPIES", 1 << 40)

    assert isinstance(open_table(path), StreamedTable)
    after = exact_effect(path, domain=DOMAIN), plan_ate(path, domain=DOMAIN, level="sample")

    assert after == before


def test_encoded_columns_lie_in_files_without_a_name(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = open_table(folder / "study.parquet", 0)

    _, _, columns = encode_columns(table, DOMAIN, outcome=True, progress=None)

    assert columns.treatment.size == ROWS
    assert list(tmp_path.iterdir()) == []
    maps = Path("/proc/self/maps")
    if maps.exists():
        assert f"{tmp_path}/" in maps.read_text()


def test_indicators_of_labels_take_one_byte_a_row(folder):
    _, _, columns = encode_columns(
        open_table(folder / "study.parquet", 0), DOMAIN, outcome=True, progress=None
    )
    held = LocalStudy.encode(open_table(folder / "study.parquet", 1 << 40), DOMAIN)

    assert isinstance(columns.covariates, CompactColumns)
    assert columns.covariates.indicators.itemsize == 1
    assert columns.covariates.shape == held.covariates.shape
    np.testing.assert_array_equal(columns.covariates[:, 7:500], held.covariates[:, 7:500])
    for one, other in zip(columns.covariates, held.covariates, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("limit", [0, 1 << 40])
def test_a_thinned_study_holds_every_kth_row(folder, limit):
    study = LocalStudy.encode(open_table(folder / "study.parquet", limit), DOMAIN)

    with study.thinned(7) as few, study.public().thinned(7) as public:
        assert few.size == -(-ROWS // 7)
        np.testing.assert_array_equal(few.covariates, study.covariates[:, ::7])
        np.testing.assert_array_equal(few.treatment, study.treatment[::7])
        np.testing.assert_array_equal(few.outcome, study.outcome[::7])
        assert public.outcome is None


def test_a_full_disk_is_an_error_before_anything_is_read(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(
        ArgumentError, match=r"no room for 0\.0 GB of encoded columns; point TMPDIR"
    ):
        LocalStudy.encode(open_table(folder / "study.parquet", 0), DOMAIN)


def test_every_chunk_tells_the_progress_bar(folder):
    told = []
    table = open_table(folder / "study.parquet", 0)

    LocalStudy.encode(table, DOMAIN, lambda *step: told.append(step))

    assert told[-1] == ("reading the rows", ROWS, ROWS)
    assert len(told) > 1


def test_garbage_in_private_columns_is_missing_in_a_stream_too(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text('x,t,y\n1,1,"2\n\n"a""b",0,zzz\n3,1\n4,0,1,extra\n')
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 10)), {"x": Interval(0, 10)})

    held, streamed = (LocalStudy.encode(open_table(path, limit), domain) for limit in (10**9, 0))

    assert held.size == streamed.size == 5
    assert streamed.outcome.tolist() == held.outcome.tolist()
    assert streamed.covariates.tolist() == held.covariates.tolist()


def test_a_stream_without_rows_or_columns_is_refused(tmp_path, folder):
    (tmp_path / "empty.csv").write_text("x,t,y\n")
    domain = Domain(Treatment("t", 1, 0), ("y", Interval(0, 1)), {"x": Interval(0, 1)})
    with pytest.raises(SchemaError, match="the table has no rows"):
        estimate_ate(
            tmp_path / "empty.csv", domain=domain, level="sample", epsilon=1, memory_limit=0
        )
    with pytest.raises(SchemaError, match="no treatment column 'z' among its 5 columns"):
        estimate_ate(
            folder / "study.csv", treatment="z", outcome="y", level="label", epsilon=1,
            memory_limit=0,
        )  # fmt: skip
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(SchemaError, match="cannot be read as Parquet"):
        estimate_ate(tmp_path / "bad.parquet", domain=domain, level="sample", epsilon=1)


@pytest.mark.parametrize(
    ("text", "size"), [("1GB", 10**9), ("1.5 gb", 15 * 10**8), ("300M", 3 * 10**8), (12, 12)]
)
def test_an_amount_of_memory_is_read_from_a_text(text, size):
    assert parse_memory(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "nan", "inf", "1XB"])
def test_an_amount_that_is_no_amount_is_refused(text):
    with pytest.raises(ArgumentError, match="the memory limit is a text such as 500MB"):
        parse_memory(text)


def test_the_command_line_streams_what_exceeds_its_limit(folder, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from private_ate.cli.app import app

    DOMAIN.write(tmp_path / "domain.toml")
    seen = []
    encode = LocalStudy.encode.__func__
    monkeypatch.setattr(
        LocalStudy,
        "encode",
        classmethod(
            lambda cls, table, *rest: seen.append(type(table)) or encode(cls, table, *rest)
        ),
    )
    command = ["estimate", str(folder / "study.csv"), "--domain", str(tmp_path / "domain.toml")]
    asked = ["--level", "sample", "--epsilon", "1", "--seed", "1", "--json"]

    answers = [
        CliRunner().invoke(app, [*command, *asked, "--memory-limit", limit])
        for limit in ("1GB", "10KB")
    ]

    assert [answer.exit_code for answer in answers] == [0, 0]
    assert answers[0].stdout == answers[1].stdout
    assert seen[1] is StreamedTable is not seen[0]


def test_spark_without_its_extra_says_how_to_get_it(folder, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    asked = {"domain": DOMAIN, "epsilon": 1, "engine": "spark"}
    with pytest.raises(ArgumentError, match="needs the spark extra: pip install"):
        estimate_ate(folder / "study.parquet", level="sample", **asked)
    with pytest.raises(ArgumentError, match="'published' does not run on Spark: matching puts all"):
        estimate_ate(folder / "study.parquet", level="sample", method="published", **asked)
    with pytest.raises(ArgumentError, match="target 'track' does not run on Spark"):
        estimate_ate(folder / "study.parquet", level="label", target="track", **asked)
