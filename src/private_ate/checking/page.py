"""A check as one self-contained page for the curator. Not private, watermarked throughout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from private_ate.checking.findings import Arms, ArmsSupport
from private_ate.checking.text import TITLES, finding_name, folded, verdict
from private_ate.checking.words import quoted
from private_ate.report.arm_comparison import balance_table, overlap_figure
from private_ate.report.markup import Markup, element, page, words_apart

if TYPE_CHECKING:
    from private_ate.checking.findings import DataCheck, Finding

__all__ = ["check_page"]

_TITLE: Final = "Check of the data"
_MARK: Final = "Not private, do not share"


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
        chosen = [finding for finding in findings if finding.severity == severity]
        if chosen:
            head = [element("th", name, scope="col") for name in ("where", "what", "remedy")]
            rows = [
                element("tr", element("th", words_apart(finding_name(finding)), scope="row"),
                        element("td", finding.sentence, data_name=""),
                        element("td", finding.remedy, data_name="remedy:" * bool(finding.remedy)))
                for finding in chosen
            ]  # fmt: skip
            yield element("h2", title)
            yield element(
                "table", element("thead", element("tr", *head)), element("tbody", *rows),
                class_="arms",
            )  # fmt: skip


def _overlap(check: DataCheck) -> Iterator[Markup]:
    support = check.support
    if support is None:
        return
    yield element("h2", "Overlap")
    if isinstance(support, ArmsSupport):
        yield _arms_table(support, check.arms)
    yield overlap_figure(support.overlap)
    yield element("h2", "Balance")
    if isinstance(support, ArmsSupport):
        yield element("p", "The greatest difference over all pairs of arms.")
    yield balance_table(support.balance)


def _arms_table(support: ArmsSupport, arms: Arms) -> Markup:
    titles = ("arm", "units", "weigh as much as", "beyond every score of some other arm")
    rows = [
        element("tr", element("th", quoted(label)[1:-1], scope="row"),
                element("td", f"{arms.counts[label]:,}"), element("td", f"{effective:,.0f}"),
                element("td", f"{support.outside[label]:,}"))
        for label, effective in support.effective.items()
    ]  # fmt: skip
    head = element("tr", *(element("th", title, scope="col") for title in titles))
    return element("table", element("thead", head), element("tbody", *rows))


def _proposed(text: str) -> Iterator[Markup]:
    if text:
        yield element("h2", "Proposed for the domain file")
        yield element("pre", folded(text))
        if folded(text) != text:
            summary = element("summary", "with all labels")
            yield element("details", summary, element("pre", text))
