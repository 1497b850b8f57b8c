"""Texts in other encodings: whatever bytes a record holds, no other record is read otherwise."""

import random

import numpy as np
import polars as pl
import pytest

from private_ate import CsvFile, Domain, Interval, Treatment, estimate_ate
from private_ate.data.csv_file import count_records, read_header, read_lines
from private_ate.data.files import open_table

HEADER = "größe,t,y"
# By the encoding that is said, if any: the mark, how the header is written, the bytes of a unit.
WRITTEN = {
    "utf-8 by mark": (None, b"\xef\xbb\xbf", "utf-8", 1),
    "cp1252": ("cp1252", b"", "cp1252", 1),
    "utf-16 by mark, little end first": (None, b"\xff\xfe", "utf-16-le", 2),
    "utf-16 by mark, big end first": (None, b"\xfe\xff", "utf-16-be", 2),
    "utf-16 said, with its mark": ("utf-16", b"\xfe\xff", "utf-16-be", 2),
    "utf-16 said, without a mark": ("utf-16", b"", "utf-16-le", 2),
}
# Halves of characters, units that look like line feeds when they are cut wrongly, marks.
UNITS = [
    "\n", "\r", ",", '"', "1", "7", "é", "€", "\x00", "\u0a00", "\u000d", "\u2028", "\ufeff",
    "\ud800", "\udbff", "\udc00", "\udfff", "\u0a0a", "\u0d0a",
]  # fmt: skip


def some_line(rng, encoding, unit):
    """Return the bytes of a line without its end: any units but a line feed's."""
    if rng.random() < 0.3:
        return f"{rng.randrange(9)}.5,{rng.randrange(2)},{rng.randrange(9)}".encode(encoding)
    feed = "\n".encode(encoding)
    units = []
    for _ in range(rng.randrange(12)):
        chosen = bytes(rng.randrange(256) for _ in range(unit))
        if rng.random() < 0.7:
            text = rng.choice(UNITS)
            errors = "surrogatepass" if encoding != "cp1252" else "replace"
            chosen = text.encode(encoding, errors)
        units += [chosen[at : at + unit] for at in range(0, len(chosen), unit)]
    return b"".join(one for one in units if one != feed)


def write(path, mark, encoding, lines):
    feed = "\n".encode(encoding)
    path.write_bytes(mark + HEADER.encode(encoding) + feed + b"".join(x + feed for x in lines))


def texts(file, size):
    held = pl.concat([read_header(file), *read_lines(file)])
    assert held.equals(pl.concat([read_header(file), *read_lines(file, size)]))
    return held


@pytest.mark.parametrize("written", WRITTEN)
def test_replacing_a_line_by_any_bytes_changes_that_record_alone(tmp_path, written):
    said, mark, encoding, unit = WRITTEN[written]
    path = tmp_path / "study.csv"
    file = CsvFile(path, encoding=said)
    rng = random.Random(written)
    for _ in range(60):
        lines = [some_line(rng, encoding, unit) for _ in range(rng.randrange(2, 12))]
        size = rng.choice([1, 7, 1 << 20])
        write(path, mark, encoding, lines)
        before = texts(file, size)
        assert before.columns == ["größe", "t", "y"]
        assert before.height == count_records(file) == len(lines)
        for _ in range(4):
            place, neighbour = rng.randrange(len(lines)), [*lines]
            neighbour[place] = some_line(rng, encoding, unit)
            write(path, mark, encoding, neighbour)
            after = texts(file, size)
            assert after.height == before.height == count_records(file)
            assert after[:place].equals(before[:place])
            assert after[place + 1 :].equals(before[place + 1 :])


@pytest.mark.parametrize("units", [(0xD800,), (0xDC00,), (0xDBFF, 0xDBFF)])
def test_half_a_character_before_a_line_end_takes_nothing_along(tmp_path, units):
    half = "".join(map(chr, units))
    write(
        tmp_path / "a.csv", b"", "utf-16-le",
        [("1,1," + half).encode("utf-16-le", "surrogatepass"), "2,0,3".encode("utf-16-le")],
    )  # fmt: skip
    frame = pl.concat(read_lines(CsvFile(tmp_path / "a.csv", encoding="utf-16")))

    assert frame.rows() == [("1", "1", "�" * len(half)), ("2", "0", "3")]


def test_a_byte_too_many_at_the_end_of_a_file_is_part_of_its_last_record(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("x,t,y\n1,0,5\n2,1,6".encode("utf-16") + b"\x07")
    file = CsvFile(path)

    assert count_records(file) == 2
    assert pl.concat(read_lines(file)).rows() == [("1", "0", "5"), ("2", "1", "6�")]


@pytest.mark.parametrize("written", WRITTEN)
def test_a_byte_that_is_no_text_is_no_error_at_sample_level(tmp_path, written):
    said, mark, encoding, unit = WRITTEN[written]
    arms = Treatment("t", treated=1, control=0)
    domain = Domain(arms, ("y", Interval(0, 10)), {"größe": Interval(0, 10)})
    rng = random.Random(3)
    odd = [some_line(rng, encoding, unit) for _ in range(300)]
    write(tmp_path / "a.csv", mark, encoding, odd)
    asked = {"domain": domain, "level": "sample", "epsilon": 1, "seed": 1}
    file = CsvFile(tmp_path / "a.csv", encoding=said)

    release = estimate_ate(file, **asked)

    assert release.n == 300
    assert estimate_ate(file, **asked, memory_limit=0).ate == pytest.approx(release.ate)


def test_a_first_record_that_begins_like_a_mark_changes_no_encoding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"x,t,y\n\xff\xfe1,1,1\n2,0,2\n")

    assert np.array_equal(open_table(CsvFile(path)).numbers("y"), [1, 2])
