"""Write the output that README.md and docs/index.md show, from a release of the simulated clinic.

Run ``python docs/make_front.py`` after the text of a release has changed. Noise is new in every
run, so a test compares the words and not the digits.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from private_ate import estimate_ate
from private_ate.datasets.clinic import draw_clinic

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md")
# Rows of the text that a front page shows, in its order; what belongs to a row comes with it.
SHOWN = ("effect of", "effect (", "95 % interval", "units", "arms", "balance", "guarantee")
LEFT_OUT = ("  neighbours", "  means")
WIDTH, _LABEL = 72, 21
_BLOCK = re.compile(r"(<!-- output -->\n```text\n)(.*?)(```\n)", re.DOTALL)


def output() -> str:
    """Return the rows of a fresh release at label level that a front page shows."""
    study = draw_clinic()
    release = estimate_ate(study.frame, domain=study.domain, level="label", epsilon="1.0")
    kept, row, shown = [], False, False
    for line in release.to_text().splitlines():
        if not line.startswith(" "):
            row = shown = line.startswith(SHOWN)
        elif not line.startswith("   "):  # a line about the row above, not its continuation
            shown = row and not line.startswith(LEFT_OUT)
        kept += [line.rstrip()] if shown else []
    return "\n".join(_narrow(kept)) + "\n"


def _narrow(lines: list[str]) -> Iterator[str]:
    """Yield the lines, wrapped so that a page of the site shows them as they are."""
    rows: list[str] = []
    for line in lines:
        if line.startswith(" " * _LABEL):
            rows[-1] += " " + line.strip()
        else:
            rows.append(line)
    for row in rows:
        yield from textwrap.wrap(row, WIDTH, subsequent_indent=" " * _LABEL)


def block(page: Path) -> str:
    """Return what a page shows now."""
    found = _BLOCK.search(page.read_text("utf-8"))
    return found[2] if found else ""


def words(text: str) -> str:
    """Return a text without its digits and its line breaks."""
    return " ".join(re.sub(r"-?\d[\d.,]*", "#", text).split())


if __name__ == "__main__":
    fresh = output()
    for path in PAGES:
        path.write_text(_BLOCK.sub(rf"\g<1>{fresh}\g<3>", path.read_text("utf-8")), "utf-8")
