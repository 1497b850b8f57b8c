"""CSV files with other separators and a decimal comma: in memory and streamed alike."""

import io
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import (
    ArgumentError,
    Categories,
    CsvFile,
    Domain,
    Interval,
    SchemaError,
    check_data,
    estimate_ate,
    plan_ate,
)
from private_ate.cli.app import app
from private_ate.data.csv_file import find_long_lines, parse_lines, split_header
from private_ate.data.files import open_schema, open_table
from private_ate.engines.local import LocalStudy

DOMAIN = Domain(
    "t", ("y", Interval(0, 10)), {"x": Interval(0, 10), "code": Categories("1.5", "2.5", "b;c")}
)
LINES = [
    "x;t;code;y",
    "1,5;1;1.5;7,25",
    ";0;2,5;1,0e0",
    '"2,5";0;"b;c";3',
    "1.5;1;b;1.234",  # a point is no decimal sign here
    "1.234,5;1;b;,5",
    "1,2,3;0;b;-0,5",
    '"3;1;2',
    "",
    "true;1;b;9",
]


def encoded(table):
    study = LocalStudy.encode(table, DOMAIN)
    return np.vstack([study.covariates[:, 0 : study.size], study.treatment, study.outcome])


@pytest.fixture
def file(tmp_path):
    (tmp_path / "study.csv").write_text("\n".join(LINES) + "\n", "utf-8")
    return CsvFile(tmp_path / "study.csv", sep=";", decimal=",")


def test_a_decimal_comma_is_read_value_by_value(file):
    table = open_table(file)

    assert table.rows == 9
    np.testing.assert_array_equal(
        table.numbers("x"), [1.5, np.nan, 2.5, np.nan, np.nan, np.nan, np.nan, np.nan, 1.0]
    )
    np.testing.assert_array_equal(
        table.numbers("y"), [7.25, 1.0, 3.0, np.nan, 0.5, -0.5, np.nan, np.nan, 9.0]
    )
    # A label is the text that was declared, or the same number as the file writes it.
    assert table.equals("code", "1.5").tolist() == [True] + [False] * 8
    assert table.equals("code", "2.5").tolist() == [False, True] + [False] * 7


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_streaming_reads_the_same(file, chunk):
    held, streamed = open_table(file, 1 << 40), replace(open_table(file, 0), chunk=chunk)

    assert np.array_equal(encoded(held), encoded(streamed))


@pytest.mark.parametrize("sep", [",", ";", "\t", "|", ":"])
def test_every_separator_cuts_lines_as_a_comma_does(sep):
    lines = [
        b"1,2",
        b"",
        b",2",
        b"1,2,3",
        b'"a,b",2',
        b'"a""b","c"',
        b'"ab,1',
        b'"a"b,2',
        b'a"b,"2"',
    ]
    text = b"".join(line + b"\n" for line in lines)
    other = text.replace(b",", sep.encode())

    expected = parse_lines(text, ("x", "y"), ("y", "x"), CsvFile("a.csv"))
    found = parse_lines(other, ("x", "y"), ("y", "x"), CsvFile("a.csv", sep))

    same = [pl.col(name).str.replace_all(",", sep, literal=True) for name in expected.columns]
    assert found.equals(expected.select(same))
    assert split_header(
        b'"a' + sep.encode() + b'b"' + sep.encode() + b"c\n", CsvFile("a.csv", sep)
    ) == (
        f"a{sep}b",
        "c",
    )


def test_the_fast_reader_and_the_slow_one_agree(monkeypatch):
    text = "".join(line + "\n" for line in LINES[1:]).encode()
    names = ("x", "t", "code", "y")
    fast = parse_lines(text, names, names, CsvFile("a.csv", ";"))

    def fail(*_, **__):
        raise OSError

    monkeypatch.setattr(pl, "read_csv", fail)

    assert parse_lines(text, names, names, CsvFile("a.csv", ";")).equals(fast)


def test_a_line_with_more_fields_than_the_header_is_found(file):
    file.file.write_text("x;t\n1,5;1\n2,5;0;3\n", "utf-8")

    assert find_long_lines(file) == (1, 3)


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        ({"sep": ","}, "sep"),
        ({"sep": ";", "decimal": ";"}, "decimal"),
        ({"sep": "ab"}, "sep"),
        ({"sep": '"'}, "sep"),
        ({"sep": "\n"}, "sep"),
        ({"sep": ""}, "sep"),
        ({"sep": ";", "decimal": ""}, "decimal"),
    ],
)
def test_signs_that_could_not_be_told_apart_are_refused(words, parameter):
    with pytest.raises(ArgumentError) as caught:
        CsvFile("study.csv", **{"decimal": ",", **words})

    assert caught.value.parameter == parameter


