"""Take a full run of all experiments into the documentation.

Run ``python docs/make_results.py results`` after ``make reproduce``: pages and figures go to
docs/results, and the table of docs/results/index.md is written anew below its marker.
"""

from __future__ import annotations

import re
import shutil
import sys
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
        page = (results / name / "page.md").read_text("utf-8")
        page = re.sub(r"\]\((figure[\w-]*\.(?:svg|png))\)", rf"]({name}-\1)", page)
        (PAGES / f"{name}.md").write_text(page, "utf-8")
        for figure in (results / name).glob("figure*.*"):
            shutil.copyfile(figure, PAGES / f"{name}-{figure.name}")
    index = PAGES / "index.md"
    said, _, _ = index.read_text("utf-8").partition(MARKER)
    measured = (results / "README.md").read_text("utf-8").partition("\n\n")[2]
    measured = re.sub(r"\]\(([\w-]+)/page\.md\)", r"](\1.md)", measured)
    index.write_text(said + MARKER + "\n" + measured, "utf-8")


if __name__ == "__main__":
    publish(Path(sys.argv[1]))
