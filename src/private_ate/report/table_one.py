"""Table 1: covariates by arm before and after weighting, with a verdict for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from private_ate.report.drawings import draw_track
from private_ate.report.markup import Markup, element, words_apart
from private_ate.report.numbers import number_text

if TYPE_CHECKING:
    from private_ate.release.public_facts import CovariateRow, Moments, TableOne

_MOST_ARMS = 4  # whose means fit side by side


def table_one_part(table: TableOne, whose: str = "") -> Markup:
    """Return the table; ``whose`` says which weights are meant, if not those of the release."""
    is_wide = len(table.labels) <= _MOST_ARMS
    shown = [row for row in table.rows if not _is_empty(row)]
    reach = 1.1 * max([0.2, *(abs(side) for row in shown for side in _sides(row))])
    head = [element("th", "covariate", scope="col")]
    if is_wide:
        head += [
            element("th", *_below(label, f"n = {size:,}"), scope="col", class_="number")
            for label, size in zip(table.labels, table.sizes, strict=True)
        ]
    head += [
        element("th", "difference", scope="col", class_="number"),
        *([element("th", "", scope="col")] if len(table.labels) == 2 else []),
        element("th", "variance ratio", scope="col", class_="number"),
        element("th", "verdict", scope="col", class_="verdict"),
    ]
    labels = table.labels if is_wide else ()
    rows = [_row(row, reach, labels) for row in shown]
    return element(
        "table",
        element("caption", _caption(table, whose)),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
        class_="arms two" if len(table.labels) == 2 else "arms",
    )


def _row(row: CovariateRow, reach: float, labels: Sequence[str]) -> Markup:
    sides = _sides(row)
    cells = [element("th", words_apart(row.name), scope="row")]
    for index, label in enumerate(labels):
        after = row.after[index] if row.after else None
        cells.append(element("td", *_moments(row, index, after), class_="number", data_name=label))
    told = [_signed(side) for side in sides]
    ratios = [row.variance_ratio(side) for side in (row.before, row.after) if side]
    describe = f"{row.name}: standardised difference {', then '.join(told)}"
    drawn = draw_track(sides[0], sides[-1], reach, describe=describe)
    shown = [f"{ratio:.2f}" for ratio in ratios if ratio is not None] or ["–"]
    is_far = " far" if row.verdict == "not balanced" else ""
    cells += [
        element("td", *_below(*told), class_="number", data_name="difference"),
        *([element("td", drawn, class_="mini", data_name="")] if len(row.before) == 2 else []),
        element("td", *_below(*shown), class_="number", data_name="variance ratio"),
        element("td", row.verdict, class_=f"verdict{is_far}", data_name=""),
    ]
    return element("tr", *cells)


def _moments(row: CovariateRow, index: int, after: Moments | None) -> list[Markup]:
    before = row.before[index]
    texts = [_cell(row, before)] + ([] if after is None else [_cell(row, after)])
    return _below(*texts)


def _cell(row: CovariateRow, moments: Moments) -> str:
    if row.is_share:
        return f"{100 * moments.mean:.1f} %"
    mean = number_text(moments.mean, moments.deviation)
    return f"{mean} ({number_text(moments.deviation, moments.deviation)})"


def _signed(value: float) -> str:
    rounded = round(value, 2)
    return "0.00" if rounded == 0 else f"{rounded:+.2f}".replace("-", "−")


def _sides(row: CovariateRow) -> list[float]:
    return [row.difference(side) for side in (row.before, row.after) if side]


def _is_empty(row: CovariateRow) -> bool:
    """Say whether nobody is in a category."""
    return row.is_share and all(one.mean == 0 for one in row.before)


def _below(first: str, *others: str) -> list[Markup]:
    parts = [element("span", first)]
    for text in others:
        parts += [element("br"), element("span", text, class_="soft")]
    return parts


def _caption(table: TableOne, whose: str) -> str:
    pairs = "" if len(table.labels) == 2 else ", the greatest over all pairs of arms"
    lines = " (thin lines)" if len(table.labels) == 2 else ""
    text = "Means (standard deviations) or shares by arm"
    if table.effective:
        text += f"; below each, after weighting{whose}"
    else:
        text += ", before any weighting"
    return (
        f"{text}. Differences are standardised{pairs}: balanced within ±0.1{lines}, nearly "
        "within ±0.25, with variances at most twice as large in one arm as in the other."
    )
