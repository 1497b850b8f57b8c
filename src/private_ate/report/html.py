"""The report page: one file that shows a release, what it promises and how to repeat it.

Only what is in the release, and public facts that the caller adds, can get onto the page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from private_ate.release.public_facts import PublicFacts, TableOne
from private_ate.report.arm_comparison import (
    balance_parts,
    balance_table,
    overlap_figure,
    table_one_part,
)
from private_ate.report.effects_table import Scope, by_outcome, has_outcomes
from private_ate.report.html_sections import (
    arms_part,
    budget_part,
    contrasts_part,
    effect_part,
    outcome_part,
    promise_part,
    subgroup_part,
)
from private_ate.report.markup import Markup, element, folded, page, warning_boxes
from private_ate.report.phrasing import (
    PAPER,
    column_title,
    estimand_name,
    headline,
    listed,
    outcome_names,
    plain_promise,
    publishable_sentence,
    python_call,
    titled_balance,
)
from private_ate.report.summary_table import summary_table
from private_ate.report.survival import survival_part

if TYPE_CHECKING:
    from private_ate.release.release import Release

_MOST_COVARIATES = 16  # rows of Table 1 that leave a printed report at two pages


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
    shown = contrasts_part(release, contrasts, monotone=monotone) if release.arms else None
    sections = _sections(release, facts, shown=shown)
    return page(subject, element("h1", subject), *sections, _footer(release))


def _subject(release: Release, facts: PublicFacts) -> str:
    """Name the page after its columns and what was estimated of them."""
    treatment = facts.treatment or (release.treatment.column if release.treatment else "")
    outcome = facts.outcome or (release.outcome.column if release.outcome else "")
    treatment = treatment and column_title(release, treatment)
    outcome = outcome and column_title(release, outcome)
    if has_outcomes(release):
        outcome = listed([column_title(release, name) for name in outcome_names(release)])
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


def _sections(
    release: Release,
    facts: PublicFacts,
    heading: str = "",
    shown: list[Markup] | None = None,
) -> list[Markup]:
    if shown is None:
        shown = contrasts_part(release) if release.arms else effect_part(release)
    level = "h3" if heading else "h2"
    parts = [element("h2", heading)] if heading else []
    if not release.is_private:
        parts.append(element("p", plain_promise(release), class_="warning", role="note"))
    parts += warning_boxes(release.warnings)
    parts += shown
    parts += survival_part(release)
    parts += outcome_part(release)
    for view in by_outcome(release):
        parts += subgroup_part(view)
    parts.append(summary_table(release, analyst=facts.analyst, spent_before=facts.spent_before))
    parts += promise_part(release, level)
    parts += _arms(release, facts, level)
    parts += _citation(release, level)
    parts += budget_part(release, level)
    parts += _repeat(release, facts, level)
    return parts


def _arms(release: Release, facts: PublicFacts, level: str) -> list[Markup]:
    """Return how the arms compare: sizes, covariates and scores, as far as they are public."""
    known = release.facts
    parts: list[Markup] = []
    if release.arms:
        parts += arms_part(release)
    if facts.table is not None:
        parts.append(_table_of_arms(facts.table))
        if release.arms:
            parts += [
                folded("Balance, pair by pair", *balance_parts(known.balance, known.arm_balance))
            ] * bool(known.balance)
    elif release.arms:
        parts += balance_parts(known.balance, known.arm_balance)
    elif known.balance:
        parts.append(balance_table(titled_balance(release)))
    if facts.overlap is not None:
        parts.append(folded("How the arms' propensity scores overlap",
                            overlap_figure(facts.overlap)))  # fmt: skip
    return [element(level, "The arms"), *parts] if parts else []


def _table_of_arms(table: TableOne) -> Markup:
    """Return Table 1, open for as many covariates as fit on two printed pages."""
    shown = table_one_part(table)
    if len(table.rows) <= _MOST_COVARIATES:
        return shown
    count = sum(row.verdict != "balanced" for row in table.rows)
    title = f"Table 1: {len(table.rows)} covariates by arm, {count} of them not balanced"
    return folded(title, shown)


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
    calls = [element("pre", element("code", facts.command))] if facts.command else []
    calls.append(element("pre", element("code", python_call(release))))
    parts.append(folded("The call", *calls))
    if facts.domain:
        declared = element("pre", element("code", facts.domain.strip()))
        parts.append(folded("The declared domain", declared))
    data = element("pre", element("code", short_lists(release.to_json())))
    parts.append(folded("The release as data, with every setting", data))
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
