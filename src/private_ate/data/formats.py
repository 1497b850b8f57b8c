"""Files of Stata, SPSS and R, through readers of the extra ``formats``.

The types of columns come from the file's own dictionary, never from its values, so that no record
decides about another. Texts are decoded entry by entry, and a byte that is no text is replaced.
Whatever a reader says could quote a record: `files` forgets failures and warnings.

Labelled columns hold their codes. A label that is declared stands for its codes; no other label is
looked at, because Stata makes some of them from the values themselves.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from private_ate.data.workbooks import MOST_BYTES, too_large

if TYPE_CHECKING:
    import polars as pl

__all__ = ["STATISTICAL", "StatHead", "frame_of_r", "value_codes"]

T = TypeVar("T")
STATISTICAL: Final = (".dta", ".sav", ".zsav")
_DATES: Final = re.compile(
    r"%-?\d*(t|d).*|(A|E|S|J)?DATE.*|QYR.*|MOYR.*|WKYR.*|D?TIME.*|MTIME.*|YMDHMS.*", re.IGNORECASE
)
_R_DATES: Final = frozenset({"Date", "POSIXct", "POSIXlt", "POSIXt", "difftime", "hms"})
_NO_INTEGER: Final = -(2**63)
_UNPACKED: Final[Mapping[bytes, Callable[[Path], Any]]] = {
    b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open,
    b"": partial(Path.open, mode="rb"),
}  # fmt: skip
_PIECE: Final = 1 << 20


def value_codes(path: Path) -> dict[str, dict[str, tuple[float, ...]]]:
    """Return the codes that stand for labels, by column and label; none but of Stata and SPSS.

    An outcome's event or an arm can then be declared by its label, as code books do.
    """
    if path.suffix.lower() not in STATISTICAL:
        return {}
    meta = _pyreadstat(path, metadataonly=True)[1]
    found: dict[str, dict[str, tuple[float, ...]]] = {}
    for name, labels in meta.variable_value_labels.items():
        own = found.setdefault(str(name), {})
        for code, label in labels.items():
            if isinstance(code, int | float):
                text = str(label).strip()
                own[text] = (*own.get(text, ()), float(code))
    return found


@dataclass(frozen=True, slots=True)
class StatHead:
    """What the head of a Stata or SPSS file says: columns, types, rows, encoding."""

    path: Path
    types: Mapping[str, Any]
    rows: int | None
    encoding: str

    @classmethod
    def read(cls, path: Path) -> StatHead:
        """Read the head of a file; no row of it."""
        import polars as pl

        meta = _pyreadstat(path, metadataonly=True)[1]
        formats, kinds = meta.original_variable_types, meta.readstat_variable_types
        types = {
            name: pl.String
            if kinds[name] == "string"
            else (pl.Date if _DATES.fullmatch(formats[name] or "") else pl.Float64)
            for name in meta.column_names
        }
        rows = meta.number_rows
        known = rows if isinstance(rows, int) and rows >= 0 else None
        return cls(path, types, known, _encoding(path, meta.file_encoding))

    def part(self, columns: list[str], first: int = 0, size: int = 0) -> pl.DataFrame:
        """Return some rows; as many as the head promises, or it is a failure."""
        import polars as pl

        # Bytes come as the letters of the same numbers, which no byte can fail, and each text is
        # decoded by itself.
        asked = {name: name.encode(self.encoding).decode("latin-1") for name in columns}
        found, _ = _pyreadstat(
            self.path, usecols=list(dict.fromkeys(asked.values())), encoding="LATIN1",
            row_offset=first, row_limit=size, disable_datetime_conversion=True,
        )  # fmt: skip
        made = {name: self._column(name, found[asked[name]]) for name in dict.fromkeys(columns)}
        frame = pl.DataFrame(made)
        if self.rows is not None:
            promised = min(size, self.rows - first) if size else self.rows
            if frame.height != promised:
                raise ValueError
        return frame

    def parts(self, columns: list[str], size: int) -> Iterator[pl.DataFrame]:
        """Yield the rows in parts of ``size``."""
        for first in range(0, self.rows or 0, size):
            yield self.part(columns, first, size)

    def _column(self, name: str, entries: Any) -> pl.Series:  # noqa: ANN401  # a list or an array
        import polars as pl

        dtype = self.types[name]
        if dtype == pl.String:
            texts = [_decoded(entry, self.encoding) for entry in entries]
            return pl.Series(name, texts, dtype=pl.String)
        if dtype == pl.Date:  # neither a number nor a label, whatever it holds
            return pl.Series(name, [None] * len(entries), dtype=pl.Date)
        return pl.Series(name, np.asarray(entries, dtype=np.float64))


def _pyreadstat(path: Path, **asked: Any) -> tuple[Any, Any]:  # noqa: ANN401  # keywords
    import pyreadstat  # an extra

    reader = pyreadstat.read_dta if path.suffix.lower() == ".dta" else pyreadstat.read_sav
    found: tuple[Any, Any] = reader(str(path), output_format="dict", **asked)
    return found


def _encoding(path: Path, said: str | None) -> str:
    """Return the encoding of a file's texts; Stata's are UTF-8 since its format 118."""
    if path.suffix.lower() == ".dta":
        with path.open("rb") as file:
            head = re.search(rb"<release>(\d+)</release>", file.read(64))
        return "utf-8" if head is not None and int(head[1]) >= 118 else "cp1252"
    with suppress(LookupError):
        "".encode(said or "utf-8")
        return said or "utf-8"
    return "cp1252"


def _decoded(entry: object, encoding: str) -> str | None:
    if not isinstance(entry, str):
        return None
    return entry.encode("latin-1", "replace").decode(encoding, "replace")


def frame_of_r(path: Path) -> pl.DataFrame:
    """Return the data frame of a file that R's saveRDS wrote."""
    import polars as pl
    from rdata.parser import DEFAULT_ALTREP_MAP, parse_data  # an extra

    known = {
        key: partial(_expanded, path, expand) if key.startswith(b"compact") else expand
        for key, expand in DEFAULT_ALTREP_MAP.items()
    }
    saved = parse_data(
        _unpacked(path), altrep_constructor_dict=known, extension=path.suffix.lower()
    ).object
    about = _attributes(saved)
    if "data.frame" not in _texts(about.get("class")):
        raise ValueError
    names = _texts(about["names"])
    if len(set(names)) != len(names):
        raise ValueError
    rows = _row_count(about["row.names"])
    if rows > MOST_BYTES // 8:
        raise too_large(path)
    columns = zip(names, saved.value, strict=True)
    return pl.DataFrame([_column_of_r(str(name), column, rows) for name, column in columns])


