"""The table of effects for a paper, as Markdown, LaTeX, CSV or Word, of two arms or of more.

A ``.docx`` file is an archive of three parts: the types of its parts, where the document is, and
the document (ECMA-376, part 1). Nothing in it names a program, a person or a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Final
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from private_ate.effects import p_value_of
from private_ate.report.effects_table import (
    Cells,
    Column,
    Scope,
    cells_of,
    effect_columns,
    shown_effects,
)
from private_ate.report.phrasing import (
    assumption,
    compared_line,
    covered,
    headline,
    pair_text,
    promise_text,
    unit_of,
)
from private_ate.report.to_polars import effects_frame

if TYPE_CHECKING:
    from private_ate.release.release import Release

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$",
    "<": "$<$", ">": "$>$", "ε": r"$\varepsilon$", "δ": r"$\delta$", "|": r"\textbar{}",
}  # fmt: skip
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_OPEN: Final = "http://schemas.openxmlformats.org"
_DOCUMENT: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main"
_TYPES: Final = (
    f'{_HEAD}<Types xmlns="{_OPEN}/package/2006/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{_DOCUMENT}+xml"/></Types>'
)
_LINKS: Final = (
    f'{_HEAD}<Relationships xmlns="{_OPEN}/package/2006/relationships">'
    f'<Relationship Id="rId1" Type="{_OPEN}/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_RULE: Final = 'w:val="single" w:sz="8" w:space="0" w:color="auto"'
# Rules above and below the table, as journals draw them; the header's own is in its cells.
_BORDERS: Final = f"<w:tblBorders><w:top {_RULE}/><w:bottom {_RULE}/></w:tblBorders>"
_PAGE: Final = (
    '<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" '
    'w:bottom="1134" w:left="1134" w:header="709" w:footer="709" w:gutter="0"/></w:sectPr>'
)
_UNWRITABLE: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def effect_cells(release: Release, scope: Scope = "all", *, p_values: bool = False) -> Cells:
    """Return a row per effect: who is compared, the number, its error and intervals.

    Columns that would say the same in every row, or nothing, are left out. ``p_values`` adds the
    test of no effect, for journals that ask for it.
    """
    rows = shown_effects(release, scope)
    names: list[Column] = []
    if len({row.outcome for row in rows}) > 1:
        names.append(("outcome", False, [row.outcome for row in rows]))
    if any(row.subgroup is not None for row in rows):
        names.append(("subgroup", False, [row.subgroup or "all" for row in rows]))
    names += [
        ("arm", False, [row.arm for row in rows]),
        ("against", False, [row.against for row in rows]),
    ]
    numbers = effect_columns(
        release, rows, write=pair_text, standard_errors=True, p_values=p_values
    )
    return cells_of([*names, *numbers])


def _unit_text(release: Release) -> str:
    """Say in which units effects are, where somebody declared them."""
    outcomes = release.facts.outcomes
    if len(outcomes) > 1:
        named = [f"{one.column} in {one.unit}" for one in outcomes if one.unit]
        return f"Effects on {', '.join(named)}" if named else ""
    return f"Effects are in {unit_of(release)}" if unit_of(release) else ""


def table_note(release: Release) -> str:
    """Return the line below a table: units, promise, method, and what to know before use."""
    parts = [
        f"Units: n = {release.n:,}",
        _unit_text(release),
        f"Intervals cover {covered(release)}" if covered(release) else "",
        f"{promise_text(release)} by private-ate {release.version}, method {release.method}",
        assumption(release),
        *release.warnings,
    ]
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in parts if part)


def markdown_table(release: Release, scope: Scope = "all", *, p_values: bool = False) -> str:
    """Return a table of GitHub's Markdown and the note below it."""
    cells = effect_cells(release, scope, p_values=p_values)
    ruler = ["---:" if is_number else "---" for is_number in cells.numbers]
    lines = [list(map(_plain_markdown, row)) for row in (cells.head, *cells.rows)]
    drawn = [f"| {' | '.join(row)} |" for row in (lines[0], ruler, *lines[1:])]
    return "\n".join([*drawn, "", _plain_markdown(table_note(release)), ""])


