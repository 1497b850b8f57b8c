"""One physical line of a CSV file is one record: replacing a line changes that row alone."""

import csv
import io
import random
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from private_ate import (
    Categories,
    Domain,
    Interval,
    SchemaError,
    Treatment,
    check_data,
    estimate_ate,
)
from private_ate.cli.app import app
from private_ate.data.csv_file import CsvFile, count_records, read_header, read_lines
from private_ate.data.files import StreamedTable, open_table, read_table
from private_ate.engines.local import LocalStudy

PAIRS = 2_000
PAIRS_OF_AN_AUDIT = 100_000
HUGE = 200_000  # characters; the csv module's reader stops at 131 072
DOMAIN = Domain(
    Treatment("t", 1, 0),
    ("y", Interval(0, 10)),
    {"x": Interval(0, 10), "colour": Categories("red", "blue", "other")},
)
HEADER = b"x,t,note,colour,y"
PLAIN = b"5,1,none,red,7.25"


def write(path, lines, end=b"\n"):
    path.write_bytes(end.join([HEADER, *lines]) + end)
    return path


def encoded(table):
    """Return all that methods will ever see of the rows, one column a row."""
    study = LocalStudy.encode(table, DOMAIN)
    covariates = study.covariates[:, 0 : study.size]
    return np.vstack([covariates, study.treatment, study.outcome])


def streamed_table(path, chunk):
    table = open_table(path, 0)
    assert isinstance(table, StreamedTable)
    return replace(table, chunk=chunk)


def texts(path, chunk):
    """Return the fields of all rows, the same in memory and streamed."""
    frame = read_table(path).frame.to_native()
    assert frame.equals(pl.concat(read_lines(CsvFile(path), chunk)))
    return frame


def features(path, chunk):
    """Return the encoded rows, the same in memory and streamed."""
    held = encoded(open_table(path, 1 << 40))
    assert np.array_equal(held, encoded(streamed_table(path, chunk)))
    return held


ODD = [
    "", '"', '""', ",", "\r", "\n", "\r\n", "\x00", "\x0b", "\x0c", "\x1c", "\x85", "\u2028",
    "\ufeff", "é", "a", "1", "red", "-3e5", " ", "\\", "'", ";", "\t",
]  # fmt: skip


def some_record(rng):
    """Return a record as the csv module writes it, in one of its ways; it may hold line ends."""
    fields = ["".join(rng.choices(ODD, k=rng.randrange(5))) for _ in range(rng.randrange(2, 8))]
    out = io.StringIO(newline="")
    style = rng.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_NONE])
    writer = csv.writer(
        out, quoting=style, escapechar="\\", doublequote=rng.random() < 0.7, lineterminator=""
    )
    writer.writerow(fields)
    return out.getvalue().encode("utf-8", "replace")


def some_line(rng):
    """Return a physical line without its end: part of a record, bytes, or something huge."""
    kind = rng.random()
    if kind < 0.25:
        return PLAIN.replace(b"7.25", str(rng.randrange(12)).encode())
    if kind < 0.8:
        return rng.choice(some_record(rng).split(b"\n"))
    if kind < 0.999:
        return bytes(rng.choices(b'",ar1 \r\x00\xff\xc3\xe2\x80\xa8', k=rng.randrange(25)))
    return rng.choice([b"", b'"', b'1,1,"']) + b"z" * HUGE


def fields_as_the_csv_module_reads_them(line):
    """Read one line by itself with somebody else's reader; blanks for carriage returns."""
    text = line.removesuffix(b"\r").decode("utf-8", "replace").replace("\r", " ")
    limit = csv.field_size_limit(sys.maxsize)
    try:
        fields = next(csv.reader([text]), [])
    finally:
        csv.field_size_limit(limit)
    return (fields + [""] * 5)[:5]


