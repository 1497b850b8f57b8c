"""The file that a command reads, as flags describe it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from private_ate.data.csv_file import CsvFile

__all__ = ["described_file"]


def described_file(data: str | Path, sep: str | None, decimal: str | None) -> str | Path | CsvFile:
    """Return the file with its separator and decimal sign; as its name says without flags."""
    from private_ate.data.csv_file import CsvFile  # keeps --help fast

    if sep is None and decimal is None:
        return data
    usual = CsvFile.of(data)
    return CsvFile(data, usual.sep if sep is None else sep, decimal or usual.decimal)