def test_a_tab_has_a_name_and_a_file_of_tabs_an_ending(tmp_path):
    (tmp_path / "d.tsv").write_text("x\tt\n1\t0\n", "utf-8")

    assert CsvFile("a.txt", "tab") == CsvFile("a.txt", "\t") == CsvFile("a.txt", "\\t")
    assert open_schema(tmp_path / "d.tsv").names == ("x", "t")


def test_a_parquet_file_has_no_separator(tmp_path):
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "d.parquet")

    with pytest.raises(ArgumentError, match="no CSV file"):
        open_table(CsvFile(tmp_path / "d.parquet", ";"))


def test_a_file_of_any_name_is_read_if_its_signs_are_told(file, tmp_path):
    other = tmp_path / "study.dat"
    other.write_bytes(file.file.read_bytes())

    assert open_schema(CsvFile(other, ";")).names == ("x", "t", "code", "y")
    with pytest.raises(ArgumentError, match="neither"):
        open_schema(other)


def _written(tmp_path, rows=400):
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {"x": rng.random(rows).round(3), "t": rng.integers(0, 2, rows), "y": rng.random(rows)}
    )
    frame.write_csv(tmp_path / "points.csv")
    text = io.StringIO(frame.write_csv())
    commas = text.getvalue().replace(",", ";").replace(".", ",")
    (tmp_path / "commas.csv").write_text(commas, "utf-8")
    return tmp_path / "points.csv", tmp_path / "commas.csv"


def test_every_door_reads_a_file_as_it_reads_its_twin_with_points(tmp_path):
    points, commas = _written(tmp_path)
    twin = CsvFile(commas, ";", ",")
    bare = Domain("t", ("y", Interval(0, 1)))
    asked = {"domain": bare, "covariates": ["x"], "level": "label"}

    for memory in ("1GB", 0):
        paid = {**asked, "epsilon": 1, "seed": 3, "memory_limit": memory}
        assert estimate_ate(twin, **paid).ate == estimate_ate(points, **paid).ate
    assert plan_ate(twin, epsilons=["1"], **asked).to_dict() == (
        plan_ate(points, epsilons=["1"], **asked).to_dict()
    )
    assert check_data(twin, **asked).to_json() == check_data(points, **asked).to_json()


def test_the_command_line_takes_the_signs_by_flags(tmp_path):
    points, commas = _written(tmp_path)
    known = ["--level", "label", "--treatment", "t", "--outcome", "y", "--outcome-bounds", "0", "1"]
    paid = [*known, "--covariates", "x", "--epsilon", "1", "--seed", "2", "--json"]
    signs = ["--sep", ";", "--decimal", ","]
    run = CliRunner().invoke

    usual = run(app, ["estimate", str(points), *paid])
    other = run(app, ["estimate", str(commas), *paid, *signs])

    assert usual.exit_code == other.exit_code == 0
    assert usual.stdout == other.stdout
    out = ["--out", str(tmp_path / "d.toml"), "--treatment", "t", "--outcome", "y"]
    assert run(app, ["domain", str(commas), *out, *signs]).exit_code == 0
    assert "\nx = { low" in (tmp_path / "d.toml").read_text("utf-8")
    assert run(app, ["check", str(commas), *known, "--covariates", "x", *signs]).exit_code == 0
    assert run(app, ["plan", str(commas), *known, "--covariates", "x", *signs]).exit_code == 0


def test_a_forgotten_sign_is_asked_for(tmp_path):
    _, commas = _written(tmp_path)
    known = Domain("t", ("y", Interval(0, 1)))
    with pytest.raises(SchemaError, match="separates fields") as caught:
        check_data(commas, domain=known, covariates=["x"])
    assert caught.value.parameter == "sep"

    asked = {"domain": known, "covariates": ["x"], "level": "label", "epsilon": 1}
    with pytest.raises(SchemaError, match="decimal comma") as caught:
        estimate_ate(CsvFile(commas, ";"), **asked)
    assert caught.value.parameter == "decimal"