def attack(path, pairs, seed):
    rng = random.Random(seed)
    for done in range(0, pairs, 8):
        lines = [some_line(rng) for _ in range(rng.randrange(2, 40))]
        end, chunk = rng.choice([b"\n", b"\r\n"]), rng.choice([50, 400, 1 << 20])
        write(path, lines, end)
        before = texts(path, chunk)
        rows = features(path, chunk) if done % 64 == 0 else None
        assert before.height == count_records(CsvFile(path)) == len(lines)
        for turn in range(8):
            place, neighbour = rng.randrange(len(lines)), [*lines]
            neighbour[place] = some_line(rng)
            write(path, neighbour, end)
            after = texts(path, chunk)
            assert after.height == before.height
            assert after[:place].equals(before[:place])
            assert after[place + 1 :].equals(before[place + 1 :])
            if turn == 0 and rows is not None:
                changed = features(path, chunk)
                assert np.array_equal(np.delete(changed, place, 1), np.delete(rows, place, 1))


def test_replacing_one_line_changes_that_row_and_nothing_else(tmp_path):
    attack(tmp_path / "fuzz.csv", PAIRS, 1)


@pytest.mark.audit
@pytest.mark.parametrize("seed", range(10))
def test_replacing_one_of_very_many_lines_changes_that_row_and_nothing_else(tmp_path, seed):
    attack(tmp_path / "fuzz.csv", PAIRS_OF_AN_AUDIT // 10, 100 + seed)


@pytest.mark.parametrize("size", [1, 50, 1 << 20])
def test_each_line_is_read_as_the_csv_module_reads_it_alone(tmp_path, size):
    rng = random.Random(size)
    lines = [some_line(rng) for _ in range(1500)]
    path = write(tmp_path / "lines.csv", lines)

    frame = pl.concat([read_header(CsvFile(path)), *read_lines(CsvFile(path), size)]).fill_null("")

    assert frame.rows() == [tuple(fields_as_the_csv_module_reads_them(line)) for line in lines]


def test_the_slow_way_reads_what_the_fast_way_reads(tmp_path, monkeypatch):
    rng = random.Random(5)
    path = write(tmp_path / "lines.csv", [some_line(rng) for _ in range(1500)])
    fast = pl.concat(read_lines(CsvFile(path)))

    def fail(*_, **__):
        raise pl.exceptions.ComputeError

    monkeypatch.setattr(pl, "read_csv", fail)

    assert pl.concat(read_lines(CsvFile(path))).equals(fast)


def release_of(path, **asked):
    return estimate_ate(path, domain=DOMAIN, level="sample", epsilon=1, seed=1, **asked)


@pytest.mark.parametrize("limit", ["1GB", 0])
@pytest.mark.parametrize(
    "note",
    [b'"', b'"open', b'a "b" c', b'"a"b', b"\r", b'"\r', b"\x00", b"\xff", b'"' + b"z" * HUGE],
    ids=lambda note: repr(note[:8]),
)
def test_a_stray_quote_before_a_note_that_begins_with_a_line_end_swallows_nothing(
    tmp_path, note, limit
):
    later = [b'5,0,"', b'begins with a line end",blue,3']
    lines = [PLAIN] * 40 + later + [PLAIN] * 58
    before = release_of(write(tmp_path / "before.csv", lines), memory_limit=limit)
    lines[15] = b"5,1," + note + b",red,7.25"

    after = release_of(write(tmp_path / "after.csv", lines), memory_limit=limit)

    assert before.n == after.n == 100


@pytest.mark.parametrize("limit", ["1GB", 0])
@pytest.mark.parametrize("note", ["two\nlines", "\n" * 39, "a\r\n1,1,x,red,9\n", "z" * HUGE + "\n"])
def test_quotes_around_line_ends_do_not_join_lines(tmp_path, note, limit):
    path = write(tmp_path / "note.csv", [PLAIN] * 50)
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow([5, 1, note, "red", 7])

    release = release_of(path, memory_limit=limit)

    assert release.n == path.read_bytes().count(b"\n") - 1 == 51 + note.count("\n")


@pytest.mark.parametrize("limit", ["1GB", "0"])
@pytest.mark.parametrize(
    "line",
    [
        b'"0.5"\r\r',
        b"5,1,\xff\xfe,red,2",
        b"5,1,x,\xc3,2",
        b'5,1,"\xe2\x80,red,2',
        b"",
        b'"',
        b"\x00",
    ],
)
def test_no_line_ends_the_program_with_an_error(tmp_path, line, limit):
    DOMAIN.write(tmp_path / "domain.toml")
    path = write(tmp_path / "odd.csv", [PLAIN, line, PLAIN])
    asked = ["--level", "sample", "--epsilon", "1", "--json", "--memory-limit", limit]

    answer = CliRunner().invoke(
        app, ["estimate", str(path), "--domain", str(tmp_path / "domain.toml"), *asked]
    )

    assert answer.exit_code == 0
    assert '"n": 3' in answer.stdout or '"n":3' in answer.stdout


@pytest.mark.parametrize("n", [3, (1 << 14) - 1, 1 << 14, (1 << 15) + 1])
def test_progress_follows_from_the_number_of_rows_alone(tmp_path, n):
    told = []
    for number, note in enumerate([b"", b"z" * 3_000_000, b'"', b"\r" * 2_000_000]):
        lines = [PLAIN] * n
        lines[1] = b"5,1," + note + b",red,7.25"
        path = write(tmp_path / f"{number}.csv", lines)
        for limit in (0, 1 << 20, 1 << 40):
            steps = []
            LocalStudy.encode(
                open_table(path, limit), DOMAIN, lambda *step, steps=steps: steps.append(step)
            )
            told.append(steps)

    assert all(steps == told[0] for steps in told)
    assert told[0][-1][1:] == (n, n)
    assert len(told[0]) == -(-n // (1 << 14))


CANARY = "4711.25"


@pytest.mark.parametrize("level", ["label", "sample"])
@pytest.mark.parametrize("limit", ["1GB", "0"])
@pytest.mark.parametrize("cells", [f"41,1,{CANARY},red,2", "ann,drug,ill,red,king"])
def test_errors_of_a_file_without_a_header_quote_nothing_of_its_first_record(
    tmp_path, level, limit, cells
):
    path = tmp_path / "bare.csv"
    path.write_text(f"{cells}\n42,0,5,blue,3\n")

    with pytest.raises(SchemaError, match="no treatment column 't' among its 5 columns") as error:
        estimate_ate(path, domain=DOMAIN, level=level, epsilon=1, memory_limit=limit)

    quoted = str(error.value).replace("no treatment column 't' among its 5 columns", "")
    assert not any(cell in quoted for cell in ("4711", "41", "ann", "drug", "ill", "red", "king"))


def test_the_check_of_a_file_without_a_header_quotes_nothing_of_its_first_record(tmp_path):
    path = tmp_path / "bare.csv"
    path.write_text("ann,drug,well,red,king\n42,0,5,blue,3\n")

    with pytest.raises(SchemaError, match="no treatment column 't' among its 5 columns") as error:
        check_data(path, domain=DOMAIN)

    assert not any(cell in str(error.value) for cell in ("ann", "drug", "well", "red", "king"))


def test_a_file_without_a_header_is_not_drafted(tmp_path):
    path, out = tmp_path / "bare.csv", tmp_path / "draft.toml"
    path.write_text(f"ann,1,{CANARY},red,2\n")

    for names in ([], ["--treatment", "t"]):
        answer = CliRunner().invoke(app, ["domain", str(path), "--out", str(out), *names])
        assert answer.exit_code != 0
        assert CANARY not in answer.output + str(answer.exception)
        assert "ann" not in answer.output + str(answer.exception)
        assert not out.exists()


def test_the_help_says_what_a_record_is():
    answer = CliRunner().invoke(app, ["estimate", "--help"])

    assert "one record" in " ".join(answer.stdout.split())
