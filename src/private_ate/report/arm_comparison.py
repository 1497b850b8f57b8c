"""How the arms compare, from public columns: Table 1, balance of covariates, overlap of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

from private_ate.release.public_facts import ArmOverlap, Overlap
from private_ate.report.drawings import Box, draw_boxes, draw_histogram, draw_track, short_name
from private_ate.report.markup import Markup, element, folded, stacked, table, words_apart
from private_ate.report.phrasing import number_text

if TYPE_CHECKING:
    from private_ate.release.metadata import Pair
    from private_ate.release.public_facts import CovariateRow, Moments, TableOne

_MOST_PAIRS = 15  # tables of balance that are shown without being asked for
_MOST_ARMS = 4  # whose means fit side by side
_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


def table_one_part(found: TableOne, whose: str = "") -> Markup:
    """Return the table; ``whose`` says which weights are meant, if not those of the release."""
    is_wide = len(found.labels) <= _MOST_ARMS
    shown = [row for row in found.rows if not _is_empty(row)]
    reach = 1.1 * max([0.2, *(abs(side) for row in shown for side in _sides(row))])
    head = [element("th", "covariate", scope="col")]
    if is_wide:
        head += [
            element("th", *stacked((label, f"n = {size:,}")), scope="col", class_="number")
            for label, size in zip(found.labels, found.sizes, strict=True)
        ]
    head += [
        element("th", "difference", scope="col", class_="number"),
        *([element("th", "", scope="col")] if len(found.labels) == 2 else []),
        element("th", "variance ratio", scope="col", class_="number"),
        element("th", "verdict", scope="col", class_="verdict"),
    ]
    labels = found.labels if is_wide else ()
    rows = [_row(row, reach, labels) for row in shown]
    look = "arms two" if len(found.labels) == 2 else "arms"
    return table(_caption(found, whose), head, rows, class_=look)


def _row(row: CovariateRow, reach: float, labels: Sequence[str]) -> Markup:
    sides = _sides(row)
    cells = [element("th", words_apart(row.name), scope="row")]
    for index, label in enumerate(labels):
        after = row.after[index] if row.after else None
        cells.append(element("td", *_moments(row, index, after), class_="number", data_name=label))
    differences = [_signed(side) for side in sides]
    ratios = [row.variance_ratio(side) for side in (row.before, row.after) if side]
    describe = f"{row.name}: standardised difference {', then '.join(differences)}"
    drawn = draw_track(sides[0], sides[-1], reach, describe=describe)
    shown = [f"{ratio:.2f}" for ratio in ratios if ratio is not None] or ["–"]
    is_far = " far" if row.verdict == "not balanced" else ""
    cells += [
        element("td", *stacked(differences), class_="number", data_name="difference"),
        *([element("td", drawn, class_="mini", data_name="")] if len(row.before) == 2 else []),
        element("td", *stacked(shown), class_="number", data_name="variance ratio"),
        element("td", row.verdict, class_=f"verdict{is_far}", data_name=""),
    ]
    return element("tr", *cells)


def _moments(row: CovariateRow, index: int, after: Moments | None) -> list[Markup]:
    before = row.before[index]
    texts = [_cell(row, before)] + ([] if after is None else [_cell(row, after)])
    return stacked(texts)


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


def _caption(found: TableOne, whose: str) -> str:
    pairs = "" if len(found.labels) == 2 else ", the greatest over all pairs of arms"
    lines = " (thin lines)" if len(found.labels) == 2 else ""
    text = "Means (standard deviations) or shares by arm"
    if found.effective:
        text += f"; below each, after weighting{whose}"
    else:
        text += ", before any weighting"
    return (
        f"{text}. Differences are standardised{pairs}: balanced within ±0.1{lines}, nearly "
        "within ±0.25, with variances at most twice as large in one arm as in the other."
    )


def overlap_figure(overlap: Overlap | ArmOverlap) -> Markup:
    """Return both arms' histograms of scores, back to back; of several arms a panel for each."""
    if isinstance(overlap, ArmOverlap):
        return _panels(overlap)
    shares = [
        [count / (sum(counts) or 1) for count in counts]
        for counts in (overlap.treated, overlap.control)
    ]
    describe = (
        f"Histograms of propensity scores of {sum(overlap.treated)} treated and "
        f"{sum(overlap.control)} control units; {overlap.alone} units lie in bins without "
        "anybody of the other arm"
    )
    caption = element(
        "figcaption",
        f"Propensity scores by arm, as shares of the arm. {overlap.alone:,} units lie where the "
        "other arm has nobody.",
    )
    return element(
        "figure", draw_histogram(shares[0], shares[1], (0.0, 1.0), describe=describe), caption
    )


