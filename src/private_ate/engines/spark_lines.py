"""Comma-separated values on Spark: physical lines by their bytes, in blocks that follow from n.

Spark's own reader of such files lets a quoted field run over lines and a carriage return end one.
Here Spark cuts files at line feeds only and ``data.csv_records`` reads each line, as it does on one
machine. Where Spark splits a file follows the lengths of lines, so encoded rows are gathered
by their place in the file into blocks of a fixed number of rows: neighbours have the same blocks,
in the same order, on the same partitions.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import numpy as np

from private_ate.data.csv_file import CsvFile
from private_ate.data.csv_records import marked_encoding, parse_lines, split_header
from private_ate.data.encoding import encode_rows, mark_missing
from private_ate.data.missing_rules import Reading
from private_ate.data.tables import Table, table_of
from private_ate.domain import Domain
from private_ate.errors import SchemaError

__all__ = ["FAILED", "NOT_ON_SPARK", "SparkLines", "encode_block", "open_lines"]

Look = Callable[[Table, int], bytes]  # of rows and the number of rows before them

FAILED: Final = -1  # rows of a block that could not be encoded
NOT_ON_SPARK: Final = (
    "Spark reads text files in UTF-8 or cp1252 whose first line is the header; save the file "
    "so, or use engine 'local'"
)
_BLOCK_ROWS: Final = 1 << 14
_TASK_BLOCKS: Final = 16  # blocks that one task gathers, at most
Split = tuple[str, int]  # a file, and where in it a split begins


@dataclass(frozen=True, slots=True)
class SparkLines:
    """The lines of one or several files on Spark, and the place of each split's first record.

    ``lines`` is a data frame of lines as bytes, with the file and the split that each is from.
    """

    names: tuple[str, ...]
    rows: int
    lines: Any = field(repr=False)
    starts: dict[Split, int] = field(repr=False)
    form: CsvFile

    @property
    def files(self) -> int:
        """The number of files."""
        return len({file for file, _ in self.starts})

    def look(self, columns: list[str], look: Look) -> list[bytes]:
        """Return what a look at some columns of each run of rows answers; no bytes if it failed."""
        looker = _mapper(columns, self, look)
        pieces = self.lines.mapInArrow(looker, "block long, place long, arrays binary")
        return [bytes(piece[2]) for piece in pieces.collect()]

    def encode(self, domain: Domain, reading: Reading | None = None) -> Any:  # noqa: ANN401  # an RDD
        """Return the number of rows and the encoded arrays of each block, in row order."""
        columns = domain.columns
        encoder = _mapper(
            list(dict.fromkeys(columns)), self,
            lambda table, _: encode_block(table, domain, reading)[1],
        )  # fmt: skip
        pieces = self.lines.mapInArrow(encoder, "block long, place long, arrays binary").rdd
        blocks = -(-self.rows // _BLOCK_ROWS)
        cores = self.lines.sparkSession.sparkContext.defaultParallelism
        tasks = max(min(blocks, cores), -(-blocks // _TASK_BLOCKS), 1)
        keyed = pieces.map(lambda piece: (piece[0], (piece[1], bytes(piece[2]))))
        gathered = keyed.partitionBy(tasks, lambda block: block * tasks // max(blocks, 1))
        return gathered.mapPartitions(_gather)


def open_lines(session: Any, form: CsvFile) -> SparkLines:  # noqa: ANN401  # a Spark session
    """Find the files of a path, their header and the place of each record."""
    from pyspark.sql import functions as F  # noqa: N812  # its usual name

    lines = session.read.text(form.path, lineSep="\n").select(
        F.col("value").cast("binary").alias("line"),
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("split"),
    )
    counted = lines.mapInArrow(_count, "file string, split long, lines long, first binary")
    counts: dict[Split, int] = {}
    headers = {}
    for file, split, number, first in counted.collect():
        counts[file, split] = counts.get((file, split), 0) + number
        if first is not None:
            if "utf-16" in (marked_encoding(bytes(first)) or ""):
                raise SchemaError(NOT_ON_SPARK)
            headers[file] = split_header(bytes(first) + b"\n", form)
    if len(set(headers.values())) > 1:
        msg = "the files do not begin with the same header line"
        raise SchemaError(msg)
    starts, place = {}, 0
    for one in sorted(counts):
        starts[one] = place
        place += counts[one]
    return SparkLines(next(iter(headers.values())), place, lines, starts, form)


def _count(batches: Iterable[Any]) -> Iterator[Any]:
    """Count the records of each split, and keep the header of each file."""
    import pyarrow as pa  # comes with the extra

    for split, number, first in _runs(batches):
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([split[0]], pa.string()),
                pa.array([split[1]], pa.int64()),
                pa.array([len(number)], pa.int64()),
                pa.array([first], pa.binary()),
            ],
            ["file", "split", "lines", "first"],
        )


def _runs(batches: Iterable[Any]) -> Iterator[tuple[Split, list[bytes], bytes | None]]:
    """Yield runs of records of one split, with the header if the run begins a file."""
    before: Split | None = None
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("file", "split", "line"))
        for split, rows in groupby(zip(*columns, strict=True), key=lambda row: row[:2]):
            lines = [row[2] for row in rows]
            # A split that is not a file's first begins after the header.
            is_header = split != before and split[1] == 0
            yield split, lines[is_header:], lines[0] if is_header else None
            before = split


def _mapper(
    columns: list[str], file: SparkLines, look: Look
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a map from lines to what is made of the parts of each block, with their places."""
    # Executors are sent these alone: a frame cannot leave the driver.
    names, starts, form = file.names, file.starts, file.form

    def encode(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa  # comes with the extra

        places = dict(starts)
        for split, lines, _ in _runs(batches):
            for place, part in _cut_at_blocks(lines, places[split]):
                block = _parsed(part, place, names, columns, form, look)
                yield pa.RecordBatch.from_arrays(
                    [
                        pa.array([place // _BLOCK_ROWS], pa.int64()),
                        pa.array([place], pa.int64()),
                        pa.array([block], pa.binary()),
                    ],
                    ["block", "place", "arrays"],
                )
            places[split] += len(lines)

    return encode


def _cut_at_blocks(lines: list[bytes], place: int) -> Iterator[tuple[int, list[bytes]]]:
    """Cut a run of lines, the first at a place, where a block ends; yield each part's place."""
    done = 0
    while done < len(lines):
        room = _BLOCK_ROWS - (place + done) % _BLOCK_ROWS
        yield place + done, lines[done : done + room]
        done += room


def encode_block(table: Table, domain: Domain, reading: Reading | None = None) -> tuple[int, bytes]:
    """Encode a block of rows; a failure is a number of rows, since Spark would print its words."""
    with suppress(Exception):
        rows = encode_rows(table, domain, reading, outcome=True)
        marks = mark_missing(rows, domain.indicators)
        covariates = np.concatenate([rows.covariates, marks]) if len(marks) else rows.covariates
        observed = np.ones_like(rows.treatment) if rows.observed is None else rows.observed
        # Sampling weights come last, where any are declared.
        weights = () if rows.weights is None else (rows.weights,)
        arrays = covariates, rows.treatment, rows.outcome, rows.takes_part, observed, *weights
        return rows.treatment.size, pickle.dumps(arrays, protocol=5)
    return FAILED, b""


def _parsed(
    lines: list[bytes],
    place: int,
    names: tuple[str, ...],
    columns: list[str],
    form: CsvFile,
    look: Look,
) -> bytes:
    """Return what is made of some lines; no bytes if that failed."""
    text = b"".join(line + b"\n" for line in lines)
    with suppress(Exception):  # whatever the reader says could quote a record
        parsed = parse_lines(text, names, columns, form)
        return look(table_of(parsed, typed=False, decimal=form.decimal), place)
    return b""


def _gather(
    pieces: Iterable[tuple[int, tuple[int, bytes]]],
) -> Iterator[tuple[int, bytes]]:
    """Put the pieces of each block together, in the order of their places."""
    for _, members in groupby(sorted(pieces), key=lambda piece: piece[0]):
        pieces_of = [arrays for _, (_, arrays) in members]
        if not all(pieces_of):
            yield FAILED, b""
            continue
        # The bytes were written by an executor of this very run.
        parts = [pickle.loads(arrays) for arrays in pieces_of]  # noqa: S301
        arrays = tuple(np.concatenate(same, axis=-1) for same in zip(*parts, strict=True))
        if arrays[1].size:  # every row of a block may have been left out
            yield arrays[1].size, pickle.dumps(arrays, protocol=5)
