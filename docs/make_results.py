"""Take a full run of all experiments, or of some, into the documentation.

Run ``python docs/make_results.py results`` after ``make reproduce``: pages and figures go to
docs/results, and the table of docs/results/index.md is written anew below its marker. With names
(``python docs/make_results.py results end-to-end``) those pages alone are renewed, and their
verdicts counted again.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections import Counter
from pathlib import Path

PAGES = Path(__file__).resolve().parent / "results"
MARKER = "<!-- measured -->\n"


def publish(results: Path) -> None:
    """Copy every experiment's page and figures, then renew the index."""
    names = re.findall(r"\]\(([\w-]+)/page\.md\)", (results / "README.md").read_text("utf-8"))
    for stale in PAGES.iterdir():
        if stale.name != "index.md":
            stale.unlink()
    for name in names:
        renew(results, name)
    index = PAGES / "index.md"
    said, _, _ = index.read_text("utf-8").partition(MARKER)
    measured = (results / "README.md").read_text("utf-8").partition("\n\n")[2]
    measured = re.sub(r"\]\(([\w-]+)/page\.md\)", r"](\1.md)", measured)
    index.write_text(said + MARKER + "\n" + measured, "utf-8")


def renew(results: Path, name: str) -> None:
    """Copy one experiment's page and figures; those of an earlier run go."""
    page = (results / name / "page.md").read_text("utf-8")
    figures, tables = PAGES.glob(f"{name}-figure*.*"), PAGES.glob(f"{name}-*.csv")
    for stale in (PAGES / f"{name}.md", *figures, *tables):
        stale.unlink(missing_ok=True)
    page = re.sub(r"\]\(((?:figure|summary)[\w-]*\.(?:svg|png|csv))\)", rf"]({name}-\1)", page)
    (PAGES / f"{name}.md").write_text(page, "utf-8")
    for figure in (results / name).glob("figure*.*"):
        shutil.copyfile(figure, PAGES / f"{name}-{figure.name}")
    if f"({name}-summary.csv)" in page:
        shutil.copyfile(results / name / "summary.csv", PAGES / f"{name}-summary.csv")


def count_again(name: str) -> None:
    """Count the verdicts of one page in the index."""
    verdicts = re.findall(r"\| \*\*([\w ]+)\*\* \|", (PAGES / f"{name}.md").read_text("utf-8"))
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(Counter(verdicts).items()))
    index = PAGES / "index.md"
    text = index.read_text("utf-8")
    line = re.compile(rf"^(\| \[{name}\].*\| ).*( \|)$", re.MULTILINE)
    index.write_text(line.sub(rf"\g<1>{told}\g<2>", text), "utf-8")


if __name__ == "__main__":
    folder, *chosen = sys.argv[1:]
    if not chosen:
        publish(Path(folder))
    for one in chosen:
        renew(Path(folder), one)
        count_again(one)
