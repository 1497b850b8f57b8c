"""Where rows come from: memory, a file that is streamed, or a cluster; decided here and once.

A table is opened as far as its names and types go, which may be the reason of an error. Records
are read and encoded later, inside the charge, without a word of the packages that read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from private_ate.data.csv_file import CsvFile
from private_ate.data.files import open_schema, without_words
from private_ate.data.inputs import (
    ColumnsAsked,
    Outline,
    most_rows,
    read_rows,
    settle_domain,
    settle_names,
)
from private_ate.data.missing_rules import Reading
from private_ate.data.workbooks import ExcelFile
from private_ate.engines.local import LocalStudy, Progress
from private_ate.engines.spark import UNFINISHED, SparkStudy
from private_ate.engines.spark_table import SparkColumns, is_spark_frame, read_frame
from private_ate.errors import ArgumentError

__all__ = ["OpenTable", "open_table"]


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A table that is open as far as its names and types; ``outline`` says what was settled."""

    data: object = field(repr=False)
    asked: ColumnsAsked
    outline: Outline
    memory: int  # bytes that a file may take before it is streamed

    def most_rows(self, person: str) -> int:
        """Return the largest number of rows of one person; reads public columns alone."""
        if isinstance(self.outline.table, SparkColumns):
            msg = "persons are counted on this machine; on a cluster declare rows_per_person"
            raise ArgumentError(msg, parameter="rows_per_person")
        public = [self.outline.declared.treatment.column, *self.outline.covariates]
        return most_rows(self.data, person, public, self.memory)

    @contextmanager
    def encoded(
        self, progress: Progress | None, reading: Reading | None = None
    ) -> Iterator[LocalStudy | SparkStudy]:
        """Read and encode the records; a cluster forgets them in the end."""
        if reading is not None:
            declared = frozenset(self.outline.declared.covariates)
            reading = replace(reading, declared=declared)
        known: dict[str, Any] = {key: self.asked[key] for key in ("level", "from_data")}
        if not isinstance(self.outline.table, SparkColumns):
            read = read_rows(self.data, self.outline, **known, memory_limit=self.memory)
            yield without_words(
                lambda: LocalStudy.encode(read.table, read.domain, progress, reading)
            )
            return
        columns = self.outline.table
        domain = without_words(lambda: settle_domain(columns, self.outline, **known), UNFINISHED)
        cluster = without_words(
            lambda: SparkStudy.encode(columns, domain, progress, reading), UNFINISHED
        )
        try:
            yield cluster
        finally:
            cluster.close()


def open_table(
    data: object, asked: ColumnsAsked, *, memory: int, engine: str, master: str | None
) -> OpenTable:
    """Open a frame, a file or a cluster's table, and settle which of its columns are meant."""
    columns: Any = None
    if is_spark_frame(data):
        columns = SparkColumns(data)
    elif engine == "spark":
        file = data if isinstance(data, CsvFile | ExcelFile) else str(data)
        columns = read_frame(file, master)
    else:
        columns = open_schema(data, asked["level"])
    return OpenTable(data, asked, settle_names(columns, **asked), memory)
