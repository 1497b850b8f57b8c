"""The report page: one file that shows a release, what it promises and how to repeat it.

Only what is in the release, and public facts that the caller adds, can get onto the page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from private_ate.effects import e_value
from private_ate.release import Overlap
from private_ate.report.drawings import Mark, draw_bar, draw_intervals, draw_track
from private_ate.report.markup import Markup, element, page
from private_ate.report.overlap import overlap_figure
from private_ate.report.words import (
    PAPER,
    estimand_name,
    formal_promise,
    half_width,
    number_text,
    pair_text,
    percent,
    plain_promise,
    publishable_sentence,
    python_call,
)
from private_ate.settings import Facts

if TYPE_CHECKING:
    from private_ate.release import Release

__all__ = ["PublicFacts", "balance_table", "release_page", "releases_page"]


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
    overlap : Overlap or None
        Scores by arm, at label level, where covariates and treatment are public.
    """

    command: str = ""
    domain: str = ""
    treatment: str = ""
    outcome: str = ""
    overlap: Overlap | None = None


def release_page(release: Release, facts: PublicFacts | None = None) -> str:
    """Return one self-contained HTML document for a release."""
    facts = facts or PublicFacts()
    subject = (
        f"Effect of {facts.treatment} on {facts.outcome}"
        if facts.treatment and facts.outcome
        else "A treatment effect, released with differential privacy"
    )
    return page(subject, element("h1", subject), *_sections(release, facts), _footer(release))


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


def balance_table(balance: Mapping[str, Sequence[float]]) -> Markup:
    """Return a love plot as a table: each covariate, its differences and where they lie."""
    reach = 1.1 * max([0.2, *(abs(side) for pair in balance.values() for side in pair)])
    rows = [
        element("tr",
            element("th", name, scope="row"),
            element("td", _difference(before), class_="number"),
            element("td", _difference(after), class_="number"),
            element("td", draw_track(before, after, reach, describe=(
                f"{name}: {before:.3f} before, {after:.3f} after")), class_="track"),
        )
        for name, (before, after) in balance.items()
    ]  # fmt: skip
    head = element(
        "tr",
        element("th", "covariate", scope="col"),
        element("th", "before", scope="col", class_="number"),
        element("th", "after", scope="col", class_="number"),
        element("th", "difference", scope="col"),
    )
    caption = element(
        "caption",
        "Standardised mean differences between the arms, before (hollow) and after weighting "
        "(full). Thin lines: ±0.1.",
    )
    return element("table", caption, element("thead", head), element("tbody", *rows))


def _difference(value: float) -> str:
    return f"{round(value, 3) + 0.0:.3f}".replace("-", "−")  # adding zero turns −0 into 0


def _sections(release: Release, facts: PublicFacts, heading: str = "") -> list[Markup]:
    level = "h3" if heading else "h2"
    parts = [element("h2", heading)] if heading else []
    if not release.is_private:
        parts.append(element("p", plain_promise(release), class_="warning", role="note"))
    parts += _effect(release)
    parts += _promise(release, level)
    parts += _budget(release, level)
    parts += _population(release, facts, level)
    parts += _citation(release, level)
    parts += _repeat(release, facts, level)
    return parts


def _effect(release: Release) -> list[Markup]:
    scale = half_width(release)
    kind = percent(release)
    facts = Facts.of(release.settings)
    marks, texts = [], []
    for pair, name, covers, strong in (
        (release.interval, "interval for the effect", facts.interval_covers, True),
        (
            release.noise_interval,
            "interval for the noise alone",
            facts.noise_interval_covers,
            False,
        ),
    ):
        if pair is None:
            continue
        written = f"{kind} {name}: {pair_text(pair, scale)}"
        marks.append(Mark(f"{kind} {name}", release.ate, *pair, strong=strong))
        texts.append(element("li", written, f", covers {covers}." if covers else "."))
    what = estimand_name(release)
    parts = [
        element("p", what[0].upper() + what[1:].rstrip(","), class_="soft"),
        element("p", number_text(release.ate, scale), class_="effect"),
    ]
    if marks:
        describe = f"{what} {number_text(release.ate, scale)}; " + "; ".join(
            f"{mark.name} {pair_text((mark.low, mark.high), scale)}" for mark in marks
        )
        drawn = draw_intervals(marks, describe=describe)
        caption = element("figcaption", "In units of the outcome. The vertical line is no effect.")
        parts += [element("figure", drawn, caption), element("ul", *texts)]
    parts += [element("p", f"Note: {note}.") for note in facts.notes]
    return parts


def _promise(release: Release, level: str) -> list[Markup]:
    return [
        element(level, "What is promised"),
        element("p", plain_promise(release), class_="promise"),
        element("p", formal_promise(release), class_="soft"),
    ]


def _budget(release: Release, level: str) -> list[Markup]:
    steps = Facts.of(release.settings).budget
    if not steps:
        return []
    total = float(release.epsilon)
    rows = [
        element("tr",
            element("th", step, scope="row"),
            element("td", f"{spent:.4g}", class_="number"),
            element("td", draw_bar(spent / total, describe=(
                f"{step}: {100 * spent / total:.3g} % of ε")), class_="track"),
        )
        for step, spent in steps.items()
    ]  # fmt: skip
    head = element(
        "tr",
        element("th", "step", scope="col"),
        element("th", "ε", scope="col", class_="number"),
        element("th", "share", scope="col"),
    )
    caption = element("caption", f"Every step that saw private values, of ε = {total:g} in all.")
    return [
        element(level, "Where ε went"),
        element("table", caption, element("thead", head), element("tbody", *rows)),
    ]


def _population(release: Release, facts: PublicFacts, level: str) -> list[Markup]:
    known = Facts.of(release.settings)
    parts = [
        element(level, "Whom the effect speaks of"),
        element("p", f"{release.n:,} units. Population: "
                f"{known.population or 'all n units (ATE)'}."),
    ]  # fmt: skip
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
        scale = half_width(release)
        parts.append(element("p", "Mean outcome "
            f"{number_text(means.treated, scale)} if all were treated, "
            f"{number_text(means.control, scale)} if none were.",
            *_ratios(known), *_confounding(release, means.control)))  # fmt: skip
    if known.balance:
        parts.append(balance_table(known.balance))
    if facts.overlap is not None:
        parts.append(overlap_figure(facts.overlap))
    return parts


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
        element("pre", element("code", _short_lists(release.to_json()))),
    ]
    return parts


def _short_lists(text: str) -> str:
    """Put lists of plain values in JSON on one line each; no text in JSON holds a line break."""
    return re.sub(
        r"\[\n([^\[\]{}]*?)\n\s*\]",
        lambda found: "[" + re.sub(r"\n\s*", " ", found[1]).strip() + "]",
        text,
    )


def _footer(release: Release) -> Markup:
    return element(
        "footer",
        f"Made by private-ate {release.version}. This page holds only the release and public "
        "facts; it loads nothing and sends nothing.",
    )
