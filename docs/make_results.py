"""Take a full run of all experiments, or of some, into the documentation.

Run ``python docs/make_results.py results`` after ``make reproduce``: pages and figures go to
docs/results, and the table of docs/results/index.md is written anew below its marker. With names
(``python docs/make_results.py results end-to-end``) those pages alone are renewed, and their
verdicts counted again.

A page keeps its findings and figures; each of its long tables becomes a CSV file beside it. Of a
page that links to ``summary.csv`` the long tables are left out, because it has their numbers.
Any other page: ``python docs/make_results.py --fold docs/accuracy.md``.
"""

from __future__ import annotations

import csv
import re
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

PAGES = Path(__file__).resolve().parent / "results"
MARKER = "<!-- measured -->\n"
LONGEST = 5  # rows of a table that stays on its page
# Sentences that every page of a run repeats; docs/results/index.md says them once.
_REPEATED = (
    re.compile(
        r"\*\*Nothing on this page is private\.\*\* Every release was drawn.*?\n\n", re.DOTALL
    ),
    re.compile(r"\n\nEvery repetition is in `results\.csv`.*?\.(?=\n*\Z)", re.DOTALL),
)
_BIASES = re.compile(r" \(bias [^|)]*\)(?= \|)")  # summary.csv has bias and spread of each cell
_PIXELS = re.compile(r" ?As\s+pixels: (?:\[[\w.-]+\]\([\w.-]+\.png\)(?:, )?)+\.?")


def publish(results: Path) -> None:
    """Copy every experiment's page and figures, then renew the index."""
    names = re.findall(r"\]\(([\w-]+)/page\.md\)", (results / "README.md").read_text("utf-8"))
    for stale in PAGES.iterdir():
        if stale.name.startswith(tuple(f"{name}{end}" for name in names for end in (".", "-"))):
            stale.unlink()
    for name in names:
        renew(results, name)
    index = PAGES / "index.md"
    said, _, _ = index.read_text("utf-8").partition(MARKER)
    measured = (results / "README.md").read_text("utf-8").partition("\n\n")[2]
    measured = re.sub(r"\]\(([\w-]+)/page\.md\)", r"](\1.md)", measured)
    for repeated in _REPEATED:
        measured = repeated.sub("", measured)
    index.write_text(said + MARKER + "\n" + measured, "utf-8")


def renew(results: Path, name: str) -> None:
    """Copy one experiment's page and figures; those of an earlier run go."""
    page = (results / name / "page.md").read_text("utf-8")
    figures, tables = PAGES.glob(f"{name}-figure*.*"), PAGES.glob(f"{name}-*.csv")
    for stale in (PAGES / f"{name}.md", *figures, *tables):
        stale.unlink(missing_ok=True)
    page = re.sub(r"\]\(((?:figure|summary)[\w-]*\.(?:svg|csv))\)", rf"]({name}-\1)", page)
    for figure in (results / name).glob("figure*.svg"):
        shutil.copyfile(figure, PAGES / f"{name}-{figure.name}")
    if f"({name}-summary.csv)" in page:
        shutil.copyfile(results / name / "summary.csv", PAGES / f"{name}-summary.csv")
    (PAGES / f"{name}.md").write_text(fold(name, page), "utf-8")


def fold(name: str, page: str, folder: str = "") -> str:
    """Return the page without its long tables, which become CSV files named after it."""
    summary = f"{name}-summary.csv" if f"({name}-summary.csv)" in page else ""
    for repeated in _REPEATED:
        page = repeated.sub("", page)
    page = _BIASES.sub("", page)
    heading, parts = name, []
    taken: Counter[str] = Counter()
    for is_table, group in groupby(_PIXELS.sub("", page).split("\n"), lambda line: line[:1] == "|"):
        lines = list(group)
        titles = [line for line in lines if line.startswith("#")]
        heading = titles[-1] if titles else heading
        cells = [_cells(line) for line in lines]
        if not is_table or len(lines) - 2 <= LONGEST or not _is_folded(cells[0]):
            parts += lines
            continue
        if summary and "setting" in cells[0] and "name" not in cells[0]:
            parts.append(f"Numbers: [{summary}]({folder}{summary}).")
            continue
        slug = _slug(heading)
        file = _free_name(f"{name}-{slug}", page, taken)
        _write(PAGES / file, [cells[0], *_filled(cells[2:])])
        parts.append(f"Numbers: [{file}]({folder}{file}), {len(lines) - 2} rows.")
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(parts))
    return _without_empty_sections(text, f"Numbers: [{summary}]({folder}{summary}).")


def _without_empty_sections(page: str, pointer: str) -> str:
    """Drop what a left-out table leaves: headings of winners, captions above a pointer."""
    pointer = re.escape(pointer)
    page = re.sub(rf"### The winner of each cell at \w+ level\n\n[^#]*?{pointer}\n\n", "", page)
    page = page.replace("errors above ten effects are in the table only.", "errors above ten "
                        "effects are in the CSV file only.")  # fmt: skip
    return re.sub(rf"Mean error ± standard error\.\n\n{pointer}\n\n", "", page)


def _free_name(stem: str, page: str, taken: Counter[str]) -> str:
    """Return a name that no table of the page has, one that was folded before included."""
    while True:
        taken[stem] += 1
        file = f"{stem}{'' if taken[stem] == 1 else f'-{taken[stem]}'}.csv"
        if file not in page:
            return file


def _is_folded(header: Sequence[str]) -> bool:
    """Return whether a table holds numbers; verdicts and reasons are read on their page."""
    return not {"verdict", "why", "experiment"} & set(header)


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def _filled(rows: Sequence[list[str]]) -> list[list[str]]:
    """Repeat the first two cells of a row where a row below leaves them out."""
    filled: list[list[str]] = []
    for row in rows:
        above = filled[-1] if filled else row
        filled.append(
            [cell or above[place] if place < 2 else cell for place, cell in enumerate(row)]
        )
    return filled


def _slug(heading: str) -> str:
    words = re.findall(r"[a-z0-9]+", heading.partition("(")[0].lower())
    return "-".join(words[:6]) or "table"


def _write(path: Path, rows: Sequence[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([re.sub(r"[*`]", "", cell) for cell in row] for row in rows)


def count_again(name: str) -> None:
    """Count the verdicts of one page in the index."""
    verdicts = re.findall(r"\| \*\*([\w ]+)\*\* \|", (PAGES / f"{name}.md").read_text("utf-8"))
    counts = ", ".join(f"{count} {verdict}" for verdict, count in sorted(Counter(verdicts).items()))
    index = PAGES / "index.md"
    text = index.read_text("utf-8")
    line = re.compile(rf"^(\| \[{name}\].*\| ).*( \|)$", re.MULTILINE)
    index.write_text(line.sub(rf"\g<1>{counts}\g<2>", text), "utf-8")


if __name__ == "__main__":
    folder, *chosen = sys.argv[1:]
    if folder == "--fold":
        for one in map(Path, chosen):
            where = "" if one.resolve().parent == PAGES else "results/"
            one.write_text(fold(one.stem, one.read_text("utf-8"), where), "utf-8")
        chosen = []
    elif not chosen:
        publish(Path(folder))
    for one in chosen:
        renew(Path(folder), one)
        count_again(one)
