"""Lines of a CSV file: what ends one, which fields it has, how many there are."""

import io

import polars as pl
import pytest

from private_ate.arguments import parse_memory
from private_ate.data.csv_file import (
    CsvFile,
    count_records,
    find_long_lines,
    parse_lines,
    read_header,
    read_lines,
    split_header,
)
from private_ate.data.files import open_table, read_schema
from private_ate.errors import SchemaError


def _rows(path, size=1 << 20):
    return pl.concat([read_header(CsvFile(path)), *read_lines(CsvFile(path), size)]).rows()


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (b"1,2", ("1", "2")),
        (b"", (None, None)),
        (b"1", ("1", None)),
        (b",2", (None, "2")),
        (b"1,2,3", ("1", "2")),
        (b'"a,b",2', ("a,b", "2")),
        (b'"a""b","c"', ('a"b', "c")),
        (b'"ab,1', ("ab,1", None)),
        (b'"a"b,2', ("ab", "2")),
        (b'a"b,"2"', ('a"b', "2")),
        (b' "a",2', (' "a"', "2")),
        (b'"",2', ("", "2")),
        (b"1,2\r", ("1", "2")),
        (b"1,2\r\r", ("1", "2 ")),
        (b"1\r,2", ("1 ", "2")),
        (b"\xff,2", ("\ufffd", "2")),
        (b"\x00,\x0b\x0c", ("\x00", "\x0b\x0c")),
        ("a\u2028b,\x85".encode(), ("a\u2028b", "\x85")),
    ],
)
def test_fields_are_cut_within_their_line(line, fields):
    frame = parse_lines(b"5,6\n" + line + b"\n7,8\n", ("x", "y"), ("x", "y"), CsvFile("a.csv"))

    assert frame.rows() == [("5", "6"), fields, ("7", "8")]


@pytest.mark.parametrize("size", [1, 5, 11, 1000])
def test_the_size_of_chunks_changes_nothing(tmp_path, size):
    path = tmp_path / "lines.csv"
    path.write_bytes(b'x,y\r\n"a\r\nb",1\r\n\r\n2,"3\r\n')

    assert _rows(path, size) == [("a", None), ('b"', "1"), (None, None), ("2", "3")]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (b"x,y", 0), (b"x,y\n", 0), (b"x,y\n1,2", 1), (b"x,y\n1,2\n", 1), (b"x,y\n\n", 1),
        (b"x,y\n\n\n", 2), (b"x,y\n\r", 1), (b"x,y\r1,2\r", 0), (b'x,y\n"\n\n"', 3),
    ],
)  # fmt: skip
def test_records_are_counted_by_line_feeds(tmp_path, text, rows):
    path = tmp_path / "lines.csv"
    path.write_bytes(text)

    assert len(_rows(path)) == count_records(CsvFile(path)) == rows


def test_a_single_column_keeps_its_empty_lines(tmp_path):
    path = tmp_path / "one.csv"
    path.write_bytes(b"x\n\n1\n\n")

    assert _rows(path) == [(None,), ("1",), (None,)]


def test_some_columns_are_read_in_the_order_asked_for():
    frame = parse_lines(b'1,2,3\n"4","5\n', ("x", "y", "z"), ("z", "x"), CsvFile("a.csv"))

    assert frame.columns == ["z", "x"]
    assert frame.rows() == [("3", "1"), (None, "4")]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (b"\xef\xbb\xbfx,y\r\n", ("x", "y")),
        (b'\xef\xbb\xbf"x, y","z"""\n', ("x, y", 'z"')),
        (b'"",x,,', ("", "x", "_duplicated_0", "_duplicated_1")),
        (b'"open,x\n', ("open,x",)),
    ],
)
def test_a_header_names_the_columns(line, names):
    assert split_header(line, CsvFile("a.csv")) == names


@pytest.mark.parametrize("memory", ["1GB", "0"])
def test_a_name_that_a_header_repeats_is_an_error_that_says_where(tmp_path, memory):
    path = tmp_path / "twice.csv"
    path.write_text("t,y,x,y\n1,2,3,4\n")

    with pytest.raises(SchemaError, match="columns 2 and 4 of the header line") as refused:
        open_table(path, parse_memory(memory))
    assert "'y'" not in str(refused.value)
    with pytest.raises(SchemaError, match="same name"):
        read_schema(path)


def test_a_line_longer_than_a_chunk_is_read_whole():
    from private_ate.data.csv_file import _whole_lines

    text = b"a" * 5000 + b"\nb\n" + b"c" * 70

    assert b"".join(_whole_lines(io.BytesIO(text), 16)) == text + b"\n"


def test_a_file_without_a_line_has_no_header(tmp_path):
    (tmp_path / "empty.csv").write_bytes(b"")

    assert count_records(CsvFile(tmp_path / "empty.csv")) == 0
    with pytest.raises(ValueError, match="no header line"):
        read_header(CsvFile(tmp_path / "empty.csv"))


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_lines_with_more_fields_than_the_header_are_found(tmp_path, size):
    path = tmp_path / "lines.csv"
    path.write_bytes(b'x,y\n1,2\n3\n"4,5",6\n7,8,\n1,5,2,5\n\n9,9,9')

    assert find_long_lines(CsvFile(path), size) == (2, 6)
    path.write_bytes(b"x,y\n1,2\n")
    assert find_long_lines(CsvFile(path), size) == (0, 0)


def test_a_column_without_a_name_is_no_field_too_many(tmp_path):
    path = tmp_path / "lines.csv"
    path.write_bytes(b'"","y"\n"1",2\n"2",3\n')  # row names, as R and pandas write them

    assert find_long_lines(CsvFile(path)) == (0, 0)
    path.write_bytes(b'"","y",""\n"1",2,0\n"2",3,0,7\n')
    assert find_long_lines(CsvFile(path)) == (1, 3)
