"""What a draft still asks for: the ??? that a person was to replace from the code book."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["Unfilled", "find_unfilled"]

# A line up to its comment; a sign inside quotation marks begins none.
_CODE: Final = re.compile(r"""(?:[^#"']|"(?:\\.|[^"\\])*"|'[^']*')*""")
_TABLE: Final = re.compile(r"\s*\[(?P<name>[^\[\]]+)\]\s*")
_KEY: Final = re.compile(r"""\s*(?P<key>"(?:\\.|[^"\\])*"|'[^']*'|[^\s="']+)\s*=""")


@dataclass(frozen=True, slots=True)
class Unfilled:
    """The first ??? of a text: its line, what it stands for, and how many there are."""

    line: int
    column: str
    what: str
    count: int

    @property
    def sentence(self) -> str:
        """Say where it is and what to do."""
        others = f" ({self.count} in all)" if self.count > 1 else ""
        return (
            f"line {self.line} of the domain still holds ???{others}: fill in {self.what} from the "
            "code book"
        )


def find_unfilled(text: str, *, quoted: bool = False) -> Unfilled | None:
    """Find the first ??? outside comments, or with ``quoted`` the first that is a whole text."""
    table, found, count = "", None, 0
    for number, line in enumerate(text.splitlines(), 1):
        match = _CODE.match(line)
        code = "" if match is None else match.group()
        header = _TABLE.fullmatch(code)
        if header is not None:
            table = header["name"].strip()
        marks = code.count('"???"') + code.count("'???'") if quoted else code.count("???")
        count += marks
        if marks and found is None:
            column, what = _asked(table, code)
            found = number, column, what
    return None if found is None else Unfilled(*found, count)


def _asked(table: str, code: str) -> tuple[str, str]:
    """Return the column that a line asks about, and what it asks."""
    key = _KEY.match(code)
    name = "" if key is None else _bare(key["key"])
    part, _, column = table.partition(".")
    if part == "covariates" and not column:
        return name, f"what is declared of covariate {name!r}"
    if part == "covariates":
        column = _bare(column.strip())
        return column, f"{name} of covariate {column!r}"
    return "", f"{name} of [{table}]" if table else name or "it"


def _bare(key: str) -> str:
    return key[1:-1] if key[:1] in ("'", '"') else key
