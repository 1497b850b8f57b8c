"""How the arms compare, from public columns: Table 1, balance of covariates, overlap of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

from private_ate.effects import risk_ratio, risk_ratio_interval
from private_ate.release.public_facts import ArmOverlap, Overlap, PublicFacts, TableOne
from private_ate.report.drawings import draw_boxes, draw_histogram, draw_track, short_name
from private_ate.report.effects_table import arm_cells
from private_ate.report.markup import Cell, Markup, element, figure, folded, table, words_apart
from private_ate.report.phrasing import number_text, percent, span_text, titled_balance

if TYPE_CHECKING:
    from private_ate.release.metadata import Pair
    from private_ate.release.public_facts import CovariateRow, Moments
    from private_ate.release.release import Release

_MOST_COVARIATES = 16  # rows of Table 1 that leave a printed report at two pages
_MOST_PAIRS = 15  # tables of balance that are shown without being asked for
_MOST_ARMS = 4  # whose means fit side by side
_QUANTILES: Final = (0.05, 0.25, 0.5, 0.75, 0.95)


def arms_part(release: Release, facts: PublicFacts, level: str) -> list[Markup]:
    """Return how the arms compare: sizes, covariates and scores, as far as they are public."""
    known = release.facts
    parts = _several_arms(release) if release.arms else []
    pairwise = balance_parts(known.balance, known.arm_balance) if release.arms else []
    if facts.table is not None:
        parts.append(_table_of_arms(facts.table))
        parts += [folded("Balance, pair by pair", *pairwise)] if pairwise else []
    elif release.arms:
        parts += pairwise
    elif known.balance:
        parts.append(balance_table(titled_balance(release)))
    if facts.overlap is not None:
        drawn = overlap_figure(facts.overlap)
        parts.append(folded("How the arms' propensity scores overlap", drawn))
    return [element(level, "The arms"), *parts] if parts else []


def _several_arms(release: Release) -> list[Markup]:
    """Return sizes, means and, of a binary outcome, risk ratios."""
    cells, effective = arm_cells(release), release.facts.several_effective
    rows: list[list[Cell]] = []
    for (label, *numbers, mark), arm in zip(cells.rows, release.arms, strict=True):
        units = effective.get(arm.label)
        weighed = "" if units is None else f"worth {units:,.0f} of equal weight"
        note = ", ".join(text for text in (mark, weighed) if text)
        rows.append([[label, note] if note else label, *numbers])
    columns = [(name, "number" * is_number)
               for name, is_number in zip(cells.head, cells.numbers, strict=True)][:-1]  # fmt: skip
    parts = [table("The arms.", columns, rows)]
    if release.facts.is_binary and all(arm.mean is not None for arm in release.arms):
        reference, *others = (arm.label for arm in release.arms)
        ratios = ", ".join(f"{arm} {_ratio(release, arm, reference)}" for arm in others)
        parts.append(element("p", f"Risk ratios against {reference}: {ratios}."))
    return parts


def _ratio(release: Release, arm: str, against: str) -> str:
    text = f"{risk_ratio(release, arm=arm, against=against):.3g}"
    ends = risk_ratio_interval(release, arm=arm, against=against)
    return text if ends is None else f"{text} ({percent(release)} interval {span_text(*ends)})"


def _table_of_arms(found: TableOne) -> Markup:
    """Return Table 1, open for as many covariates as fit on two printed pages."""
    shown = table_one_part(found)
    if len(found.rows) <= _MOST_COVARIATES:
        return shown
    count = sum(row.verdict != "balanced" for row in found.rows)
    title = f"Table 1: {len(found.rows)} covariates by arm, {count} of them not balanced"
    return folded(title, shown)


def table_one_part(found: TableOne, whose: str = "") -> Markup:
    """Return the table; ``whose`` says which weights are meant, if not those of the release."""
    is_pair, is_wide = len(found.labels) == 2, len(found.labels) <= _MOST_ARMS
    shown = [row for row in found.rows if not _is_empty(row)]
    reach = _reach([_sides(row) for row in shown])
    columns: list[tuple[Cell, str]] = [("covariate", "")]
    if is_wide:
        sizes = zip(found.labels, found.sizes, strict=True)
        columns += [((label, f"n = {size:,}"), "number") for label, size in sizes]
    columns += [
        ("difference", "number"), *([("", "mini")] if is_pair else []),
        ("variance ratio", "number"), ("verdict", "verdict"),
    ]  # fmt: skip
    rows = []
    for row in shown:
        sides = _sides(row)
        differences = [_signed(side) for side in sides]
        describe = f"{row.name}: standardised difference {', then '.join(differences)}"
        drawn = draw_track(sides[0], sides[-1], reach, describe=describe)
        ratios = [row.variance_ratio(side) for side in (row.before, row.after) if side]
        verdict: Cell = row.verdict
        if row.verdict == "not balanced":
            verdict = element("span", row.verdict, class_="far")
        moments = zip(*([side for side in (row.before, row.after) if side]), strict=True)
        rows.append(
            [
                words_apart(row.name),
                *([[_moments(row, one) for one in arm] for arm in moments] if is_wide else []),
                differences,
                *([drawn] if is_pair else []),
                [f"{ratio:.2f}" for ratio in ratios if ratio is not None] or "–",
                verdict,
            ]
        )
    look = "arms two" if is_pair else "arms"
    return table(_caption(found, whose), columns, rows, class_=look)


def _moments(row: CovariateRow, moments: Moments) -> str:
    if row.is_share:
        return f"{100 * moments.mean:.1f} %"
    mean = number_text(moments.mean, moments.deviation)
    return f"{mean} ({number_text(moments.deviation, moments.deviation)})"


def _signed(value: float) -> str:
    rounded = round(value, 2)
    return "0.00" if rounded == 0 else f"{rounded:+.2f}".replace("-", "−")


def _sides(row: CovariateRow) -> list[float]:
    return [row.difference(side) for side in (row.before, row.after) if side]


def _reach(differences: Sequence[Sequence[float]]) -> float:
    """Return how far a drawing of differences reaches on either side of zero."""
    return 1.1 * max([0.2, *(abs(side) for sides in differences for side in sides)])


def _is_empty(row: CovariateRow) -> bool:
    """Say whether nobody is in a category."""
    return row.is_share and all(one.mean == 0 for one in row.before)


def _caption(found: TableOne, whose: str) -> str:
    is_pair = len(found.labels) == 2
    pairs = "" if is_pair else ", the greatest over all pairs of arms"
    lines = " (thin lines)" if is_pair else ""
    after = f"; below each, after weighting{whose}" if found.effective else ", before any weighting"
    return (
        f"Means (standard deviations) or shares by arm{after}. Differences are standardised{pairs}:"
        f" balanced within ±0.1{lines}, nearly within ±0.25, with variances at most twice as large "
        "in one arm as in the other."
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
    return figure(
        draw_histogram(shares[0], shares[1], (0.0, 1.0), describe=describe),
        f"Propensity scores by arm, as shares of the arm. {overlap.alone:,} units lie where the "
        "other arm has nobody.",
    )


def _panels(overlap: ArmOverlap) -> Markup:
    """Return for each arm how likely it was, by the arm that units are in, as box plots."""
    names = [short_name(label, 40) for label in overlap.labels]
    panels = []
    for arm, scores in zip(overlap.labels, overlap.counts, strict=True):
        boxes = list(zip(names, map(_quantiles, scores), strict=True))
        drawn = draw_boxes(boxes, describe=f"Box plots of the probability of {arm} in every arm")
        panels.append(figure(drawn, f"Probability of {arm}, in the units of each arm."))
    note = (
        "Overlap, a panel for each arm: how likely it was for units of every arm. Boxes hold half "
        "of the units and lines nine tenths; arms are alike where the boxes of a panel are."
    )
    return element("div", element("p", note), *panels)


def _quantiles(counts: Sequence[int]) -> list[float]:
    """Return quantiles from counts in equal bins, evenly spread within a bin; of nobody none."""
    filled = [(index, count) for index, count in enumerate(counts) if count]
    if not filled:
        return []
    found = []
    for share in _QUANTILES:
        below, wanted = 0, share * sum(counts)
        for index, count in filled:
            if below + count >= wanted:
                found.append((index + (wanted - below) / count) / len(counts))
                break
            below += count
    return found


def balance_table(
    balance: Mapping[str, Sequence[float]], between: str = "between the arms"
) -> Markup:
    """Return a love plot as a table: each covariate, its differences and where they lie."""
    reach = _reach(list(balance.values()))
    rows = [
        (
            words_apart(name), _difference(before), _difference(after),
            draw_track(before, after, reach, describe=(
                f"{name}: {before:.3f} before, {after:.3f} after")),
        )
        for name, (before, after) in balance.items()
    ]  # fmt: skip
    caption = (
        f"Standardised mean differences {between}, before (hollow) and after weighting "
        "(full). Thin lines: ±0.1."
    )
    columns = [
        ("covariate", ""), ("before", "number"), ("after", "number"), ("difference", "track"),
    ]  # fmt: skip
    return table(caption, columns, rows, class_="balance")


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
            for name in first
            if name in second
        }
        between = f"between {arm} and {against}"
        parts.append(folded(f"Balance {between}", balance_table(differences, between)))
    return parts
