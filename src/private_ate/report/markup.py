"""HTML and SVG in which every text is escaped unless it was built here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

_VOID = frozenset({"meta", "br", "wbr", "line", "rect", "circle", "path", "input", "link"})

# No request may leave a page: nothing is loaded, and the policy forbids it should a text slip in.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


class Markup(str):
    """A text that is markup already; anything else is escaped on its way into an element."""

    __slots__ = ()


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
    """Return a fragment for a notebook, whose style holds inside of it and nowhere else."""
    return element("div", element("style", Markup(_CARD_STYLE)), *parts, class_="private-ate")


def page(title: str, *parts: str, watermark: str = "") -> str:
    """Return a whole self-contained document, with a watermark behind it and on top if given."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'),
        element("meta", name="robots", content="noindex"),
        element("title", title),
        element("style", Markup(STYLE)),
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


def stacked(texts: Sequence[str]) -> list[Markup]:
    """Return texts one below the other, the first of them in full colour."""
    first, *others = texts
    parts = [element("span", first)]
    for text in others:
        parts += [element("br"), element("span", text, class_="soft")]
    return parts


def table(
    caption: str, head: Iterable[str], rows: Iterable[str], **attributes: str | float
) -> Markup:
    """Return a table: a caption unless it is empty, a row of header cells, and its rows."""
    return element(
        "table",
        *([element("caption", caption)] if caption else []),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
        **attributes,
    )


def folded(title: str, *parts: str) -> Markup:
    """Return parts that a reader unfolds by their title."""
    return element("details", element("summary", title), *parts)


def warning_boxes(warnings: Iterable[str]) -> list[Markup]:
    """Return what to know before a number is used, each in a box of its own."""
    return [element("p", f"Warning: {text}.", class_="warning", role="note") for text in warnings]


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


# Every rule begins with the card's own class; colours are the notebook's, light or dark.
_CARD_STYLE = """
.private-ate { max-width: 60rem; overflow-x: auto; }
.private-ate table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
.private-ate caption { text-align: left; font-weight: 600; padding: .25rem 0; }
.private-ate th, .private-ate td { text-align: left; vertical-align: top; padding: .2rem .6rem; }
.private-ate th.number, .private-ate td.number { text-align: right; white-space: nowrap; }
.private-ate .warning { border-left: 4px solid #9a3b00; padding: .4rem .8rem; font-weight: 600; }
"""
STYLE = """
:root { color-scheme: light; --ink: #1b1f24; --soft: #55606c; --line: #d5dae0; --deep: #0b4f8a;
  --pale: #eef3f8; --warm: #9a3b00; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: var(--ink); line-height: 1.5; overflow-wrap: anywhere;
  font: 1rem/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 46rem; margin: 0 auto; padding: 1.25rem 1rem 3rem; position: relative; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .25rem 0 1rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line);
  padding-bottom: .25rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
p { margin: .5rem 0; max-width: 42rem; }
.soft { color: var(--soft); font-size: .925rem; }
.effect { font-size: 2.4rem; font-weight: 650; line-height: 1.1; margin: .25rem 0;
  font-variant-numeric: tabular-nums; }
.promise { background: var(--pale); border-left: 4px solid var(--deep); padding: .6rem .9rem; }
.warning, .banner { background: #fff1e6; border-left: 4px solid var(--warm); color: #5c2300;
  padding: .6rem .9rem; font-weight: 600; }
.banner { position: sticky; top: 0; margin: 0; z-index: 2; max-width: none; text-align: center;
  border-left: 0; border-bottom: 2px solid var(--warm); text-transform: uppercase;
  letter-spacing: .04em; }
.watermark { position: fixed; inset: 0; overflow: hidden; display: grid; z-index: 0;
  grid-template-columns: 1fr 1fr; align-items: center; justify-items: center;
  pointer-events: none; }
.watermark span { transform: rotate(-24deg); font-weight: 700; font-size: clamp(.8rem, 3vw, 1.6rem);
  color: rgba(154, 59, 0, .10); white-space: nowrap; }
svg { display: block; width: 100%; overflow: visible; }
svg text { font: 13px system-ui, "Segoe UI", Roboto, Arial, sans-serif; fill: var(--ink);
  paint-order: stroke; stroke: #fff; stroke-width: 3px; stroke-linejoin: round; }
table { border-collapse: collapse; width: 100%; font-size: .925rem; margin: .5rem 0; }
caption { text-align: left; color: var(--soft); padding-bottom: .35rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem .3rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; } td.number, th.number { text-align: right; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
table.facts th { width: 9.5rem; color: var(--soft); }
.unit { font-size: 1.2rem; font-weight: 500; color: var(--soft); }
table.arms th[scope=row], table.balance th { overflow-wrap: break-word; }
table.arms th[scope=row] { min-width: 6.5rem; } table.two th[scope=row] { min-width: 9.5rem; }
table.arms th.number { white-space: normal; overflow-wrap: break-word; }
td.mini { vertical-align: middle; } td.mini svg { width: 5rem; }
th.verdict, td.verdict { white-space: nowrap; padding-left: .75rem; }
.far { color: var(--warm); font-weight: 600; }
td.track { width: 40%; min-width: 6rem; vertical-align: middle; }
pre { background: #f4f5f7; padding: .75rem; margin: .5rem 0; font-size: .85rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
code { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
details > summary { cursor: pointer; color: var(--deep); }
hr { border: 0; border-top: 3px double var(--line); margin: 2.5rem 0; }
footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
@media (max-width: 40rem) { table.arms, table.arms tbody, table.arms tr, table.arms td,
  table.arms th, table.arms caption { display: block; border: 0; padding: 0; text-align: left; }
  table.arms thead, table.arms br { display: none; } table.arms caption { padding-bottom: .35rem; }
  table.arms tr { border-bottom: 1px solid var(--line); padding: .4rem 0; }
  table.arms td::before { content: attr(data-name) " "; color: var(--soft); }
  table.arms span + br + span::before { content: " → "; }
  table.balance tr { display: grid; grid-template-columns: 4.5rem 4.5rem 1fr; padding: .3rem 0;
    border-bottom: 1px solid var(--line); } table.balance th, table.balance td { border: 0; }
  table.balance th:first-child { grid-column: 1 / -1; padding-bottom: 0; }
  table.facts th { width: 7rem; } }
@media (max-width: 30rem) { td.track { min-width: 4.5rem; width: 30%; }
  table.balance td.track { width: auto; }
  .effect { font-size: 1.9rem; } th, td { padding-right: .35rem; } }
@page { margin: 14mm; }
@media print { html { font-size: 80%; } main { max-width: none; padding: 0; } p { max-width: none; }
  h2, h3 { break-after: avoid; margin: 1rem 0 .25rem; }
  figure, tr, .promise { break-inside: avoid; } details { display: block; }
  th, td { padding-top: .15rem; padding-bottom: .15rem; }
  pre { break-inside: auto; font-size: .7rem; line-height: 1.25; } footer { margin-top: 1rem; }
  .banner { position: static; } }
figure { margin: .75rem 0; } figcaption { color: var(--soft); font-size: .875rem; }
"""
