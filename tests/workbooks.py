"""A workbook of one sheet or more, written by hand: no package that writes them is needed."""

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


def write_workbook(path, rows, stray=None):
    """Write rows of texts, numbers, truth values and errors (``#N/A``); None is an empty cell.

    A row without a cell is not written, as Excel does. ``stray`` holds texts by row and by the
    letters of a column.
    """
    write_parts(path, _body(rows, stray or {}))
    return path


def add_sheet(path, name, rows):
    """Write another sheet into a workbook, after those that it has."""
    with zipfile.ZipFile(path) as file:
        parts = {part: file.read(part).decode() for part in file.namelist()}
    number = sum(part.startswith("xl/worksheets/") for part in parts) + 1
    main, related = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    sheet = f'<sheet name="{escape(name)}" sheetId="{number}" r:id="s{number}"/></sheets>'
    relation = (
        f'<Relationship Id="s{number}" Type="{_NAMES}/officeDocument/2006/relationships/worksheet" '
        f'Target="worksheets/sheet{number}.xml"/></Relationships>'
    )
    parts[main] = parts[main].replace("</sheets>", sheet)
    parts[related] = parts[related].replace("</Relationships>", relation)
    parts[f"xl/worksheets/sheet{number}.xml"] = _sheet(_body(rows, {}))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for part, text in parts.items():
            file.writestr(part, text)


def _body(rows, stray):
    places = sorted({*range(1, len(rows) + 1), *(place for place, _ in stray)})
    return "".join(
        f'<row r="{place}">{cells}</row>'
        for place in places
        if (cells := "".join([*_cells(place, rows), *_stray_cells(place, stray)]))
    )


def _sheet(body):
    return (
        f'<worksheet xmlns="{_NAMES}/spreadsheetml/2006/main"><sheetData>{body}</sheetData>'
        "</worksheet>"
    )


def write_parts(path, body, **others):
    """Write a workbook from the text of its sheet's rows and of other parts by their names."""
    relations = "".join(
        f'<Relationship Id="{name}" Type="{_NAMES}/officeDocument/2006/relationships/{name}" '
        f'Target="/xl/{name}.xml"/>'
        for name in others
    )
    parts = {**_PARTS, "xl/worksheets/sheet1.xml": _sheet(body)}
    related = "xl/_rels/workbook.xml.rels"
    parts[related] = parts[related].replace("</Relationships>", f"{relations}</Relationships>")
    parts |= {f"xl/{name}.xml": text for name, text in others.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in parts.items():
            file.writestr(name, f'<?xml version="1.0"?>{text}')
    return path


def _stray_cells(place, stray):
    for (row, letters), text in stray.items():
        if row == place:
            yield f'<c r="{letters}{row}" t="inlineStr"><is><t>{escape(text)}</t></is></c>'


def _cells(place, rows):
    for column, entry in enumerate(rows[place - 1] if place <= len(rows) else ()):
        name = f'r="{chr(65 + column)}{place}"'
        if isinstance(entry, bool):
            yield f'<c {name} t="b"><v>{int(entry)}</v></c>'
        elif isinstance(entry, int | float):
            yield f"<c {name}><v>{entry!r}</v></c>"
        elif entry is not None and entry.startswith("#"):
            yield f'<c {name} t="e"><v>{entry}</v></c>'
        elif entry is not None:
            yield f'<c {name} t="inlineStr"><is><t>{escape(entry)}</t></is></c>'
