"""How many rows one person has, counted by a public column of ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from private_ate.arrays import Words
from private_ate.data.files import without_words
from private_ate.data.streams import StreamedTable, open_table
from private_ate.data.tables import Table
from private_ate.errors import ArgumentError
from private_ate.privacy.levels import Level, has_public_covariates

if TYPE_CHECKING:
    import polars as pl

__all__ = ["hash_persons", "most_rows", "refuse_person"]

_WHOLE: Final = 2.0**53  # below it every whole number is a float


def refuse_person(person: object, level: Level, rows_per_person: int, *, is_table: bool) -> None:
    """Refuse to derive how many rows a person has where ids are private, or where it is said."""
    if person is None:
        return
    if not isinstance(person, str):
        msg = "person names one column, whose entries tell persons apart"
        raise ArgumentError(msg, parameter="person")
    if not has_public_covariates(level):
        msg = (
            "ids are private at sample level, so how many rows a person has is not read off them; "
            "declare rows_per_person instead of person"
        )
        raise ArgumentError(msg, parameter="rows_per_person")
    if not is_table:
        msg = "a study that is encoded, or not there yet, has no ids; declare rows_per_person"
        raise ArgumentError(msg, parameter="rows_per_person")
    if rows_per_person != 1:
        msg = "person derives rows_per_person; say one of them"
        raise ArgumentError(msg, parameter="person")


def most_rows(data: object, person: str, public: Sequence[str], memory: int) -> int:
    """Return the largest number of rows that share an id; rows without one count as one person's.

    Persons are distinguished by hashes of 64 bits: two persons of one hash count as one, which errs
    on the side of more noise. ``public`` are the columns by which a sheet's rows are counted.
    """

    def count() -> int:
        import polars as pl

        table = open_table(data, memory, [*public, person], public=public)
        chunks = table.chunks([person]) if isinstance(table, StreamedTable) else [table]
        counts = pl.DataFrame(schema={"person": pl.UInt64, "rows": pl.UInt32})
        for chunk in chunks:
            found = pl.DataFrame({"person": hash_persons(chunk, person)})
            found = found.group_by("person").agg(pl.len().alias("rows"))
            counts = pl.concat([counts, found]).group_by("person").agg(pl.col("rows").sum())
        return int(counts["rows"].max() or 1)  # type: ignore[arg-type]  # of whole numbers

    return without_words(count)


def hash_persons(table: Table, column: str) -> Words:
    """Return a hash for each row's id; of a number the same however it is written."""
    hashes: Words = _ids(table, column).hash(seed=1).to_numpy()
    return hashes


def _ids(table: Table, column: str) -> pl.Series:
    """Return ids as texts, empty where there is none."""
    import polars as pl

    texts = table.texts(column).alias("id")
    frame = (
        texts.fill_null("")
        .to_frame()
        .with_columns(number=pl.col("id").cast(pl.Float64, strict=False))
    )
    is_whole = pl.col("number").is_finite() & (pl.col("number").abs() < _WHOLE)
    number = (pl.col("number") + 0.0).cast(pl.String)  # −0 is 0
    is_missing = pl.col("number").is_nan()
    read = pl.when(is_missing).then(pl.lit("")).when(is_whole).then(number)
    return frame.select(read.otherwise(pl.col("id"))).to_series()
