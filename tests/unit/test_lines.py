"""A line of a CSV file is read by itself: no record reaches into another."""

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from private_ate.lines import count_lines, read_header, read_lines

_ODD = st.text(alphabet='",a1 \r\t\\\x00é', max_size=9)


def _rows(path, size):
    return pl.concat([read_header(path), *read_lines(path, size)])


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(record=_ODD, size=st.sampled_from([1, 7, 30, 1 << 20]))
def test_one_odd_record_leaves_its_neighbours_alone(tmp_path, record, size):
    path = tmp_path / "odd.csv"
    path.write_bytes(f"x,y,z\n1,2,3\n{record}\n4,5,6\n7,8,9\n".encode())

    rows = _rows(path, size).rows()

    assert len(rows) == 4
    assert (rows[0], rows[2], rows[3]) == (("1", "2", "3"), ("4", "5", "6"), ("7", "8", "9"))


def test_an_open_quote_does_not_run_on_to_a_proper_one_further_down(tmp_path):
    path = tmp_path / "open.csv"
    path.write_text('x,y\n"ab,1\n3,4\n"c,d",5\n6,7\n')

    assert _rows(path, 1 << 20).rows() == [("ab,1", None), ("3", "4"), ("c,d", "5"), ("6", "7")]


@pytest.mark.parametrize("size", [1, 5, 11, 1000])
def test_a_properly_quoted_record_may_run_over_lines_and_chunks(tmp_path, size):
    path = tmp_path / "long.csv"
    path.write_text('x,y\n"a\nb\n""c""",1\n2,3\n')

    assert _rows(path, size).rows() == [('a\nb\n"c"', "1"), ("2", "3")]


def test_the_size_of_chunks_changes_nothing(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text("x,y\r\n" + "".join(f"{i},{i * i}\r\n" for i in range(50)))

    frames = [_rows(path, size) for size in (1, 13, 64, 1 << 20)]

    assert all(frame.equals(frames[0]) for frame in frames)
    assert frames[0].height == 50 < count_lines(path)
