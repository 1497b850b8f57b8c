"""How a file is read: its encoding, its header row and its sheet, by every door alike."""

import json
from dataclasses import astuple

import numpy as np
import pytest
from typer.testing import CliRunner

from private_ate import (
    ArgumentError,
    CsvFile,
    Domain,
    ExcelFile,
    Interval,
    SchemaError,
    check_data,
    estimate_ate,
    plan_ate,
)
from private_ate.cli.app import app
from private_ate.data.csv_file import find_long_lines
from private_ate.data.files import described_file, open_table, read_schema
from workbooks import add_sheet, write_workbook

DOMAIN = Domain("größe", ("fälle", Interval(0, 10)), {"x": Interval(0, 10)})
LABEL = {"domain": DOMAIN, "level": "label", "epsilon": 1, "seed": 1}
HEADER = ["größe", "x", "fälle"]
TITLE = ["Export of the registry, 2026", "made by Käthe"]


def records(rows=200):
    rng = np.random.default_rng(3)
    return [
        [int(rng.integers(0, 2)), round(float(rng.random() * 10), 3), int(rng.integers(0, 11))]
        for _ in range(rows)
    ]


def text(rows, title=()):
    return "".join(f"{line}\n" for line in (*title, *(",".join(map(str, row)) for row in rows)))


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text(text([HEADER, *records()]), "utf-8")
    return path


@pytest.fixture(params=["cp1252", "utf-16", "utf-16-le", "header", "sheet"])
def twin(request, tmp_path):
    """Return the same table in another file, and what has to be said of its reading."""
    path, rows = tmp_path / "twin.csv", [HEADER, *records()]
    match request.param:
        case "cp1252":
            path.write_bytes(text(rows).encode("cp1252"))
            return path, {"encoding": "windows-1252"}
        case "utf-16":
            path.write_bytes(text(rows).encode("utf-16"))
            return path, {}
        case "utf-16-le":
            path.write_bytes(text(rows, TITLE).encode("utf-16-le"))
            return path, {"encoding": "utf-16", "skip_rows": 2}
        case "header":
            path.write_bytes(text(rows, TITLE).replace("\n", "\r\n").encode("latin-1"))
            return path, {"encoding": "latin-1", "header_row": 3}
    book = write_workbook(tmp_path / "twin.xlsx", [["notes"], ["nothing here"]])
    add_sheet(book, "Visits 2026", [TITLE, [], *rows])
    return book, {"sheet": "Visits 2026", "header_row": 3}


def test_every_door_reads_a_file_as_it_reads_its_plain_twin(plain, twin):
    file = described_file(twin[0], **twin[1])

    assert list(read_schema(file)) == HEADER
    assert estimate_ate(file, **LABEL).ate == estimate_ate(plain, **LABEL).ate
    assert check_data(file, domain=DOMAIN).to_dict() == check_data(plain, domain=DOMAIN).to_dict()
    asked = {"domain": DOMAIN, "level": "label", "epsilons": [1]}
    assert plan_ate(file, **asked).to_dict() == plan_ate(plain, **asked).to_dict()


def test_a_streamed_file_has_the_same_release(plain, twin):
    file = described_file(twin[0], **twin[1])

    streamed = estimate_ate(file, **LABEL, memory_limit=0)

    assert streamed.ate == pytest.approx(estimate_ate(plain, **LABEL).ate)


def test_the_command_line_says_it_by_flags(plain, twin, tmp_path):
    path, reading = twin
    flags = [
        word
        for name, value in reading.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]
    DOMAIN.write(tmp_path / "domain.toml")
    roles = ["--treatment", "größe", "--outcome", "fälle"]

    def run(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.stdout

    def effect(file, *more):
        words = ["--level", "label", "--epsilon", 1, "--seed", 1, "--json", "--quiet"]
        return json.loads(
            run("estimate", file, "--domain", tmp_path / "domain.toml", *words, *more)
        )["ate"]

    drafted = run("domain", path, "--out", tmp_path / "draft.toml", *roles, *flags)

    assert effect(path, *flags) == effect(plain)
    assert "x = { low = ???" in (tmp_path / "draft.toml").read_text("utf-8")
    assert all(word in drafted for word in flags if word.startswith("--"))
    for command in (["check"], ["plan", "--level", "label"]):
        shown = run(*command, path, "--domain", tmp_path / "domain.toml", *flags, "--quiet")
        assert "Käthe" not in shown


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        ({"encoding": "utf-7"}, "encoding"),
        ({"encoding": "klingon"}, "encoding"),
        ({"encoding": 8}, "encoding"),
        ({"skip_rows": 2, "header_row": 2}, "header row"),
        ({"sheet": "Visits"}, "sheet"),
    ],
)
def test_a_reading_that_cannot_be_meant_is_refused(words, parameter):
    with pytest.raises(ArgumentError) as refused:
        described_file("study.csv", **words)

    assert refused.value.parameter == parameter


