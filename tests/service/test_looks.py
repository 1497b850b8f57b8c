"""A data set's file is compared with what its curator declared before anybody pays for it."""

import re
from dataclasses import replace
from datetime import datetime

import pytest

pytest.importorskip(
    "fastapi", reason="THE SERVICE WAS NOT TESTED: pip install 'private-ate[serve]'"
)
from house_people import ALICE, CAROL, CLINIC, DOMAIN
from test_pages import Reader

from private_ate.datasets.clinic import draw_clinic
from private_ate.errors import ArgumentError
from private_ate.service.job import Report, file_problem
from private_ate.service.store.catalogue import (
    check_source,
    open_source,
    write_file_check,
    write_source,
)
from private_ate.service.store.events import events_about
from private_ate.service.vocabulary import Conflict
from private_ate.service.worker import Worker
from workbooks import add_sheet, write_workbook


def add(house, text, **changes):
    """Add a data set about a file of its own, which holds ``text``."""
    (house.folder / "data" / "own.csv").write_text(text, "utf-8")
    house.add(replace(CLINIC, name="own", source="own.csv", **changes))


def clinic_text(separator=","):
    return draw_clinic(400).frame.write_csv(separator=separator)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (clinic_text(";"), "fields seem to be separated by ';'"),
        (clinic_text().replace("pressure_drop", "pressure", 1), "'pressure_drop' was declared"),
        (re.sub(r"(?m)$(?=\n)", ",0", clinic_text()).replace(",0\n", ",more\n", 1), "'more'"),
        (clinic_text().rsplit("\n", 2)[0] + "\n", "it has 399 rows; 400 were declared"),
        (None, "no file of this name"),
    ],
)
def test_a_look_says_what_is_not_as_declared(tmp_path, text, sentence):
    path = tmp_path / "own.csv"
    if text is not None:
        path.write_text(text, "utf-8")

    assert sentence in file_problem(path if text is not None else None, CLINIC)


def test_a_look_at_a_file_as_declared_finds_nothing(tmp_path):
    (tmp_path / "own.csv").write_text(clinic_text(), "utf-8")

    assert file_problem(tmp_path / "own.csv", CLINIC) == ""


@pytest.mark.parametrize("last", [1.5, None])
def test_a_look_counts_the_rows_of_a_sheet_by_public_entries(tmp_path, last):
    frame = draw_clinic(400).frame.select(CLINIC.columns)
    rows = [list(CLINIC.columns), *map(list, frame.rows())]
    rows[-1][CLINIC.columns.index(DOMAIN.outcome.column)] = last

    assert file_problem(write_workbook(tmp_path / "own.xlsx", rows), CLINIC) == ""


def test_a_look_is_told_with_the_time_at_which_it_began(small_house, monkeypatch):
    add(small_house, clinic_text())
    worker = small_house.worker()

    def slow(_self, _order):
        small_house.wait(7)
        return Report("done")

    began = small_house.clock()
    monkeypatch.setattr(Worker, "_start", slow)
    worker.check_files()

    with small_house.store.snapshot() as execute:
        (found,) = [one for one in events_about(execute, "own") if one.kind == "look"]
    assert 0 <= round(1000 * datetime.fromisoformat(found.at).timestamp()) - began < 7000


def test_curators_read_what_is_wrong_and_nobody_pays_for_a_file_that_is_not_as_declared(
    small_house,
):
    add(small_house, clinic_text())
    with small_house.store.transaction() as execute:
        write_file_check(execute, "own", "one", "it has 399 rows; 400 were declared", 0)
    curator, analyst = Reader(small_house, "carol"), Reader(small_house, "alice")

    for path in ("/manage", "/queue", "/datasets/own"):
        assert "it has 399 rows" in curator.open(path).text
    assert "add its file again under another name" in curator.open("/manage").text
    plan = "/datasets/own/plan?epsilon=0.1"
    offered = [hidden.get("dummy") for path, hidden in analyst.forms_of(plan) if "requests" in path]
    assert offered == ["yes"]
    page = analyst.open("/datasets/own").text
    assert "curators see what is wrong" in page
    assert "399" not in page
    with pytest.raises(Conflict, match="not as declared"):
        small_house.ask(dataset="own")
    small_house.ask("made-up", dataset="own", dummy=True)


