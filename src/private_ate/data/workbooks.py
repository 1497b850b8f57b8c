"""A sheet of an Excel workbook: the header names the columns, cells are texts.

A sheet is a set of cells, not a table: nothing in the file says how many records there are, and a
single stray cell stretches it to a million rows or sixteen thousand columns. So the header's names
decide which cells are read at all, whatever lies beside them takes no memory, and the sizes of the
unpacked parts are known before the first of them is opened.
"""

from __future__ import annotations

import math
import posixpath
import re
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.parsers import expat

from private_ate.arguments import settle
from private_ate.data.csv_file import rows_before_header
from private_ate.domain import label_text
from private_ate.errors import ArgumentError, SchemaError

if TYPE_CHECKING:
    import polars as pl

__all__ = ["MOST_BYTES", "ExcelFile", "read_sheet", "too_large"]

MOST_BYTES: Final = 1 << 30  # of a part of a file once it is unpacked
_MOST_ROWS: Final = 1 << 20  # what the format allows
_MOST_COLUMNS: Final = 1 << 14
_MOST_CELLS: Final = 1 << 27  # of a table: all rows of 128 columns
_PIECE: Final = 1 << 16
_MOST_NAMES: Final = 20  # of sheets that an error lists
_EPOCHS: Final = {False: datetime(1899, 12, 30), True: datetime(1904, 1, 1)}  # noqa: DTZ001  # cells have no time zone
_DATE_FORMATS: Final = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})
_NO_DATE: Final = re.compile(r'"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\]]*\]', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ExcelFile:
    """The path of an Excel workbook, the sheet that is meant and the row of its header.

    Given in place of a path wherever a path is taken.

    Attributes
    ----------
    path : str
        The workbook, an ``.xlsx`` file.
    sheet : str or int
        A sheet's name, or its number from 1 where no sheet has that name.
    skip_rows : int, optional
        Rows before the header; ``header_row``, the number of that row from 1, says the same. By
        default the first row that holds anything is the header.

    Examples
    --------
    >>> ExcelFile("study.xlsx", sheet="Visits", header_row=3)
    ExcelFile(path='study.xlsx', sheet='Visits', skip_rows=2)
    """

    path: str
    sheet: str | int = 1
    skip_rows: int | None = None

    def __init__(
        self,
        path: str | Path,
        sheet: str | int = 1,
        skip_rows: int | None = None,
        header_row: int | None = None,
    ) -> None:
        settle(self, path=str(path), sheet=sheet)
        settle(self, skip_rows=rows_before_header(skip_rows, header_row))
        if self.file.suffix.lower() != ".xlsx":
            msg = f"the file {self.file.name!r} is no Excel workbook (.xlsx); it has no sheets"
            raise ArgumentError(msg, parameter="sheet")
        if isinstance(sheet, bool) or not isinstance(sheet, str | int):
            msg = "a sheet is given by its name or its number"
            raise ArgumentError(msg, parameter="sheet")

    @property
    def file(self) -> Path:
        """The path on this machine."""
        return Path(self.path)


def read_sheet(
    file: ExcelFile, columns: Sequence[str] | None = None, *, header_only: bool = False
) -> pl.DataFrame:
    """Return the named columns of a sheet as texts, empty cells as missing.

    The last row with an entry in any of these columns is the last one; a row in between that holds
    nothing is a row all the same.
    """
    import polars as pl

    path, before = file.file, file.skip_rows
    with zipfile.ZipFile(path) as archive:
        book = _Workbook.open(archive, file)
        rows = book.rows()
        filled = ((place, cells) for place, cells in rows if cells)
        if before is not None:
            filled = ((place, cells) for place, cells in filled if place > before)
        first, header = next(filled, (0, {}))
        if before is not None and first != before + 1:
            msg = f"row {before + 1} of the sheet is empty; which row is the header?"
            raise SchemaError(msg, parameter="header row")
        names = _names(header)
        wanted = list(names) if columns is None else list(dict.fromkeys(columns))
        if header_only:
            return pl.DataFrame(schema=dict.fromkeys(wanted, pl.String))
        places = {names[name]: name for name in wanted}
        found: dict[str, dict[int, str]] = {name: {} for name in wanted}
        count = 0
        for place, cells in rows:
            for column in cells.keys() & places.keys():
                count = place - first
                found[places[column]][count - 1] = cells[column]
    if count * len(wanted) > _MOST_CELLS:
        raise too_large(path)
    return pl.DataFrame(
        {name: [*map(entries.get, range(count))] for name, entries in found.items()},
        schema=dict.fromkeys(wanted, pl.String),
    )


def too_large(path: Path) -> ArgumentError:
    """Return the error for a file that would take too much memory once it is unpacked."""
    return ArgumentError(
        f"the file {path.name!r} is too large once it is unpacked (more than "
        f"{MOST_BYTES >> 30} GiB); save the table as Parquet or CSV"
    )


def _names(header: Mapping[int, str]) -> dict[str, int]:
    """Return the names of a header with their places; blank cells name no column."""
    named = [(text.strip(), place) for place, text in sorted(header.items()) if text.strip()]
    if not named:
        raise ValueError
    if len(dict(named)) < len(named):
        msg = "the table has two columns of the same name; rename one of them"
        raise SchemaError(msg)
    return dict(named)


@dataclass(frozen=True, slots=True)
class _Workbook:
    """The parts of a workbook that one of its sheets needs."""

    archive: zipfile.ZipFile
    path: Path
    sheet: str
    texts: Sequence[str]
    dates: Collection[int]  # styles that show a number as a date or a time
    epoch: datetime

    @classmethod
    def open(cls, archive: zipfile.ZipFile, file: ExcelFile) -> _Workbook:
        path = file.file

        def elements(part: str, *opened: str, closed: str = "") -> Iterator[_Element]:
            return _elements(archive, path, part, opened, closed)

        def related(part: str) -> Iterator[tuple[str, str, str]]:
            folder, name = posixpath.split(part)
            for _, about, _ in elements(f"{folder}/_rels/{name}.rels".lstrip("/"), "Relationship"):
                target = posixpath.normpath(posixpath.join("/", folder, about["Target"]))
                yield about["Type"].rpartition("/")[2], about["Id"], target.lstrip("/")

        main = next(target for kind, _, target in related("") if kind == "officeDocument")
        parts = list(related(main))
        by_kind = {kind: target for kind, _, target in parts}
        by_id = {key: target for _, key, target in parts}
        properties, sheets = {}, dict[str, str]()
        for tag, about, _ in elements(main, "workbookPr", "sheet"):
            plain = {name.rpartition(":")[2]: text for name, text in about.items()}
            if tag == "sheet":
                sheets[plain["name"]] = by_id[plain["id"]]
            else:
                properties = plain
        shared, styles = by_kind.get("sharedStrings"), by_kind.get("styles")
        texts = () if shared is None else elements(shared, closed="si")
        dates = () if styles is None else elements(styles, "numFmt", "cellXfs", "cellStyles", "xf")
        return cls(
            archive, path, _part_of(sheets, file.sheet), [text for _, _, text in texts],
            _date_styles(dates), _EPOCHS[properties.get("date1904", "0") in {"1", "true"}],
        )  # fmt: skip

    def rows(self) -> Iterator[tuple[int, dict[int, str]]]:
        """Yield the sheet's rows, each with its number and its cells that are not empty."""
        place, column, cells = 0, 0, dict[int, str]()
        for tag, about, text in _elements(self.archive, self.path, self.sheet, ("row",), "c"):
            if tag == "row":
                if place:
                    yield place, cells
                following = int(about.get("r", place + 1))
                if not place < following <= _MOST_ROWS:
                    raise ValueError
                place, column, cells = following, 0, {}
                continue
            column = _column(about["r"].rstrip("0123456789")) if "r" in about else column + 1
            entry = self._entry(about, text)
            if entry:
                cells[column] = entry
        if place:
            yield place, cells

    def _entry(self, about: Mapping[str, str], text: str) -> str | None:
        """Return a cell's text by its kind; one that cannot be read is missing."""
        match about.get("t", "n"):
            case "s":
                known = text.isdecimal() and int(text) < len(self.texts)
                return self.texts[int(text)] if known else None
            case "b":
                return "true" if text.strip() == "1" else "false"
            case "e":
                return None
            case "n":
                return self._number(text, about.get("s", ""))
        return text

    def _number(self, text: str, style: str) -> str | None:
        try:
            number = float(text)
        except ValueError:
            return text
        if not (style.isdecimal() and int(style) in self.dates):
            return label_text(number) if math.isfinite(number) else None
        with suppress(OverflowError, ValueError):
            return (self.epoch + timedelta(days=number)).isoformat(" ")
        return None


_Element = tuple[str, Mapping[str, str], str]


def _part_of(sheets: Mapping[str, str], asked: str | int) -> str:
    """Return the part that holds a sheet, by its name or its number from 1."""
    if asked in sheets:
        return sheets[str(asked)]
    place = int(asked) if str(asked).isdecimal() else 0
    if 1 <= place <= len(sheets):
        return list(sheets.values())[place - 1]
    known = ", ".join(map(repr, list(sheets)[:_MOST_NAMES]))
    more = f" and {len(sheets) - _MOST_NAMES} more" if len(sheets) > _MOST_NAMES else ""
    msg = f"the workbook has no sheet {asked!r}; its sheets are {known}{more}"
    raise SchemaError(msg, parameter="sheet")


def _date_styles(elements: Iterator[_Element] | tuple[()]) -> frozenset[int]:
    """Return the places of the cell styles that show dates or times."""
    custom: dict[str, str] = {}
    styles: list[str] | None = None
    found: list[str] = []
    for tag, about, _ in elements:
        if tag == "numFmt":
            custom[about["numFmtId"]] = about["formatCode"]
        elif tag == "xf" and styles is not None:
            styles.append(about.get("numFmtId", "0"))
        else:
            styles = found if tag == "cellXfs" else None
    return frozenset(
        place
        for place, key in enumerate(found)
        if int(key) in _DATE_FORMATS
        or re.search("[dmyhs]", _NO_DATE.sub("", custom.get(key, "")), re.IGNORECASE)
    )


@cache
def _column(letters: str) -> int:
    """Return the number of a column from its letters: A is 1, XFD the last."""
    number = 0
    for letter in letters:
        number = number * 26 + "ABCDEFGHIJKLMNOPQRSTUVWXYZ".index(letter) + 1
        if number > _MOST_COLUMNS:
            raise ValueError
    return number


@dataclass(slots=True)
class _Handlers:
    """What a parser's events make: elements as they open, or with their text as they close."""

    opened: Collection[str]
    closed: str
    found: list[_Element] = field(default_factory=list)
    about: Mapping[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    is_text: bool = False
    is_reading_aid: bool = False  # how a text in Japanese is spoken

    def start(self, name: str, about: Mapping[str, str]) -> None:
        tag = name.rpartition(":")[2]
        if tag == self.closed:
            self.about, self.texts = about, []
        elif tag in {"v", "t"}:
            self.is_text = not self.is_reading_aid
        elif tag in self.opened:
            self.found.append((tag, about, ""))
        elif tag == "rPh":
            self.is_reading_aid = True

    def end(self, name: str) -> None:
        tag = name.rpartition(":")[2]
        if tag == self.closed:
            self.found.append((tag, self.about, "".join(self.texts)))
        elif tag in {"v", "t"}:
            self.is_text = False
        elif tag == "rPh":
            self.is_reading_aid = False

    def text(self, text: str) -> None:
        if self.is_text:
            self.texts.append(text)


def _elements(
    archive: zipfile.ZipFile, path: Path, part: str, opened: Collection[str], closed: str
) -> Iterator[_Element]:
    """Yield some elements of a part; its unpacked size is looked at before it is opened."""
    about = archive.getinfo(part)
    if about.file_size > MOST_BYTES:  # no more than this is unpacked, whatever the part holds
        raise too_large(path)
    if about.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise ValueError
    handlers = _Handlers(opened, closed)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = handlers.start, handlers.end
    parser.CharacterDataHandler = handlers.text
    parser.StartDoctypeDeclHandler = _refuse_entities
    with archive.open(about) as stream:
        while True:
            piece = stream.read(_PIECE)
            parser.Parse(piece, not piece)
            yield from handlers.found
            handlers.found.clear()
            if not piece:
                return


def _refuse_entities(*_: Any) -> None:  # noqa: ANN401  # the parser's own signature
    """Refuse a declaration of entities, which could stand for texts of any length."""
    raise ValueError
