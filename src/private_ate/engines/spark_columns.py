"""Columns of a Spark data frame: their names and types, their ranges on request, and how one opens.

Of comma-separated values the frame holds names alone; rows are read as lines (`spark_lines`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from private_ate.data.csv_file import CsvFile
from private_ate.data.files import Kind
from private_ate.data.formats import is_foreign
from private_ate.data.tables import declare_labels, require_column
from private_ate.data.workbooks import ExcelFile
from private_ate.domain import Categories, Interval
from private_ate.engines.spark_lines import NOT_ON_SPARK, SparkLines, open_lines
from private_ate.errors import ArgumentError, SchemaError

__all__ = ["SparkColumns", "is_spark_frame", "quoted", "read_frame"]

_NUMBERS: Final = (
    "ByteType", "ShortType", "IntegerType", "LongType",
    "FloatType", "DoubleType", "DecimalType", "BooleanType",
)  # fmt: skip


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


def is_spark_frame(data: object) -> bool:
    """Say whether data is a Spark data frame, without importing Spark."""
    kind = type(data)
    return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"


def read_frame(file: str | CsvFile | ExcelFile, master: str | None = None) -> SparkColumns:
    """Open a CSV or Parquet file, or a directory of them, as a Spark data frame."""
    path = file if isinstance(file, str) else file.path
    if isinstance(file, ExcelFile) or (isinstance(file, str) and is_foreign(Path(path))):
        msg = "Spark reads CSV and Parquet files; save the table as Parquet, or use engine 'local'"
        raise ArgumentError(msg)
    if isinstance(file, CsvFile) and (file.skip_rows or file.encoding == "utf-16"):
        raise ArgumentError(NOT_ON_SPARK)
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
            columns = _columns_of(session, open_lines(session, form))
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


def quoted(name: str) -> str:
    """Return a column's name as Spark's expressions quote it."""
    return "`" + name.replace("`", "``") + "`"
