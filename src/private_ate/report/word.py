"""The table of effects as a Word document: the least that Office Open XML asks for.

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

from private_ate.report.effects_table import Scope
from private_ate.report.tables import effect_cells, table_note
from private_ate.report.words import compared_line, headline

if TYPE_CHECKING:
    from private_ate.release import Release

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


def word_table(release: Release, scope: Scope = "all", *, p_values: bool = False) -> bytes:
    """Return a document with what was compared, the table of effects and the note below it."""
    cells = effect_cells(release, scope, p_values=p_values)
    title = compared_line(release) or headline(release)
    rows = [_row(cells.head, cells.numbers, is_head=True)]
    rows += [_row(texts, cells.numbers) for texts in cells.rows]
    grid = "<w:gridCol/>" * len(cells.head)
    table = (
        f'<w:tbl><w:tblPr><w:tblW w:w="5000" w:type="pct"/>{_BORDERS}</w:tblPr>'
        f"<w:tblGrid>{grid}</w:tblGrid>{''.join(rows)}</w:tbl>"
    )
    body = "".join(
        [
            _paragraph(f"{title[0].upper()}{title[1:]}", bold=True),
            table,
            _paragraph(table_note(release), size=18),
            _PAGE,
        ]
    )
    document = (
        f'{_HEAD}<w:document xmlns:w="{_OPEN}/wordprocessingml/2006/main">'
        f"<w:body>{body}</w:body></w:document>"
    )
    return _archive(
        (
            ("[Content_Types].xml", _TYPES),
            ("_rels/.rels", _LINKS),
            ("word/document.xml", document),
        )
    )


def _row(texts: Iterable[str], numbers: Iterable[bool], *, is_head: bool = False) -> str:
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


def _archive(parts: Iterable[tuple[str, str]]) -> bytes:
    """Return parts as an archive whose bytes do not depend on the clock."""
    held = BytesIO()
    with ZipFile(held, "w", ZIP_DEFLATED) as archive:
        for name, text in parts:
            archive.writestr(ZipInfo(name), text.encode("utf-8"), ZIP_DEFLATED)
    return held.getvalue()
