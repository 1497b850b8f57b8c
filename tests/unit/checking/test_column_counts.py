"""Counts that stay small: exact for what is few, close for what is many, whatever the chunks."""

import numpy as np
import polars as pl
import pytest

from private_ate.checking.column_counts import (
    Entries,
    HashCounts,
    ValueCounts,
    count_shapes,
    spread_bits,
)


def words(numbers):
    return spread_bits(np.asarray(numbers, dtype=np.uint64))


def test_rows_that_are_alike_are_counted_exactly_while_they_are_few():
    counted = HashCounts()
    for part in ([1, 2, 3], [3, 3, 4], [1]):
        counted.add(words(part))

    assert (
        counted.distinct,
        counted.repeated,
        counted.surplus,
        counted.largest,
    ) == (4, 2, 3, 3)


@pytest.mark.parametrize("chunk", [1000, 7777, 200_000])
def test_many_rows_are_counted_closely_in_bounded_memory(chunk):
    counted = HashCounts(most=4096)
    rows = np.concatenate([np.arange(150_000), np.arange(50_000)])
    for start in range(0, rows.size, chunk):
        counted.add(words(rows[start : start + chunk]))

    assert counted.distinct == pytest.approx(150_000, rel=0.06)
    assert counted.surplus == pytest.approx(50_000, rel=0.1)
    assert counted.largest == 2
    assert counted.hashes.size <= 4096


def entries(*texts):
    series = pl.Series(texts, dtype=pl.String)
    return Entries(series.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy(), series)


def test_a_number_and_its_texts_are_one_value():
    counts = ValueCounts()
    some = entries("1", "1.0", "b", None, "b", "")
    counts.add(some, np.ones(6, np.bool_), np.array([0, 1, 0, 0, 2, 0]))

    assert counts.ordered() == {"1": 2, "b": 2}
    assert counts.by_arm()["1"].tolist() == [1, 1, 0]
    assert counts.is_whole


def test_of_too_many_values_the_first_are_counted_to_the_end():
    counts, one_by_one = ValueCounts(most=2), ValueCounts(most=2)
    texts = ["c", "a", "b", "a", "c", "b", "a"]
    counts.add(entries(*texts), np.ones(7, np.bool_), np.zeros(7, np.int64))
    for text in texts:
        one_by_one.add(entries(text), np.ones(1, np.bool_), np.zeros(1, np.int64))

    assert counts.ordered() == one_by_one.ordered() == {"a": 3, "c": 2}
    assert not counts.is_whole
    assert not one_by_one.is_whole


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("3,5", "comma"), ("-1.234,5", "comma"), ("1,234.5", "comma"), ("12,345", "comma"),
        ("2024-02-03", "date"), ("3.2.2024", "date"), ("03/02/24", "date"),
        ("2024-02-03T10:00", "date"), ("n/a", "word"), (".", "word"), ("NULL", "word"),
        ("12 %", "unit"), ("<5", "unit"), ("70kg", "unit"), ("$12.50", "unit"),
        ("north", None), ("a,b", None), ("p00012", None),
    ],
)  # fmt: skip
def test_texts_are_known_by_their_shape(text, shape):
    counts = {name: count for name, count in count_shapes(pl.Series([text])).items() if count}

    assert counts == ({} if shape is None else {shape: 1})


def test_entries_tell_what_is_missing_from_what_is_no_number():
    some = entries("1", "", None, "NaN", "forty", "inf")

    assert some.is_missing.tolist() == [False, True, True, True, False, False]
    assert some.is_text.tolist() == [False, False, False, False, True, False]
