"""Tables for papers and cards for notebooks, from releases, plans and curators' views."""

import csv
import io
import re
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from private_ate import ArgumentError, p_value
from private_ate.planning import Plan, PlanRow
from private_ate.release import ArmDiagnostics, ArmOverlap, Diagnostics, Overlap
from private_ate.release.metadata import TreatmentNote
from private_ate.report.effects_table import p_text
from private_ate.report.tables import effect_cells, table_note
from sites import effect_row, made_up_site
from smoking import smoking_release

TWO = made_up_site(3.0, 1.0, 0.5)
SEVERAL = smoking_release()


@pytest.mark.parametrize("release", [TWO, SEVERAL], ids=["two arms", "several arms"])
def test_markdown_has_a_row_for_every_effect_and_a_note_of_the_promise(release):
    table, _, note = release.to_markdown().partition("\n\n")
    lines = table.splitlines()
    assert len(lines) == 2 + len(release.effects)
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert "differential privacy (ε = " in note
    assert f"n = {release.n:,}" in note


def test_the_table_of_two_arms_says_each_thing_once():
    cells = effect_cells(TWO)
    assert cells.head == ("arm", "against", "effect", "standard error", "95 % interval")
    assert cells.rows[0][:3] == ("yes", "no", "3.0")


def test_the_table_of_several_arms_can_be_held_to_the_reference():
    narrow, wide = effect_cells(SEVERAL, "reference"), effect_cells(SEVERAL)
    assert len(narrow.rows) == len(SEVERAL.arms) - 1
    assert {row[1] for row in narrow.rows} == {SEVERAL.arms[0].label}
    place = wide.head.index("all at once")
    assert narrow.rows[0][place] != wide.rows[0][place]
    with pytest.raises(ArgumentError, match="contrasts"):
        SEVERAL.to_markdown("some")
    with pytest.raises(ArgumentError, match="contrasts"):
        SEVERAL.to_latex("some")


def test_several_outcomes_and_subgroups_have_columns_of_their_own():
    rows = tuple(
        replace(effect_row(1.0, 2.0, 1.0), outcome=outcome, subgroup=group)
        for outcome in ("pulse", "pressure")
        for group in (None, "women")
    )
    cells = effect_cells(made_up_site(1.0, effects=rows))
    assert cells.head[:2] == ("outcome", "subgroup")
    assert [row[:2] for row in cells.rows[:2]] == [("pulse", "all"), ("pulse", "women")]


def test_without_intervals_the_table_shows_those_of_the_noise_and_says_so():
    bare = made_up_site(1.0, effects=(effect_row(1.0, 2.0, 1.0, interval=None, simultaneous=None),))
    cells = effect_cells(bare)
    assert cells.head[-1] == "95 % noise interval"
    assert "standard error" not in cells.head
    with pytest.raises(ArgumentError, match="needs an interval"):
        effect_cells(bare, p_values=True)


def test_p_values_are_there_only_where_they_are_asked_for():
    assert "p" not in effect_cells(TWO).head
    asked = effect_cells(TWO, p_values=True)
    assert asked.head[-1] == "p"
    assert asked.rows[0][-1] == p_text(p_value(TWO))
    assert "| p |" in TWO.to_markdown(p_values=True)
    assert r"& p \\" in TWO.to_latex(p_values=True)
    for text in (TWO.to_markdown(), TWO.to_latex(), TWO.to_csv(), str(TWO), TWO.to_html()):
        assert "p_value" not in text
        assert "p-value" not in text


def test_csv_holds_all_digits_of_the_frame():
    (row,) = csv.DictReader(io.StringIO(TWO.to_csv(p_values=True)))
    assert float(row["estimate"]) == TWO.ate
    assert float(row["interval_low"]) == TWO.interval[0]
    assert float(row["p_value"]) == p_value(TWO)
    assert len(SEVERAL.to_csv().splitlines()) == 1 + len(SEVERAL.effects)


def test_latex_is_balanced_whatever_labels_hold():
    odd = r"50% & more_{#1} $x$ ~^\end | <b>"
    labels = TreatmentNote("drug", ("no", odd), "no")
    row = replace(TWO.effects[0], arm=odd)
    text = replace(TWO, treatment=labels, effects=(row,), warnings=(odd,)).to_latex()
    assert r"50\% \& more\_\{\#1\} \$x\$ \textasciitilde{}\textasciicircum{}" in text
    assert r"\textbackslash{}end \textbar{} $<$b$>$" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 1
    assert text.count("{") == text.count("}")
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len({len(re.findall(r"(?<!\\)&", line)) for line in body}) == 1


def test_markdown_keeps_labels_from_being_markup():
    row = replace(TWO.effects[0], arm="a|b_*c*<i>")
    line = replace(TWO, effects=(row,)).to_markdown().splitlines()[2]
    assert r"a\|b\_\*c\*\<i\>" in line