@pytest.mark.parametrize("words", [{"header_row": 0}, {"skip_rows": -1}, {"skip_rows": "2"}])
def test_a_row_of_the_header_is_a_whole_number_from_one(words):
    with pytest.raises(ArgumentError, match="whole number"):
        CsvFile("study.csv", **words)


def test_a_header_row_and_skipped_rows_mean_the_same():
    assert CsvFile("a.csv", header_row=3) == CsvFile("a.csv", skip_rows=2)
    assert CsvFile("a.csv", header_row=3, skip_rows=2) == CsvFile("a.csv", header_row=3)
    assert ExcelFile("a.xlsx", header_row=1) == ExcelFile("a.xlsx", skip_rows=0)
    assert astuple(CsvFile("a.csv")) == ("a.csv", ",", ".", None, 0)


@pytest.mark.parametrize("said", ["utf-8", "cp1252"])
def test_a_byte_order_mark_of_another_encoding_is_an_error_in_words(tmp_path, said):
    path = tmp_path / "a.csv"
    path.write_bytes(text([HEADER, *records()]).encode("utf-16"))

    with pytest.raises(SchemaError, match="byte order mark of utf-16-le") as refused:
        open_table(CsvFile(path, encoding=said))
    assert refused.value.parameter == "encoding"


@pytest.mark.parametrize("order", ["utf-16-le", "utf-16-be"])
def test_zero_bytes_in_the_header_ask_for_the_encoding(tmp_path, order):
    path = tmp_path / "a.csv"
    path.write_bytes("x,y\n1,2\n".encode(order))  # no byte order mark

    with pytest.raises(
        SchemaError, match="zero bytes, as UTF-16 does: say its encoding"
    ) as refused:
        open_table(CsvFile(path)).require("y", "outcome")
    assert refused.value.parameter == "encoding"


def test_a_long_line_is_counted_from_the_top_of_the_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("title\nmore,of,it,here\nx,y\n1,2\n3,4,5\n", "utf-8")

    assert find_long_lines(CsvFile(path, skip_rows=2)) == (1, 5)


def test_a_file_that_ends_before_its_header_is_refused_by_its_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n", "utf-8")

    with pytest.raises(SchemaError, match=r"'a\.csv' cannot be read"):
        read_schema(CsvFile(path, header_row=10**9))


@pytest.mark.parametrize("words", [{"sheet": 2}, {"sheet": "2"}, {"sheet": "Visits"}])
def test_a_sheet_is_found_by_its_name_or_its_number(tmp_path, words):
    book = write_workbook(tmp_path / "a.xlsx", [["a"], [1]])
    add_sheet(book, "Visits", [["b"], [2]])

    assert open_table(ExcelFile(book, **words)).names == ("b",)
    assert open_table(book).names == ("a",)


def test_a_name_goes_before_a_number(tmp_path):
    book = write_workbook(tmp_path / "a.xlsx", [["a"], [1]])
    add_sheet(book, "1", [["b"], [2]])

    assert open_table(ExcelFile(book, sheet="1")).names == ("b",)
    assert open_table(ExcelFile(book, sheet=1)).names == ("a",)


def test_an_unknown_sheet_is_an_error_that_lists_those_that_are_there(tmp_path):
    book = write_workbook(tmp_path / "a.xlsx", [["a"], [1]])
    for number in range(30):
        add_sheet(book, f"more {number}", [["b"], [2]])

    for asked in ("Visit", "0", 32, -1):
        with pytest.raises(SchemaError, match=r"its sheets are 'Study', 'more 0'.* and 11 more$"):
            read_schema(ExcelFile(book, sheet=asked))


def test_an_empty_row_is_no_header(tmp_path):
    book = write_workbook(tmp_path / "a.xlsx", [["a"], [], [1]])

    with pytest.raises(SchemaError, match="row 2 of the sheet is empty"):
        read_schema(ExcelFile(book, header_row=2))


def test_other_files_have_neither_sheet_nor_encoding(tmp_path):
    (tmp_path / "a.dta").write_bytes(b"")
    book = write_workbook(tmp_path / "a.xlsx", [["a"], [1]])

    with pytest.raises(
        ArgumentError, match="is no CSV file; its separator, decimal sign, encoding"
    ):
        read_schema(described_file(tmp_path / "a.dta", header_row=2))
    with pytest.raises(ArgumentError, match="is no CSV file"):
        read_schema(described_file(book, encoding="cp1252"))
    with pytest.raises(ArgumentError, match="a sheet has no separator"):
        described_file(book, sheet=1, sep=";")


@pytest.mark.parametrize(
    "file",
    [CsvFile("a.csv", skip_rows=1), CsvFile("a.csv", encoding="utf-16"), ExcelFile("a.xlsx")],
    ids=str,
)
def test_spark_says_what_it_reads_before_it_starts(file):
    with pytest.raises(ArgumentError, match="Spark reads"):
        estimate_ate(file, **LABEL, engine="spark")
