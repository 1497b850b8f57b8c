"""A workbook of one sheet, written by hand: no package that writes them is needed."""

import zipfile
from xml.sax.saxutils import escape

_NAMES = "http://schemas.openxmlformats.org"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_PARTS = {
    "[Content_Types].xml": (
        f'<Types xmlns="{_NAMES}/package/2006/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/>'
        "</Types>"
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{_NAMES}/package/2006/relationships"><Relationship Id="r1" '
        f'Type="{_NAMES}/officeDocument/2006/relationships/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        f'<workbook xmlns="{_NAMES}/spreadsheetml/2006/main" '
        f'xmlns:r="{_NAMES}/officeDocument/2006/relationships"><sheets>'
        '<sheet name="Study" sheetId="1" r:id="r1"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{_NAMES}/package/2006/relationships"><Relationship Id="r1" '
        f'Type="{_NAMES}/officeDocument/2006/relationships/worksheet" '
        'Target="worksheets/sheet1.xml"/></Relationships>'
    ),
}


def write_workbook(path, rows):
    """Write rows of texts, numbers, truth values and errors (``#N/A``); None is an empty cell."""
    body = "".join(
        f'<row r="{place}">{"".join(_cells(place, row))}</row>' for place, row in enumerate(rows, 1)
    )
    sheet = f'<worksheet xmlns="{_NAMES}/spreadsheetml/2006/main"><sheetData>{body}</sheetData>'
    with zipfile.ZipFile(path, "w") as file:
        for name, text in {**_PARTS, "xl/worksheets/sheet1.xml": f"{sheet}</worksheet>"}.items():
            file.writestr(name, f'<?xml version="1.0"?>{text}')
    return path


def _cells(place, row):
    for column, entry in enumerate(row):
        name = f'r="{chr(65 + column)}{place}"'
        if isinstance(entry, bool):
            yield f'<c {name} t="b"><v>{int(entry)}</v></c>'
        elif isinstance(entry, int | float):
            yield f"<c {name}><v>{entry!r}</v></c>"
        elif entry is not None and entry.startswith("#"):
            yield f'<c {name} t="e"><v>{entry}</v></c>'
        elif entry is not None:
            yield f'<c {name} t="inlineStr"><is><t>{escape(entry)}</t></is></c>'
