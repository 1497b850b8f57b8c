"""HTML and SVG in which every text is escaped unless it was built here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Final

_DRAWN = frozenset({"mini", "track"})  # looks of cells that hold a drawing
_VOID = frozenset({"meta", "br", "wbr", "line", "rect", "circle", "path", "input", "link"})

# No request may leave a page: nothing is loaded, and the policy forbids it should a text slip in.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


class Markup(str):
    """A text that is markup already; anything else is escaped on its way into an element."""

    __slots__ = ()


@cache
def _style(name: str) -> Markup:
    return Markup("\n" + files("private_ate.report").joinpath(name).read_text("utf-8"))


STYLE: Final = _style("page.css")
Cell = str | Sequence[str]
"""What a table's cell holds: a text or markup, or several texts below each other."""


def element(name: str, /, *parts: str, **attributes: str | float) -> Markup:
    """Return an element; ``class_`` stands for class and ``_`` in names for a hyphen."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for key, value in attributes.items()
    )
    if name in _VOID:
        return Markup(f"<{name}{pairs}>" if name in {"meta", "br", "wbr"} else f"<{name}{pairs}/>")
    return Markup(f"<{name}{pairs}>{join(*parts)}</{name}>")


def join(*parts: str) -> Markup:
    """Put parts after each other, escaping what is not markup."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))


def card(*parts: str) -> Markup:
    """Return a fragment for a notebook, whose style holds inside of it and nowhere else.

    Every rule of it begins with the card's own class; colours are the notebook's, light or dark.
    """
    return element("div", element("style", _style("card.css")), *parts, class_="private-ate")


def page(title: str, *parts: str, watermark: str = "") -> str:
    """Return a whole self-contained document, with a watermark behind it and on top if given."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'),
        element("meta", name="robots", content="noindex"),
        element("title", title),
        element("style", STYLE),
    )
    marks = (
        [
            element("div", *(element("span", watermark) for _ in range(12)),
                    class_="watermark", aria_hidden="true"),
            element("header", watermark, class_="banner"),
        ]
        if watermark
        else []
    )  # fmt: skip
    body = element("body", *marks, element("main", *parts))
    return "<!DOCTYPE html>\n" + element("html", head, body, lang="en") + "\n"


def words_apart(name: str) -> Markup:
    """Return the name of a column that may be broken between its words, and nowhere else."""
    parts = re.split(r"(?<=[_.=/-])", name)
    return Markup(element("wbr").join(map(escape, parts)))


def table(
    caption: str,
    columns: Sequence[tuple[Cell, str]],
    rows: Iterable[Sequence[Cell]],
    **attributes: str | float,
) -> Markup:
    """Return a table whose rows are headed by their first cell.

    ``columns`` are names with the class of their cells, such as "number". A table without a name
    has no line of them; a row that is markup is taken as it is.
    """
    is_folded = str(attributes.get("class_", "")).startswith("arms")
    head = element("tr", *(_cell("th", name, look, scope="col") for name, look in columns))
    lines = []
    for row in rows:
        if isinstance(row, Markup):
            lines.append(row)
            continue
        cells = [_cell("th", row[0], columns[0][1], scope="row")]
        for cell, (name, look) in zip(row[1:], columns[1:], strict=True):
            # Where a phone shows cells below each other, they follow their columns' names.
            named = name if isinstance(name, str) else name[0]
            shown = {"number": named, "": f"{named}:" if cell else ""}.get(look, "")
            cells.append(_cell("td", cell, look, **({"data_name": shown} if is_folded else {})))
        lines.append(element("tr", *cells))
    return element(
        "table",
        *([element("caption", caption)] if caption else []),
        *([element("thead", head)] if any(name for name, _ in columns) else []),
        element("tbody", *lines),
        **attributes,
    )


def _cell(kind: str, cell: Cell, look: str, *, scope: str = "", **attributes: str) -> Markup:
    """Return a cell; the look of a drawing is none of its column's head."""
    if look and not (kind == "th" and look in _DRAWN):
        attributes = {"class_": look, **attributes}
    if scope:
        attributes = {"scope": scope, **attributes}
    if isinstance(cell, str):
        return element(kind, cell, **attributes)
    first, *others = cell
    below = [
        part for text in others for part in (element("br"), element("span", text, class_="soft"))
    ]
    return element(kind, element("span", first), *below, **attributes)


def pairs_table(caption: str, rows: Iterable[tuple[str, Cell]], look: str = "") -> Markup:
    """Return a table of names and texts."""
    return table(
        caption, [("", ""), ("", "")], ((name.strip(), text) for name, text in rows),
        **({"class_": look} if look else {}),
    )  # fmt: skip


def folded(title: str, *parts: str) -> Markup:
    """Return parts that a reader unfolds by their title."""
    return element("details", element("summary", title), *parts)


def code(text: str) -> Markup:
    """Return lines of a program or a file."""
    return element("pre", element("code", text))


def points(texts: Iterable[str]) -> Markup:
    """Return texts as a list of points."""
    return element("ul", *(element("li", text) for text in texts))


def figure(drawn: Markup, caption: str) -> Markup:
    """Return a drawing and what it shows."""
    return element("figure", drawn, element("figcaption", caption))


def warning_boxes(warnings: Iterable[str]) -> list[Markup]:
    """Return what to know before a number is used, each in a box of its own."""
    return [element("p", f"Warning: {text}.", class_="warning", role="note") for text in warnings]


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
