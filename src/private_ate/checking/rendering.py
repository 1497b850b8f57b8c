"""A check as lines of text for a terminal and as one page. Not private, watermarked throughout."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from private_ate.checking.findings import named, quoted
from private_ate.report.arm_comparison import balance_table, overlap_figure
from private_ate.report.markup import Markup, element, folded, page, table, words_apart

if TYPE_CHECKING:
    from private_ate.checking.findings import DataCheck, Finding

WATERMARK: Final = "NOT PRIVATE, DO NOT SHARE: read off the records themselves, without noise."
TITLES: Final = {
    "bends": ("Problems: would bias or stop the estimate", "bold red"),
    "note": ("Notes", "bold yellow"),
    "ok": ("In order", "bold green"),
}
_WIDEST_NAME: Final = 18
_MOST_LABELS: Final = 12  # of a list that is shown whole
_FIRST_LABELS: Final = 8  # of a longer one
Line = tuple[str, str]  # text and style
_TITLE: Final = "Check of the data"
_MARK: Final = "Not private, do not share"


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
        for line in shortened(check.proposed).split("\n"):
            yield f"  {line}".rstrip(), ""
        yield "", ""
    yield f"{check.rows:,} rows looked at; nothing was spent or stored.", ""
    yield from _wrapped(verdict(check), "", width, "bold")
    yield WATERMARK, "bold"


def shortened(proposed: str) -> str:
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
    problems = len(check.bends)
    notes = sum(finding.severity == "note" for finding in check.findings)
    more = f" {notes} {'note' if notes == 1 else 'notes'}." if notes else ""
    if not problems:
        return f"No problem found that would bias the estimate.{more}"
    what = "problem" if problems == 1 else "problems"
    return f"{problems} {what} would bias or stop the estimate.{more}"


def check_page(check: DataCheck) -> str:
    """Return the page as one document."""
    return page(
        _TITLE,
        element("h1", _TITLE),
        element("p", f"{check.rows:,} rows, read off the records themselves, without noise. "
                f"{verdict(check)}"),
        *_sections(check.findings),
        *_overlap(check),
        *_proposed(check.proposed),
        watermark=_MARK,
    )  # fmt: skip


def _sections(findings: Sequence[Finding]) -> Iterator[Markup]:
    for severity, (title, _) in TITLES.items():
        rows = [
            (words_apart(finding_name(one)), one.sentence, one.remedy)
            for one in findings
            if one.severity == severity
        ]
        if rows:
            yield element("h2", title)
            columns = [("where", ""), ("what", ""), ("remedy", "")]
            yield table("", columns, rows, class_="arms")


def _overlap(check: DataCheck) -> Iterator[Markup]:
    support = check.support
    if support is None:
        return
    yield element("h2", "Overlap")
    several = len(support.effective) > 2
    if several:
        names = ("arm", "units", "effective sample size", "beyond every score of some other arm")
        rows = [
            (quoted(label)[1:-1], f"{check.arms.counts[label]:,}", f"{effective:,.0f}",
             f"{support.outside[label]:,}")
            for label, effective in support.effective.items()
        ]  # fmt: skip
        yield table("", [(name, "") for name in names], rows)
    yield overlap_figure(support.overlap)
    yield element("h2", "Balance")
    if several:
        yield element("p", "The greatest difference over all pairs of arms.")
    yield balance_table(support.balance)


def _proposed(text: str) -> Iterator[Markup]:
    if text:
        yield element("h2", "Proposed for the domain file")
        yield element("pre", shortened(text))
        if shortened(text) != text:
            yield folded("with all labels", element("pre", text))
