"""Sheets of Excel: the header and public entries decide what the table is, no stray cell does."""

import zipfile

import numpy as np
import polars as pl
import pytest

from private_ate import (
    Domain,
    Interval,
    PrivateAteError,
    SchemaError,
    check_data,
    estimate_ate,
    plan_ate,
)
from private_ate.data.files import open_schema, open_table
from workbooks import write_parts, write_workbook

CANARY = "canary-4711"
DOMAIN = Domain("t", ("y", Interval(0, 10)), {"x": Interval(0, 10)})
LABEL = {"domain": DOMAIN, "level": "label", "epsilon": 1, "seed": 1}
HEADER = ["t", "x", "y"]


def records(rows=200):
    rng = np.random.default_rng(3)
    columns = rng.integers(0, 2, rows), rng.random(rows).round(3) * 10, rng.random(rows) * 10
    return [list(map(float, row)) for row in zip(*columns, strict=True)]


def test_cells_are_read_one_by_one_and_none_beyond_the_header(tmp_path):
    rows = [
        ["x", "t", "y"], [1.5, "yes", True], [None, None, None], ["#N/A", "no", 1e-7],
        ["odd", 1, 2, CANARY],
    ]  # fmt: skip
    table = open_table(write_workbook(tmp_path / "s.xlsx", rows))

    assert table.names == ("x", "t", "y")
    assert not table.typed
    np.testing.assert_array_equal(table.numbers("x"), [1.5, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(table.numbers("y"), [1, np.nan, 1e-7, 2])
    assert table.equals("t", "1").tolist() == [False, False, False, True]


def test_shared_texts_dates_and_formulas_are_read_by_the_kind_of_their_cell(tmp_path):
    shared = (
        "<sst><si><t>name</t></si><si><r><t>two </t></r><r><t>parts</t></r>"
        "<rPh><t>spoken</t></rPh></si></sst>"
    )
    styles = (
        '<styleSheet><numFmts><numFmt numFmtId="170" formatCode="yyyy\\-mm"/>'
        '<numFmt numFmtId="171" formatCode="0.0&quot; days&quot;"/></numFmts>'
        '<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="170"/><xf numFmtId="171"/>'
        "</cellXfs></styleSheet>"
    )
    cells = [
        '<c t="s"><v>0</v></c>', '<c t="s"><v>1</v></c>', '<c s="1"><v>45000</v></c>',
        '<c s="2"><v>45000.5</v></c>', '<c s="3"><v>0.10000000000000001</v></c>',
        '<c t="s"><v>7</v></c>', '<c t="str"><f>A1&amp;"x"</f><v>made</v></c>',
        '<c s="1"><v>1e300</v></c>',
    ]  # fmt: skip
    body = "".join(f"<row>{cell}</row>" for cell in cells)
    path = write_parts(tmp_path / "s.xlsx", body, sharedStrings=shared, styles=styles)

    assert open_table(path).frame.to_native()["name"].to_list() == [
        "two parts", "2023-03-15 00:00:00", "2023-03-15 12:00:00", "0.1", None, "made",
    ]  # fmt: skip


@pytest.mark.parametrize("outcome", [None, 5.0, "odd", "#N/A"])
def test_no_outcome_of_the_last_record_changes_n(tmp_path, outcome):
    rows = records()
    rows[-1][2] = outcome
    path = write_workbook(tmp_path / "s.xlsx", [HEADER, *rows])

    assert estimate_ate(path, **LABEL).n == 200


@pytest.mark.parametrize("place", [(57, "XFD"), (1 << 20, "XFD"), (1 << 20, "C"), (201, "C")])
def test_a_stray_cell_changes_nothing_of_the_table(tmp_path, place):
    path = write_workbook(tmp_path / "s.xlsx", [HEADER, *records(199)], stray={place: CANARY})
    plain = write_workbook(tmp_path / "plain.xlsx", [HEADER, *records(199)])

    assert open_schema(path).names == tuple(HEADER)
    assert estimate_ate(path, **LABEL).to_dict() == estimate_ate(plain, **LABEL).to_dict()
    assert check_data(path, domain=DOMAIN).rows == 199


def test_at_sample_level_a_sheet_is_refused_and_named_are_the_formats_to_use(tmp_path):
    path = write_workbook(tmp_path / "s.xlsx", [HEADER, *records()])
    sample = {"domain": DOMAIN, "level": "sample"}

    for door, asked in (
        (estimate_ate, {"epsilon": 1}), (check_data, {}), (plan_ate, {}),
    ):  # fmt: skip
        with pytest.raises(PrivateAteError, match=r"s\.xlsx.* Parquet or CSV") as caught:
            door(path, **sample, **asked)
        assert CANARY not in str(caught.value)


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = write_workbook(tmp_path / "s.xlsx", [["x", "y", "x"], [1.0, 2.0, 3.0]])

    with pytest.raises(SchemaError, match="two columns of the same name"):
        open_table(path)


@pytest.mark.parametrize("door", [open_schema, open_table])
def test_a_sheet_is_unpacked_only_as_far_as_memory_allows(tmp_path, monkeypatch, door):
    monkeypatch.setattr("private_ate.data.workbooks.MOST_BYTES", 1 << 20)
    path = write_parts(tmp_path / "s.xlsx", "<row><c><v>1</v></c></row>" + " " * (1 << 21))

    assert path.stat().st_size < 1 << 14
    with pytest.raises(PrivateAteError, match=r"too large once it is unpacked.*Parquet or CSV"):
        door(path)


def test_a_header_of_all_columns_takes_memory_for_its_entries_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("private_ate.data.workbooks._MOST_CELLS", 1000)
    path = write_workbook(tmp_path / "s.xlsx", [HEADER, [1.0, 1.0, 1.0]], stray={(900, "B"): "1"})

    assert open_table(path, columns=["t"]).rows == 1
    with pytest.raises(PrivateAteError, match="too large"):
        open_table(path)


@pytest.mark.parametrize(
    "body",
    [
        '<row r="2"/><row r="1"/>', '<row r="1048577"><c><v>1</v></c></row>', '<row r="x"/>',
        '<row><c r="XFE1"><v>1</v></c></row>', '<row><c r="é1"><v>1</v></c></row>', "<row>", "",
    ],
)  # fmt: skip
def test_a_sheet_that_breaks_the_format_is_refused_by_its_name(tmp_path, body):
    path = write_parts(tmp_path / "s.xlsx", body)

    with pytest.raises(PrivateAteError, match=r"'s\.xlsx' cannot be read as an Excel workbook$"):
        open_table(path)


def test_declared_entities_are_refused(tmp_path):
    entities = '<!DOCTYPE sst [<!ENTITY a "aaaa">]><sst><si><t>&a;</t></si></sst>'
    body = '<row><c t="s"><v>0</v></c></row>'
    path = write_parts(tmp_path / "s.xlsx", body, sharedStrings=entities)

    with pytest.raises(PrivateAteError, match="cannot be read as an Excel workbook"):
        open_table(path)


def test_a_part_that_says_less_than_it_holds_is_not_unpacked_beyond_its_word(tmp_path):
    path = write_workbook(tmp_path / "s.xlsx", [["x"], *[[1.0]] * 500])
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("xl/worksheets/sheet1.xml").file_size
    raw = path.read_bytes().replace(size.to_bytes(4, "little"), (64).to_bytes(4, "little"))
    path.write_bytes(raw)

    with pytest.raises(PrivateAteError, match="cannot be read as an Excel workbook"):
        open_table(path)


def test_a_frame_and_a_sheet_of_the_same_records_have_the_same_release(tmp_path):
    rows = records()
    path = write_workbook(tmp_path / "s.xlsx", [HEADER, *rows])
    frame = pl.DataFrame(rows, schema=HEADER, orient="row")

    assert estimate_ate(path, **LABEL).ate == estimate_ate(frame, **LABEL).ate
