"""The report page: one file that shows a release, what it promises and how to repeat it.

Only what is in the release, and public facts that the caller adds, can get onto the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from private_ate.effects import e_value
from private_ate.release import ArmOverlap, Overlap
from private_ate.report.arm_parts import (
    arms_part,
    card_tables,
    plain_table,
    several_part,
    spread_part,
)
from private_ate.report.markup import Markup, element, join, page
from private_ate.report.overlap import overlap_figure
from private_ate.report.parts import (
    balance_table,
    budget_part,
    effect_part,
    promise_part,
    warning_boxes,
)
from private_ate.report.several import Scope
from private_ate.report.subgroups import has_subgroups, subgroup_cells, subgroup_part
from private_ate.report.text import summary_rows
from private_ate.report.words import (
    PAPER,
    estimand_name,
    headline,
    noun,
    number_text,
    plain_promise,
    publishable_sentence,
    python_call,
    sampling_words,
    uncertainty,
)
from private_ate.settings import Facts

if TYPE_CHECKING:
    from private_ate.release import Release

__all__ = [
    "PublicFacts",
    "balance_table",
    "release_card",
    "release_page",
    "releases_page",
    "short_lists",
]


@dataclass(frozen=True, slots=True)
class PublicFacts:
    """What a page may add to a release: all of it known without looking at a private column.

    Attributes
    ----------
    command : str
        The command line that made the release.
    domain : str
        The declared domain as TOML.
    treatment, outcome : str
        Column names.
    overlap : Overlap, ArmOverlap or None
        Scores by arm, at label level, where covariates and treatment are public.
    """

    command: str = ""
    domain: str = ""
    treatment: str = ""
    outcome: str = ""
    overlap: Overlap | ArmOverlap | None = None


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
    shown = several_part(release, contrasts, monotone=monotone) if release.arms else None
    sections = _sections(release, facts, shown=shown)
    return page(subject, element("h1", subject), *sections, _footer(release))


def _subject(release: Release, facts: PublicFacts) -> str:
    """Name the page after its columns and what was estimated of them."""
    treatment = facts.treatment or (release.treatment.column if release.treatment else "")
    outcome = facts.outcome or (release.outcome.column if release.outcome else "")
    if not treatment or not outcome:
        return f"{headline(release)}, released with differential privacy"
    if release.estimand == "difference":
        return f"{outcome} by {treatment}: {estimand_name(release)}"
    return f"{'Effects' if release.arms else 'Effect'} of {treatment} on {outcome}"


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
    rows = [
        element("tr", element("th", name.strip(), scope="row"), element("td", value))
        for name, value in summary_rows(release)
    ]
    caption = element("caption", f"{headline(release)}, released by private-ate")
    table = element("table", *([] if release.arms else [caption]), element("tbody", *rows))
    tables = card_tables(release, caption) if release.arms else []
    if has_subgroups(release):
        tables.append(plain_table(subgroup_cells(release), None))
    return join(*warning_boxes(release), *tables, table)


def _sections(
    release: Release,
    facts: PublicFacts,
    heading: str = "",
    shown: list[Markup] | None = None,
) -> list[Markup]:
    if shown is None:
        shown = several_part(release) if release.arms else effect_part(release)
    level = "h3" if heading else "h2"
    parts = [element("h2", heading)] if heading else []
    if not release.is_private:
        parts.append(element("p", plain_promise(release), class_="warning", role="note"))
    parts += warning_boxes(release)
    parts += shown
    parts += subgroup_part(release)
    parts += promise_part(release, level)
    parts += budget_part(release, level)
    parts += _population(release, facts, level)
    parts += _citation(release, level)
    parts += _repeat(release, facts, level)
    return parts


def _population(release: Release, facts: PublicFacts, level: str) -> list[Markup]:
    known = Facts.of(release.settings)
    parts = [
        element(level, f"Whom the {noun(release)} speaks of"),
        element("p", f"{release.n:,} units. Population: "
                f"{known.population or 'all n units (ATE)'}."),
        *_source(release),
    ]  # fmt: skip
    if known.sampling is not None:
        parts.append(element("p", f"Sampling weights: {sampling_words(known.sampling)}."))
    arms, effective = known.arms, known.effective_arms
    if arms is not None:
        text = f"{arms.treated:,} treated and {arms.control:,} control units"
        if effective is not None:
            text += (
                f", worth {effective.treated:,.0f} and {effective.control:,.0f} units of "
                "equal weight"
            )
        parts.append(element("p", f"{text}."))
    means = known.means
    if means is not None:
        error = uncertainty(release)
        parts.append(element("p", "Mean outcome "
            f"{number_text(means.treated, error)} if all were treated, "
            f"{number_text(means.control, error)} if none were.",
            *_ratios(known), *_confounding(release, means.control)))  # fmt: skip
    if release.arms:
        parts += arms_part(release)
        parts += spread_part(release)
    elif known.balance:
        parts.append(balance_table(known.balance))
    if facts.overlap is not None:
        parts.append(overlap_figure(facts.overlap))
    return parts


def _source(release: Release) -> list[Markup]:
    """Say which data the release is about, where the curator gave them a name."""
    named = [
        f"{title} {text}"
        for title, text in (
            ("Data set", release.dataset),
            ("version", release.dataset_version),
            ("asked for at", release.released_at),
        )
        if text is not None
    ]
    line = ", ".join(named)
    return [element("p", f"{line[0].upper()}{line[1:]}.")] if named else []


def _ratios(known: Facts) -> list[str]:
    ratios = (("Risk ratio", known.risk_ratio), ("Odds ratio", known.odds_ratio))
    return [f" {title} {ratio:.3g}." for title, ratio in ratios if ratio is not None]


def _confounding(release: Release, control_risk: float) -> list[str]:
    """Say how strong an unmeasured confounder would have to be, where the release alone tells."""
    if not 0 < control_risk < 1 or not Facts.of(release.settings).has_risks:
        return []
    found = e_value(release)
    text = f" E-value {found.estimate:.3g}"
    if found.limit is not None:
        text += f", {found.limit:.3g} for the interval's end nearer to no effect"
    return [f"{text} (with the control risk taken as known)."]


def _citation(release: Release, level: str) -> list[Markup]:
    methods = f"Matching under differential privacy: {PAPER}."
    return [
        element(level, "How to cite"),
        element("p", publishable_sentence(release)),
        element("p", methods, class_="soft"),
    ]


def _repeat(release: Release, facts: PublicFacts, level: str) -> list[Markup]:
    parts = [
        element(level, "How to repeat it"),
        element("p", "A repetition draws new noise, spends its own ε and gives another number."),
    ]
    if facts.command:
        parts.append(element("pre", element("code", facts.command)))
    parts.append(element("pre", element("code", python_call(release))))
    if facts.domain:
        parts += [
            element("p", "The declared domain:"),
            element("pre", element("code", facts.domain.strip())),
        ]
    parts += [
        element("p", "The release as data, with every setting:"),
        element("pre", element("code", short_lists(release.to_json()))),
    ]
    return parts


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
