"""Looks at a data set's file as the check does: its header, its separator, its number of rows.

All of these are public, and no sentence holds a value.
"""

from __future__ import annotations

from private_ate.data.csv_file import CsvFile
from private_ate.data.files import DataFile, file_of, read_schema, require_counted_records
from private_ate.errors import PrivateAteError
from private_ate.service.store.catalogue import Dataset

__all__ = ["file_problem"]


def file_problem(file: DataFile | None, dataset: Dataset) -> str:
    """Return a sentence on what keeps a file from being as declared; empty if nothing does."""
    if file is None:
        return "there is no file of this name below the worker's folder"
    try:
        return _header(file, dataset) or _rows(file, dataset)
    except PrivateAteError:
        return "the file cannot be read; private-ate check on the worker's side says why"


def _header(file: DataFile, dataset: Dataset) -> str:
    meant = file_of(file)
    names = tuple(read_schema(file))
    if meant is not None:
        require_counted_records(meant, dataset.level)
    if isinstance(meant, CsvFile) and len(names) == 1 < len(dataset.columns):
        others = [sign for sign in (",", ";", "\t", "|") if sign in names[0]]
        if others:
            signs = " or ".join("a tab" if sign == "\t" else f"{sign!r}" for sign in others)
            return f"its header is one field; fields seem to be separated by {signs}: say so"
    lacking = next((name for name in dataset.columns if name not in names), None)
    if lacking is not None:
        return f"column {lacking!r} was declared and is not in its header"
    extra = next((name for name in names if name not in dataset.columns), None)
    if extra is not None:
        return f"its header has column {extra!r}, which was not declared"
    return ""


def _rows(file: DataFile, dataset: Dataset) -> str:
    from private_ate.data.streams import MEMORY_LIMIT, open_table

    # By public columns, as an estimate counts them: a sheet ends at its last entry in one of these.
    public = dataset.domain.public_columns
    found = open_table(file, MEMORY_LIMIT, public, public=public).rows
    if found != dataset.size:
        return f"it has {found} rows; {dataset.size} were declared"
    return ""
