"""A check as lines of text that fit a terminal, each with the style it is to have there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from private_ate.checking.words import named

if TYPE_CHECKING:
    from private_ate.checking.findings import DataCheck, Finding

__all__ = ["TITLES", "WATERMARK", "check_lines", "check_text", "finding_name", "folded", "verdict"]

WATERMARK: Final = "NOT PRIVATE, DO NOT SHARE: read off the records themselves, without noise."
TITLES: Final = {
    "bends": ("Bends the estimate", "bold red"),
    "note": ("Worth knowing", "bold yellow"),
    "ok": ("In order", "bold green"),
}
_WIDEST_NAME: Final = 18
_MOST_LABELS: Final = 12  # of a list that is shown whole
_FIRST_LABELS: Final = 8  # of a longer one

Line = tuple[str, str]  # text and style


def check_text(check: DataCheck, width: int) -> str:
    """Return the lines of a check as one text."""
    return "\n".join(line for line, _ in check_lines(check, width)) + "\n"


def check_lines(check: DataCheck, width: int) -> Iterator[Line]:
    """Yield the lines of a check, watermarked at either end."""
    width = max(width, 40)
    yield WATERMARK, "bold"
    yield "", ""
    names = [finding_name(finding) for finding in check.findings]
    margin = min(max(map(len, names), default=0), _WIDEST_NAME) + 4
    for severity, (title, style) in TITLES.items():
        chosen = [finding for finding in check.findings if finding.severity == severity]
        if chosen:
            yield title, style
            yield from _section(chosen, margin, width)
            yield "", ""
    if check.proposed:
        yield "Proposed for the domain file", "bold"
        for line in folded(check.proposed).split("\n"):
            yield f"  {line}".rstrip(), ""
        yield "", ""
    yield f"{check.rows:,} rows looked at; nothing was spent or stored.", ""
    yield from _wrapped(verdict(check), "", width, "bold")
    yield WATERMARK, "bold"


def folded(proposed: str) -> str:
    """Return proposed lines with the first labels of long lists, and how many more there are.

    ??? takes the place of the others, so that nobody declares a list that was cut.
    """
    lines: list[str] = []
    for is_label, run in groupby(proposed.split("\n"), key=lambda line: line.startswith("  ")):
        shown = [*run]
        if is_label and len(shown) > _MOST_LABELS:
            more = len(shown) - _FIRST_LABELS
            shown[_FIRST_LABELS:] = [f"  ???,  # … and {more} more labels; the JSON lists all"]
        lines += shown
    return "\n".join(lines)


def _section(findings: Sequence[Finding], margin: int, width: int) -> Iterator[Line]:
    for finding in findings:
        name = finding_name(finding)
        head = f"  {name}".ljust(margin)
        if len(head) > margin:
            yield head, ""
            head = " " * margin
        yield from _wrapped(_ended(finding.sentence), head, width, "")
        if finding.remedy:
            yield from _wrapped("→ " + _ended(finding.remedy), " " * margin, width, "dim")


def _wrapped(text: str, head: str, width: int, style: str) -> Iterator[Line]:
    lines = textwrap.wrap(
        text, width, initial_indent=head, subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )  # fmt: skip
    for line in lines:
        yield line, style


def finding_name(finding: Finding) -> str:
    """Return the column that a finding is about, else its topic."""
    return finding.topic if finding.column is None else named(finding.column)


def _ended(sentence: str) -> str:
    """Begin a sentence with a capital and end it."""
    return f"{sentence[:1].upper()}{sentence[1:]}."


def verdict(check: DataCheck) -> str:
    """Sum up a check in a sentence or two."""
    bends = len(check.bends)
    notes = sum(finding.severity == "note" for finding in check.findings)
    worth = f" {notes} {'is' if notes == 1 else 'are'} worth knowing." if notes else ""
    if not bends:
        return f"Nothing would bend the estimate.{worth}"
    what = "finding would" if bends == 1 else "findings would"
    return f"{bends} {what} bend the estimate.{worth}"
