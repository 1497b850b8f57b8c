"""Parts of a page that show three arms or more: contrasts, means, sizes and balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from private_ate.effects import monotone_means, risk_ratio, risk_ratio_interval
from private_ate.report.drawings import ForestMark, draw_curve, draw_forest, short_name
from private_ate.report.glance import span_text
from private_ate.report.markup import Markup, element
from private_ate.report.numbers import number_text, pair_text
from private_ate.report.parts import balance_table
from private_ate.report.several import (
    Cells,
    Scope,
    arm_cells,
    arms_in_order,
    contrast_cells,
    mean_error,
    phone_table,
    shown_contrasts,
)
from private_ate.report.words import assumption, headline, noun, percent

if TYPE_CHECKING:
    from private_ate.release import Release
    from private_ate.release.metadata import Contrast, Pair

_MOST_PAIRS = 15  # other pairs that are drawn without being asked for, and tables of balance


def several_part(release: Release, scope: Scope = "all", *, monotone: bool = False) -> list[Markup]:
    """Return the contrasts as a picture and a table, the means, and notes."""
    parts = [element("p", headline(release), class_="soft")]
    if assumption(release):
        told = assumption(release)
        parts.append(element("p", f"{told[:1].upper()}{told[1:]}."))
    rows = shown_contrasts(release, scope)
    reference = release.arms[0].label
    first = [row for row in rows if row.against == reference]
    parts.append(_forest(release, first, f"against {reference}"))
    others = [row for row in rows if row.against != reference]
    if others:
        figure = _forest(release, others, "between the other arms")
        parts.append(_folded(figure, "The other pairs", fold=len(others) > _MOST_PAIRS))
    cells = contrast_cells(release, scope)
    names = [[f"{row[0]} against {row[1]}"] for row in cells.rows]
    table = phone_table("contrast", cells, names, 2, _caption(release, scope))
    parts.append(_folded(table, "All contrasts as a table", fold=len(rows) > _MOST_PAIRS))
    facts = release.facts
    covers = facts.interval_covers if release.interval else facts.noise_interval_covers
    if covers is not None:
        parts.append(element("p", f"The intervals cover {covers}."))
    parts += _means(release, monotone=monotone)
    return [*parts, *(element("p", f"Note: {note}.") for note in facts.notes)]


def _forest(release: Release, rows: Sequence[Contrast], of_what: str) -> Markup:
    marks = [
        ForestMark(
            f"{short_name(row.arm)} against {short_name(row.against)}", row.effect,
            row.interval or row.noise_interval, row.simultaneous,
        )
        for row in rows
    ]  # fmt: skip
    kind = "interval" if release.interval is not None else "interval for the noise alone"
    thin = ", thin ones cover all at once" if rows[0].simultaneous is not None else ""
    line = (
        f"Every {noun(release)} {of_what}. Thick bars: {percent(release)} {kind}{thin}. The "
        f"vertical line is no {noun(release)}."
    )
    told = f"Forest plot of {len(rows)} contrasts {of_what}"
    return element("figure", draw_forest(marks, describe=told), element("figcaption", line))


def _caption(release: Release, scope: Scope) -> str:
    if release.interval is None:
        return "In units of the outcome. The intervals hold the privacy noise alone."
    facts = release.facts
    name = "all pairs" if scope == "all" else "against the reference"
    factor = facts.simultaneous_factor.get(name)
    wider = "" if factor is None else f", {factor:.3g} times as wide"
    which = "all pairs of arms" if scope == "all" else "all arms with the reference"
    return (
        f"In units of the outcome. Intervals “all at once” cover {which} together with "
        f"{percent(release)} confidence{wider}."
    )


def _folded(part: Markup, title: str, *, fold: bool) -> Markup:
    return element("details", element("summary", title), part) if fold else part


def _means(release: Release, *, monotone: bool) -> list[Markup]:
    """Return the means with their intervals, joined to a curve if the arms are doses."""
    arms = [arm for arm in arms_in_order(release) if arm.mean is not None]
    if len(arms) < len(release.arms):
        return []
    error = mean_error(release)
    marks = [
        ForestMark(
            f"{short_name(arm.label, 28)}: {number_text(arm.mean or 0.0, error)}", arm.mean or 0.0,
            arm.interval or arm.noise_interval,
        )
        for arm in arms
    ]  # fmt: skip
    ends = "; ".join(
        f"{mark.name} ({pair_text(mark.inner, error)})" for mark in marks if mark.inner
    )
    told = "Mean outcome if everybody were given an arm, with its interval"
    if not release.facts.doses:
        drawn = draw_forest(marks, describe=f"{told}: {ends}", zero=False)
        return [element("figure", drawn, element("figcaption", f"{told}."))]
    curve = list(monotone_means(release).values()) if monotone else None
    drawn = draw_curve(marks, curve, describe=f"Means by rising dose: {ends}")
    line = f"{told}, from the lowest dose to the highest."
    if curve is not None:
        line += " Dashed: the nearest curve that never turns, by the means' variances."
    return [element("figure", drawn, element("figcaption", line))]


def arms_part(release: Release) -> list[Markup]:
    """Return sizes, means and, of a binary outcome, risk ratios, as a table."""
    facts = release.facts
    cells = arm_cells(release)
    extra = [
        (f"worth {worth:,.0f} of equal weight" if worth is not None else "")
        for worth in (facts.several_effective.get(arm.label) for arm in release.arms)
    ]
    head = [element("th", name, scope="col", class_="number" if is_number else "")
            for name, is_number in zip(cells.head, cells.numbers, strict=True) if name]  # fmt: skip
    rows = []
    for row, worth in zip(cells.rows, extra, strict=True):
        *held, mark = row
        told = ", ".join(text for text in (mark, worth) if text)
        first = element("th", held[0], *_small(told), scope="row")
        rows.append(
            element("tr", first, *(element("td", text, class_="number") for text in held[1:]))
        )
    table = element(
        "table",
        element("caption", "The arms."),
        element("thead", element("tr", *head)),
        element("tbody", *rows),
    )
    return [table, *_ratios(release)]


def _small(text: str) -> list[Markup]:
    return [element("br"), element("span", text, class_="soft")] if text else []


def _ratios(release: Release) -> list[Markup]:
    facts = release.facts
    if not facts.is_binary or any(arm.mean is None for arm in release.arms):
        return []
    reference = release.arms[0].label
    listed = [f"{arm.label} {_ratio(release, arm.label, reference)}" for arm in release.arms[1:]]
    return [element("p", f"Risk ratios against {reference}: {', '.join(listed)}.")]


def _ratio(release: Release, arm: str, against: str) -> str:
    text = f"{risk_ratio(release, arm=arm, against=against):.3g}"
    ends = risk_ratio_interval(release, arm=arm, against=against)
    return text if ends is None else f"{text} ({percent(release)} interval {span_text(*ends)})"


def spread_part(release: Release) -> list[Markup]:
    """Return the love plot of the greatest differences over pairs, and those of pairs, folded."""
    facts = release.facts
    return balance_parts(facts.balance, facts.arm_balance)


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
        table = balance_table(ordered, between)
        parts.append(_folded(table, f"Balance {between}", fold=True))
    return parts


def card_tables(release: Release, caption: Markup) -> list[Markup]:
    """Return the tables of arms and contrasts for a notebook."""
    return [plain_table(arm_cells(release), caption), plain_table(contrast_cells(release), None)]


def plain_table(cells: Cells, caption: Markup | None) -> Markup:
    """Return a table for a notebook, as it is."""
    head = element("tr", *(element("th", name, scope="col") for name in cells.head))
    rows = [
        element("tr", *(element("td", text) for text in row))
        for row in cells.rows
    ]  # fmt: skip
    parts = [] if caption is None else [caption]
    return element("table", *parts, element("thead", head), element("tbody", *rows))