def test_a_release_without_a_guarantee_says_so_below_its_table():
    seeded = replace(TWO, guarantee="none (seeded)")
    for text in (seeded.to_markdown(), seeded.to_latex()):
        assert "WITHOUT a privacy guarantee" in text


@pytest.mark.parametrize(("value", "text"), [(0.04962, "0.050"), (1.0, "1.00"), (1e-9, "<0.001")])
def test_p_values_are_written_as_journals_do(value, text):
    assert p_text(value) == text


class Balanced(HTMLParser):
    """Checks that every element is closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.styles = [], []

    def handle_starttag(self, tag, attributes):  # noqa: ARG002  # given by the parser
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.styles.append(data)


def checked(card):
    parser = Balanced()
    parser.feed(card)
    parser.close()
    assert parser.open == []
    for rule in re.findall(r"([^{}]+)\{", "".join(parser.styles)):
        assert all(part.strip().startswith(".private-ate") for part in rule.split(",")), rule
    return card


def plan(**changes):
    row = PlanRow(0.5, 0.2, 0.3, 0.4, 0.9, "cap 3 <b>", 1.2, 1000, adjusted=True, **changes)
    return Plan("label", (row,), 1.0, 0.45, "ε = 0.45 is needed", "rests on a guess",
                method="calibrated")  # fmt: skip


def test_a_plan_shows_its_rows_answer_and_legend_in_a_notebook():
    card = checked(plan()._repr_html_())
    for text in ("half-width", "ε = 0.45 is needed.", "expected size", "cap 3 &lt;b&gt;", "0.90"):
        assert text in card
    assert "contrast" not in card
    assert "low against none" in plan(arm="low", against="none")._repr_html_()


TWO_ARMS = Diagnostics(
    17.03125, 17.03125, 17.03125, 1703125, 1703125, 17.03125, 17.03125,
    {"income-17.03125": (17.03125, 17.03125)}, {"treated": (17.03125,)},
    Overlap((1703125,), (1703125,)),
)  # fmt: skip
SEVERAL_ARMS = ArmDiagnostics(
    *({"a": 17.03125},) * 5, {"x": (17.03125, 17.03125)}, {"a": {}}, {"a": (17.03125,)},
    ArmOverlap(("a",), (((1703125,),),)),
)  # fmt: skip


@pytest.mark.parametrize("view", [TWO_ARMS, SEVERAL_ARMS], ids=["two arms", "several arms"])
def test_a_curators_view_shows_a_notebook_what_it_holds_and_no_value(view):
    card = checked(view._repr_html_())
    assert "not private, do not share" in card
    assert "<li>overlap</li>" in card
    assert "<li>note</li>" not in card
    assert "703125" not in card.replace(",", "").replace(".", "")


WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def opened(content: bytes) -> tuple[dict[str, str], ET.Element]:
    """Return the parts of a document as texts, and its body."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    return parts, ET.fromstring(parts["word/document.xml"])[0]  # noqa: S314  # our own


@pytest.mark.parametrize("release", [TWO, SEVERAL], ids=["two arms", "several arms"])
def test_a_word_document_holds_the_table_of_effects_and_its_note(release):
    parts, body = opened(release.to_docx(p_values=True))
    (table,) = body.findall(f"{WORD}tbl")
    rows = [
        ["".join(cell.itertext()) for cell in row.findall(f"{WORD}tc")]
        for row in table.findall(f"{WORD}tr")
    ]
    cells = effect_cells(release, p_values=True)

    assert rows == [list(cells.head), *map(list, cells.rows)]
    assert "".join(body[-2].itertext()) == table_note(release)
    # What Word asks for: every part has a type, the package says where the document is, columns
    # are declared, a cell ends with a paragraph, and the page comes last.
    assert next(iter(parts)) == "[Content_Types].xml"
    assert 'PartName="/word/document.xml"' in parts["[Content_Types].xml"]
    assert 'Target="word/document.xml"' in parts["_rels/.rels"]
    assert len(table.find(f"{WORD}tblGrid")) == len(cells.head)
    assert {cell[-1].tag for cell in table.iter(f"{WORD}tc")} == {f"{WORD}p"}
    assert body[-1].tag == f"{WORD}sectPr"


def test_a_word_document_does_not_depend_on_the_clock_and_escapes_labels():
    odd = replace(
        TWO,
        effects=(replace(TWO.effects[0], arm="<&>\x00\ud800"),),
    )

    assert odd.to_docx() == odd.to_docx()
    assert "<&>\ufffd\ufffd" in "".join(opened(odd.to_docx())[1].itertext())
    with pytest.raises(ArgumentError, match="contrasts"):
        TWO.to_docx("some")
