"""A run of one column's entries, read exactly as the estimate reads them, and what they look like.

What the estimate cannot read counts as missing there, in silence. Here such texts are kept apart,
and the common reasons for them are recognised by their shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from private_ate.arrays import Bits, Floats
from private_ate.data.tables import Table, entry_texts

if TYPE_CHECKING:
    import polars as pl

__all__ = ["SHAPES", "Entries", "count_shapes", "read_entries"]

# The first shape that fits is a text's.
SHAPES: Final = {
    "date": r"^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ].*)?$",
    "comma": r"^[+-]?(\d+,\d+|\d{1,3}(\.\d{3})+,\d+|\d{1,3}(,\d{3})+(\.\d+)?)([eE][+-]?\d+)?$",
    "word": r"(?i)^(n\.?/?a\.?|<na>|null|none|nil|missing|unknown|refused|\.|-|--|\?|#n/a)$",
    "unit": r"^[<>≤≥~=$€£]*\s*[+-]?\d+([.,]\d+)?\s*[%°a-zA-Z/$€£]*$",
}


@dataclass(frozen=True, slots=True)
class Entries:
    """Some rows of a column.

    ``numbers`` are what the estimate would compute with, NaN where it reads none; ``texts`` are
    the stripped entries, None for a column of a numeric type. ``is_missing`` where there is no
    entry (the text NaN is none either), ``is_text`` where there is one that is no number.
    """

    numbers: Floats = field(repr=False)
    texts: pl.Series | None = field(repr=False)
    is_missing: Bits = field(init=False, repr=False)
    is_text: Bits = field(init=False, repr=False)

    def __post_init__(self) -> None:
        no_number = np.isnan(self.numbers)
        missing = no_number
        if self.texts is not None and no_number.any():
            texts = self.texts.fill_null("")
            missing = no_number & ((texts == "") | (texts.str.to_lowercase() == "nan")).to_numpy()
        object.__setattr__(self, "is_missing", missing)
        object.__setattr__(self, "is_text", no_number & ~missing)


def read_entries(table: Table, name: str) -> Entries:
    """Read a column of some rows, whatever its type."""
    kind = table.kind(name)
    if kind == "number":
        return Entries(table.numbers(name), None)
    texts = entry_texts(table, name)
    if kind == "other":  # dates and the like are never numbers
        return Entries(np.full(table.rows, np.nan), texts)
    # A typed column of texts is refused where numbers are declared; here its texts are looked at.
    return Entries(replace(table, typed=False).numbers(name), texts)


def count_shapes(texts: pl.Series) -> dict[str, int]:
    """Count texts by the first shape that fits."""
    import polars as pl

    left = pl.DataFrame({"text": texts}).group_by("text").len()
    counts: dict[str, int] = {}
    for shape, pattern in SHAPES.items():
        fits = left["text"].str.contains(pattern)
        counts[shape] = int(left["len"].filter(fits).sum())
        left = left.filter(~fits)
    return counts
