"""Sections of a page that shows a release: number, effects, subgroups, promise, budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from private_ate.effects import monotone_means, risk_ratio, risk_ratio_interval
from private_ate.report.drawings import (
    ForestMark,
    Mark,
    draw_bar,
    draw_curve,
    draw_forest,
    draw_intervals,
    short_name,
)
from private_ate.report.effects_table import (
    Cells,
    Scope,
    arm_cells,
    arms_in_order,
    contrast_cells,
    equal_effects_lines,
    has_outcomes,
    has_subgroups,
    marked_subgroup,
    mean_error,
    of_outcome,
    outcome_cells,
    shown_contrasts,
    subgroup_cells,
    subgroup_rows,
)
from private_ate.report.markup import Markup, element, folded, stacked, table
from private_ate.report.phrasing import (
    assumption,
    capital,
    estimand_name,
    formal_promise,
    headline,
    noise_error,
    noun,
    number_text,
    pair_text,
    percent,
    plain_promise,
    uncertainty,
)
from private_ate.report.summary_table import span_text

if TYPE_CHECKING:
    from private_ate.release.metadata import Effect
    from private_ate.release.release import Release
_MOST_PAIRS = 15  # other pairs that are drawn without being asked for


@dataclass(frozen=True, slots=True)
class _Range:
    """An interval as a page shows it: in words, as a mark, and what it covers."""

    text: str
    mark: Mark
    covers: str | None


def effect_part(release: Release) -> list[Markup]:
    """Return the number, its intervals as a picture and in words, and its notes."""
    written = number_text(release.ate, uncertainty(release))
    parts = [
        element("p", f"{headline(release)}{_compared(release)}", class_="soft"),
        element("p", written, *_unit(release), class_="effect"),
    ]
    if assumption(release):
        parts.append(element("p", _sentence(assumption(release))))
    ranges = _ranges(release)
    if ranges:
        listed = "; ".join(f"{one.mark.name} {one.text}" for one in ranges)
        describe = f"{estimand_name(release)} {written}; {listed}"
        line = f"{_units(release)} The vertical line is no {noun(release)}."
        drawn = draw_intervals([one.mark for one in ranges], describe=describe)
        parts.append(element("figure", drawn, element("figcaption", line)))
        parts.append(element("ul", *(_line(one) for one in ranges)))
    return [*parts, *(element("p", f"Note: {note}.") for note in release.facts.notes)]


def _ranges(release: Release) -> list[_Range]:
    facts, kind = release.facts, percent(release)
    found = []
    if release.interval is not None:
        text = pair_text(release.interval, uncertainty(release))
        name = f"{kind} interval for the {noun(release)}"
        mark = Mark(name, release.ate, *release.interval, strong=True)
        found.append(_Range(text, mark, facts.interval_covers))
    if release.noise_interval is not None:
        text = pair_text(release.noise_interval, noise_error(release))
        name = f"{kind} interval for the noise alone"
        mark = Mark(name, release.ate, *release.noise_interval, strong=False)
        found.append(_Range(text, mark, facts.noise_interval_covers))
    return found


def _line(one: _Range) -> Markup:
    tail = f", covers {one.covers}." if one.covers else "."
    return element("li", f"{one.mark.name}: {one.text}{tail}")


def _sentence(text: str) -> str:
    return f"{capital(text)}."


def _unit(release: Release) -> list[Markup]:
    unit = release.outcome.unit if release.outcome else None
    return [] if unit is None else [element("span", f" {unit}", class_="unit")]


def _compared(release: Release) -> str:
    """Name both arms by their labels, where the release knows them."""
    if release.treatment is None:
        return ""
    control, *_, treated = release.treatment.arms
    return f": {release.treatment.column} = {treated} against {control}"


def _units(release: Release) -> str:
    unit = release.outcome.unit if release.outcome else None
    return "In units of the outcome." if unit is None else f"In {unit}."


def promise_part(release: Release, level: str) -> list[Markup]:
    """Return what is promised, plainly and formally, and what is not."""
    return [
        element(level, "What is promised"),
        element("p", plain_promise(release), class_="promise"),
        element(
            "details",
            element("summary", "In one formal sentence, and what is not protected"),
            element("p", formal_promise(release), class_="soft"),
            *_unprotected(release),
        ),
    ]


def _unprotected(release: Release) -> list[Markup]:
    if not release.not_protected:
        return []
    listed = [element("li", _sentence(text)) for text in release.not_protected]
    return [element("p", "Not protected:"), element("ul", *listed)]


def budget_part(release: Release, level: str) -> list[Markup]:
    """Return where ε went, a bar for every step."""
    steps = release.facts.budget
    if not steps:
        return []
    total = float(release.epsilon)
    mechanisms = {step.name: step.mechanism.replace("_", " ") for step in release.steps}
    rows = [
        element("tr",
            element("th", step, *_mechanism(mechanisms.get(step)), scope="row"),
            element("td", f"{spent:.4g}", class_="number"),
            element("td", draw_bar(spent / total, describe=(
                f"{step}: {100 * spent / total:.3g} % of ε")), class_="track"),
        )
        for step, spent in steps.items()
    ]  # fmt: skip
    head = [
        element("th", "step", scope="col"),
        element("th", "ε", scope="col", class_="number"),
        element("th", "share", scope="col"),
    ]
    caption = f"Every step that saw private values, of ε = {total:g} in all."
    return [element(level, "Where ε went"), table(caption, head, rows)]


def _mechanism(name: str | None) -> list[Markup]:
    return [] if name is None else [element("span", f" ({name})", class_="soft")]


def contrasts_part(
    release: Release, scope: Scope = "all", *, monotone: bool = False
) -> list[Markup]:
    """Return the contrasts as a picture and a table, the means, and notes."""
    parts = [element("p", headline(release), class_="soft")]
    if assumption(release):
        parts.append(element("p", _sentence(assumption(release))))
    rows = shown_contrasts(release, scope)
    reference = release.arms[0].label
    first = [row for row in rows if row.against == reference]
    parts.append(_contrasts_figure(release, first, f"against {reference}"))
    others = [row for row in rows if row.against != reference]
    if others:
        figure = _contrasts_figure(release, others, "between the other arms")
        parts.append(folded("The other pairs", figure) if len(others) > _MOST_PAIRS else figure)
    cells = contrast_cells(release, scope)
    names = [[f"{row[0]} against {row[1]}"] for row in cells.rows]
    shown = phone_table("contrast", cells, names, 2, _caption(release, scope))
    parts.append(folded("All contrasts as a table", shown) if len(rows) > _MOST_PAIRS else shown)
    facts = release.facts
    covers = facts.interval_covers if release.interval else facts.noise_interval_covers
    if covers is not None:
        parts.append(element("p", f"The intervals cover {covers}."))
    parts += _means(release, monotone=monotone)
    return [*parts, *(element("p", f"Note: {note}.") for note in facts.notes)]


def _contrasts_figure(release: Release, rows: Sequence[Effect], of_what: str) -> Markup:
    names = [f"{short_name(row.arm)} against {short_name(row.against)}" for row in rows]
    return _forest(
        release, rows, names, f"Every {noun(release)} {of_what}", "all",
        f"Forest plot of {len(rows)} contrasts {of_what}",
    )  # fmt: skip


def _forest(
    release: Release,
    rows: Sequence[Effect],
    names: Sequence[str],
    title: str,
    at_once: str,
    describe: str,
) -> Markup:
    """Draw rows of the table, thin bars around those that cover ``at_once``."""
    paid = release.interval is not None
    marks = [
        ForestMark(
            name, row.estimate, row.interval or row.noise_interval,
            row.simultaneous if paid else None,
        )
        for name, row in zip(names, rows, strict=True)
    ]  # fmt: skip
    kind = "interval" if paid else "interval for the noise alone"
    thin = f", thin ones cover {at_once} at once" if paid else ""
    line = (
        f"{title}. Thick bars: {percent(release)} {kind}{thin}. The vertical line is no "
        f"{noun(release)}."
    )
    return element("figure", draw_forest(marks, describe=describe), element("figcaption", line))


def outcome_part(release: Release) -> list[Markup]:
    """Return the outcomes of a page as a table that fits a phone."""
    if not has_outcomes(release):
        return []
    cells = outcome_cells(release)
    names = cells.numbers.index(True)
    heads = [stacked(row[:names]) for row in cells.rows]
    caption = "Each in units of its own outcome."
    if release.interval is not None:
        caption += " Intervals “all at once” cover all rows of all outcomes together."
    return [element("h2", "Outcomes"), phone_table("outcome", cells, heads, names, caption)]


def subgroup_part(release: Release) -> list[Markup]:
    """Return the subgroups of a page: a forest plot, its table and the test of equal effects."""
    if not has_subgroups(release):
        return []
    rows = subgroup_rows(release)
    names = [_subgroup_name(release, row) for row in rows]
    cells = subgroup_cells(release)
    place = cells.numbers.index(True)
    heads = [
        stacked((*row[:place], *([f"{row[place]} units"] if row[place] else [])))
        for row in cells.rows
    ]
    caption = "In units of the outcome. Intervals “all at once” cover all rows together."
    parts = [
        element("h2", f"Subgroups{of_outcome(release, ': {}')}"),
        _forest(
            release, rows, names, f"The {noun(release)} in every subgroup", "all rows",
            f"Forest plot of {len(rows)} rows of subgroups",
        ),
        phone_table("subgroup", cells, heads, place + 1, caption),
    ]  # fmt: skip
    tests = equal_effects_lines(release)
    if tests:
        parts.append(element("p", f"Test of equal effects (Cochran): {'; '.join(tests)}."))
    return parts


def _subgroup_name(release: Release, row: Effect) -> str:
    name = short_name(marked_subgroup(release, row), 28)
    return f"{name}: {short_name(row.arm)}" if release.arms else name


def phone_table(
    kind: str, cells: Cells, names: Sequence[Sequence[Markup | str]], first: int, caption: str
) -> Markup:
    """Return a table that fits a phone: intervals of a row are below each other.

    ``names`` head the rows, ``first`` is the place of the number among the cells.
    """
    head = [
        element("th", kind, scope="col"),
        element("th", cells.head[first], scope="col", class_="number"),
        element("th", *stacked(cells.head[first + 1 :]), scope="col", class_="number"),
    ]
    rows = [
        element(
            "tr",
            element("th", *name, scope="row"),
            element("td", row[first], class_="number"),
            element("td", *stacked(row[first + 1 :]), class_="number"),
        )
        for name, row in zip(names, cells.rows, strict=True)
    ]
    return table(caption, head, rows)


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
    title = "Mean outcome if everybody were given an arm, with its interval"
    if not release.facts.doses:
        drawn = draw_forest(marks, describe=f"{title}: {ends}", zero=False)
        return [element("figure", drawn, element("figcaption", f"{title}."))]
    curve = list(monotone_means(release).values()) if monotone else None
    drawn = draw_curve(marks, curve, describe=f"Means by rising dose: {ends}")
    line = f"{title}, from the lowest dose to the highest."
    if curve is not None:
        line += " Dashed: the nearest curve that never turns, by the means' variances."
    return [element("figure", drawn, element("figcaption", line))]


def arms_part(release: Release) -> list[Markup]:
    """Return sizes, means and, of a binary outcome, risk ratios, as a table."""
    facts = release.facts
    cells = arm_cells(release)
    extra = [
        ("" if units is None else f"worth {units:,.0f} of equal weight")
        for units in (facts.several_effective.get(arm.label) for arm in release.arms)
    ]
    head = [element("th", name, scope="col", class_="number" if is_number else "")
            for name, is_number in zip(cells.head, cells.numbers, strict=True) if name]  # fmt: skip
    rows = []
    for row, effective in zip(cells.rows, extra, strict=True):
        *held, mark = row
        note = ", ".join(text for text in (mark, effective) if text)
        first = element("th", held[0], *_small(note), scope="row")
        rows.append(
            element("tr", first, *(element("td", text, class_="number") for text in held[1:]))
        )
    return [table("The arms.", head, rows), *_ratios(release)]


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
