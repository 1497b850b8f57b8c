"""The report page: one file that shows a release, what it promises and how to repeat it.

Only what is in the release, and public facts that the caller adds, can get onto the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from private_ate.effects import monotone_means
from private_ate.release.public_facts import PublicFacts
from private_ate.report.arm_comparison import arms_part
from private_ate.report.drawings import (
    DEEP,
    SOFT,
    WARM,
    Bar,
    Line,
    draw_bar,
    draw_lines,
    interval_line,
    short_name,
)
from private_ate.report.effects_table import (
    Cells,
    Scope,
    arms_in_order,
    by_outcome,
    contrast_cells,
    effect_tables,
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
from private_ate.report.markup import (
    Cell,
    Markup,
    card,
    code,
    element,
    figure,
    folded,
    join,
    page,
    pairs_table,
    points,
    table,
    warning_boxes,
)
from private_ate.report.phrasing import (
    PAPER,
    assumption,
    capital,
    column_title,
    covered,
    estimand_name,
    formal_promise,
    headline,
    intervals_of,
    listed,
    noun,
    number_text,
    outcome_names,
    pair_text,
    percent,
    plain_promise,
    publishable_sentence,
    python_call,
    uncertainty,
)
from private_ate.report.survival import survival_part
from private_ate.report.text import page_rows, summary_rows

if TYPE_CHECKING:
    from private_ate.release.metadata import Effect
    from private_ate.release.release import Release

_MOST_PAIRS = 15  # other pairs that are drawn without being asked for


def release_page(
    release: Release,
    facts: PublicFacts | None = None,
    *,
    contrasts: Scope = "all",
    monotone: bool = False,
) -> str:
    """Return one self-contained HTML document for a release."""
    facts = facts or PublicFacts()
    subject = _subject(release, facts)
    sections = _sections(release, facts, scope=contrasts, monotone=monotone)
    return page(subject, element("h1", subject), *sections, _footer(release))


def releases_page(
    releases: Sequence[tuple[Release, PublicFacts]], *, title: str, introduction: str
) -> str:
    """Return one document that shows several releases below each other."""
    parts: list[Markup] = [element("h1", title), element("p", introduction)]
    for index, (release, facts) in enumerate(releases):
        if index:
            parts.append(Markup("<hr>"))
        parts += _sections(release, facts, heading=f"{release.level.capitalize()} level")
    return page(title, *parts, _footer(releases[0][0]))


def release_card(release: Release) -> str:
    """Return the summary as a fragment for a notebook: warnings first, then a table."""
    title = f"{headline(release)}, released by private-ate"
    cells = effect_tables(release)
    captions = [each.title for each in cells]
    if release.arms:
        captions[0] = title
    tables = [
        table(caption, [(name, "") for name in each.head], each.rows)
        for each, caption in zip(cells, captions, strict=True)
    ]
    summary = pairs_table("" if release.arms else title, summary_rows(release))
    return card(*warning_boxes(release.warnings), *tables, summary)


def _subject(release: Release, facts: PublicFacts) -> str:
    """Name the page after its columns and what was estimated of them."""
    treatment = facts.treatment or (release.treatment.column if release.treatment else "")
    outcome = facts.outcome or (release.outcome.column if release.outcome else "")
    names = outcome_names(release) if has_outcomes(release) else [outcome]
    if not treatment or not names[0]:
        return f"{headline(release)}, released with differential privacy"
    treatment = column_title(release, treatment)
    outcome = listed([column_title(release, name) for name in names])
    if release.estimand == "difference":
        return f"{outcome} by {treatment}: {estimand_name(release)}"
    return f"{'Effects' if release.arms else 'Effect'} of {treatment} on {outcome}"


def _sections(
    release: Release,
    facts: PublicFacts,
    heading: str = "",
    *,
    scope: Scope = "all",
    monotone: bool = False,
) -> list[Markup]:
    level = "h3" if heading else "h2"
    parts = [element("h2", heading)] if heading else []
    if not release.is_private:
        parts.append(element("p", plain_promise(release), class_="warning", role="note"))
    parts += warning_boxes(release.warnings)
    parts.append(element("p", f"{headline(release)}{_compared(release)}", class_="soft"))
    if release.arms:
        parts += [*_assumption(release), *_contrasts(release, scope)]
        parts += _means(release, monotone=monotone)
    else:
        parts += _effect(release)
    parts += [element("p", f"Note: {note}.") for note in release.facts.notes]
    parts += [*survival_part(release), *_outcomes(release)]
    for view in by_outcome(release):
        parts += _subgroups(view)
    facts_below = page_rows(release, analyst=facts.analyst, spent_before=facts.spent_before)
    return [
        *parts, pairs_table("", facts_below, "facts"), *_promise(release, level),
        *arms_part(release, facts, level), *_citation(release, level), *_budget(release, level),
        *_repeat(release, facts, level),
    ]  # fmt: skip


def _compared(release: Release) -> str:
    """Name both arms by their labels, where the release knows them."""
    if release.treatment is None or release.arms:
        return ""
    control, *_, treated = release.treatment.arms
    return f": {release.treatment.column} = {treated} against {control}"


def _assumption(release: Release) -> list[Markup]:
    return [element("p", f"{capital(text)}.")] if (text := assumption(release)) else []


def _effect(release: Release) -> list[Markup]:
    """Return the number of two arms and its intervals, as a picture and in words."""
    written = number_text(release.ate, uncertainty(release))
    unit = release.outcome.unit if release.outcome else None
    shown = [] if unit is None else [element("span", f" {unit}", class_="unit")]
    parts = [element("p", written, *shown, class_="effect"), *_assumption(release)]
    lines, texts = [], []
    for of_noise, pair, error, covers in intervals_of(release):
        of_what = "the noise alone" if of_noise else f"the {noun(release)}"
        width, color = (2.0, WARM) if of_noise else (4.0, DEEP)
        name = f"{percent(release)} interval for {of_what}"
        lines.append(Line(name, release.ate, [Bar(pair, width, 6, color)], color))
        texts.append((name, pair_text(pair, error), covers))
    if not lines:
        return parts
    describe = "; ".join(
        [f"{estimand_name(release)} {written}", *(f"{name} {pair}" for name, pair, _ in texts)]
    )
    measured = "In units of the outcome." if unit is None else f"In {unit}."
    caption = f"{measured} The vertical line is no {noun(release)}."
    said = [
        f"{name}: {pair}{f', covers {covers}' if covers else ''}." for name, pair, covers in texts
    ]
    return [*parts, figure(draw_lines(lines, describe=describe), caption), points(said)]


def _contrasts(release: Release, scope: Scope) -> list[Markup]:
    """Return the contrasts of several arms as a picture and a table."""
    rows = shown_contrasts(release, scope)
    reference = release.arms[0].label
    first = [row for row in rows if row.against == reference]
    parts = [_contrasts_figure(release, first, f"against {reference}")]
    others = [row for row in rows if row.against != reference]
    if others:
        drawn = _contrasts_figure(release, others, "between the other arms")
        parts.append(folded("The other pairs", drawn) if len(others) > _MOST_PAIRS else drawn)
    cells = contrast_cells(release, scope)
    names = [f"{row[0]} against {row[1]}" for row in cells.rows]
    shown = _phone_table("contrast", cells, names, 2, _contrasts_caption(release, scope))
    parts.append(folded("All contrasts as a table", shown) if len(rows) > _MOST_PAIRS else shown)
    if covered(release):
        parts.append(element("p", f"The intervals cover {covered(release)}."))
    return parts


def _contrasts_figure(release: Release, rows: Sequence[Effect], of_what: str) -> Markup:
    names = [f"{short_name(row.arm)} against {short_name(row.against)}" for row in rows]
    return _forest(
        release, rows, names, f"Every {noun(release)} {of_what}", "all",
        f"Forest plot of {len(rows)} contrasts {of_what}",
    )  # fmt: skip


def _contrasts_caption(release: Release, scope: Scope) -> str:
    if release.interval is None:
        return "In units of the outcome. The intervals hold the privacy noise alone."
    name, which = "against the reference", "all arms with the reference"
    if scope == "all":
        name, which = "all pairs", "all pairs of arms"
    factor = release.facts.simultaneous_factor.get(name)
    wider = "" if factor is None else f", {factor:.3g} times as wide"
    return (
        f"In units of the outcome. Intervals “all at once” cover {which} together with "
        f"{percent(release)} confidence{wider}."
    )


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
    lines = [
        interval_line(
            name, row.estimate, row.interval or row.noise_interval,
            row.simultaneous if paid else None,
        )
        for name, row in zip(names, rows, strict=True)
    ]  # fmt: skip
    kind = "interval" if paid else "interval for the noise alone"
    thin = f", thin ones cover {at_once} at once" if paid else ""
    caption = (
        f"{title}. Thick bars: {percent(release)} {kind}{thin}. The vertical line is no "
        f"{noun(release)}."
    )
    return figure(draw_lines(lines, describe=describe), caption)


def _outcomes(release: Release) -> list[Markup]:
    """Return the outcomes of a page as a table that fits a phone."""
    if not has_outcomes(release):
        return []
    cells = outcome_cells(release)
    names = cells.numbers.index(True)
    caption = "Each in units of its own outcome."
    if release.interval is not None:
        caption += " Intervals “all at once” cover all rows of all outcomes together."
    heads = [row[:names] for row in cells.rows]
    return [element("h2", "Outcomes"), _phone_table("outcome", cells, heads, names, caption)]


def _subgroups(release: Release) -> list[Markup]:
    """Return the subgroups of a page: a forest plot, its table and the test of equal effects."""
    if not has_subgroups(release):
        return []
    rows, cells = subgroup_rows(release), subgroup_cells(release)
    names = [short_name(marked_subgroup(release, row), 28) for row in rows]
    if release.arms:
        names = [f"{name}: {short_name(row.arm)}" for name, row in zip(names, rows, strict=True)]
    place = cells.numbers.index(True)
    heads = [[*row[:place], *([f"{row[place]} units"] if row[place] else [])] for row in cells.rows]
    caption = "In units of the outcome. Intervals “all at once” cover all rows together."
    parts = [
        element("h2", f"Subgroups{of_outcome(release, ': {}')}"),
        _forest(
            release, rows, names, f"The {noun(release)} in every subgroup", "all rows",
            f"Forest plot of {len(rows)} rows of subgroups",
        ),
        _phone_table("subgroup", cells, heads, place + 1, caption),
    ]  # fmt: skip
    tests = equal_effects_lines(release)
    if tests:
        parts.append(element("p", f"Test of equal effects (Cochran): {'; '.join(tests)}."))
    return parts


def _phone_table(
    kind: str, cells: Cells, names: Sequence[Cell], first: int, caption: str
) -> Markup:
    """Return a table that fits a phone: intervals of a row are below each other.

    ``names`` head the rows, ``first`` is the place of the number among the cells.
    """
    columns = [(kind, ""), (cells.head[first], "number"), (cells.head[first + 1 :], "number")]
    rows = [
        (name, row[first], row[first + 1 :]) for name, row in zip(names, cells.rows, strict=True)
    ]
    return table(caption, columns, rows)


def _means(release: Release, *, monotone: bool) -> list[Markup]:
    """Return the means with their intervals, joined to a curve if the arms are doses."""
    held = [(arm, arm.mean) for arm in arms_in_order(release) if arm.mean is not None]
    if len(held) < len(release.arms):
        return []
    error = mean_error(release)
    lines, texts = [], []
    for arm, mean in held:
        ends = arm.interval or arm.noise_interval
        name = f"{short_name(arm.label, 28)}: {number_text(mean, error)}"
        lines.append(interval_line(name, mean, ends))
        texts += [f"{name} ({pair_text(ends, error)})"] if ends else []
    title, shown = (
        "Mean outcome if everybody were given an arm, with its interval",
        "; ".join(texts),
    )
    if not release.facts.doses:
        drawn = draw_lines(lines, describe=f"{title}: {shown}", reference=None)
        return [figure(drawn, f"{title}.")]
    joined = [([mean for _, mean in held], SOFT, "")]
    caption = f"{title}, from the lowest dose to the highest."
    if monotone:
        joined.append((list(monotone_means(release).values()), WARM, "6 4"))
        caption += " Dashed: the nearest curve that never turns, by the means' variances."
    describe = f"Means by rising dose: {shown}"
    return [figure(draw_lines(lines, describe=describe, reference=None, joined=joined), caption)]


def _promise(release: Release, level: str) -> list[Markup]:
    """Return what is promised, plainly and formally, and what is not."""
    unprotected = [
        element("p", "Not protected:"),
        points(f"{capital(text)}." for text in release.not_protected),
    ]
    return [
        element(level, "What is promised"),
        element("p", plain_promise(release), class_="promise"),
        folded(
            "In one formal sentence, and what is not protected",
            element("p", formal_promise(release), class_="soft"),
            *(unprotected if release.not_protected else []),
        ),
    ]


def _citation(release: Release, level: str) -> list[Markup]:
    methods = f"Matching under differential privacy: {PAPER}."
    return [
        element(level, "How to cite"),
        element("p", publishable_sentence(release)),
        element("p", methods, class_="soft"),
    ]


def _budget(release: Release, level: str) -> list[Markup]:
    """Return where ε went, a bar for every step."""
    steps, total = release.facts.budget, float(release.epsilon)
    mechanisms = {step.name: step.mechanism.replace("_", " ") for step in release.steps}
    rows = []
    for step, spent in steps.items():
        used = f" ({mechanisms[step]})" if step in mechanisms else ""
        named = join(step, *([element("span", used, class_="soft")] if used else []))
        describe = f"{step}: {100 * spent / total:.3g} % of ε"
        rows.append((named, f"{spent:.4g}", draw_bar(spent / total, describe=describe)))
    caption = f"Every step that saw private values, of ε = {total:g} in all."
    shown = table(caption, [("step", ""), ("ε", "number"), ("share", "track")], rows)
    return [element(level, "Where ε went"), shown] if steps else []


def _repeat(release: Release, facts: PublicFacts, level: str) -> list[Markup]:
    calls = [code(text) for text in (facts.command, python_call(release)) if text]
    parts = [
        element(level, "How to repeat it"),
        element("p", "A repetition draws new noise, spends its own ε and gives another number."),
        folded("The call", *calls),
    ]
    if facts.domain:
        parts.append(folded("The declared domain", code(facts.domain.strip())))
    data = code(short_lists(release.to_json()))
    return [*parts, folded("The release as data, with every setting", data)]


def short_lists(text: str) -> str:
    """Put lists and small objects of plain values on one line; no text in JSON has a line break."""
    lists = re.sub(r"\[\n([^\[\]{}]*?)\n\s*\]", lambda found: f"[{_one_line(found[1])}]", text)
    return re.sub(r"\{\n([^{}]{1,300}?)\n\s*\}", lambda found: f"{{{_one_line(found[1])}}}", lists)


def _one_line(text: str) -> str:
    return re.sub(r"\n\s*", " ", text).strip()


def _footer(release: Release) -> Markup:
    return element(
        "footer",
        f"Made by private-ate {release.version}. This page holds only the release and public "
        "facts; it loads nothing and sends nothing.",
    )