def latex_table(release: Release, scope: Scope = "all", *, p_values: bool = False) -> str:
    r"""Return a ``tabular`` with the rules of booktabs (``\usepackage{booktabs}``) and the note."""
    cells = effect_cells(release, scope, p_values=p_values)
    kinds = "".join("r" if is_number else "l" for is_number in cells.numbers)
    head, *rows = (" & ".join(map(_plain_latex, row)) + r" \\" for row in (cells.head, *cells.rows))
    note = rf"\multicolumn{{{len(kinds)}}}{{p{{0.95\linewidth}}}}{{\footnotesize "
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{kinds}}}", r"\toprule", head, r"\midrule", *rows,
            r"\bottomrule", f"{note}{_plain_latex(table_note(release))}}}", r"\end{tabular}", "",
        ]
    )  # fmt: skip


def csv_table(release: Release, *, p_values: bool = False) -> str:
    """Return the whole table of effects with all digits, a header line first.

    A spreadsheet would take a text that begins with = + - @ for a formula, so an apostrophe goes
    before it, unless it is a number.
    """
    import polars as pl

    frame = effects_frame(release)
    if p_values:
        found = [p_value_of(release, row) for row in release.effects]
        frame = frame.with_columns(pl.Series("p_value", found, dtype=pl.Float64))
    texts = pl.col(pl.String)
    is_formula = texts.str.contains(r"^\s*[=+@-]") & ~texts.str.contains(r"^[+-]?[0-9.]+$")
    quoted = pl.when(is_formula).then("'" + texts).otherwise(texts)
    return frame.with_columns(quoted.name.keep()).write_csv()


def _plain_markdown(text: str) -> str:
    """Keep a label from being read as markup."""
    return "".join(f"\\{each}" if each in "\\|`*_<>[]#" else each for each in text)


def _plain_latex(text: str) -> str:
    return "".join(_LATEX.get(each, each) for each in text)


def word_table(release: Release, scope: Scope = "all", *, p_values: bool = False) -> bytes:
    """Return a document with what was compared, the table of effects and the note below it."""
    cells = effect_cells(release, scope, p_values=p_values)
    title = compared_line(release) or headline(release)
    rows = [
        _row(texts, cells.numbers, is_head=not place)
        for place, texts in enumerate((cells.head, *cells.rows))
    ]
    grid = "<w:gridCol/>" * len(cells.head)
    body = (
        f"{_paragraph(f'{title[0].upper()}{title[1:]}', bold=True)}"
        f'<w:tbl><w:tblPr><w:tblW w:w="5000" w:type="pct"/>{_BORDERS}</w:tblPr>'
        f"<w:tblGrid>{grid}</w:tblGrid>{''.join(rows)}</w:tbl>"
        f"{_paragraph(table_note(release), size=18)}{_PAGE}"
    )
    document = (
        f'{_HEAD}<w:document xmlns:w="{_OPEN}/wordprocessingml/2006/main">'
        f"<w:body>{body}</w:body></w:document>"
    )
    held = BytesIO()
    with ZipFile(held, "w", ZIP_DEFLATED) as archive:
        for name, text in (
            ("[Content_Types].xml", _TYPES),
            ("_rels/.rels", _LINKS),
            ("word/document.xml", document),
        ):  # without a time, so that the bytes do not depend on the clock
            archive.writestr(ZipInfo(name), text.encode("utf-8"), ZIP_DEFLATED)
    return held.getvalue()


def _row(texts: Iterable[str], numbers: Iterable[bool], *, is_head: bool) -> str:
    repeated = "<w:trPr><w:tblHeader/></w:trPr>" if is_head else ""
    rule = f"<w:tcBorders><w:bottom {_RULE}/></w:tcBorders>" if is_head else ""
    cells = (
        f'<w:tc><w:tcPr><w:tcW w:w="0" w:type="auto"/>{rule}</w:tcPr>'
        f"{_paragraph(text, bold=is_head, right=is_number)}</w:tc>"
        for text, is_number in zip(texts, numbers, strict=True)
    )
    return f"<w:tr>{repeated}{''.join(cells)}</w:tr>"


def _paragraph(text: str, *, bold: bool = False, right: bool = False, size: int = 22) -> str:
    """Return a paragraph; sizes are half points."""
    side = '<w:jc w:val="right"/>' if right else ""
    weight = "<w:b/>" if bold else ""
    plain = escape(_UNWRITABLE.sub("\ufffd", text))
    return (
        f'<w:p><w:pPr><w:spacing w:before="40" w:after="40"/>{side}</w:pPr><w:r><w:rPr>{weight}'
        f'<w:sz w:val="{size}"/></w:rPr><w:t xml:space="preserve">{plain}</w:t></w:r></w:p>'
    )
