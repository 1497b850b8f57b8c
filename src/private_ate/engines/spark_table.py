"""A table on Spark: names and types, how a file opens, its lines, and a look at public columns.

Spark's own reader of comma-separated values lets a quoted field run over lines and a carriage
return end one. Here Spark cuts files at line feeds only and ``data.csv_file`` reads each line,
as it does on one machine; the data frame of such a file holds names alone. Where Spark splits a
file follows the lengths of lines, so encoded rows are gathered by their place in the file into
blocks of a fixed number of rows: neighbours have the same blocks, in the same order, on the same
partitions.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from itertools import accumulate, groupby
from operator import add
from pathlib import Path
from typing import Any, Final

import numpy as np

from private_ate.data.csv_file import CsvFile, marked_encoding, parse_lines, split_header
from private_ate.data.encoding import encode_rows, mark_missing
from private_ate.data.files import FOREIGN
from private_ate.data.missing_rules import Reading
from private_ate.data.tables import Kind, Table, declare_labels, require_column, table_of
from private_ate.data.validate_public import PublicCounts
from private_ate.data.workbooks import ExcelFile
from private_ate.domain import Categories, Domain, Interval
from private_ate.errors import ArgumentError, SchemaError

__all__ = [
    "FAILED", "SparkColumns", "count_public", "encode_block", "is_spark_frame", "one_row", "quoted",
    "read_frame",
]  # fmt: skip

Look = Callable[[Table, int], bytes]  # of rows and the number of rows before them
Split = tuple[str, int]  # a file, and where in it a split begins

FAILED: Final = -1  # rows of a block that could not be encoded
_NOT_ON_SPARK: Final = (
    "Spark reads text files in UTF-8 or cp1252 whose first line is the header; save the file "
    "so, or use engine 'local'"
)
_BLOCK_ROWS: Final = 1 << 14
_TASK_BLOCKS: Final = 16  # blocks that one task gathers, at most
_ARROW: Final = {"long": "int64", "int": "int32", "string": "string", "binary": "binary"}
# What maps over Arrow batches answer, a row each, in Spark's words.
_PIECES: Final = "block long, place long, arrays binary"
_SPLITS: Final = "file string, split long, lines long, first binary"
_LOOKS: Final = "partition long, rows long, counts binary"
_NUMBERS: Final = (
    "ByteType", "ShortType", "IntegerType", "LongType",
    "FloatType", "DoubleType", "DecimalType", "BooleanType",
)  # fmt: skip


def one_row(schema: str, *values: object) -> Any:  # noqa: ANN401  # a record batch of Arrow
    """Return an Arrow batch of one row; the schema is written as Spark writes it."""
    import pyarrow as pa  # comes with the extra

    names, kinds = zip(*(part.split() for part in schema.split(", ")), strict=True)
    arrays = [
        pa.array([value], getattr(pa, _ARROW[kind])())
        for value, kind in zip(values, kinds, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, list(names))


@dataclass(frozen=True, slots=True)
class SparkColumns:
    """The schema of a Spark data frame, and ranges of its columns on request.

    Of comma-separated values the frame holds no rows, only names; the rows are ``lines``.
    """

    frame: Any = field(repr=False)
    typed: bool = True
    lines: SparkLines | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.frame.columns)

    def require(self, name: str, role: str, asked: Collection[str] = ()) -> None:
        """Check that a column exists; see `require_column`."""
        require_column(self.names, name, role, asked)

    def kind(self, name: str) -> Kind:
        """Say what a column holds, from its type alone."""
        kind = type(self.frame.schema[name].dataType).__name__
        if kind in _NUMBERS:
            return "number"
        return "label" if kind in ("StringType", "VarcharType", "CharType") else "other"

    def type_name(self, name: str) -> str:
        """Name a column's type."""
        return str(self.frame.schema[name].dataType.typeName())

    def observe(self, names: Sequence[str]) -> dict[str, Interval | Categories]:
        """Look up the ranges of numbers and the labels of texts."""
        return {name: self._observe(name) for name in names}

    def _observe(self, name: str) -> Interval | Categories:
        from pyspark.sql import functions as F  # noqa: N812  # its usual name

        kind = self.kind(name)
        column = F.col(quoted(name))
        if kind == "number":
            value = column.cast("double")
            finite = F.when(~F.isnan(value) & (F.abs(value) < float("inf")), value)
            low, high = self.frame.agg(F.min(finite), F.max(finite)).first()
            return Interval(0, 1) if low is None else Interval(float(low), float(high))
        if kind == "label" and self.typed:
            texts = self.frame.select(F.trim(column).alias("label")).where("label <> ''")
            labels = sorted(row[0] for row in texts.distinct().limit(201).collect())
            return declare_labels(name, labels, texts.count())
        msg = f"column {name!r} has no range to look up on Spark; declare it in the domain"
        raise SchemaError(msg)


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
        pieces = self.lines.mapInArrow(looker, _PIECES)
        return [bytes(piece[2]) for piece in pieces.collect()]

    def encode(self, domain: Domain, reading: Reading | None = None) -> Any:  # noqa: ANN401  # an RDD
        """Return the number of rows and the encoded arrays of each block, in row order."""
        columns = domain.columns
        encoder = _mapper(
            list(dict.fromkeys(columns)), self,
            lambda table, _: encode_block(table, domain, reading)[1],
        )  # fmt: skip
        pieces = self.lines.mapInArrow(encoder, _PIECES).rdd
        blocks = -(-self.rows // _BLOCK_ROWS)
        cores = self.lines.sparkSession.sparkContext.defaultParallelism
        tasks = max(min(blocks, cores), -(-blocks // _TASK_BLOCKS), 1)
        keyed = pieces.map(lambda piece: (piece[0], (piece[1], bytes(piece[2]))))
        gathered = keyed.partitionBy(tasks, lambda block: block * tasks // max(blocks, 1))
        return gathered.mapPartitions(_gather)


def is_spark_frame(data: object) -> bool:
    """Say whether data is a Spark data frame, without importing Spark."""
    kind = type(data)
    return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"


def read_frame(file: str | CsvFile | ExcelFile, master: str | None = None) -> SparkColumns:
    """Open a CSV or Parquet file, or a directory of them, as a Spark data frame."""
    path = file if isinstance(file, str) else file.path
    if isinstance(file, ExcelFile) or (
        isinstance(file, str) and Path(path).suffix.lower() in FOREIGN
    ):
        msg = "Spark reads CSV and Parquet files; save the table as Parquet, or use engine 'local'"
        raise ArgumentError(msg)
    if isinstance(file, CsvFile) and (file.skip_rows or file.encoding == "utf-16"):
        raise ArgumentError(_NOT_ON_SPARK)
    try:
        from pyspark.sql import SparkSession  # an extra
    except ImportError as cause:
        msg = "engine 'spark' needs the spark extra: pip install 'private-ate[spark]'"
        raise ArgumentError(msg) from cause
    builder = SparkSession.builder.appName("private-ate")
    is_ours = SparkSession.getActiveSession() is None
    session = (builder if master is None else builder.master(master)).getOrCreate()
    if is_ours:
        session.sparkContext.setLogLevel("OFF")  # a failed task's trace could quote a record
    is_text = isinstance(file, CsvFile) or path.lower().endswith((".csv", ".tsv", ".txt"))
    form = file if isinstance(file, CsvFile) else CsvFile.of(path)
    columns: SparkColumns | None = None
    try:
        if is_text:
            columns = _columns_of(session, _open_lines(session, form))
        else:
            columns = SparkColumns(session.read.parquet(path))
    except SchemaError:
        raise
    except Exception:  # noqa: BLE001, S110  # whatever the reader says could quote a record
        pass
    if columns is None:
        msg = f"Spark cannot read {path!r}; is the path visible to every worker?"
        raise ArgumentError(msg)
    return columns


def _columns_of(session: Any, lines: SparkLines) -> SparkColumns:  # noqa: ANN401  # a session
    """Return columns of texts: what cannot be parsed is a missing value later on."""
    from pyspark.sql.types import StringType, StructField, StructType  # an extra

    schema = StructType([StructField(name, StringType()) for name in lines.names])
    return SparkColumns(session.createDataFrame([], schema), typed=False, lines=lines)


def _open_lines(session: Any, form: CsvFile) -> SparkLines:  # noqa: ANN401  # a Spark session
    """Find the files of a path, their header and the place of each record."""
    from pyspark.sql import functions as F  # noqa: N812  # its usual name

    lines = session.read.text(form.path, lineSep="\n").select(
        F.col("value").cast("binary").alias("line"),
        F.col("_metadata.file_path").alias("file"),
        F.col("_metadata.file_block_start").alias("split"),
    )
    counted = lines.mapInArrow(_count, _SPLITS)
    counts: dict[Split, int] = {}
    headers = {}
    for file, split, number, first in counted.collect():
        counts[file, split] = counts.get((file, split), 0) + number
        if first is not None:
            if "utf-16" in (marked_encoding(bytes(first)) or ""):
                raise SchemaError(_NOT_ON_SPARK)
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
    for (file, split), lines, first in _runs(batches):
        yield one_row(_SPLITS, file, split, len(lines), first)


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
        places = dict(starts)
        for split, lines, _ in _runs(batches):
            for place, part in _cut_at_blocks(lines, places[split]):
                block = _parsed(part, place, names, columns, form, look)
                yield one_row(_PIECES, place // _BLOCK_ROWS, place, block)
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


def count_public(columns: SparkColumns, domain: Domain, reading: Reading) -> PublicCounts | None:
    """Return what public columns hold that was not declared; None if a task failed.

    One pass over treatment and covariates before a row is encoded: executors send counts, the
    driver adds them up in the order of rows. Outcomes are not read.
    """
    names = [name for name in domain.columns if name not in domain.private_columns]
    look = _looker(domain, reading)
    if columns.lines is not None:
        # The bytes were written by an executor of this very run.
        looks = columns.lines.look(names, look)
        found = [pickle.loads(one) if one else None for one in looks]  # noqa: S301
    else:
        found = _counts_of_frame(columns.frame.select(*map(quoted, names)), look)
    return None if None in found else reduce(add, found, PublicCounts())


def _looker(domain: Domain, reading: Reading) -> Look:
    def look(table: Table, first: int) -> bytes:
        found = encode_rows(table, domain, reading, outcome=False, first=first).found
        return pickle.dumps(None if found is None else found.counts, protocol=5)

    return look


def _counts_of_frame(frame: Any, look: Look) -> list[PublicCounts | None]:  # noqa: ANN401  # a Spark data frame
    """Look at each batch of a data frame; rows are counted partition by partition."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa  # comes with the extra
        from pyspark import TaskContext  # as above

        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        rows = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            counts = b""
            with suppress(Exception):  # Spark would print what it says, and that could quote a row
                counts = look(table_of(pa.Table.from_batches([batch]), typed=True), rows)
            rows += batch.num_rows
            yield one_row(_LOOKS, partition, batch.num_rows, counts)

    pieces = frame.mapInArrow(run, _LOOKS).collect()
    sizes: dict[int, int] = {}
    for partition, rows, _ in pieces:
        sizes[partition] = sizes.get(partition, 0) + rows
    starts = dict(zip(sorted(sizes), accumulate(sizes[one] for one in sorted(sizes)), strict=True))
    return [
        pickle.loads(bytes(counts)).after(starts[partition] - sizes[partition])  # noqa: S301  # as above
        if counts
        else None
        for partition, _, counts in pieces
    ]


def quoted(name: str) -> str:
    """Return a column's name as Spark's expressions quote it."""
    return "`" + name.replace("`", "``") + "`"