@pytest.mark.service
def test_a_file_that_was_repaired_is_looked_at_again_and_can_be_asked_about(small_house):
    add(small_house, clinic_text().rsplit("\n", 2)[0] + "\n")
    worker = small_house.worker()
    worker.check_files()
    (small_house.folder / "data" / "own.csv").write_text(clinic_text(), "utf-8")
    worker.check_files()  # within the same minute: not again
    assert small_house.service.file_problems()["own"]
    small_house.wait(61)
    small_house.worker().check_files()

    assert small_house.service.file_problems() == {"clinic": "", "own": ""}
    assert "as declared" in Reader(small_house, "carol").open("/manage").text
    small_house.ask(dataset="own")


@pytest.mark.service
def test_a_file_with_semicolons_and_decimal_commas_is_added_by_the_page_and_answered(small_house):
    text = clinic_text(";").replace(".", ",")
    (small_house.folder / "data" / "my own.csv").write_text(f"Zürich\n{text}", "cp1252")
    curator = Reader(small_house, "carol")
    curator.open("/manage")
    curator.send("/manage", name="own", population="patients", level="label", rows="400",
                 source="my own.csv", sep=";", decimal=",", columns=", ".join(CLINIC.columns),
                 encoding="cp1252", header_row="2", sheet="",
                 domain=DOMAIN.to_toml(), epsilon="")  # fmt: skip
    worker = small_house.worker()
    worker.check_files()
    assert small_house.service.file_problems()["own"] == ""
    row = small_house.ask(dataset="own", epsilon="0.3")
    worker.step()
    small_house.wait()

    assert small_house.service.show(ALICE, row.id).state == "done"


@pytest.mark.service
def test_curators_see_that_an_answer_could_not_be_given_once_it_is_visible(small_house):
    row = small_house.ask()
    (small_house.folder / "data" / "clinic.csv").write_text("age\n1\n", "utf-8")
    small_house.worker().step()
    assert small_house.service.file_problems()["clinic"] is None
    small_house.wait()

    assert "curators see it in their queue" in small_house.service.show(CAROL, row.id).reason
    page = Reader(small_house, "carol").open("/queue").text
    assert "Data set clinic: the last answer could not be given" in page


@pytest.mark.parametrize(
    "source",
    [
        "a.csv?sep=x",
        "a.csv?path=/etc/passwd",
        "a.csv?sep=;&sep",
        "a.csv?decimal=;",
        "a.exe",
        "a.csv?encoding=odd",
        "a.csv?header_row=0",
        "a.csv?skip_rows=one",
        "a.csv?sheet=1",
    ],
)
def test_a_source_says_how_a_text_is_read_and_nothing_else(source):
    with pytest.raises(ArgumentError):
        check_source(source)
    assert check_source(write_source("a b.csv", sep=";", decimal=",")) == "a b.csv?sep=;&decimal=,"


@pytest.mark.parametrize(
    ("name", "reading"),
    [
        ("own.csv", {"encoding": "cp1252", "header_row": "3"}),
        ("own.csv", {"encoding": "utf-16", "skip_rows": 2}),
        ("own.xlsx", {"sheet": "Visits & more", "header_row": 3}),
    ],
)
def test_the_worker_reads_what_the_command_line_reads(tmp_path, name, reading):
    frame = draw_clinic(400).frame
    path = tmp_path / name
    if path.suffix == ".xlsx":
        write_workbook(path, [["notes"]])
        add_sheet(path, "Visits & more", [["Träger"], [], frame.columns, *frame.rows()])
    else:
        path.write_bytes(f"Träger\n\n{frame.write_csv()}".encode(reading["encoding"]))
    source = write_source(name, **reading)

    assert file_problem(open_source(tmp_path, source), CLINIC) == ""
    assert file_problem(open_source(tmp_path, name), CLINIC) != ""
