"""Files that R itself wrote: as R shows them, whatever R makes of a column inside."""

import numpy as np
import polars as pl
import pytest

pytest.importorskip("rdata", reason="FORMATS WERE NOT READ: install the extra formats")

from private_ate.data.files import open_table, read_schema
from r_session import require_r, run_r

# From some length on, R hands over sequences, sorted columns and numbers as texts in short forms.
FRAME = """
n <- 120
set.seed(5)
frame <- data.frame(
  sequence = 1:n, reals = as.numeric(1:n), sorted = sort(runif(n)), texts = as.character(1:n),
  number = c(NA, NaN, Inf, -Inf, seq_len(n - 4) / 7), whole = c(NA, 2:n),
  truth = c(NA, rep(c(TRUE, FALSE), length.out = n - 1)),
  word = c(NA, "s\\u00fcd", rep("a b", n - 2)),
  ward = factor(c(NA, "v", rep("u", n - 2)), levels = c("v", "u", "unused")),
  rank = factor(sort(rep(c("lo", "hi"), n / 2)), levels = c("hi", "lo"), ordered = TRUE),
  day = as.Date("2024-01-02") + seq_len(n), at = as.POSIXct(0, origin = "2024-01-02", tz = "UTC"),
  lasted = as.difftime(seq_len(n), units = "mins")
)
frame$long <- bit64::as.integer64(c(NA, 2:n))
frame$code <- structure(rep(c(1, 2), n / 2), labels = c(one = 1, two = 2),
                        class = c("haven_labelled", "vctrs_vctr", "double"))
frame$latin <- rep(iconv("s\\u00fcd", "UTF-8", "latin1"), n)
frame$parts <- as.POSIXlt(frame$at)
frame$pair <- matrix(seq_len(2 * n), n)
frame$inner <- data.frame(p = seq_len(n))
frame$list <- as.list(seq_len(n))
shown <- frame[c("sequence", "reals", "sorted", "number", "whole", "truth", "code")]
shown <- as.data.frame(lapply(shown, function(column) sprintf("%.17g", as.numeric(column))))
write.csv(shown, "numbers.csv", row.names = FALSE, quote = FALSE)
"""
NUMBERS = ["sequence", "reals", "sorted", "number", "whole", "truth", "code"]
LABELS = ["texts", "word", "ward", "rank", "latin"]
NEITHER = ["day", "at", "lasted", "parts", "pair", "inner", "list"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    require_r()
    made = tmp_path_factory.mktemp("saved")
    ways = "".join(
        f'saveRDS(frame, "{way}{version}.rds", version = {version}, compress = "{way}")\n'
        for version in (2, 3)
        for way in ("gzip", "bzip2", "xz")
    )
    others = """
saveRDS(frame, "plain.rds", compress = FALSE)
saveRDS(frame, "ascii.rds", ascii = TRUE)
rownames(frame) <- paste("row", seq_len(n))
saveRDS(frame, "named.rds")
saveRDS(frame[order(-frame$sequence), ][1:2, ], "two.rds")
saveRDS(unclass(frame), "no-frame.rds")
"""
    run_r(FRAME + ways + others, made)
    return made


PRECISION = {"ascii": 1e-15}  # R writes sixteen digits of a number into such a file
WAYS = ["gzip2", "bzip22", "xz2", "gzip3", "bzip23", "xz3", "plain", "ascii", "named"]


@pytest.mark.parametrize("way", WAYS)
def test_numbers_are_those_that_r_shows(folder, way):
    table = open_table(folder / f"{way}.rds")
    shown = pl.read_csv(folder / "numbers.csv", infer_schema=False)

    for name in NUMBERS:
        expected = [{"NA": "nan"}.get(text, text) for text in shown[name]]
        np.testing.assert_allclose(
            table.numbers(name), np.array(expected, dtype=float), rtol=PRECISION.get(way, 0.0)
        )
    np.testing.assert_array_equal(table.numbers("long"), [np.nan, *range(2, 121)])


@pytest.mark.parametrize("way", WAYS)
def test_texts_and_factors_are_their_words(folder, way):
    table = open_table(folder / f"{way}.rds")

    assert table.equals("texts", "120").tolist() == [False] * 119 + [True]
    assert table.missing("word").tolist() == [True] + [False] * 119
    assert table.equals("word", "süd").sum() == table.equals("ward", "v").sum() == 1
    assert table.equals("latin", "süd").all()
    assert table.missing("ward").sum() == 1
    assert table.equals("rank", "hi").tolist() == [True] * 60 + [False] * 60


def test_logicals_are_binary_and_dates_lists_and_tables_inside_are_nothing(folder):
    schema = read_schema(folder / "gzip3.rds")

    assert schema == {
        **dict.fromkeys([*NUMBERS, "long"], "number"),
        "truth": "binary",
        **dict.fromkeys(LABELS, "label"),
        **dict.fromkeys(NEITHER, "other"),
    }


def test_two_rows_are_not_taken_for_a_number_of_rows(folder):
    table = open_table(folder / "two.rds")

    assert table.rows == 2
    assert table.numbers("sequence").tolist() == [120, 119]


def test_what_is_no_data_frame_is_refused(folder):
    with pytest.raises(ValueError, match="a data frame that R saved"):
        open_table(folder / "no-frame.rds")
