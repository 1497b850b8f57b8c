"""A data set's file: its name below the worker's folder, and how its text is cut and read.

``clinic.csv`` is a file with commas; ``2026/clinic.csv?sep=;&decimal=,`` says how another is
written, ``visits.xlsx?sheet=2026&header_row=3`` where its table is. Only the worker knows the
folder.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from private_ate.data.files import SUFFIXES, DataFile, described_file
from private_ate.errors import ArgumentError

_NAME: Final = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}(?:/[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}){0,4}"
)
READING: Final = ("sep", "decimal", "encoding", "header_row", "skip_rows", "sheet")
_NUMBERS: Final = ("header_row", "skip_rows")
_LONGEST: Final = 500


def check_source(source: object) -> str:
    """Return a source: plain words, no way out of the worker's folder, a reading that is known."""
    name, _, reading = source.partition("?") if isinstance(source, str) else ("", "", "")
    is_plain = _NAME.fullmatch(name) and ".." not in name and len(str(source)) <= _LONGEST
    if not is_plain or not name.lower().endswith(SUFFIXES):
        msg = (
            f"the source is the name of a file ({', '.join(SUFFIXES)}) below the worker's folder, "
            "of letters, digits, spaces, dots, hyphens and underscores, such as 2026/clinic.csv"
        )
        raise ArgumentError(msg)
    if reading:
        _read_as(Path(name), reading)
    return str(source)


def write_source(name: str, **reading: str | int | None) -> str:
    """Return the source of a file, with what its reading has of its own; nothing says the usual."""
    said = urlencode(
        {key: one for key, one in reading.items() if one not in (None, "")}, safe=";,|:"
    )
    return check_source(f"{name}?{said}" if said else name)


def name_of(source: str) -> str:
    """Return the file's name without how it is read."""
    return source.partition("?")[0]


def open_source(folder: Path, source: str) -> DataFile | None:
    """Return a file of the worker's folder as the library reads it; None if it is not there."""
    name, _, reading = check_source(source).partition("?")
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        return None
    return _read_as(path, reading) if reading else path


def _read_as(path: Path, reading: str) -> DataFile:
    said: dict[str, Any] = dict(parse_qsl(reading, keep_blank_values=True, separator="&"))
    if not set(said) <= set(READING):
        msg = f"behind its name a source says {', '.join(READING)} and nothing else"
        raise ArgumentError(msg)
    for key in set(_NUMBERS) & set(said):
        if re.fullmatch("[0-9]{1,9}", said[key]):  # any other is refused as no number
            said[key] = int(said[key])
    found = described_file(path, **said)
    return Path(found) if isinstance(found, str) else found