def _unpacked(path: Path) -> bytes:
    """Return a file's bytes, unpacked only as far as memory allows."""
    with path.open("rb") as file:
        start = file.read(6)
    unpack = next(how for mark, how in _UNPACKED.items() if start.startswith(mark))
    pieces, size = [], 0
    with unpack(path) as stream:
        while piece := stream.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > MOST_BYTES:
                raise too_large(path)
    return b"".join(pieces)


def _expanded(path: Path, expand: Callable[[Any], T], saved: Any) -> T:  # noqa: ANN401  # a parsed R object
    """Expand a sequence that R saved as its length, first number and step."""
    if not 0 <= saved.value[0] <= MOST_BYTES // 8:
        raise too_large(path)
    return expand(saved)


def _row_count(names: Any) -> int:  # noqa: ANN401  # a parsed R object
    """Return the number of rows from their names, which R shortens to nothing and a number."""
    entries = names.value
    if names.info.type.name == "INT" and len(entries) == 2 and np.ma.is_masked(entries[0]):
        return abs(int(entries[1]))
    return len(entries)


def _column_of_r(name: str, column: Any, rows: int) -> pl.Series:  # noqa: ANN401  # as above
    import polars as pl

    about = _attributes(column)
    classes, kind = set(_texts(about.get("class"))), column.info.type.name
    if classes & _R_DATES or "dim" in about or kind not in {"INT", "REAL", "LGL", "STR"}:
        # A list of parts, a matrix or a table in it has a length of its own.
        return pl.Series(name, [None] * rows, dtype=pl.Date)
    if kind == "STR":
        return pl.Series(name, _texts(column), dtype=pl.String)
    if "factor" in classes:
        levels = np.array([None, *_texts(about["levels"])], dtype=object)
        codes = np.ma.filled(np.ma.asarray(column.value), 0).astype(np.int64)
        codes[(codes < 0) | (codes >= levels.size)] = 0
        return pl.Series(name, levels[codes].tolist(), dtype=pl.String)
    if "integer64" in classes:  # whole numbers in the bytes of floats
        whole = np.ascontiguousarray(column.value, dtype=np.float64).view(np.int64)
        return pl.Series(name, np.where(whole == _NO_INTEGER, np.nan, whole.astype(np.float64)))
    numbers = np.ma.asarray(column.value).astype(np.float64)
    found = pl.Series(name, np.ma.filled(numbers, np.nan))
    return found.fill_nan(None).cast(pl.Boolean) if kind == "LGL" else found


def _attributes(thing: Any) -> dict[str, Any]:  # noqa: ANN401  # a parsed R object
    """Return an object's attributes by name: R chains them."""
    found: dict[str, Any] = {}
    link = thing.attributes
    while link is not None and link.info.type.name == "LIST":
        tag = link.tag if link.tag.referenced_object is None else link.tag.referenced_object
        found[_text(tag.value) or ""] = link.value[0]
        link = link.value[1]
    return found


def _texts(thing: Any) -> list[str | None]:  # noqa: ANN401  # a parsed R object
    return [] if thing is None else [_text(entry) for entry in thing.value]


def _text(entry: Any) -> str | None:  # noqa: ANN401  # a parsed R object
    """Decode one text by what is said of it; the ninth bit says Latin-1, as R writes it."""
    if entry.value is None:
        return None
    raw: bytes = entry.value
    return raw.decode("latin-1" if entry.info.gp & 4 else "utf-8", "replace")