def _panels(overlap: ArmOverlap) -> Markup:
    """Return for each arm how likely it was, by the arm that units are in, as box plots."""
    panels = [
        element(
            "figure",
            draw_boxes(
                [
                    Box(short_name(label, 40), _places(counts))
                    for label, counts in zip(overlap.labels, scores, strict=True)
                ],
                describe=f"Box plots of the probability of {arm} in every arm",
            ),
            element("figcaption", f"Probability of {arm}, in the units of each arm."),
        )
        for arm, scores in zip(overlap.labels, overlap.counts, strict=True)
    ]
    note = (
        "Overlap, a panel for each arm: how likely it was for units of every arm. Boxes hold half "
        "of the units and lines nine tenths; arms are alike where the boxes of a panel are."
    )
    return element("div", element("p", note), *panels)


def _places(counts: Sequence[int]) -> tuple[float, float, float, float, float] | None:
    """Return quantiles from counts in equal bins, evenly spread within a bin."""
    whole = sum(counts)
    if whole == 0:
        return None
    found = []
    for share in _QUANTILES:
        below, wanted = 0, share * whole
        for index, count in enumerate(counts):
            if count and below + count >= wanted:
                found.append((index + (wanted - below) / count) / len(counts))
                break
            below += count
    first, second, third, fourth, fifth = found
    return first, second, third, fourth, fifth


def balance_table(
    balance: Mapping[str, Sequence[float]], between: str = "between the arms"
) -> Markup:
    """Return a love plot as a table: each covariate, its differences and where they lie."""
    reach = 1.1 * max([0.2, *(abs(side) for pair in balance.values() for side in pair)])
    rows = [
        element("tr",
            element("th", words_apart(name), scope="row"),
            element("td", _difference(before), class_="number"),
            element("td", _difference(after), class_="number"),
            element("td", draw_track(before, after, reach, describe=(
                f"{name}: {before:.3f} before, {after:.3f} after")), class_="track"),
        )
        for name, (before, after) in balance.items()
    ]  # fmt: skip
    head = [
        element("th", "covariate", scope="col"),
        element("th", "before", scope="col", class_="number"),
        element("th", "after", scope="col", class_="number"),
        element("th", "difference", scope="col"),
    ]
    caption = (
        f"Standardised mean differences {between}, before (hollow) and after weighting "
        "(full). Thin lines: ±0.1."
    )
    return table(caption, head, rows, class_="balance")


def _difference(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}".replace("-", "−")  # adding zero turns −0 into 0


def balance_parts(
    balance: Mapping[str, Pair], by_arm: Mapping[str, Mapping[str, Pair]]
) -> list[Markup]:
    """Return the greatest differences over pairs of arms, and those of pairs, folded."""
    if not balance:
        return []
    parts = [balance_table(balance, "between arms, the greatest over all pairs")]
    labels = list(by_arm)
    pairs = list(combinations(labels, 2))
    if len(pairs) > _MOST_PAIRS:
        pairs = [pair for pair in pairs if pair[0] == labels[0]]
    for against, arm in pairs:
        first, second = by_arm[arm], by_arm[against]
        differences = {
            name: (first[name][0] - second[name][0], first[name][1] - second[name][1])
            for name in first.keys() & second.keys()
        }
        ordered = {name: differences[name] for name in first if name in differences}
        between = f"between {arm} and {against}"
        shown = balance_table(ordered, between)
        parts.append(folded(f"Balance {between}", shown))
    return parts
